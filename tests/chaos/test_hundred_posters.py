"""A hundred posters with idempotency keys over three nodes, each of which is killed meanwhile."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")
pytest.importorskip("msgspec")

from tests.system.cluster.test_idempotent_posters import run

POSTERS, MESSAGES, KILLS = 100, 10, 4


def test_each_message_of_a_hundred_posters_is_there_once() -> None:
    posters = run(POSTERS, MESSAGES, KILLS)
    assert len(posters.answers) == POSTERS * MESSAGES
    assert posters.retries > 0

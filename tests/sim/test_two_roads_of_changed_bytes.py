"""Requests with changed bytes are answered, or refused, as by the general way (ADR 55)."""

from __future__ import annotations

import pytest

from kwire.api.plain import consumer_heartbeats
from kwire.api.plain.fetches import KnownFetch
from tests.sim.two_roads import Road, difference
from tests.sim.two_roads_of_changed_bytes import ChangedFetches, ChangedRequests
from tests.support.effort import seeds

SEEDS_MAX = 40


@pytest.mark.parametrize("road", [ChangedRequests, ChangedFetches])
@pytest.mark.parametrize("seed", seeds(3))
def test_both_roads_make_the_same_of_changed_bytes(road: type[Road], seed: int) -> None:
    assert difference(seed, road=road) is None


def _parts(road: type[Road]) -> bool:
    return any(difference(seed, road=road) for seed in range(SEEDS_MAX))


def test_a_road_that_does_not_see_what_a_member_says_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_heartbeats, "_says_nothing_new", lambda request: True)
    assert _parts(ChangedRequests)


def test_a_road_that_does_not_compare_what_is_said_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes every fetch of a connection for the last one, but for its size and its epoch."""

    class Forgetful(bytes):
        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = bytes.__hash__

    original = KnownFetch.__init__

    def known(self: KnownFetch, *arguments: object) -> None:
        original(self, *arguments)  # type: ignore[arg-type]
        self.head, self.tail = Forgetful(self.head), Forgetful(self.tail)

    monkeypatch.setattr(KnownFetch, "__init__", known)
    assert _parts(ChangedFetches)

"""What a client sees of a slow disk, a wrong clock and a loss of power on command is what it sees
of Apache Kafka 4.4 on a machine that has them.

Recorded by `python -m tests.support.machine.record`; `tests/differential/test_machines_live.py`
asks anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kwire.testing import Broker
from tests.support.machine.record import OUTCOMES
from tests.support.machine.scenes import SCENES
from tests.support.machine.worlds import SETTINGS, CommandedMachine

RECORDED: dict[str, dict[str, str]] = json.loads(OUTCOMES.read_text())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as started:
        yield started


@pytest.mark.parametrize("scene", SCENES)
def test_a_fault_of_the_machine_is_to_a_client_what_the_failure_is(
    broker: Broker, scene: str
) -> None:
    assert SCENES[scene](CommandedMachine(broker)) == RECORDED[scene]

"""Unmodified clients make of a fault on command what they make of the real failure at Apache Kafka.

`python -m tests.support.failing.scenes` records the real ones, and
`tests/differential/test_fault_outcomes_live.py` asks anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kwire.testing import Broker
from tests.support.failing.clients import CLIENTS, Client
from tests.support.failing.scenes import DATA, SCENES, outcome
from tests.support.failing.worlds import Commanded

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
RECORDED: dict[str, dict[str, str]] = json.loads(DATA.read_text())
KEPT = {("disk-full", "aiokafka"): "KafkaStorageError"}
"""Kafka takes a directory offline for good, and its partitions have no leader any more; kwire waits
for space (ADR 22), and the partition goes on refusing what it cannot write."""


@pytest.fixture(scope="module")
def world() -> Iterator[Commanded]:
    with Broker() as broker:
        yield Commanded(broker)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("scene", SCENES)
def test_a_fault_is_to_clients_what_the_failure_is(
    world: Commanded, scene: str, client: Client
) -> None:
    expected = KEPT.get((scene, client.name), RECORDED[scene][client.name])
    assert outcome(scene, client, world) == expected

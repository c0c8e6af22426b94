"""What clients make of faults between two brokers is what they make of Apache Kafka's failures.

`python -m tests.support.failing.pairs` records the real ones, and
`tests/differential/test_pair_outcomes_live.py` asks anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kwire.testing import Cluster
from tests.support.failing.clients import CLIENTS, Client
from tests.support.failing.pairs import DATA, SCENES, CommandedPair, outcome

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
RECORDED: dict[str, dict[str, str]] = json.loads(DATA.read_text())


@pytest.fixture(scope="module")
def pair() -> Iterator[CommandedPair]:
    config = {"replica.lag.time.max.ms": 1000, "offsets.topic.num.partitions": 1}
    with Cluster(3, config=config) as cluster:
        yield CommandedPair(cluster)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("scene", SCENES)
def test_a_fault_of_two_brokers_is_what_the_failure_is(
    pair: CommandedPair, scene: str, client: Client
) -> None:
    assert outcome(scene, client, pair) == RECORDED[scene][client.name]

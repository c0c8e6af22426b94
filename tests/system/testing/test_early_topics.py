"""`kwire.internal.topics.at.start`: internal topics that are there before the first client asks."""

from __future__ import annotations

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing import Broker, BrokerFailed, Cluster
from tests.support.wire import WireClient

SETTING = "kwire.internal.topics.at.start"
GROUP, TRANSACTION = 0, 1


def first_answer(bootstrap: str, kind: int) -> int:
    """The error of FindCoordinator for a key that nobody has asked for before."""
    with WireClient(bootstrap) as client:
        request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["new"])
        found = client.call(request, 4).coordinators[0]
        return int(found.error_code)


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_the_first_consumer_of_a_broker_for_tests_finds_its_coordinator(process: bool) -> None:
    """librdkafka would ask again after a second."""
    with Broker(process=process) as broker:
        assert first_answer(broker.bootstrap, GROUP) == 0
        assert broker.topics() == []
        broker.reset()
        assert first_answer(broker.bootstrap, GROUP) == 0
        broker.restart()
        assert first_answer(broker.bootstrap, GROUP) == 0


def test_the_first_consumer_of_a_cluster_for_tests_finds_its_coordinator() -> None:
    with Cluster() as cluster:
        assert first_answer(cluster[1].bootstrap, GROUP) == 0


def test_those_that_are_named_are_made_and_no_others() -> None:
    with Broker(config={SETTING: "__transaction_state"}) as broker:
        assert first_answer(broker.bootstrap, TRANSACTION) == 0
        missing = first_answer(broker.bootstrap, GROUP)
        assert missing == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_broker_starts_without_one_that_cannot_be_made() -> None:
    with Broker(config={"offsets.topic.replication.factor": 3}) as broker:
        missing = first_answer(broker.bootstrap, GROUP)
        assert missing == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "internal topics wait for the first request: Unable to replicate" in (
            broker.log_text()
        )


def test_a_topic_that_is_not_internal_is_refused() -> None:
    with pytest.raises(BrokerFailed) as refused:
        Broker(config={SETTING: "orders"}).start()
    assert f"{SETTING}: " in str(refused.value)
    assert "__consumer_offsets" in str(refused.value)

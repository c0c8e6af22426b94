"""A transactional producer adds offsets of a group before `__consumer_offsets` exists: Kafka takes
them, and a client that asks for the group's coordinator only afterwards must not wait for ever.

Source: own work (kill loops with librdkafka), measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import Any

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, wait_for
from tests.support.wire import WireClient


def _until_answered(client: WireClient, request: Any, version: int) -> Any:
    """The response once the coordinator is there."""

    def answered() -> Any:
        response = client.call(request, version)
        first = response.coordinators[0] if hasattr(response, "coordinators") else response
        if first.error_code in (14, 15, 16):
            return None
        assert first.error_code == 0, first
        return response

    return wait_for(answered, "a coordinator")


def test_offsets_are_added_before_their_topic_exists() -> None:
    with Broker() as broker, WireClient(broker.bootstrap) as client:
        find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=["copier"])
        _until_answered(client, find, 4)
        init = m.InitProducerIdRequest(transactional_id="copier", transaction_timeout_ms=60_000)
        producer = _until_answered(client, init, 4)
        names: dict[str, Any] = {
            "transactional_id": "copier",
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }
        added = client.call(m.AddOffsetsToTxnRequest(group_id="readers", **names), 3)
        assert added.error_code == 0
        assert "__consumer_offsets" not in client.topics()
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"])
        _until_answered(client, find, 4)
        ended = client.call(m.EndTxnRequest(committed=True, **names), 3)
        assert ended.error_code == 0

"""Who leads a partition, for clients: errors, leader hints (KIP-951) and endpoints."""

from __future__ import annotations

from typing import Any

from kwire.protocol.errors import ErrorCode
from kwire.server.context import RequestContext

HINTED_ERRORS = (
    int(ErrorCode.NOT_LEADER_OR_FOLLOWER),
    int(ErrorCode.FENCED_LEADER_EPOCH),
)


def missing_partition_error(node: Any, topic: str, index: int) -> ErrorCode:
    """Why a partition is not hosted here: it is led elsewhere, or does not exist."""
    if node.image.topics.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


class LeaderHints:
    """Collects the current leaders that a response names, and their endpoints."""

    def __init__(self, context: RequestContext) -> None:
        self._node = context.node
        self._listener_name = context.listener_name
        self._leaders: dict[int, None] = {}

    def leader_of(self, topic: str, index: int) -> tuple[int, int]:
        """(leader id, leader epoch) as the metadata has it; (-1, -1) when there is none."""
        partition = self._node.image.topics.partition(topic, index)
        if partition is None:
            return -1, -1
        if partition.leader >= 0:
            self._leaders[partition.leader] = None
        return partition.leader, partition.leader_epoch

    def endpoints(self, endpoint_class: Any) -> list[Any]:
        """NodeEndpoints of the leaders named so far, by this request's listener."""
        found = []
        for node_id in self._leaders:
            broker = self._node.image.brokers.get(node_id)
            endpoint = None if broker is None else broker.endpoint(self._listener_name)
            if broker is not None and endpoint is not None:
                found.append(
                    endpoint_class(
                        node_id=node_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                    )
                )
        return found

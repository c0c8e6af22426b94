"""Who leads a partition, for clients: errors, leader hints (KIP-951) and endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from kwire.faults.asked import NameOf, partition_of, topic_of
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.images.topics import TopicsImage
from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Message, Struct

EndpointT = TypeVar(
    "EndpointT",
    "m.FetchResponse.NodeEndpoint",
    "m.ProduceResponse.NodeEndpoint",
    "m.ShareFetchResponse.NodeEndpoint",
    "m.ShareAcknowledgeResponse.NodeEndpoint",
)

HINTED_ERRORS = (
    int(ErrorCode.NOT_LEADER_OR_FOLLOWER),
    int(ErrorCode.FENCED_LEADER_EPOCH),
)
CODES = ("error_code", "acknowledge_error_code")
LEADER_FIELDS = ("leader_id", "leader_epoch")
LEADER, ENDPOINTS = "current_leader", "node_endpoints"


def missing_partition_error(topics: TopicsImage, topic: str, index: int) -> ErrorCode:
    """Why a partition is not hosted here: it is led elsewhere, or does not exist."""
    if topics.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


class LeaderHints:
    """Collects the current leaders that a response names, and their endpoints."""

    def __init__(self, image: MetadataImage, listener_name: str) -> None:
        self._image = image
        self._listener_name = listener_name
        self._leaders: dict[int, None] = {}

    def leader_of(self, topic: str, index: int) -> tuple[int, int]:
        """(leader id, leader epoch) as the metadata has it; (-1, -1) when there is none."""
        partition = self._image.topics.partition(topic, index)
        if partition is None:
            return -1, -1
        if partition.leader >= 0:
            self._leaders[partition.leader] = None
        return partition.leader, partition.leader_epoch

    def endpoints(self, endpoint_class: type[EndpointT]) -> list[EndpointT]:
        """NodeEndpoints of the leaders named so far, by this request's listener."""
        found: list[EndpointT] = []
        for node_id in self._leaders:
            broker = self._image.brokers.get(node_id)
            endpoint = None if broker is None else broker.endpoint(self._listener_name)
            if broker is not None and endpoint is not None:
                found.append(
                    endpoint_class(
                        node_id=node_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                    )
                )
        return found


def name_leaders(response: Message, version: int, hints: LeaderHints, name_of: NameOf) -> None:
    """Beside each error of a response that has to do with leaders, who leads; nothing where the
    response has no place for it at this version."""
    if not isinstance(
        response,
        m.ProduceResponse | m.FetchResponse | m.ShareFetchResponse | m.ShareAcknowledgeResponse,
    ):
        return
    place = next(one for one in response.SCHEMA.root.fields if one.name == ENDPOINTS)
    if not schema.within(version, place.versions):
        return
    for topic in response.responses:
        name = topic_of(topic, name_of)
        told: Sequence[Struct]
        if isinstance(topic, m.ProduceResponse.TopicProduceResponse):
            told = topic.partition_responses
        else:
            told = topic.partitions
        for one in told:
            index = partition_of(one)
            if name is not None and index is not None and _is_hinted(one):
                leader = response.STRUCTS["LeaderIdAndEpoch"]()
                for field, value in zip(LEADER_FIELDS, hints.leader_of(name, index), strict=True):
                    setattr(leader, field, value)
                setattr(one, LEADER, leader)
    match response:
        case m.ProduceResponse():
            response.node_endpoints = hints.endpoints(m.ProduceResponse.NodeEndpoint)
        case m.FetchResponse():
            response.node_endpoints = hints.endpoints(m.FetchResponse.NodeEndpoint)
        case m.ShareFetchResponse():
            response.node_endpoints = hints.endpoints(m.ShareFetchResponse.NodeEndpoint)
        case m.ShareAcknowledgeResponse():
            response.node_endpoints = hints.endpoints(m.ShareAcknowledgeResponse.NodeEndpoint)


def _is_hinted(said: Struct) -> bool:
    return any(getattr(said, field, 0) in HINTED_ERRORS for field in CODES)

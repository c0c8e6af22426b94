"""Replies that tell clients where to connect, and how they lead back to a proxy.

    Metadata, DescribeCluster        brokers (DescribeCluster also of controllers)
    FindCoordinator                  the coordinator, or one a key
    Produce, Fetch, ShareFetch, ShareAcknowledge    node_endpoints: the new leaders (KIP-951)
    ApiVersions                      no address; versions of these APIs that are not known here are
                                     taken out, as what cannot be read cannot be changed

DescribeQuorum tells where controllers talk to each other; no client connects by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.structs import Message

Mapped = Callable[[str, int], tuple[str, int]]
"""(host, port) as the cluster says it -> where the proxy serves it. OSError: nowhere."""

WITH_ADDRESSES = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.FIND_COORDINATOR,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
)


class Addressed(Protocol):
    """A struct that says where a node is; without a port there is none."""

    host: str
    port: int


def leads_back(message: Message, mapped: Mapped) -> bool:
    """Change the addresses in a reply, in place: whether there was anything to change."""
    if isinstance(message, m.ApiVersionsResponse):
        return _without_unknown_versions(message)
    changed = False
    for place in _addresses(message):
        if place.host and place.port > 0:
            place.host, place.port = mapped(place.host, place.port)
            changed = True
    return changed


def _addresses(message: Message) -> Iterable[Addressed]:
    if isinstance(message, m.MetadataResponse | m.DescribeClusterResponse):
        return message.brokers
    if isinstance(message, m.FindCoordinatorResponse):
        return [message, *message.coordinators]
    if isinstance(message, m.ProduceResponse | m.FetchResponse):
        return message.node_endpoints if message.is_set("node_endpoints") else ()
    if isinstance(message, m.ShareFetchResponse | m.ShareAcknowledgeResponse):
        return message.node_endpoints
    return ()


def _without_unknown_versions(message: m.ApiVersionsResponse) -> bool:
    changed = False
    for offered in message.api_keys:
        if offered.api_key in WITH_ADDRESSES:
            info = API_KEYS[offered.api_key]
            known = info.max if info.unstable_max is None else info.unstable_max
            if offered.max_version > known:
                offered.max_version = known
                changed = True
    return changed

"""Generated from `schema/api/describe_cluster.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeClusterRequest(Request["DescribeClusterResponse"]):
    """DescribeClusterRequest, versions 0-2: a request."""

    __slots__ = ("endpoint_type", "include_cluster_authorized_operations", "include_fenced_brokers")
    FIELDS = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")
    API_KEY = 60
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeClusterResponse(Message):
    """DescribeClusterResponse, versions 0-2: a response."""

    __slots__ = (
        "brokers",
        "cluster_authorized_operations",
        "cluster_id",
        "controller_id",
        "endpoint_type",
        "error_code",
        "error_message",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )
    API_KEY = 60
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    class DescribeClusterBroker(Struct):
        __slots__ = ("broker_id", "host", "is_fenced", "port", "rack")
        FIELDS = ("broker_id", "host", "port", "rack", "is_fenced")

        def __init__(
            self,
            *,
            broker_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            is_fenced: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.broker_id = broker_id
            self.host = host
            self.port = port
            self.rack = rack
            self.is_fenced = is_fenced
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterResponse.DescribeClusterBroker] = UNSET,
        cluster_authorized_operations: int = -2147483648,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is UNSET else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags

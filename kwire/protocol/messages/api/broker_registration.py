"""Generated from `schema/api/broker_registration.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class BrokerRegistrationRequest(Request["BrokerRegistrationResponse"]):
    """BrokerRegistrationRequest, versions 0-4: a request."""

    __slots__ = (
        "broker_id",
        "cluster_id",
        "features",
        "incarnation_id",
        "is_migrating_zk_broker",
        "listeners",
        "log_dirs",
        "previous_broker_epoch",
        "rack",
    )
    FIELDS = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )
    API_KEY = 62
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 4

    class Listener(Struct):
        __slots__ = ("host", "name", "port", "security_protocol")
        FIELDS = ("name", "host", "port", "security_protocol")

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self.security_protocol = security_protocol
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Feature(Struct):
        __slots__ = ("max_supported_version", "min_supported_version", "name")
        FIELDS = ("name", "min_supported_version", "max_supported_version")

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = ZERO,
        listeners: list[BrokerRegistrationRequest.Listener] = UNSET,
        features: list[BrokerRegistrationRequest.Feature] = UNSET,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] = UNSET,
        previous_broker_epoch: int = -1,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is UNSET else listeners
        self.features = [] if features is UNSET else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is UNSET else log_dirs
        self.previous_broker_epoch = previous_broker_epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class BrokerRegistrationResponse(Message):
    """BrokerRegistrationResponse, versions 0-4: a response."""

    __slots__ = ("broker_epoch", "error_code", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "broker_epoch")
    API_KEY = 62
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags

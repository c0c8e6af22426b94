"""Generated from `schema/api/broker_heartbeat.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Tagged, Tags


class BrokerHeartbeatRequest(Request["BrokerHeartbeatResponse"]):
    """BrokerHeartbeatRequest, versions 0-2: a request."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
    )
    FIELDS = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
        "cordoned_log_dirs",
    )
    API_KEY = 63
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    offline_log_dirs = Tagged["list[bytes]"](maker=list)
    cordoned_log_dirs = Tagged["list[bytes] | None"](None)

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] = UNSET,
        cordoned_log_dirs: list[bytes] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self._tagged = None
        if offline_log_dirs is not UNSET:
            self.offline_log_dirs = offline_log_dirs
        if cordoned_log_dirs is not UNSET:
            self.cordoned_log_dirs = cordoned_log_dirs
        if unknown_tags:
            self.unknown_tags = unknown_tags


class BrokerHeartbeatResponse(Message):
    """BrokerHeartbeatResponse, versions 0-2: a response."""

    __slots__ = ("error_code", "is_caught_up", "is_fenced", "should_shut_down", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "is_caught_up", "is_fenced", "should_shut_down")
    API_KEY = 63
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.is_caught_up = is_caught_up
        self.is_fenced = is_fenced
        self.should_shut_down = should_shut_down
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags

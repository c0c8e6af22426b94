"""Generated from `schema/api/add_raft_voter.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class AddRaftVoterRequest(Request["AddRaftVoterResponse"]):
    """AddRaftVoterRequest, versions 0-1: a request."""

    __slots__ = (
        "ack_when_committed",
        "cluster_id",
        "listeners",
        "timeout_ms",
        "voter_directory_id",
        "voter_id",
    )
    FIELDS = (
        "cluster_id",
        "timeout_ms",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "ack_when_committed",
    )
    API_KEY = 80
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class Listener(Struct):
        __slots__ = ("host", "name", "port")
        FIELDS = ("name", "host", "port")

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO,
        listeners: list[AddRaftVoterRequest.Listener] = UNSET,
        ack_when_committed: bool = True,
        unknown_tags: Tags = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is UNSET else listeners
        self.ack_when_committed = ack_when_committed
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AddRaftVoterResponse(Message):
    """AddRaftVoterResponse, versions 0-1: a response."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 80
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags

"""Generated from `schema/api/remove_raft_voter.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags
from kwire.protocol.uuids import ZERO


class RemoveRaftVoterRequest(Request["RemoveRaftVoterResponse"]):
    """RemoveRaftVoterRequest, version 0: a request."""

    __slots__ = ("cluster_id", "voter_directory_id", "voter_id")
    FIELDS = ("cluster_id", "voter_id", "voter_directory_id")
    API_KEY = 81
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO,
        unknown_tags: Tags = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoveRaftVoterResponse(Message):
    """RemoveRaftVoterResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 81
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

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

"""Generated from `schema/api/update_raft_voter.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class UpdateRaftVoterRequest(Request["UpdateRaftVoterResponse"]):
    """UpdateRaftVoterRequest, version 0: a request."""

    __slots__ = (
        "cluster_id",
        "current_leader_epoch",
        "kraft_version_feature",
        "listeners",
        "voter_directory_id",
        "voter_id",
    )
    FIELDS = (
        "cluster_id",
        "current_leader_epoch",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "kraft_version_feature",
    )
    API_KEY = 82
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

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

    class KRaftVersionFeature(Struct):
        __slots__ = ("max_supported_version", "min_supported_version")
        FIELDS = ("min_supported_version", "max_supported_version")

        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO,
        listeners: list[UpdateRaftVoterRequest.Listener] = UNSET,
        kraft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.current_leader_epoch = current_leader_epoch
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is UNSET else listeners
        self.kraft_version_feature = (
            UpdateRaftVoterRequest.KRaftVersionFeature()
            if kraft_version_feature is UNSET
            else kraft_version_feature
        )
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class UpdateRaftVoterResponse(Message):
    """UpdateRaftVoterResponse, version 0: a response."""

    __slots__ = ("error_code", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "current_leader")
    API_KEY = 82
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class CurrentLeader(Struct):
        __slots__ = ("host", "leader_epoch", "leader_id", "port")
        FIELDS = ("leader_id", "leader_epoch", "host", "port")

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    current_leader = Tagged["UpdateRaftVoterResponse.CurrentLeader"](
        maker=lambda: UpdateRaftVoterResponse.CurrentLeader()
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: UpdateRaftVoterResponse.CurrentLeader = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self._tagged = None
        if current_leader is not UNSET:
            self.current_leader = current_leader
        if unknown_tags:
            self.unknown_tags = unknown_tags

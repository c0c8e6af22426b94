"""Generated from `schema/records/raft.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Struct, Tags
from kwire.protocol.uuids import ZERO


class QuorumStateData(Message):
    """QuorumStateData, versions 0-1: a data."""

    __slots__ = (
        "applied_offset",
        "cluster_id",
        "current_voters",
        "leader_epoch",
        "leader_id",
        "voted_directory_id",
        "voted_id",
    )
    FIELDS = (
        "cluster_id",
        "leader_id",
        "leader_epoch",
        "voted_id",
        "voted_directory_id",
        "applied_offset",
        "current_voters",
    )
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 1

    class Voter(Struct):
        __slots__ = ("voter_id",)
        FIELDS = ("voter_id",)

        def __init__(
            self,
            *,
            voter_id: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.voter_id = voter_id
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: bytes = ZERO,
        applied_offset: int = 0,
        current_voters: list[QuorumStateData.Voter] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.cluster_id = cluster_id
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.voted_id = voted_id
        self.voted_directory_id = voted_directory_id
        self.applied_offset = applied_offset
        self.current_voters = [] if current_voters is UNSET else current_voters
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags

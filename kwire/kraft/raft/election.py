"""The election state of a replica and its file, `quorum-state`.

    version  fields, a JSON object on one line without a line end
    0        clusterId leaderId leaderEpoch votedId appliedOffset currentVoters data_version
    1        leaderId leaderEpoch votedId votedDirectoryId data_version

Version 1 is written from kraft.version 1 on (KIP-853; measured on Apache Kafka 4.4).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from kwire.kraft.raft.types import UNKNOWN_ID, ReplicaKey
from kwire.protocol import uuids

QUORUM_STATE_BYTES_MAX = 1 << 20


class QuorumStateError(ValueError):
    """`quorum-state` holds what cannot be read; one line."""


class ElectionState(NamedTuple):
    """What a replica must remember across restarts: epoch, leader, vote."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None
    voter_ids: tuple[int, ...] = ()

    def encode(self, kraft_version: int) -> bytes:
        """The content of `quorum-state`; its version is that of the kraft.version."""
        leader_id = UNKNOWN_ID if self.leader_id is None else self.leader_id
        voted_id = UNKNOWN_ID if self.voted is None else self.voted.id
        if kraft_version == 0:
            voters = ",".join(f'{{"voterId":{voter_id}}}' for voter_id in self.voter_ids)
            text = (
                f'{{"clusterId":"","leaderId":{leader_id},"leaderEpoch":{self.epoch},'
                f'"votedId":{voted_id},"appliedOffset":0,"currentVoters":[{voters}],'
                f'"data_version":0}}'
            )
        else:
            directory = self.voted.directory_or_zero if self.voted is not None else uuids.ZERO
            text = (
                f'{{"leaderId":{leader_id},"leaderEpoch":{self.epoch},"votedId":{voted_id},'
                f'"votedDirectoryId":"{uuids.to_text(directory)}","data_version":1}}'
            )
        return text.encode()

    @classmethod
    def decode(cls, content: bytes) -> ElectionState:
        """From the content of `quorum-state`; raises QuorumStateError."""
        if len(content) > QUORUM_STATE_BYTES_MAX:
            raise QuorumStateError(f"quorum-state has {len(content)} bytes")
        try:
            data = json.loads(content)
            version = int(data["data_version"])
            if version not in (0, 1):
                raise QuorumStateError(f"quorum-state has the unknown version {version}")
            directory = uuids.from_text(data["votedDirectoryId"]) if version == 1 else None
            leader_id, voted_id = int(data["leaderId"]), int(data["votedId"])
            voters = data.get("currentVoters") or []
            return cls(
                epoch=int(data["leaderEpoch"]),
                leader_id=None if leader_id == UNKNOWN_ID else leader_id,
                voted=None if voted_id == UNKNOWN_ID else ReplicaKey.of(voted_id, directory),
                voter_ids=tuple(int(voter["voterId"]) for voter in voters),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, QuorumStateError):
                raise
            raise QuorumStateError(f"quorum-state cannot be read: {error!r}") from None

"""What comes out of `RaftState.step`: to be performed in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kwire.kraft.raft.election import ElectionState
from kwire.kraft.raft.types import Node, OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write `quorum-state` durably before anything that follows."""

    election: ElectionState
    kraft_version: int


@dataclass(frozen=True, slots=True)
class AppendControl:
    """Build and append one control batch: (control record type, message) each."""

    base_offset: int
    epoch: int
    records: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """Append the leader's own data batch, whose offsets and epoch are to be stamped."""

    base_offset: int
    epoch: int
    batch: bytes | bytearray


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Append whole batches from the leader as they are."""

    base_offset: int
    batches: bytes


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Remove the records from `end_offset` on."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class StartAt:
    """Empty the log and start it at a stored snapshot."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class DeleteBefore:
    """Start the log at `snapshot`, delete older segments and the snapshots `gone`."""

    snapshot: OffsetAndEpoch
    gone: tuple[OffsetAndEpoch, ...]


@dataclass(frozen=True, slots=True)
class Flush:
    """Make everything that was appended durable; report `Flushed(token)`. No barrier."""

    token: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; report `Response` or `Failed` with this correlation."""

    correlation: int
    node: Node
    request: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a request."""

    reply_to: Any
    response: Any


@dataclass(frozen=True, slots=True)
class ReplyRecords:
    """Answer a Fetch: put up to `bytes_max` of records from `offset` into its only partition."""

    reply_to: Any
    response: Any
    offset: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class ReplySnapshot:
    """Answer a FetchSnapshot: size and bytes of a stored snapshot from `position` on.

    POSITION_OUT_OF_RANGE is the driver's to answer, which knows the size.
    """

    reply_to: Any
    response: Any
    snapshot: OffsetAndEpoch
    position: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Write a piece of a snapshot that is being fetched; position 0 starts it anew."""

    snapshot: OffsetAndEpoch
    position: int
    chunk: bytes


@dataclass(frozen=True, slots=True)
class FreezeSnapshot:
    """A fetched snapshot is complete: make it durable, report `SnapshotStored`."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class Commit:
    """The high watermark has moved to `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """The state machine must forget its state and load this snapshot."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Another leader or epoch. With this node's id it means: lead from now on, everything up to
    the start of the epoch is committed."""

    leader_id: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The answer to `UpgradeVersion`: code 0 and the offset after its records, or an error."""

    reply_to: Any
    code: int
    message: str | None
    end_offset: int


Effect = (
    PersistElection
    | AppendControl
    | AppendBatch
    | AppendFetched
    | TruncateTo
    | StartAt
    | DeleteBefore
    | Flush
    | Send
    | Reply
    | ReplyRecords
    | ReplySnapshot
    | WriteSnapshot
    | FreezeSnapshot
    | Commit
    | LoadSnapshot
    | LeaderChanged
    | Upgraded
)

"""What comes out of `RaftState.step`: to be performed in order."""

from __future__ import annotations

from kwire.kraft.raft.control_records import ControlRecord
from kwire.kraft.raft.election import ElectionState
from kwire.kraft.raft.messages import RaftRequest
from kwire.kraft.raft.types import Node, OffsetAndEpoch, ReplyTo, value
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.structs import Message


@value
class PersistElection:
    """Write `quorum-state` durably before anything that follows."""

    election: ElectionState
    kraft_version: int


@value
class AppendControl:
    """Build and append one control batch: (control record type, message) each."""

    base_offset: int
    epoch: int
    records: tuple[ControlRecord, ...]


@value
class AppendBatch:
    """Append the leader's own data batch, whose offsets and epoch are to be stamped."""

    base_offset: int
    epoch: int
    batch: bytes | bytearray


@value
class AppendFetched:
    """Append whole batches from the leader as they are."""

    base_offset: int
    batches: bytes


@value
class TruncateTo:
    """Remove the records from `end_offset` on."""

    end_offset: int


@value
class StartAt:
    """Empty the log and start it at a stored snapshot."""

    snapshot: OffsetAndEpoch


@value
class DeleteBefore:
    """Start the log at `snapshot`, delete older segments and the snapshots `gone`."""

    snapshot: OffsetAndEpoch
    gone: tuple[OffsetAndEpoch, ...]


@value
class Flush:
    """Make everything that was appended durable; report `Flushed(token)`. No barrier."""

    token: int


@value
class Send:
    """Send a request; report `Response` or `Failed` with this correlation."""

    correlation: int
    node: Node
    request: RaftRequest


@value
class Reply:
    """Answer a request."""

    reply_to: ReplyTo
    response: Message


@value
class ReplyRecords:
    """Answer a Fetch: put up to `bytes_max` of records from `offset` into its only partition."""

    reply_to: ReplyTo
    response: m.FetchResponse
    offset: int
    bytes_max: int


@value
class ReplySnapshot:
    """Answer a FetchSnapshot: size and bytes of a stored snapshot from `position` on.

    POSITION_OUT_OF_RANGE is the driver's to answer, which knows the size.
    """

    reply_to: ReplyTo
    response: m.FetchSnapshotResponse
    snapshot: OffsetAndEpoch
    position: int
    bytes_max: int


@value
class WriteSnapshot:
    """Write a piece of a snapshot that is being fetched; position 0 starts it anew."""

    snapshot: OffsetAndEpoch
    position: int
    chunk: bytes


@value
class FreezeSnapshot:
    """A fetched snapshot is complete: make it durable, report `SnapshotStored`."""

    snapshot: OffsetAndEpoch


@value
class Commit:
    """The high watermark has moved to `offset`."""

    offset: int


@value
class LoadSnapshot:
    """The state machine must forget its state and load this snapshot."""

    snapshot: OffsetAndEpoch


@value
class LeaderChanged:
    """Another leader or epoch. With this node's id it means: lead from now on, everything up to
    the start of the epoch is committed."""

    leader_id: int | None
    epoch: int


@value
class Upgraded:
    """The answer to `UpgradeVersion`: code 0 and the offset after its records, or an error."""

    reply_to: Pending[None]
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

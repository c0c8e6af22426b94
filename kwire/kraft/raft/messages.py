"""What goes into `RaftState.step`."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

from kwire.kraft.raft.types import OffsetAndEpoch, ReplyTo, value
from kwire.kraft.raft.voters import VoterSet
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.structs import Message as WireMessage
from kwire.protocol.structs import Request as WireRequest

RaftResponse: TypeAlias = (
    "m.AddRaftVoterResponse | m.ApiVersionsResponse | m.BeginQuorumEpochResponse"
    "| m.EndQuorumEpochResponse | m.FetchResponse | m.FetchSnapshotResponse"
    "| m.RemoveRaftVoterResponse | m.UpdateRaftVoterResponse | m.VoteResponse"
)
"""The responses to what raft sends to other nodes."""
RaftRequest: TypeAlias = "WireRequest[RaftResponse]"
"""What raft sends to other nodes."""

R_co = TypeVar("R_co", bound=WireMessage, covariant=True)


@value
class Tick:
    """Time has passed."""


@value
class Request(Generic[R_co]):
    """A request of another node or a client.

    `reply_to` comes back in the effect that answers; `listener` is the name of the listener the
    request came in by; `wall_ms` the wall clock, for the timestamps in DescribeQuorum.
    """

    request: R_co
    version: int
    reply_to: ReplyTo
    listener: str = "CONTROLLER"
    wall_ms: int = 0


@value
class Cancel:
    """Whoever sent the request with this `reply_to` no longer waits."""

    reply_to: ReplyTo


@value
class Response:
    """The response to the request of a `Send` effect."""

    correlation: int
    response: RaftResponse


@value
class Failed:
    """The request of a `Send` effect got no response; `code` is Kafka's error code for why."""

    correlation: int
    code: int


@value
class LeaderRefused:
    """The connection to the leader of `epoch` has closed at `since_ms`, and it refuses another:
    its process is gone, unless something else was heard of it since."""

    leader_id: int
    epoch: int
    since_ms: int


@value
class Append:
    """The leader's state machine appends one batch of `record_count` records.

    Only for the leader of `epoch`; else the step raises KafkaError NOT_LEADER_OR_FOLLOWER.
    """

    batch: bytes | bytearray
    record_count: int
    epoch: int


@value
class Flushed:
    """The `Flush` effect with this token is done: what it covered is durable."""

    token: int


@value
class SnapshotCreated:
    """The state machine has written a snapshot of its committed state."""

    snapshot: OffsetAndEpoch


@value
class SnapshotStored:
    """A snapshot fetched from the leader is complete and durable (after `FreezeSnapshot`).

    `voters` and `kraft_version` are what its control records say, None if they say nothing.
    """

    snapshot: OffsetAndEpoch
    voters: VoterSet | None
    kraft_version: int | None


@value
class DeletePrefix:
    """Retention asks that the log starts at this snapshot."""

    snapshot: OffsetAndEpoch


@value
class Resign:
    """The state machine gives up leadership of `epoch` (it cannot go on)."""

    epoch: int


@value
class Shutdown:
    """The node stops: a leader resigns, nothing new is started."""


@value
class UpgradeVersion:
    """Raise kraft.version to `level` (UpdateFeatures); answered with an `Upgraded` effect."""

    epoch: int
    level: int
    validate_only: bool
    reply_to: Pending[None]


Message = (
    Tick
    | Request[WireMessage]
    | Cancel
    | Response
    | Failed
    | LeaderRefused
    | Append
    | Flushed
    | SnapshotCreated
    | SnapshotStored
    | DeletePrefix
    | Resign
    | Shutdown
    | UpgradeVersion
)

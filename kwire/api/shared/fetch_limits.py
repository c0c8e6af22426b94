"""What a Fetch allows, as a read understands it, and which partitions it may read in passing."""

from __future__ import annotations

from kwire.log.types import (
    COMMITTED,
    HIGH_WATERMARK,
    ISOLATION_LEVELS,
    LOG_END,
    READ_COMMITTED,
    Isolation,
)
from kwire.protocol import messages as m
from kwire.replica.quiet_read import QuietRead, ReadKind
from kwire.replica.reading import ReadLimits
from kwire.server.context import RequestContext
from kwire.server.fetch_sessions import FetchSession, SessionPartition

REPLICA_STATE_FROM = 15
FOLLOWERS_FROM = 11
CONSUMER = -1


def replica_of(context: RequestContext, request: m.FetchRequest) -> int:
    """Which follower asks; negative for a client."""
    if context.api_version >= REPLICA_STATE_FROM:
        return request.replica_state.replica_id
    return request.replica_id


def limits_of(
    context: RequestContext, request: m.FetchRequest, replica_id: int, bytes_max: int
) -> ReadLimits:
    """What the request allows, of at most `bytes_max`."""
    connection, version = context.connection, context.api_version
    return ReadLimits(
        bytes_min=min(request.min_bytes, bytes_max),
        bytes_max=bytes_max,
        wait_ms=request.max_wait_ms,
        isolation=_isolation(request, replica_id),
        replica_id=replica_id,
        from_follower=replica_id == CONSUMER and version >= FOLLOWERS_FROM,
        rack=request.rack_id,
        as_files=connection is not None and connection.sends_files,
        replica_epoch=_replica_epoch(request, version),
    )


def _isolation(request: m.FetchRequest, replica_id: int) -> Isolation:
    if replica_id >= 0:
        return LOG_END
    return COMMITTED if request.isolation_level == READ_COMMITTED else HIGH_WATERMARK


def _replica_epoch(request: m.FetchRequest, version: int) -> int:
    return request.replica_state.replica_epoch if version >= REPLICA_STATE_FROM else -1


def quiet_of(
    session: FetchSession, context: RequestContext, request: m.FetchRequest, replica_id: int
) -> QuietRead[SessionPartition] | None:
    """What of a session need not be looked at by this fetch; None where all has to be."""
    quiet = session.quiet
    if (
        quiet is not None
        and _may_pass(context, request)
        and quiet.kind == _kind_of(context, request, replica_id)
    ):
        return quiet
    return None


def look_for_quiet(
    session: FetchSession, context: RequestContext, request: m.FetchRequest, replica_id: int
) -> QuietRead[SessionPartition] | None:
    """What the partitions may join in which this fetch finds nothing."""
    if not _may_pass(context, request):
        return None
    kind = _kind_of(context, request, replica_id)
    return session.look_for_quiet(kind, context.parts.replicas.traffic.late)


def _may_pass(context: RequestContext, request: m.FetchRequest) -> bool:
    """With an authorizer rights are asked for each time, and a selector may change its mind. A
    negative limit is one of the first partition, whether anything happens there or not."""
    parts = context.parts
    return (
        parts.authorizer is None
        and request.max_bytes >= 0
        and not (request.rack_id and parts.read_context.selector is not None)
        and request.isolation_level in ISOLATION_LEVELS
    )


def _kind_of(context: RequestContext, request: m.FetchRequest, replica_id: int) -> ReadKind:
    version = context.api_version
    return ReadKind(
        _isolation(request, replica_id),
        replica_id,
        _replica_epoch(request, version),
        replica_id == CONSUMER and version >= FOLLOWERS_FROM,
    )

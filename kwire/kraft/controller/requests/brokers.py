"""Broker registration, heartbeats and unregistration (KIP-631), controller registration (KIP-919).

A broker's epoch is the offset of its registration record. A new incarnation whose previous epoch
is not the registered one did not stop cleanly and loses its place among the eligible leaders
(KIP-966).
"""

from __future__ import annotations

from kwire.kraft import features as feature_facts
from kwire.kraft.controller import elections, sliced_elections
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.heartbeats import STILL_MOVING, BrokerState
from kwire.kraft.controller.partition_index import PartitionKey
from kwire.kraft.controller.results import Records, Result, SlicedWork
from kwire.kraft.controller.sliced_elections import is_long
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.cluster import (
    BrokerImage,
    ControllerImage,
    broker_record,
    controller_record,
    endpoints_of,
    features_of,
)
from kwire.kraft.images.topics import is_reserved_directory
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError

SECURITY_PROTOCOLS = range(4)
"""The numbers of PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL."""
CLEAN_SHUTDOWN_VERSION = 3
"""BrokerRegistrationRequest carries the previous epoch from this version on."""


def register_broker(
    state: ControllerState,
    request: m.BrokerRegistrationRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.BrokerRegistrationResponse]:
    """Answer a BrokerRegistrationRequest (versions 0-4). The record is the last of the answer."""
    broker_id = request.broker_id
    existing = state.image.brokers.get(broker_id)
    _check_registration(state, request, existing, context, now_ms)
    same = existing is not None and existing.incarnation_id == request.incarnation_id
    records: Records = []
    if same and existing is not None:
        epoch, fenced = existing.epoch, existing.fenced
        in_shutdown = existing.in_controlled_shutdown
    else:
        if context.next_offset is not None:
            epoch = context.next_offset
        else:
            epoch = state.image.offset + 1
        fenced, in_shutdown = True, False
        was_clean = _was_clean(request, existing, context)
        held = elections.held_before(state, broker_id, was_clean)
        records += elections.shut_down(state, broker_id, was_clean, held)
    broker = BrokerImage(
        broker_id=broker_id,
        epoch=epoch,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_of(request.listeners),
        features=features_of(request.features),
        rack=request.rack,
        fenced=fenced,
        in_controlled_shutdown=in_shutdown,
        directories=tuple(request.log_dirs or ()),
        cordoned_directories=None,
    )
    gates = state.gates
    records.append((broker_record(broker, gates), gates.register_broker_record))
    return records, m.BrokerRegistrationResponse(broker_epoch=epoch)


def register_in_slices(
    state: ControllerState,
    request: m.BrokerRegistrationRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.BrokerRegistrationResponse] | None:
    """The same of a new incarnation of a broker that is in many ISRs, or an eligible leader of many
    partitions; None for all others. The last slice registers it."""
    broker_id, index = request.broker_id, state.index
    existing = state.image.brokers.get(broker_id)
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        return None
    if not is_long(index.isr_count(broker_id) + index.elr_count(broker_id)):
        return None
    return _registering(state, request, existing, context, now_ms)


def _registering(
    state: ControllerState,
    request: m.BrokerRegistrationRequest,
    existing: BrokerImage | None,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.BrokerRegistrationResponse]:
    """The incarnation before stays registered until the last slice, which looks anew at everything.
    One that has registered meanwhile is the later one, and stays."""
    broker_id = request.broker_id
    _check_registration(state, request, existing, context, now_ms)
    was_clean = _was_clean(request, existing, context)
    slices = sliced_elections.all_but_last(elections.held_before(state, broker_id, was_clean))
    for keys in slices:
        if _is_registered(state, request, existing):
            break
        yield sliced_elections.give_up(state, broker_id, was_clean, keys)
    _is_registered(state, request, existing)
    context.next_offset = state.image.offset + 1
    records, response = register_broker(state, request, context, now_ms)
    yield records
    return response


def _is_registered(
    state: ControllerState, request: m.BrokerRegistrationRequest, before: BrokerImage | None
) -> bool:
    """Whether another request of this incarnation has registered it meanwhile. Raises KafkaError
    where one that came later has."""
    broker = state.image.brokers.get(request.broker_id)
    if broker is None or (before is not None and broker.epoch == before.epoch):
        return False
    if broker.incarnation_id != request.incarnation_id:
        raise _already_registered()
    return True


def _was_clean(
    request: m.BrokerRegistrationRequest, existing: BrokerImage | None, context: ControllerContext
) -> bool:
    return (
        context.api_version >= CLEAN_SHUTDOWN_VERSION
        and existing is not None
        and existing.epoch == request.previous_broker_epoch
    )


def _already_registered() -> KafkaError:
    return KafkaError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        "Another broker is registered with that broker id. If the broker was recently "
        "restarted this should self-resolve once the heartbeat manager expires the broker's "
        "session.",
    )


def _check_registration(
    state: ControllerState,
    request: m.BrokerRegistrationRequest,
    existing: BrokerImage | None,
    context: ControllerContext,
    now_ms: int,
) -> None:
    if request.cluster_id != state.config.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {state.config.cluster_id}, but got cluster ID "
            f"{request.cluster_id}",
        )
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and not context.same_process
        and state.heartbeats.has_valid_session(request.broker_id, existing.epoch, now_ms)
    ):
        raise _already_registered()
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        )
    if state.gates.directory_assignment:
        _check_directories(state, request)
    _check_features(state, request)
    _check_listeners(request)


def _check_listeners(
    request: m.BrokerRegistrationRequest | m.ControllerRegistrationRequest,
) -> None:
    """Nothing is written that another node could not read, or could not connect to.

    Apache Kafka 4.4 fails here (-1) and its controller gives up the leadership.
    """
    for listener in request.listeners:
        if not listener.host or not listener.port:
            reason = f"has no address: {listener.host!r}, port {listener.port}"
        elif listener.security_protocol not in SECURITY_PROTOCOLS:
            reason = f"has an unknown security protocol: {listener.security_protocol}"
        else:
            continue
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Listener {listener.name!r} {reason}")


def _check_directories(state: ControllerState, request: m.BrokerRegistrationRequest) -> None:
    directories = request.log_dirs or []
    if not directories:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if any(is_reserved_directory(directory) for directory in directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for directory in directories:
        owner = state.index.directory_owner.get(directory)
        if owner is not None and owner != request.broker_id:
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION,
                f"Broker {owner} is already registered with directory {uuids.to_text(directory)}",
            )


def _check_features(state: ControllerState, request: m.BrokerRegistrationRequest) -> None:
    supported = features_of(request.features)
    finalized = dict(state.image.features.finalized)
    if state.kraft_version > 0:
        finalized[feature_facts.KRAFT_VERSION] = state.kraft_version
    for name, (low, high) in supported.items():
        level = finalized.get(name, 1 if name == feature_facts.METADATA_VERSION else 0)
        _check_feature(name, low, high, level)
    if feature_facts.METADATA_VERSION not in supported:
        raise KafkaError(
            ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'"
        )
    for name, level in finalized.items():
        if name not in supported and level != 0:
            _check_feature(name, 0, 0, level)


def _check_feature(name: str, low: int, high: int, finalized: int) -> None:
    if not low <= finalized <= high:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version "
            f"{finalized} of {name}. The broker wants a version between {low} and {high}, "
            "inclusive.",
        )


def heartbeat(
    state: ControllerState,
    request: m.BrokerHeartbeatRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.BrokerHeartbeatResponse]:
    """Answer a BrokerHeartbeatRequest (versions 0-2)."""
    return _heartbeat(state, request, context, now_ms, None)


def heartbeat_in_slices(
    state: ControllerState,
    request: m.BrokerHeartbeatRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.BrokerHeartbeatResponse] | None:
    """The same of one that begins a controlled shutdown, or begins or ends the fencing, where that
    moves many partitions; None for all others. A broker sends nothing until it has its answer, so
    only the answer that the broker may go, or is fenced, comes when all have moved: the session of
    one that is to live would end while it waits."""
    broker_id, index = request.broker_id, state.index
    broker = state.image.brokers.get(broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return None
    if not is_long(max(index.isr_count(broker_id), index.leaderless_count())):
        return None
    current, wanted = _next_state(state, request)
    if current == wanted:
        return None
    if wanted == BrokerState.UNFENCED and is_long(index.leaderless_count()):
        return _unfencing(state, request, context, now_ms)
    if not is_long(index.isr_count(broker_id)):
        return None
    if wanted == BrokerState.CONTROLLED_SHUTDOWN:
        return _shutting_down(state, request, context, now_ms)
    return _fencing(state, request, context, now_ms) if wanted.is_fenced else None


def _unfencing(
    state: ControllerState,
    request: m.BrokerHeartbeatRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.BrokerHeartbeatResponse]:
    first, left = sliced_elections.first_of(state.index.without_leader())
    records, response = _heartbeat(state, request, context, now_ms, first)
    yield records
    state.begun.append(sliced_elections.unfencing(state, left))
    return response


def _shutting_down(
    state: ControllerState,
    request: m.BrokerHeartbeatRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.BrokerHeartbeatResponse]:
    broker_id, epoch = request.broker_id, request.broker_epoch
    first, left = sliced_elections.first_of(state.index.in_isr(broker_id))
    is_begun = state.heartbeats.is_shutting_down(broker_id)  # by another heartbeat, since
    records, response = _heartbeat(state, request, context, now_ms, None if is_begun else first)
    yield records
    if not is_begun:
        state.begun.append(sliced_elections.shutting_down(state, broker_id, epoch, left))
    return response


def _fencing(
    state: ControllerState,
    request: m.BrokerHeartbeatRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.BrokerHeartbeatResponse]:
    """The last slice decides what becomes of the broker, and of all that is left of it."""
    broker_id, epoch = request.broker_id, request.broker_epoch
    state.check_epoch(broker_id, epoch)
    state.heartbeats.heard_of(broker_id, epoch, now_ms)
    for keys in sliced_elections.all_but_last(elections.held(state, broker_id)):
        state.check_epoch(broker_id, epoch)
        yield sliced_elections.leave(state, broker_id, keys)
    context.next_offset = state.image.offset + 1
    records, response = _heartbeat(state, request, context, now_ms, None)
    yield records
    return response


def _next_state(
    state: ControllerState, request: m.BrokerHeartbeatRequest
) -> tuple[BrokerState, BrokerState]:
    registered_at = state.index.registration_offsets.get(request.broker_id, -1)
    return state.heartbeats.next_state(
        request.broker_id, request, registered_at, state.index.leads_any
    )


def _heartbeat(
    state: ControllerState,
    request: m.BrokerHeartbeatRequest,
    context: ControllerContext,
    now_ms: int,
    first: list[PartitionKey] | None,
) -> Result[m.BrokerHeartbeatResponse]:
    """`first` are the partitions that an unfencing or a controlled shutdown begins with, None for
    all of them."""
    broker_id = request.broker_id
    state.check_epoch(broker_id, request.broker_epoch)
    state.heartbeats.heard_of(broker_id, request.broker_epoch, now_ms)
    registered_at = state.index.registration_offsets.get(broker_id, -1)
    current, wanted = _next_state(state, request)
    records: Records = []
    if current != wanted:
        if wanted.is_fenced:
            records += elections.fence(state, broker_id)
        elif wanted == BrokerState.UNFENCED:
            records += elections.unfence(state, broker_id, first)
        else:
            records += elections.controlled_shutdown(state, broker_id, first)
    state.heartbeats.touch(broker_id, wanted.is_fenced, request.current_metadata_offset)
    if state.gates.directory_assignment:
        records += elections.directories_offline(state, broker_id, request.offline_log_dirs or [])
    if state.gates.cordoned_log_dirs:
        records += elections.directories_cordoned(state, broker_id, request.cordoned_log_dirs)
    if wanted == BrokerState.SHUTDOWN_NOW:
        state.heartbeats.end_session(broker_id)
    elif wanted == BrokerState.CONTROLLED_SHUTDOWN:
        # The broker may go once every other has read what moves its partitions.
        base = state.image.offset + 1 if context.next_offset is None else context.next_offset
        last = base + len(records) - 1 if first is None else STILL_MOVING
        state.heartbeats.enter_controlled_shutdown(broker_id, last)
    return records, m.BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registered_at,
        is_fenced=wanted.is_fenced,
        should_shut_down=wanted == BrokerState.SHUTDOWN_NOW,
    )


def unregister_broker(
    state: ControllerState,
    request: m.UnregisterBrokerRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.UnregisterBrokerResponse]:
    """Answer an UnregisterBrokerRequest (version 0)."""
    if request.broker_id not in state.image.brokers:
        raise sliced_elections.not_registered(request.broker_id)
    records = elections.unregister(state, request.broker_id)
    return records, m.UnregisterBrokerResponse()


def unregister_in_slices(
    state: ControllerState,
    request: m.UnregisterBrokerRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.UnregisterBrokerResponse] | None:
    """The same of a broker that is in many ISRs, or an eligible leader of many partitions; None for
    all others."""
    broker_id, index = request.broker_id, state.index
    if not is_long(max(index.isr_count(broker_id), index.elr_count(broker_id))):
        return None
    return sliced_elections.unregistering(state, request.broker_id)


def register_controller(
    state: ControllerState,
    request: m.ControllerRegistrationRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.ControllerRegistrationResponse]:
    """Answer a ControllerRegistrationRequest (version 0)."""
    version = state.gates.register_controller_record
    if version is None:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    _check_listeners(request)
    controller = ControllerImage(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_of(request.listeners),
        features=features_of(request.features),
    )
    return [(controller_record(controller), version)], m.ControllerRegistrationResponse()


def unregister_controller(
    state: ControllerState,
    request: m.UnregisterControllerRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.UnregisterControllerResponse]:
    """Answer an UnregisterControllerRequest (version 0, metadata.version 4.4-IV2 and later)."""
    if not state.gates.controller_unregistration:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller unregistration.",
        )
    controller_id = request.controller_id
    if controller_id == state.config.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."
        )
    if controller_id not in state.image.controllers:
        raise KafkaError(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            f"Controller ID {controller_id} is not currently registered.",
        )
    record = m.UnregisterControllerRecord(controller_id=controller_id)
    return [(record, 0)], m.UnregisterControllerResponse()

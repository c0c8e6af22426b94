"""What one event of a broker does to many partitions, decided in slices.

Apache Kafka writes the records of such an event in batches of up to 10,000 that do not hang
together, so whoever reads the log may stop between any two of them. Here the batches are smaller,
and other events come in between as well. Each slice is decided by the state that it finds, and the
last one takes all that is left, or has come back meanwhile: a broker leads nothing and is in no ISR
once it is fenced, unregistered or registered anew. Before that it is what it was, to others and for
elections. A new controller begins anew: with the session of the broker, or with what `electing`
finds without a leader.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.kraft.controller import elections
from kwire.kraft.controller.partition_change import PartitionChange
from kwire.kraft.controller.partition_index import PartitionKey
from kwire.kraft.controller.results import Records, SlicedWork
from kwire.kraft.controller.state import ControllerState
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

SLICE_PARTITIONS = 100
"""Decided, appended and followed in one turn of the loop: about 3 ms."""


def is_long(count: int) -> bool:
    """Whether so many partitions are more than one slice."""
    return count > SLICE_PARTITIONS


def all_but_last(keys: list[PartitionKey]) -> list[list[PartitionKey]]:
    """The slices before the last one."""
    return list(slices_of(keys))[:-1]


def first_of(keys: list[PartitionKey]) -> tuple[list[PartitionKey], list[PartitionKey]]:
    """(the first slice, all that is behind it)."""
    return keys[:SLICE_PARTITIONS], keys[SLICE_PARTITIONS:]


def slices_of(keys: list[PartitionKey]) -> Iterator[list[PartitionKey]]:
    for first in range(0, len(keys), SLICE_PARTITIONS):
        yield keys[first : first + SLICE_PARTITIONS]


def fencing(state: ControllerState, broker_id: int, epoch: int) -> SlicedWork[None]:
    """Fence a broker whose session is over. Its heartbeats change nothing meanwhile
    (`Heartbeats.begin_fencing`): what the event has begun it ends, as where it is done at once."""
    try:
        slices = all_but_last(elections.held(state, broker_id))
        for keys in slices:
            if not _is_unfenced(state, broker_id, epoch):
                return
            yield leave(state, broker_id, keys)
        if _is_unfenced(state, broker_id, epoch):
            yield elections.fence(state, broker_id)
    finally:
        state.heartbeats.end_fencing(broker_id)


def _is_unfenced(state: ControllerState, broker_id: int, epoch: int) -> bool:
    """Whether this incarnation of the broker is there and not fenced yet."""
    broker = state.image.brokers.get(broker_id)
    return broker is not None and broker.epoch == epoch and not broker.fenced


def leave(state: ControllerState, broker_id: int, keys: list[PartitionKey]) -> Records:
    """Take a broker out of those of the ISRs that it is in still."""
    in_sync = [key for key in keys if state.index.is_in_isr(broker_id, key)]
    return elections.leader_and_isr_updates(state, in_sync, remove=broker_id)


def unregistering(state: ControllerState, broker_id: int) -> SlicedWork[m.UnregisterBrokerResponse]:
    """Forget a broker; raises KafkaError when somebody else has done so meanwhile."""
    slices = all_but_last(elections.held(state, broker_id))
    for keys in slices:
        if broker_id not in state.image.brokers:
            raise not_registered(broker_id)
        yield leave(state, broker_id, keys)
    if broker_id not in state.image.brokers:
        raise not_registered(broker_id)
    yield elections.unregister(state, broker_id, looks_at_elr=False)
    return m.UnregisterBrokerResponse()


def give_up(
    state: ControllerState, broker_id: int, was_clean: bool, keys: list[PartitionKey]
) -> Records:
    """What a new incarnation of a broker does to those of the partitions that it holds still."""
    index = state.index
    held = [
        key for key in keys if index.is_in_isr(broker_id, key) or index.is_in_elr(broker_id, key)
    ]
    return elections.shut_down(state, broker_id, was_clean, held)


def not_registered(broker_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        f"Broker ID {broker_id} is not currently registered",
    )


def shutting_down(
    state: ControllerState, broker_id: int, epoch: int, keys: list[PartitionKey]
) -> SlicedWork[None]:
    """Go on with a controlled shutdown: the broker leaves the ISRs of `keys`, and may go when all
    others have read that."""
    for each in slices_of(keys):
        if not _is_unfenced(state, broker_id, epoch):
            return
        yield leave(state, broker_id, each)
    if _is_unfenced(state, broker_id, epoch):
        state.heartbeats.moved(broker_id, state.image.offset)


def electing(state: ControllerState, keys: list[PartitionKey]) -> SlicedWork[None]:
    """Leaders for those of these partitions that have none, but no unclean ones."""
    for each in slices_of(keys):
        records: Records = []
        for topic_id, index in each:
            if not state.index.lacks_leader((topic_id, index)):
                continue
            topic = state.image.topics.by_id[topic_id]
            change = PartitionChange(state, topic.name, topic_id, index, topic.partitions[index])
            record = change.build()
            if record is not None:
                records.append(record)
        yield records


def unfencing(state: ControllerState, keys: list[PartitionKey]) -> SlicedWork[None]:
    """Go on with an unfencing: a broker is there that may lead those of `keys` without a leader.
    Where it has gone again meanwhile they stay so."""
    for each in slices_of(keys):
        leaderless = [key for key in each if state.index.lacks_leader(key)]
        yield elections.leader_and_isr_updates(state, leaderless)

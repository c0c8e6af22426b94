"""Which replica a consumer reads from (KIP-392, `replica.selector.class`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kwire.replica.partition import Partition, ReplicaSelector

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER = "org.apache.kafka.common.replica.LeaderSelector"


def rack_aware(
    partition: Partition, offset: int, rack: str, racks: Mapping[int, str | None]
) -> int | None:
    """The replica in the consumer's rack that is farthest, None for the leader.

    `racks` are those of the live brokers. Only replicas in the ISR that hold `offset` count: who
    reads from one that lags lags with it for as long as it does (KAFKA-14372). The leader is
    preferred where it is in that rack; of several others, the one with the largest log end
    (measured on Apache Kafka 4.4).
    """
    state = partition.state
    if racks.get(state.broker_id) == rack:
        return None
    best: tuple[int, int] | None = None
    for replica, progress in state.followers.items():
        if racks.get(replica) != rack or replica not in state.isr:
            continue
        if progress.log_end_offset < offset or progress.log_start_offset > offset:
            continue
        if best is None or progress.log_end_offset > best[0]:
            best = progress.log_end_offset, replica
    return None if best is None else best[1]


class Broker(Protocol):
    """A broker as the metadata has it."""

    @property
    def broker_id(self) -> int: ...
    @property
    def rack(self) -> str | None: ...
    @property
    def fenced(self) -> bool: ...


def selector(
    class_name: str | None, brokers: Callable[[], Mapping[int, Broker]]
) -> ReplicaSelector | None:
    """The selector of a setting; None where consumers always read from the leader.

    `brokers()` are the registered brokers by id.
    """
    if class_name != RACK_AWARE:
        return None

    def select(partition: Partition, offset: int, rack: str) -> int | None:
        racks = {
            broker.broker_id: broker.rack for broker in brokers().values() if not broker.fenced
        }
        return rack_aware(partition, offset, rack, racks)

    return select

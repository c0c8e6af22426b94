"""New partitions from a placement or from the replicas that a request names."""

from __future__ import annotations

from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.topics import RECOVERED, PartitionImage
from kwire.protocol.errors import ErrorCode, KafkaError


def new_partition(state: ControllerState, replicas: list[int], isr: list[int]) -> PartitionImage:
    """A partition at its start: led by the first in-sync replica, all epochs 0."""
    return PartitionImage(
        replicas=tuple(replicas),
        directories=tuple(state.default_directory(replica) for replica in replicas),
        isr=tuple(isr),
        removing=(),
        adding=(),
        elr=(),
        last_known_elr=(),
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        leader_recovery_state=RECOVERED,
    )


def check_manual(state: ControllerState, replicas: list[int], expected: int | None) -> None:
    """Raises KafkaError(INVALID_REPLICA_ASSIGNMENT) unless the named replicas can be.

    `expected` is the replication factor that the topic's other partitions have.
    """
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in state.image.brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {broker_id}, but no such "
                "broker is registered."
            )
        if not state.image.brokers[broker_id].has_uncordoned_directory:
            raise _invalid(
                f"The manual partition assignment includes broker {broker_id}, but all its log "
                "directories are cordoned."
            )
        if broker_id == previous:
            raise _invalid(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if expected is not None and len(replicas) != expected:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{expected} replica(s)."
        )


def manual_isr(state: ControllerState, replicas: list[int], index: int) -> list[int]:
    """The active ones of the named replicas; raises when there is none."""
    isr = [replica for replica in replicas if state.is_active(replica)]
    if not isr:
        raise _invalid(
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown."
        )
    return isr


def placed_isr(state: ControllerState, replicas: list[int], factor: int) -> list[int]:
    """The active ones of placed replicas; raises KafkaError(INVALID_REPLICATION_FACTOR)."""
    isr = [replica for replica in replicas if state.is_active(replica)]
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): All brokers are currently "
            "fenced or in controlled shutdown.",
        )
    return isr


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)

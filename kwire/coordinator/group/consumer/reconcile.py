"""From what a member has to its target: give up first, then take what is free (KIP-848).

A member moves on in steps, one per heartbeat. While it owns something that it has to give up it
stays in its epoch (UNREVOKED_PARTITIONS) and nothing is given to it; then it takes the epoch of
the target and gets the partitions that nobody else holds, waiting for the others in
UNRELEASED_PARTITIONS. Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from kwire.coordinator.group.consumer.state import (
    Current,
    MemberState,
    Partitions,
    TopicPartitions,
)


def reconcile(
    current: Current,
    target: TopicPartitions,
    target_epoch: int,
    owned: TopicPartitions | None,
    holders: Mapping[tuple[bytes, int], int],
    subscribed: Container[bytes],
    resubscribed: bool = False,
) -> Current:
    """The member's next step towards `target` of `target_epoch`; the same object when there is
    none.

    `owned` is what the member says it has, None when it did not say; `holders` has every
    partition that some member has or still has to give up. Of topics that are not in
    `subscribed` nothing is given; when that has just changed (`resubscribed`), what the member
    has of them is taken back without waiting for a new target.
    """
    if current.state == MemberState.STABLE and current.epoch == target_epoch:
        return _unsubscribed(current, owned, subscribed) if resubscribed else current
    if current.state == MemberState.UNREVOKED_PARTITIONS and (
        owned is None or _owns_any(owned, current.pending_revocation)
    ):
        return _unsubscribed(current, owned, subscribed) if resubscribed else current
    wanted = {topic: indexes for topic, indexes in target.items() if topic in subscribed}
    return _next(current, wanted, target_epoch, owned, holders)


def _unsubscribed(
    current: Current, owned: TopicPartitions | None, subscribed: Container[bytes]
) -> Current:
    """Without the topics that the member no longer reads."""
    kept = {t: indexes for t, indexes in current.assigned.items() if t in subscribed}
    revoked = {t: indexes for t, indexes in current.assigned.items() if t not in subscribed}
    for topic, indexes in current.pending_revocation.items():
        revoked[topic] = {**indexes, **revoked.get(topic, {})}
    if revoked and (owned is None or _owns_any(owned, revoked)):
        return _moved(current, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    if kept == current.assigned:
        return current
    return current._replace(assigned=kept)


def _next(
    current: Current,
    target: TopicPartitions,
    target_epoch: int,
    owned: TopicPartitions | None,
    holders: Mapping[tuple[bytes, int], int],
) -> Current:
    kept: Partitions = {}
    revoked: Partitions = {}
    for topic, partitions in current.assigned.items():
        wanted = target.get(topic, ())
        keeps = {p: epoch for p, epoch in partitions.items() if p in wanted}
        gives_up = {p: epoch for p, epoch in partitions.items() if p not in keeps}
        if keeps:
            kept[topic] = keeps
        if gives_up:
            revoked[topic] = gives_up
    if revoked and (owned is None or _owns_any(owned, revoked)):
        return _moved(current, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    unreleased = False
    assigned: Partitions = {}
    for topic, wanted in target.items():
        have = kept.get(topic, {})
        got: dict[int, int] = {}
        for partition in wanted:
            if partition in have:
                got[partition] = have[partition]
            elif (topic, partition) not in holders or _is_own(current, topic, partition):
                got[partition] = target_epoch
            else:
                unreleased = True
        if got:
            assigned[topic] = got
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return _moved(current, target_epoch, state, assigned, {})


def _moved(
    current: Current,
    epoch: int,
    state: MemberState,
    assigned: Partitions,
    pending_revocation: Partitions,
) -> Current:
    after = Current(epoch, current.epoch, state, assigned, pending_revocation)
    return current if after == current else after


def _is_own(current: Current, topic: bytes, partition: int) -> bool:
    """Whether the member itself is the one that still holds a partition."""
    return partition in current.pending_revocation.get(topic, ())


def _owns_any(owned: TopicPartitions, partitions: Partitions) -> bool:
    return any(
        partition in partitions[topic]
        for topic, indexes in owned.items()
        if topic in partitions
        for partition in indexes
    )


def indexes_of(partitions: Partitions) -> TopicPartitions:
    """Without the epochs."""
    return {topic: tuple(indexes) for topic, indexes in partitions.items()}


def is_subset(owned: TopicPartitions | None, assigned: Partitions) -> bool:
    """Whether a member says what it has, and has nothing but what is assigned to it."""
    if owned is None:
        return False
    return all(
        partition in assigned.get(topic, ())
        for topic, indexes in owned.items()
        for partition in indexes
    )

"""The target assignment of a group: who is to have what at the group's newest epoch.

It is computed from a snapshot by one of the assignors, at most once per
consumer.assignment.interval.ms. A small one is computed at once, within the heartbeat that asks
for it; a large one in slices between which the loop turns, and a result for an epoch that has
passed meanwhile is dropped. Until it is there members keep to the previous target.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from kwire.coordinator import batches
from kwire.coordinator.group.assignors import ASSIGNORS
from kwire.coordinator.group.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
)
from kwire.coordinator.group.consumer import records
from kwire.coordinator.group.consumer.groups import ASSIGN_TIMER, ConsumerGroups
from kwire.coordinator.group.consumer.jobs import Job
from kwire.coordinator.group.consumer.state import ConsumerGroup, Member, TopicPartitions
from kwire.coordinator.group.consumer.subscriptions import topic_names
from kwire.coordinator.partitioner import hash_bucket
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result

#: Members plus partitions up to which an assignment is computed within one heartbeat.
INLINE_SIZE_MAX = 2000
#: Targets that a slice encodes.
SLICE_RECORDS = 200


def due_in_ms(groups: ConsumerGroups, group_id: str, group: ConsumerGroup, moment: Moment) -> int:
    """How long until the group may get a new target; 0 or less: now."""
    if group.target_ms == 0:
        return 0
    interval_ms = groups.group_config(group_id, "consumer.assignment.interval.ms")
    return group.target_ms + interval_ms - moment.wall_ms


def snapshot(
    groups: ConsumerGroups,
    group: ConsumerGroup,
    members: Mapping[str, Member],
    targets: Mapping[str, TopicPartitions],
) -> GroupSpec:
    """What an assignor sees."""
    specs: dict[str, MemberSpec] = {}
    counts: dict[bytes, int] = {}
    resolved: dict[tuple[tuple[str, ...], str], tuple[bytes, ...]] = {}
    for member_id, member in members.items():
        key = (member.topic_names, member.topic_regex)
        topics = resolved.get(key)
        if topics is None:
            found = []
            for name in topic_names(group, member):
                info = groups.topics.find(name)
                if info is not None:
                    counts[info.topic_id] = info.partition_count
                    found.append(info.topic_id)
            topics = resolved[key] = tuple(sorted(found))
        specs[member_id] = MemberSpec(member.instance_id, topics, targets.get(member_id, {}))
    return GroupSpec(specs, counts)


def assignor_name(groups: ConsumerGroups, members: Mapping[str, Member]) -> str:
    """The one that most members ask for, or the broker's first. A tie goes to the one that comes
    first in Java's hash order, as on Apache Kafka."""
    votes: dict[str, int] = {}
    for member in members.values():
        if member.server_assignor:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    if not votes:
        return groups.settings.assignors[0]
    most = max(votes.values())
    tied = [name for name, count in votes.items() if count == most]
    return min(tied, key=lambda name: hash_bucket(name, len(votes)))


def compute_at_once(spec: GroupSpec, name: str) -> Assignment | None:
    """The assignment, if it is small enough to be computed here and now."""
    if len(spec.members) + sum(spec.partition_counts.values()) > INLINE_SIZE_MAX:
        return None
    steps = ASSIGNORS[name](spec)
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: Assignment = finished.value
            return result


def start(
    groups: ConsumerGroups, group_id: str, epoch: int, spec: GroupSpec, name: str, moment: Moment
) -> None:
    """Compute in slices from the next turn of the loop on."""
    running = groups.assigning.get(group_id)
    if running is None or running.epoch != epoch:
        groups.assigning[group_id] = Job(epoch, ASSIGNORS[name](spec))
        groups.deadlines.schedule((ASSIGN_TIMER, group_id), moment.now_ms)


def slice_of(groups: ConsumerGroups, group_id: str, moment: Moment) -> Result[None]:
    """One slice of a running computation; with the last one, the records of its result."""
    job = groups.assigning.get(group_id)
    group = groups.stored.get(group_id)
    if job is None or group is None or job.epoch != group.epoch:
        groups.assigning.pop(group_id, None)
        return Result()
    if job.result is not None:
        return _write_slice(groups, group_id, group, job, moment)
    at_ms = moment.now_ms
    try:
        next(job.steps)
    except StopIteration as finished:
        # Thousands of records take turns of the loop for themselves.
        groups.assigning[group_id] = job._replace(result=finished.value, written={})
        at_ms += 1
    groups.deadlines.schedule((ASSIGN_TIMER, group_id), at_ms)
    return Result()


def _write_slice(
    groups: ConsumerGroups, group_id: str, group: ConsumerGroup, job: Job, moment: Moment
) -> Result[None]:
    """Encode the targets of some members ahead; when all are, the records of the assignment."""
    result, written = job.result, job.written
    assert result is not None
    assert written is not None
    if len(written) < len(result):
        for member_id in list(islice(result, len(written), len(written) + SLICE_RECORDS)):
            record = records.target(group_id, member_id, result[member_id])
            written[member_id] = record, batches.encode(record)
        # The last slice does not share a turn with the append.
        at_ms = moment.now_ms + int(len(written) == len(result))
        groups.deadlines.schedule((ASSIGN_TIMER, group_id), at_ms)
        return Result()
    changed = [
        written[member_id]
        for member_id, partitions in result.items()
        if group.targets.get(member_id) != partitions
    ]
    epoch = records.target_epoch(group_id, job.epoch, moment.wall_ms)
    return Result(
        [*(record for record, _ in changed), epoch],
        None,
        lambda: groups.assigning.pop(group_id, None),
        atomic=False,
        encoded=[*(encoded for _, encoded in changed), batches.encode(epoch)],
    )


def target_records(
    group_id: str,
    before: Mapping[str, TopicPartitions],
    after: Assignment,
    epoch: int,
    moment: Moment,
) -> list[CoordinatorRecord]:
    """The records that turn one target assignment into another."""
    made = [
        records.target(group_id, member_id, partitions)
        for member_id, partitions in after.items()
        if before.get(member_id) != partitions
    ]
    made.append(records.target_epoch(group_id, epoch, moment.wall_ms))
    return made

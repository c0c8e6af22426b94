"""One request of a member on its way: the records so far and the values that they lead to.

As much is done as can be done: the member's subscription is recorded, the group gets a new epoch
when what it reads has changed, a new target is computed when that is due, and the member moves
one step towards its target. Order of the records measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Container
from functools import partial

from kwire.coordinator.group.assignment_jobs import INLINE_SIZE_MAX, MEMBER_SIZE, finish
from kwire.coordinator.group.assignors import ASSIGNORS
from kwire.coordinator.group.consumer import assigning, records
from kwire.coordinator.group.consumer.groups import REGEX_TIMER, ConsumerGroups
from kwire.coordinator.group.consumer.reconcile import reconcile
from kwire.coordinator.group.consumer.state import (
    ConsumerGroup,
    Current,
    Member,
    TopicPartitions,
)
from kwire.coordinator.group.consumer.subscriptions import subscribed, topic_names
from kwire.coordinator.group.topics import metadata_hash
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment


class Progress:
    """`records` are what has to be written before (a group that is made from another one);
    `replaced` is the member whose place a static member takes."""

    def __init__(
        self,
        groups: ConsumerGroups,
        group_id: str,
        moment: Moment,
        made: list[CoordinatorRecord],
    ) -> None:
        self._groups = groups
        self.group_id = group_id
        self._moment = moment
        self.records = made
        self.replaced: str | None = None
        # That of the group, where its assignment takes several turns and none is computed for it.
        self._job_epoch: int | None = None

    def replace(self, group: ConsumerGroup, owner: str, member_id: str, where: Current) -> Member:
        """A static member takes its predecessor's place, and stands at `where`."""
        self.replaced = owner
        member = group.members[owner]._replace(member_id=member_id)
        self.records += records.member_tombstones(self.group_id, owner)
        self.records.append(records.member(self.group_id, member))
        target = group.targets.get(owner, {})
        self.records.append(records.target(self.group_id, member_id, target))
        self.records.append(records.current(self.group_id, member_id, where))
        return member

    def move(
        self,
        group: ConsumerGroup,
        before: Member | None,
        where: Current,
        member: Member,
        owned: TopicPartitions | None,
    ) -> Current:
        """`member` is what the request makes of `before`, which stands at `where`; where it
        stands afterwards."""
        changed = self._subscribe(group, before, member)
        if before is not None and before.server_assignor != member.server_assignor:
            changed = changed or self._assignor_changes(group, self._members(group, member))
        epoch = self._group_epoch(group, member, changed)
        target, target_epoch = self._target(group, member, epoch)
        resubscribed = before is not None and (
            (before.topic_names, before.topic_regex) != (member.topic_names, member.topic_regex)
        )
        after = reconcile(
            where,
            target,
            target_epoch,
            owned,
            self._holders(group),
            self._subscribed(group, member, target, resubscribed),
            resubscribed,
        )
        if after is not where or self.replaced is not None:
            self.records.append(records.current(self.group_id, member.member_id, after))
        return after

    def _members(self, group: ConsumerGroup, member: Member) -> dict[str, Member]:
        """All members as they are with this request. A copy: for what is not asked every time."""
        members = dict(group.members)
        if self.replaced is not None:
            del members[self.replaced]
        members[member.member_id] = member
        return members

    def _topic_names(self, group: ConsumerGroup, member: Member) -> list[str]:
        """The topics of all members as they are with this request."""
        ids = dict.fromkeys((member.member_id, self.replaced or member.member_id))
        return subscribed(group, [member], [group.members[x] for x in ids if x in group.members])

    def _targets(self, group: ConsumerGroup, member: Member) -> dict[str, TopicPartitions]:
        """A copy of the targets, in which the member has its predecessor's."""
        targets = dict(group.targets)
        if self.replaced is not None:
            targets[member.member_id] = targets.pop(self.replaced, {})
        return targets

    def appended(self, group: ConsumerGroup, member: Member) -> None:
        """The records were written: soft state follows."""
        groups, moment = self._groups, self._moment
        if self.replaced is not None:
            groups.cancel_timers(self.group_id, self.replaced)
            groups.assigning.rename(self.group_id, self.replaced, member.member_id)
        groups.refreshed(self.group_id, moment)
        if self._job_epoch is not None:
            begin = partial(assigning.begin, groups, self.group_id)
            groups.assigning.start(self.group_id, self._job_epoch, begin, moment)
        if member.topic_regex and member.topic_regex not in group.regexes:
            groups.deadlines.schedule((REGEX_TIMER, self.group_id), moment.now_ms)

    def _subscribe(self, group: ConsumerGroup, before: Member | None, member: Member) -> bool:
        """Record the subscription; whether the topics that the group reads may have changed."""
        if member == before:
            return False
        self.records.append(records.member(self.group_id, member))
        old_names = before.topic_names if before is not None else ()
        old_regex = before.topic_regex if before is not None else ""
        if (
            old_regex
            and old_regex != member.topic_regex
            and not self._pattern_used(group, old_regex, member.member_id)
        ):
            self.records.append(records.regex_tombstone(self.group_id, old_regex))
        resolved = not member.topic_regex or member.topic_regex in group.regexes
        return member.topic_names != old_names or (member.topic_regex != old_regex and resolved)

    def _assignor_changes(self, group: ConsumerGroup, members: dict[str, Member]) -> bool:
        """Whether another assignor than before is what most members ask for."""
        name = assigning.assignor_name
        return name(self._groups, group.members) != name(self._groups, members)

    @staticmethod
    def _pattern_used(group: ConsumerGroup, pattern: str, member_id: str) -> bool:
        return pattern not in group.regexes or any(
            other.topic_regex == pattern
            for other in group.members.values()
            if other.member_id != member_id
        )

    def _group_epoch(self, group: ConsumerGroup, member: Member, changed: bool) -> int:
        """The group's epoch, a new one if what it reads has changed."""
        if not changed and not self._groups.refresh_due(self.group_id, self._moment):
            return group.epoch
        names = self._topic_names(group, member)
        hashed = metadata_hash(names, self._groups.topics)
        if not changed and hashed == group.metadata_hash:
            return group.epoch
        self.records.append(records.group_epoch(self.group_id, group.epoch + 1, hashed))
        self._groups.counts.consumer_rebalances += 1
        return group.epoch + 1

    def _target(
        self,
        group: ConsumerGroup,
        member: Member,
        epoch: int,
    ) -> tuple[TopicPartitions, int]:
        """The member's target and the epoch of it; a new one when it is due and small."""
        groups, moment = self._groups, self._moment
        had_by = member.member_id if self.replaced is None else self.replaced
        present = group.targets.get(had_by, {})
        if epoch <= group.target_epoch:
            return present, group.target_epoch
        if assigning.due_in_ms(groups, self.group_id, group, moment) > 0:
            return present, group.target_epoch
        if groups.assigning.is_running(self.group_id, epoch):
            return present, group.target_epoch
        partitions = sum(assigning.partition_counts(groups, self._topic_names(group, member)))
        if MEMBER_SIZE * (len(group.members) + 1) + partitions > INLINE_SIZE_MAX:
            self._job_epoch = epoch
            return present, group.target_epoch
        members, targets = self._members(group, member), self._targets(group, member)
        spec = assigning.snapshot(groups, group, members, targets)
        assignment = finish(ASSIGNORS[assigning.assignor_name(groups, members)](spec))
        self.records += assigning.target_records(self.group_id, targets, assignment, epoch, moment)
        return assignment[member.member_id], epoch

    def _subscribed(
        self,
        group: ConsumerGroup,
        member: Member,
        target: TopicPartitions,
        resubscribed: bool,
    ) -> Container[bytes]:
        """The ids of what the member reads; as long as the target is one that was made for the
        subscription it has, that is what the target has."""
        if not resubscribed and group.target_epoch == group.epoch:
            return target
        find = self._groups.topics.find
        found = [find(name) for name in topic_names(group, member)]
        return {info.topic_id for info in found if info is not None}

    def _holders(self, group: ConsumerGroup) -> dict[tuple[bytes, int], int]:
        """Who holds what, without the predecessor whose place the member has taken."""
        if self.replaced is None:
            return group.partition_epochs
        where = group.where(self.replaced)
        mine = {
            (topic, partition)
            for owned in (where.assigned, where.pending_revocation)
            for topic, indexes in owned.items()
            for partition in indexes
        }
        return {key: epoch for key, epoch in group.partition_epochs.items() if key not in mine}

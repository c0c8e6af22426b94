"""One partition of `__consumer_offsets`: storage, the kinds of groups in it, its timers."""

from __future__ import annotations

from kwire.clock import Random
from kwire.coordinator.deleted_topics import DeletedTopics
from kwire.coordinator.group.admin import GroupAdmin
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.carried.kind import CarriedKind
from kwire.coordinator.group.classic.kind import ClassicKind
from kwire.coordinator.group.classic.rebalance import ClassicGroups
from kwire.coordinator.group.consumer.groups import ConsumerGroups
from kwire.coordinator.group.consumer.kind import ConsumerKind
from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
from kwire.coordinator.group.counts import GroupCounts
from kwire.coordinator.group.expiry import Expiry
from kwire.coordinator.group.group_configs import GroupConfig
from kwire.coordinator.group.kinds import GroupDeadlines, GroupKinds
from kwire.coordinator.group.missed_deletions import MissedDeletions
from kwire.coordinator.group.offsets import OffsetOperations
from kwire.coordinator.group.settings import GroupSettings
from kwire.coordinator.group.share.groups import ShareGroups
from kwire.coordinator.group.share.kind import ShareKind
from kwire.coordinator.group.share.settings import ShareGroupSettings
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.topics import Topics
from kwire.coordinator.shard_interface import AnyReply, AnyResponse, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.structs import Message


class GroupShard:
    """A Shard (shard_interface.py) of the group coordinator. The operations are on its parts:
    `kinds` and each of them, `offsets`, `admin`, `expiry`."""

    def __init__(
        self,
        settings: GroupSettings,
        random: Random,
        consumer_settings: ConsumerGroupSettings,
        topics: Topics,
        group_config: GroupConfig,
        share_settings: ShareGroupSettings,
        counts: GroupCounts | None = None,
        deleted: DeletedTopics | None = None,
    ) -> None:
        self.storage = storage = GroupStorage(counts)
        self.deadlines = GroupDeadlines()
        self._replies: list[tuple[AnyReply, AnyResponse]] = []
        classic_groups = ClassicGroups(
            storage.classic, settings, self.deadlines, self._replies, storage.counts
        )
        consumer_groups = ConsumerGroups(
            storage, consumer_settings, self.deadlines, topics, group_config, classic_groups
        )
        self.classic = ClassicKind(classic_groups, random)
        self.consumer = ConsumerKind(
            consumer_groups, self.classic.joining, settings.offsets_retention_ms, random
        )
        self.share = ShareKind(
            ShareGroups(storage, share_settings, self.deadlines, topics, group_config)
        )
        self.streams = CarriedKind(storage.streams)
        self.kinds = GroupKinds((self.classic, self.consumer, self.share, self.streams))
        self.offsets = OffsetOperations(storage, self.kinds, settings.offset_metadata_bytes_max)
        self.admin = GroupAdmin(self.kinds, self.offsets)
        self.expiry = Expiry(
            storage, self.kinds, self.deadlines, settings.offsets_retention_check_interval_ms
        )
        self._missed = MissedDeletions(
            storage, self.deadlines, topics, DeletedTopics() if deleted is None else deleted
        )
        self._timers = {**self.kinds.timers(), **self.expiry.timers, **self._missed.timers}

    def join(
        self, request: m.JoinGroupRequest, caller: Caller, moment: Moment
    ) -> Result[m.JoinGroupResponse]:
        """A group that there is not becomes a classic one."""
        kind = self.kinds.of(request.group_id) or self.classic
        return kind.join(request, caller, moment)

    # --- what the runtime asks

    def replay(
        self,
        key: Message,
        value: Message | None,
        offset: int,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        self.storage.replay(key, value, offset, producer_id, producer_epoch)

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        self.storage.replay_marker(producer_id, producer_epoch, commit)

    def loaded(self, moment: Moment) -> Result[None]:
        for kind in self.kinds:
            kind.load(moment)
        self.expiry.start(moment)
        self._missed.start(moment)
        return Result()

    def timers(self) -> int | None:
        return self.deadlines.next_deadline()

    def expire(self, moment: Moment) -> Result[None] | None:
        key = self.deadlines.pop_due(moment.now_ms)
        return None if key is None else self._timers[key[0]](key, moment)

    def take_replies(self) -> list[tuple[AnyReply, AnyResponse]]:
        replies = self._replies
        if not replies:
            return replies
        taken = list(replies)
        replies.clear()
        return taken

    def discard(self) -> list[AnyReply]:
        waiting = [reply for reply, _ in self._replies]
        self._replies.clear()
        for kind in self.kinds:
            waiting += kind.waiting()
        return waiting

"""Random requests, timers, lags and crashes against the invariants of the group coordinator."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kwire.coordinator import batches
from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.rebalance import JOIN_TIMER, MEMBER_TIMER, SYNC_TIMER
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.storage import GroupStorage
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.control import end_transaction_marker
from tests.support.groups import GroupWorld, codes

GROUPS = st.sampled_from(["g", "h"])
INSTANCES = st.sampled_from([None, None, "i", "j"])
PROTOCOLS = st.sampled_from(
    [(("range", b"1"),), (("range", b"2"), ("sticky", b"2")), (("sticky", b"3"), ("range", b"3"))]
)
PARTITIONS = st.integers(0, 1)
PRODUCERS = st.integers(1, 2)


class GroupMachine(RuleBasedStateMachine):
    """What is known of members comes from answers, as a client knows it."""

    @initialize(
        lagging=st.booleans(),
        delay_ms=st.sampled_from([0, 3000]),
        linger_ms=st.sampled_from([0, -1, 5]),
    )
    def start(self, lagging: bool, delay_ms: int, linger_ms: int) -> None:
        self.world = GroupWorld(
            lagging=lagging,
            append_linger_ms=linger_ms,
            initial_rebalance_delay_ms=delay_ms,
            max_size=3,
            offsets_retention_ms=600_000,
            offsets_retention_check_interval_ms=15_000,
        )
        # (group, member id, instance, generation, leads)
        self.members: list[tuple[str, str, str | None, int, bool]] = []
        self.offsets = 0
        # (group, partition) -> the last commit that was acknowledged, and the last one that was
        # sent before a deletion
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.deleted: dict[tuple[str, int], int] = {}
        self.may_expire = False
        self.topic_number = 1

    @property
    def topic_id(self) -> bytes:
        return self.topic_number.to_bytes(16, "big")

    def member(self, index: int) -> tuple[str, str, str | None, int, bool]:
        if not self.members:
            return ("g", "nobody", None, 1, False)
        return self.members[index % len(self.members)]

    def watch_join(self, group: str, instance: str | None, answer: Any) -> None:
        def learn(response: Any) -> None:
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                leads = response.leader == response.member_id
                self.members = [x for x in self.members if x[1] != response.member_id][-6:]
                self.members.append(
                    (group, response.member_id, instance, response.generation_id, leads)
                )

        if isinstance(answer, Pending):
            answer.add_done_callback(lambda done: learn(done.result()))
        else:
            learn(answer)

    # ------------------------------------------------------------------ members

    @rule(group=GROUPS, instance=INSTANCES, version=st.sampled_from([3, 5, 9]), protocols=PROTOCOLS)
    def join(self, group: str, instance: str | None, version: int, protocols: Any) -> None:
        answer = self.world.join(
            group=group, instance=instance, version=version, protocols=protocols
        )
        self.watch_join(group, instance, answer)

    @rule(index=st.integers(0, 5), protocols=PROTOCOLS)
    def join_again(self, index: int, protocols: Any) -> None:
        group, member_id, instance, _, _ = self.member(index)
        answer = self.world.join(member_id, group=group, instance=instance, protocols=protocols)
        self.watch_join(group, instance, answer)

    @rule(index=st.integers(0, 5))
    def sync(self, index: int) -> None:
        group, member_id, instance, generation, leads = self.member(index)
        plan = {x[1]: x[1].encode() for x in self.members if x[0] == group} if leads else None
        self.world.sync(member_id, generation, plan, group=group, instance=instance)

    @rule(index=st.integers(0, 5))
    def heartbeat(self, index: int) -> None:
        group, member_id, instance, generation, _ = self.member(index)
        self.world.heartbeat(member_id, generation, group=group, instance=instance)

    @rule(index=st.integers(0, 5), by_instance=st.booleans())
    def leave(self, index: int, by_instance: bool) -> None:
        group, member_id, instance, _, _ = self.member(index)
        self.world.leave(("" if by_instance else member_id, instance), group=group)

    # ------------------------------------------------------------------ offsets

    def forget(self, groups: tuple[str, ...] = ("g", "h"), partitions: Any = (0, 1)) -> None:
        for key in ((group, partition) for group in groups for partition in partitions):
            self.acknowledged.pop(key, None)
            self.deleted[key] = self.offsets

    def watch_commit(self, group: str, partition: int, offset: int, answer: Any) -> None:
        def learn(response: Any) -> None:
            kept = offset > self.deleted.get((group, partition), -1)
            if kept and codes(response) == [ErrorCode.NONE]:
                known = self.acknowledged.get((group, partition), -1)
                self.acknowledged[group, partition] = max(known, offset)

        if isinstance(answer, Pending):
            answer.add_done_callback(lambda done: learn(done.result()))
        else:
            learn(answer)

    @rule(index=st.integers(0, 5), partition=PARTITIONS)
    def commit_as_member(self, index: int, partition: int) -> None:
        group, member_id, _, generation, _ = self.member(index)
        self.offsets += 1
        answer = self.world.commit(
            self.offsets,
            group=group,
            partition=partition,
            member_id=member_id,
            generation=generation,
            topic_id=self.topic_id,
        )
        self.watch_commit(group, partition, self.offsets, answer)

    @rule(group=GROUPS, partition=PARTITIONS)
    def commit(self, group: str, partition: int) -> None:
        self.offsets += 1
        answer = self.world.commit(
            self.offsets, group=group, partition=partition, topic_id=self.topic_id
        )
        self.watch_commit(group, partition, self.offsets, answer)

    @rule(group=GROUPS, partition=PARTITIONS, producer_id=PRODUCERS)
    def commit_in_transaction(self, group: str, partition: int, producer_id: int) -> None:
        self.offsets += 1
        self.world.commit_in_transaction(
            self.offsets,
            producer_id,
            group=group,
            partition=partition,
            topic_id=self.topic_id,
        )

    @rule(producer_id=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        marker = end_transaction_marker(producer_id, 0, commit, 1, 1)
        self.world.coordinator.complete_transaction(0, marker, producer_id, 0, commit)

    @rule(group=GROUPS, partition=PARTITIONS)
    def delete_offsets(self, group: str, partition: int) -> None:
        self.forget((group,), (partition,))
        self.world.delete_offsets("t", partition, group=group)

    @rule()
    def delete_topic(self) -> None:
        self.forget()
        self.world.follow_topics(t=self.topic_id)
        self.topic_number += 1

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.forget((group,))
        self.world.coordinator.delete_groups([group])

    # ------------------------------------------------------------------ the world

    @rule(ms=st.sampled_from([1, 1000, 4000, 11_000]))
    def time_passes(self, ms: int) -> None:
        self.world.loop.advance(ms)

    @rule()
    def offsets_expire(self) -> None:
        self.may_expire = True
        self.world.loop.advance(700_000)

    @rule(count=st.integers(1, 4))
    def high_watermark_moves(self, count: int) -> None:
        self.world.log.commit(0, self.world.log.high_watermark(0) + count)

    @rule()
    def everything_is_committed(self) -> None:
        self.world.log.commit_all()

    @rule(refuse=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE]))
    def the_log_refuses_for_a_while(self, refuse: ErrorCode) -> None:
        self.world.log.refuse = refuse

    @rule()
    def the_log_accepts(self) -> None:
        self.world.log.refuse = None

    @rule()
    def leadership_moves_here_and_back(self) -> None:
        self.world.reload()

    @rule()
    def crash(self) -> None:
        """What was not committed is gone."""
        self.world.coordinator.runtime.unload(0)
        self.world.log.truncate(0)
        self.world.log.refuse = None
        self.world.reload()

    # ------------------------------------------------------------------ invariants

    @rule()
    def the_turn_ends(self) -> None:
        self.world.loop.advance(5)

    @rule()
    def the_log_refuses_what_is_on_its_way(self) -> None:
        """Operations of a batch that could not be foreseen to fail."""
        self.world.log.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
        self.world.loop.advance(5)
        self.world.log.refuse_appends = None
        self.world.loop.run()

    @invariant()
    def a_shard_from_the_log_is_the_live_one(self) -> None:
        live = self.world.shard.storage
        replayed = GroupStorage()
        for batch in self.world.decided():
            shard: Any = replayed
            for _ in batches.replay_steps(shard, "group-coordinator", memoryview(batch), 0):
                pass
        assert replayed.snapshot() == live.snapshot()

    @invariant()
    def groups_are_sound(self) -> None:
        for group in self.world.shard.classic.groups.live.values():
            self.check_members(group)
            self.check_state(group)

    def check_members(self, group: ClassicGroup) -> None:
        members = group.members
        waiting = [x for x in members.values() if x.awaiting_join is not None]
        assert group.joined_count == len(waiting)
        assert group.leader is None or group.leader in members
        assert (group.leader is None) == (not members)
        statics = {x.group_instance_id: k for k, x in members.items() if x.group_instance_id}
        assert group.static_members == statics
        assert set(group.pending_syncs) <= set(members)
        assert not set(group.pending_joins) & set(members)
        names = {name for x in members.values() for name, _ in x.protocols}
        assert group._support == {
            name: sum(name in dict(x.protocols) for x in members.values()) for name in names
        }
        if members:
            assert len(members) in group._support.values(), "a protocol that all support"
        timers = self.world.shard.deadlines
        for key, member in members.items():
            assert (MEMBER_TIMER, group.group_id, key) in timers or member.keeps_alive()
        for key in group.pending_joins:
            assert (MEMBER_TIMER, group.group_id, key) in timers

    def check_state(self, group: ClassicGroup) -> None:
        timers = self.world.shard.deadlines
        state, members = group.state, group.members.values()
        preparing = state is ClassicState.PREPARING_REBALANCE
        completing = state is ClassicState.COMPLETING_REBALANCE
        assert ((JOIN_TIMER, group.group_id) in timers) == preparing
        assert not completing or (SYNC_TIMER, group.group_id) in timers or not group.pending_syncs
        assert preparing or not any(x.awaiting_join for x in members)
        assert completing or not any(x.awaiting_sync for x in members)
        if state is ClassicState.EMPTY:
            assert not members
        else:
            assert state is not ClassicState.DEAD
        if preparing and members and not any(x.group_instance_id for x in members):
            initial = group.previous_state is ClassicState.EMPTY
            assert initial or not group.all_joined(), "a rebalance that could complete"
        if state is ClassicState.STABLE:
            stored = self.world.shard.storage.classic.groups[group.group_id]
            assert stored.generation == group.generation
            assert {x.member_id: x.assignment for x in stored.members} == {
                x.member_id: x.assignment for x in members
            }

    @precondition(lambda self: not self.may_expire)
    @invariant()
    def no_acknowledged_commit_is_lost(self) -> None:
        for (group, partition), offset in self.acknowledged.items():
            stored = self.world.shard.storage.offsets.get(group, "t", partition)
            assert stored is not None, (group, partition)
            assert stored.offset >= offset


GroupMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestGroupModel = GroupMachine.TestCase

"""What a group of many members does in one turn of the loop is bounded: a thousand that joined at
once had held it for 56 ms, and each heartbeat had looked at all members."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.coordinator.group.assignment_jobs import BEGIN_AFTER_MS, INLINE_SIZE_MAX, MEMBER_SIZE
from kwire.coordinator.group.assignors.spec import GroupSpec
from kwire.coordinator.group.classic.storing import AT_ONCE_MEMBERS_MAX
from kwire.coordinator.group.consumer import assigning
from kwire.coordinator.group.share.heartbeat import INLINE_SIZE_MAX as SHARE_INLINE_SIZE_MAX
from kwire.coordinator.runtime import REPLIES_A_TURN
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.coordinators import Handle, ManualLoop
from tests.support.groups import GroupWorld
from tests.unit.coordinator.group.test_consumer_groups import Consumers, told
from tests.unit.coordinator.group.test_share_groups import Sharers

MEMBERS = 2 * REPLIES_A_TURN + 7


class CountingLoop(ManualLoop):
    """Calls one thing after another, and notes how many replies each of them gave."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Any] = []
        self.given: list[int] = []

    def call_soon(self, callback: Callable[[], None]) -> Handle:
        return super().call_soon(lambda: self._counted(callback))

    def _counted(self, callback: Callable[[], None]) -> None:
        before = sum(reply.done for reply in self.waiting)
        callback()
        self.given.append(sum(reply.done for reply in self.waiting) - before)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> CountingLoop:
    counting = CountingLoop()
    monkeypatch.setattr("tests.support.groups.ManualLoop", lambda: counting)
    return counting


def test_a_thousand_members_are_answered_some_a_turn_of_the_loop(loop: CountingLoop) -> None:
    world = GroupWorld()
    loop.waiting = [world.join() for _ in range(MEMBERS)]
    loop.run()
    joined = [reply.result() for reply in loop.waiting]
    assert {x.generation_id for x in joined} == {1}
    assert max(loop.given) <= REPLIES_A_TURN
    assert len([count for count in loop.given if count]) >= MEMBERS // REPLIES_A_TURN
    leader = next(x for x in joined if x.leader == x.member_id)
    assert [x.member_id for x in leader.members] == [x.member_id for x in joined]
    loop.given.clear()
    others = [x.member_id for x in joined if x is not leader]
    loop.waiting = [world.sync(member_id, 1) for member_id in others]
    world.sync(leader.member_id, 1, {x: x.encode() for x in others})
    assert sum(reply.done for reply in loop.waiting) < REPLIES_A_TURN
    loop.run()
    assert [x.result().assignment for x in loop.waiting] == [x.encode() for x in others]
    assert max(loop.given) <= REPLIES_A_TURN


def test_who_asks_meanwhile_does_not_wait_for_them(loop: CountingLoop) -> None:
    """A heartbeat of another group of the same partition is answered in front of them."""
    world = GroupWorld()
    (first,) = [world.now(world.join(group="other"))]
    world.now(world.sync(first.member_id, 1, {}, group="other"))
    loop.waiting = [world.join() for _ in range(MEMBERS)]
    while not any(reply.done for reply in loop.waiting):
        loop._due[0][2].callback()  # type: ignore[misc]
        loop._due.pop(0)
    beat = m.HeartbeatRequest(group_id="other", generation_id=1, member_id=first.member_id)
    answer = world.coordinator.heartbeat(beat)
    assert isinstance(answer, m.HeartbeatResponse)
    assert not all(reply.done for reply in loop.waiting)


def test_a_coordinator_that_closes_gives_what_was_decided(loop: CountingLoop) -> None:
    world = GroupWorld()
    loop.waiting = [world.join() for _ in range(MEMBERS)]
    while not any(reply.done for reply in loop.waiting):
        loop._due[0][2].callback()  # type: ignore[misc]
        loop._due.pop(0)
    assert not all(reply.done for reply in loop.waiting)
    world.coordinator.runtime.close()
    assert [reply.result().error_code for reply in loop.waiting] == [0] * MEMBERS


class Watched(dict[str, Any]):
    """A dictionary that is not to be walked through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("somebody looks at all members")

    items = keys = values = __iter__  # type: ignore[assignment]


def test_a_member_of_a_large_group_comes_and_lives_without_a_look_at_the_others() -> None:
    consumers = Consumers(t=INLINE_SIZE_MAX)
    epoch = consumers.join("m0").member_epoch
    consumers.world.loop.advance(BEGIN_AFTER_MS)
    group = consumers.group()
    group.members, group.targets = Watched(group.members), Watched(group.targets)
    assert consumers.join("m1").error_code == ErrorCode.NONE
    assert consumers.beat("m0", epoch).error_code == ErrorCode.NONE
    group.members, group.targets = dict(dict.items(group.members)), dict(dict.items(group.targets))
    assert list(group.members) == ["m0", "m1"]


def test_a_member_of_a_large_share_group_comes_without_a_look_at_the_others() -> None:
    """All members were copied, and looked at for an assignment that began later."""
    sharers = Sharers(t=SHARE_INLINE_SIZE_MAX)
    sharers.settle("m0")
    group = sharers.group()
    group.members, group.targets = Watched(group.members), Watched(group.targets)
    assert sharers.join("m1").error_code == ErrorCode.NONE
    assert sharers.join("m2").error_code == ErrorCode.NONE
    group.members, group.targets = dict(dict.items(group.members)), dict(dict.items(group.targets))
    found = {member: sharers.settle(member) for member in ("m0", "m1", "m2")}
    assert sorted(set(itertools.chain(*found.values()))) == list(range(SHARE_INLINE_SIZE_MAX))


def test_a_first_member_has_all_of_many_partitions_at_once() -> None:
    """It was told to ask again 5 s later."""
    partitions = INLINE_SIZE_MAX - MEMBER_SIZE
    assert told(Consumers(t=partitions).join("m0")) == list(range(partitions))


def test_members_that_come_together_are_assigned_to_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each had the whole group looked at: a thousand joins took seconds."""
    looked_at: list[int] = []

    def snapshot(*given: Any) -> GroupSpec:
        spec = original(*given)
        looked_at.append(len(spec.members))
        return spec

    original = assigning.snapshot
    monkeypatch.setattr(assigning, "snapshot", snapshot)
    consumers = Consumers(t=INLINE_SIZE_MAX)
    for number in range(20):
        consumers.join(f"m{number}")
    consumers.world.loop.advance(BEGIN_AFTER_MS + 10)
    assert looked_at == [20]
    found = [told(consumers.join(f"m{number}")) or [] for number in range(20)]
    assert sorted(itertools.chain(*found)) == list(range(INLINE_SIZE_MAX))


def test_a_static_member_that_comes_back_with_its_own_id_is_counted_once() -> None:
    consumers = Consumers(t=4, u=2)
    consumers.join("s1", instance_id="i")
    consumers.join("s2", "u", instance_id="j")
    assert consumers.beat("s1", -2, instance_id="i").member_epoch == -2
    assert consumers.join("s1", "t", "u", instance_id="i").error_code == ErrorCode.NONE
    assert consumers.group().name_readers == {"t": 1, "u": 2}
    assert consumers.beat("s2", -1).member_epoch == -1
    assert consumers.group().name_readers == {"t": 1, "u": 1}


@pytest.mark.parametrize("stage", ["begin", "result", "written"])
def test_a_static_member_that_comes_back_during_an_assignment_has_what_is_its_own(
    stage: str,
) -> None:
    """Its epoch does not change: half of the partitions went to the member that it had been, and it
    kept all of them, so that the others waited for theirs until the next epoch."""
    consumers = Consumers(t=INLINE_SIZE_MAX)
    first = consumers.join("s1", instance_id="i")
    consumers.world.loop.advance(5000)
    consumers.beat("s1", first.member_epoch, topic_partitions=[])
    assert consumers.beat("s1", -2, instance_id="i").member_epoch == -2
    consumers.join("m2")
    jobs, loop = consumers.world.shard.consumer.groups.assigning._jobs, consumers.world.loop
    while not getattr(jobs["g"], stage):
        when_s, _, handle = heapq.heappop(loop._due)
        loop.now_ms = max(loop.now_ms, round(when_s * 1000))
        if handle.callback is not None:
            handle.callback()
    for member_id in ("s1b", "s1c"):
        assert consumers.join(member_id, instance_id="i").error_code == ErrorCode.NONE
        assert consumers.beat(member_id, -2, instance_id="i").member_epoch == -2
    loop.advance(BEGIN_AFTER_MS + 10)
    group = consumers.group()
    assert group.target_epoch == group.epoch
    counts = {member: sum(map(len, x.values())) for member, x in group.targets.items()}
    assert counts == {"s1c": INLINE_SIZE_MAX // 2, "m2": INLINE_SIZE_MAX // 2}


# -------------------------------------------------------------------------- the leader's assignment


def assigned(world: GroupWorld) -> tuple[list[str], list[Any]]:
    """Members of a group too large to store at once, all of which have sent their SyncGroup; the
    leader is the first one, and its assignment is not stored yet."""
    loop = world.loop
    joining = [world.join() for _ in range(AT_ONCE_MEMBERS_MAX + 1)]
    loop.run()
    ids = [reply.result().member_id for reply in joining]
    leader, *others = ids
    syncs = [world.sync(member_id, 1) for member_id in others]
    syncs.insert(0, world.sync(leader, 1, {x: x.encode() for x in ids}))
    return ids, syncs


def test_a_large_assignment_is_stored_in_slices_and_as_one_that_is_stored_at_once() -> None:
    world = GroupWorld()
    ids, syncs = assigned(world)
    assert world.state() == "CompletingRebalance"
    world.loop.advance(10)
    assert [reply.result().assignment for reply in syncs] == [x.encode() for x in ids]
    stored = world.shard.classic.groups.stored["g"]
    group = world.shard.classic.groups.live["g"]
    at_once = group.to_stored({x: x.encode() for x in ids})
    assert stored == at_once._replace(state_timestamp_ms=stored.state_timestamp_ms)
    world.reload()
    assert world.shard.classic.groups.stored["g"] == stored
    assert world.now(world.sync(ids[7], 1)).assignment == ids[7].encode()


@pytest.mark.parametrize("what", ["joins", "leaves", "joins anew"])
def test_who_comes_or_goes_while_an_assignment_is_stored_ends_it(what: str) -> None:
    world = GroupWorld()
    ids, syncs = assigned(world)
    stored = world.shard.classic.groups.stored["g"]
    if what == "joins":
        world.join()
    elif what == "leaves":
        world.leave((ids[3], None))
    else:
        world.join(ids[3], protocols=(("other", b"x"), ("range", b"y")))
    world.loop.advance(10)
    gone = {ids[3]} if what == "leaves" else set()
    for member_id, reply in zip(ids, syncs, strict=True):
        expected = ErrorCode.REBALANCE_IN_PROGRESS
        if member_id in gone:
            expected = ErrorCode.UNKNOWN_MEMBER_ID
        assert reply.result().error_code == expected
    assert world.shard.classic.groups.stored["g"] == stored
    assert not world.shard.classic.groups.storing


def test_the_first_assignment_of_a_generation_counts() -> None:
    world = GroupWorld()
    ids, syncs = assigned(world)
    again = world.sync(ids[0], 1, dict.fromkeys(ids, b"other"))
    world.loop.advance(10)
    assert again.result().assignment == ids[0].encode()
    assert syncs[5].result().assignment == ids[5].encode()


def test_a_shard_that_goes_while_an_assignment_is_stored_answers_everybody() -> None:
    world = GroupWorld()
    _, syncs = assigned(world)
    world.coordinator.runtime.unload(0)
    world.loop.advance(10)
    codes = {reply.result().error_code for reply in syncs}
    assert codes == {ErrorCode.NOT_COORDINATOR}


def test_a_large_assignment_that_the_log_refuses_has_everybody_join_again() -> None:
    world = GroupWorld()
    _, syncs = assigned(world)
    world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    world.loop.advance(10)
    codes = {reply.result().error_code for reply in syncs}
    assert codes == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert world.state() == "PreparingRebalance"

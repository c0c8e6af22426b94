"""Classic groups beyond the recorded scripts: reloads, refused appends, lags, odd orders."""

from __future__ import annotations

import pytest

from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.join import random_uuid
from kwire.coordinator.group.consumer_protocol import subscribed_topics
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld


def code(response: object) -> ErrorCode:
    return ErrorCode(response.error_code)  # type: ignore[attr-defined]


# -------------------------------------------------------------------------- restarts


def test_members_survive_a_restart_with_a_full_session() -> None:
    world = GroupWorld()
    leader, follower = world.stable(2)
    world.loop.advance(9000)
    world.heartbeat(leader, 2)
    world.reload()
    assert world.state() == "Stable"
    world.loop.advance(9999)
    assert code(world.now(world.heartbeat(leader, 2))) == ErrorCode.NONE
    assert world.now(world.sync(follower, 2)).assignment == follower.encode()
    world.loop.advance(9999)
    assert code(world.now(world.heartbeat(leader, 2))) == ErrorCode.REBALANCE_IN_PROGRESS
    world.loop.advance(1)
    assert world.state() == "PreparingRebalance"
    assert code(world.now(world.heartbeat(follower, 2))) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_is_known_by_its_instance_after_a_restart() -> None:
    world = GroupWorld()
    joined = world.now(world.join(instance="i"))
    plan = {joined.member_id: b"mine"}
    world.now(world.sync(joined.member_id, 1, plan, instance="i"))
    world.reload()
    back = world.now(world.join(instance="i", version=9))
    assert (code(back), back.generation_id, back.skip_assignment) == (ErrorCode.NONE, 1, True)
    assert back.member_id != joined.member_id
    assert world.now(world.sync(back.member_id, 1, instance="i")).assignment == b"mine"
    assert (
        code(world.now(world.heartbeat(joined.member_id, 1, instance="i")))
        == ErrorCode.FENCED_INSTANCE_ID
    )
    world.reload()
    assert code(world.now(world.heartbeat(back.member_id, 1, instance="i"))) == ErrorCode.NONE


def test_a_generation_that_was_not_stored_is_forgotten() -> None:
    """As on Kafka: members of it are unknown, those of the stored one stay."""
    world = GroupWorld()
    (leader,) = world.stable(1)
    newcomer = world.join()
    rejoined = world.now(world.join(leader))
    assert rejoined.generation_id == 2
    newcomer_id = world.now(newcomer).member_id
    world.reload()
    assert world.state() == "Stable"
    assert code(world.now(world.heartbeat(leader, 1))) == ErrorCode.NONE
    assert code(world.now(world.heartbeat(newcomer_id, 2))) == ErrorCode.UNKNOWN_MEMBER_ID


def test_waiting_members_are_sent_away_when_the_leadership_goes() -> None:
    world = GroupWorld()
    (leader,) = world.stable(1)
    joins = world.join()
    world.reload()
    assert code(world.now(joins)) == ErrorCode.NOT_COORDINATOR
    joins, rejoined = world.join(), world.now(world.join(leader))
    follower = world.now(joins).member_id
    syncs = world.sync(follower, rejoined.generation_id)
    assert isinstance(syncs, Pending)
    assert not syncs.done
    world.reload()
    assert code(syncs.result()) == ErrorCode.NOT_COORDINATOR


def test_a_group_above_its_size_sheds_members_after_loading() -> None:
    world = GroupWorld()
    members = world.stable(3)
    smaller = GroupWorld(max_size=2)
    smaller.log.batches, smaller.log.ends = world.log.batches, world.log.ends
    smaller.log.commit_all()
    smaller.reload()
    assert smaller.state() == "PreparingRebalance"
    answers = [smaller.join(x) for x in members]
    results = [code(smaller.now(x)) for x in reversed(answers)]
    assert sorted(results) == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]


# -------------------------------------------------------------------------- lagging high watermark


def test_nobody_hears_of_an_assignment_before_it_is_committed() -> None:
    world = GroupWorld(lagging=True)
    joins = world.join()
    world.log.commit_all()
    member = world.now(joins).member_id
    syncs = world.sync(member, 1, {member: b"x"})
    again = world.sync(member, 1)
    beats = world.heartbeat(member, 1)
    described = world.coordinator.describe_groups(["g"])
    for answer in (syncs, again, beats, described):
        assert isinstance(answer, Pending)
        assert not answer.done
    world.log.commit_all()
    assert world.now(syncs).assignment == world.now(again).assignment == b"x"
    assert code(world.now(beats)) == ErrorCode.NONE
    assert world.now(described)[0].group_state == "Stable"


def test_a_lost_assignment_was_never_told() -> None:
    world = GroupWorld(lagging=True)
    joins = world.join()
    world.log.commit_all()
    member = world.now(joins).member_id
    syncs = world.sync(member, 1, {member: b"x"})
    world.coordinator.runtime.unload(0)
    world.log.truncate(0)
    world.reload()
    assert code(world.now(syncs)) == ErrorCode.NOT_COORDINATOR
    assert world.state() == "Empty"
    assert code(world.now(world.sync(member, 1))) == ErrorCode.UNKNOWN_MEMBER_ID


# -------------------------------------------------------------------------- refused appends


def test_a_new_group_that_cannot_be_stored_does_not_exist() -> None:
    world = GroupWorld()
    world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert code(world.now(world.join())) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code(world.now(world.join(version=5))) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.refuse = None
    assert world.now(world.coordinator.list_groups([], [])).groups == []
    assert world.now(world.join()).generation_id == 1
    assert len(world.shard.deadlines) == 4  # session, SyncGroup, expiry, missed deletions


def test_assignments_that_cannot_be_stored_start_a_new_rebalance() -> None:
    world = GroupWorld()
    (leader,) = world.stable(1)
    joins, rejoined = world.join(), world.now(world.join(leader))
    follower = world.now(joins).member_id
    waiting = world.sync(follower, rejoined.generation_id)
    world.log.refuse = ErrorCode.MESSAGE_TOO_LARGE
    told = world.now(world.sync(leader, rejoined.generation_id, {leader: b"x"}))
    assert code(told) == code(world.now(waiting)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.state() == "PreparingRebalance"
    world.log.refuse = None
    waiting, rejoined = world.join(follower), world.now(world.join(leader))
    assert (code(rejoined), code(world.now(waiting))) == (ErrorCode.NONE, ErrorCode.NONE)


def test_a_static_member_whose_return_cannot_be_stored_stays_the_old_one() -> None:
    world = GroupWorld()
    joined = world.now(world.join(instance="i"))
    world.now(world.sync(joined.member_id, 1, {joined.member_id: b"x"}, instance="i"))
    world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = world.now(world.join(instance="i", protocols=(("range", b"new"),)))
    assert (code(refused), refused.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    world.log.refuse = None
    assert code(world.now(world.heartbeat(joined.member_id, 1, instance="i"))) == ErrorCode.NONE
    described = world.now(world.coordinator.describe_groups(["g"]))[0]
    assert [(x.member_id, x.member_metadata) for x in described.members] == [
        (joined.member_id, b"meta")
    ]
    world.loop.advance(10_000)
    assert world.state() == "Empty"


def test_an_empty_group_that_could_not_be_stored() -> None:
    """The members of the last stored generation come back with a reload and then time out."""
    world = GroupWorld()
    (member,) = world.stable(1)
    world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert code(world.now(world.leave((member, None)))) == ErrorCode.NONE
    assert world.state() == "Empty"
    world.log.refuse = None
    world.reload()
    assert world.state() == "Stable"
    world.loop.advance(10_000)
    assert world.state() == "Empty"
    assert world.shard.storage.classic.groups["g"].members == ()


# -------------------------------------------------------------------------- odd orders


def test_static_members_keep_their_place_when_nobody_rejoins() -> None:
    """The rebalance timeout removes dynamic members only; without any that rejoined the join
    phase goes on until the session of the static one ends."""
    world = GroupWorld()
    static = world.now(world.join(instance="i", session_ms=60_000, rebalance_ms=3000))
    world.now(world.sync(static.member_id, 1, {}, instance="i"))
    dynamic = world.join(rebalance_ms=3000)
    world.loop.advance(100)
    assert isinstance(dynamic, Pending)
    dynamic.cancel()
    dynamic_id = next(
        x for x in world.shard.classic.groups.live["g"].members if x != static.member_id
    )
    assert code(world.now(world.leave((dynamic_id, None)))) == ErrorCode.NONE
    world.loop.advance(7000)
    assert world.state() == "PreparingRebalance"
    assert list(world.shard.classic.groups.live["g"].members) == [static.member_id]
    back = world.join(static.member_id, instance="i")
    assert world.now(back).generation_id == 2


def test_a_new_member_that_never_gets_its_answer_is_dropped() -> None:
    """It cannot heartbeat without an id, so it has five minutes and not its session timeout."""
    world = GroupWorld()
    (member,) = world.stable(1, session_ms=1_000_000, rebalance_ms=1_000_000)
    waiting = world.join(session_ms=6000, rebalance_ms=1_000_000)
    world.loop.advance(299_999)
    assert isinstance(waiting, Pending)
    assert not waiting.done
    world.loop.advance(1)
    assert code(waiting.result()) == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(world.shard.classic.groups.live["g"].members) == [member]


def test_an_administrator_removes_a_member_that_waits() -> None:
    world = GroupWorld()
    joined = world.now(world.join(instance="i"))
    other = world.join()
    world.loop.run()
    waiting = world.join(joined.member_id, instance="i")
    results = [world.now(x) for x in (waiting, other)]
    follower = next(x for x in results if x.leader != x.member_id)
    instance = "i" if follower.member_id == joined.member_id else None
    syncs = world.sync(follower.member_id, 2, instance=instance)
    left = world.now(world.leave((follower.member_id, instance)))
    assert code(left.members[0]) == ErrorCode.NONE
    assert code(world.now(syncs)) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("delay_ms", [0, 3000])
def test_the_first_rebalance_waits_for_its_delay(delay_ms: int) -> None:
    world = GroupWorld(initial_rebalance_delay_ms=delay_ms)
    first = world.join()
    world.loop.advance(max(delay_ms - 1, 0))
    assert isinstance(first, Pending)
    assert first.done is (delay_ms == 0)
    world.loop.advance(1)
    assert first.result().generation_id == 1


def test_empty_groups_cost_no_soft_state() -> None:
    world = GroupWorld()
    (member,) = world.stable(1)
    world.now(world.leave((member, None)))
    world.commit(5, group="simple")
    assert world.state() == world.state("simple") == "Empty"
    assert world.shard.classic.groups.live == {}


def test_an_incarnation_of_a_deleted_group_starts_from_nothing() -> None:
    world = GroupWorld()
    (member,) = world.stable(1)
    world.now(world.leave((member, None)))
    deleted = world.now(world.coordinator.delete_groups(["g"]))
    assert code(deleted[0]) == ErrorCode.NONE
    assert world.now(world.join()).generation_id == 1


@pytest.mark.parametrize("version", [3, 5, 9])
@pytest.mark.parametrize("instance", [None, "i" * 32_767])
def test_a_member_id_that_no_string_can_hold(version: int, instance: str | None) -> None:
    """A client id may have as many bytes as a member id that begins with it. Refused as by Apache
    Kafka 4.4, and nobody else notices."""
    world = GroupWorld()
    (member,) = world.stable(1)
    for group in ("g", "new"):
        request = m.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            protocol_type="consumer",
            group_instance_id=instance,
            protocols=[m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        answer = world.coordinator.join(request, Caller(version, "x" * 32_767, "/127.0.0.1"))
        refused = world.now(answer)
        assert (code(refused), refused.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert code(world.now(world.heartbeat(member, 1))) == ErrorCode.NONE
    assert list(world.shard.classic.groups.live["g"].members) == [member]


# -------------------------------------------------------------------------- parts


def test_ties_are_broken_as_in_javas_hash_order() -> None:
    """Measured on Apache Kafka 4.4: range before roundrobin, x before y."""
    for first, second in (("range", "roundrobin"), ("x", "y")):
        world = GroupWorld()
        a = world.join(protocols=((second, b""), (first, b"")))
        b = world.join(protocols=((first, b""), (second, b"")))
        assert world.now(a).protocol_name in (first, second)
        rejoined = world.join(world.now(a).member_id, protocols=((second, b""), (first, b"")))
        assert {world.now(x).protocol_name for x in (b, rejoined)} == {first}


@pytest.mark.parametrize(
    ("metadata", "topics"),
    [
        ("0000 00000000 ffffffff", []),
        ("0001 00000002 0001 61 0002 6262 00000000", ["a", "bb"]),
        ("0003 00000001 0001 61 ffffffff 00000000", ["a"]),
        ("", None),
        ("0000 00000001", None),
        ("0000 7fffffff 0001 61", None),
        ("0000 ffffffff", None),
        ("ffff 00000000 ffffffff", None),
        ("0000 00000001 ffff ffffffff", None),
        ("0000 00000001 0005 6161", None),
        ("0000 00000001 0001 ff ffffffff", None),
        ("0000 00000001 0001 61", None),
    ],
)
def test_subscriptions(metadata: str, topics: list[str] | None) -> None:
    assert subscribed_topics(bytes.fromhex(metadata)) == topics


def test_member_ids_are_uuids() -> None:
    class Ones:
        def random_bytes(self, size_bytes: int) -> bytes:
            return b"\xff" * size_bytes

        def below(self, limit: int) -> int:
            return 0

    assert random_uuid(Ones()) == "ffffffff-ffff-4fff-bfff-ffffffffffff"


def test_a_generation_after_the_largest() -> None:
    group = ClassicGroup("g")
    group.generation = 2**31 - 1
    group.state = type(group.state).PREPARING_REBALANCE
    group.start_generation(1)
    assert group.generation == 0

"""Members of classic groups: joining, protocols, states, static members, batched leave."""

import pytest

from tests.cases.helpers import (
    Member,
    committed,
    describe_group,
    join_once,
    simple_commit,
    stable,
    state_of,
)
from tests.wire import group_ready, retry


@pytest.mark.case("GRP-10")
def test_grp_10_session_timeouts_have_bounds(conn, unique):
    """Session timeouts outside group.min and max.session.timeout.ms (6 s, 30 min) are 26; both bounds are fine.

    SOURCES: apache/kafka PR#267 (KAFKA-2596), PR#6650
    """
    group_ready(conn, unique("g"))
    for version in (0, 2, 5, 9):
        who = {"group_instance_id": "i"} if version >= 5 else {}
        for timeout, code in (
            (0, 26),
            (-1, 26),
            (5999, 26),
            (1800001, 26),
            (6000, 0),
            (1800000, 0),
        ):
            r = join_once(conn, unique("g"), version, session_timeout_ms=timeout, **who)
            assert r.error_code == code, f"v{version} {timeout}"
            if code:
                assert (r.generation_id, r.leader, r.member_id, r.members) == (-1, "", "", [])


@pytest.mark.case("GRP-11")
def test_grp_11_protocols_are_checked(conn, conns, unique, group):
    """No protocols, no protocol type, another type or none in common: 23, and nobody is disturbed. An empty group takes
    any type again.

    SOURCES: apache/kafka PR#6650; redpanda-data/redpanda#2903
    """
    group_ready(conn, group)
    m = Member(conns(), group, session_ms=30000, protocols=[("p1", b"1"), ("p2", b"2")])
    stable([m])
    for version in (0, 5, 9):
        who = {"group_instance_id": "i"} if version >= 5 else {}
        other = [{"name": "p3", "metadata": b""}]
        assert join_once(conn, group, version, protocols=other, **who).error_code == 23
        assert join_once(conn, group, version, protocol_type="connect", **who).error_code == 23
        assert join_once(conn, unique("g"), version, protocols=[], **who).error_code == 23
        assert join_once(conn, unique("g"), version, protocol_type="", **who).error_code == 23
    r = join_once(
        conn, group, 9, protocols=[{"name": "p3", "metadata": b""}], group_instance_id="i"
    )
    assert (r.protocol_type, r.protocol_name) == (None, None)
    assert m.heartbeat() == 0
    assert [x.member_id for x in describe_group(conn, group).members] == [m.id]
    assert m.leave() == 0
    n = Member(conns(), group, protocol_type="connect", protocols=[("x", b"x")])
    stable([n])
    assert describe_group(conn, group).protocol_type == "connect"


@pytest.mark.case("GRP-11")
def test_grp_11_the_members_agree_on_a_protocol(conn, conns, group):
    """Chosen is one that all have; the leader gets each member's metadata for that one. A member that comes back
    without it is refused (23), the others go on.

    SOURCES: apache/kafka PR#6650
    """
    a = Member(conns(), group, session_ms=30000, protocols=[("p1", b"1"), ("p2", b"2")])
    b = Member(conns(), group, session_ms=30000, protocols=[("p3", b"3"), ("p2", b"22")])
    group_ready(conn, group)
    stable([a])
    b.post_join_with_id()
    retry(a.heartbeat, lambda e: e == 27, 5)
    a.post_join()
    ra, rb = a.got_join(), b.got_join()
    assert (ra.protocol_name, rb.protocol_name) == ("p2", "p2")
    assert sorted(m.metadata for m in ra.members or rb.members) == [b"2", b"22"]
    assert a.join_once(protocols=[{"name": "p1", "metadata": b""}]).error_code == 23
    assert b.heartbeat() == 0
    assert b.sync(version=5, protocol_type="x", protocol_name="p2").error_code == 23
    assert b.sync(version=5, protocol_name="p1").error_code == 23


@pytest.mark.case("GRP-11")
def test_grp_11_only_what_changed_starts_a_rebalance(conn, conns, group):
    """In Stable a follower that joins again with what it had gets the generation as it is, and other timeouts change
    nothing for the rest; other metadata, or the leader joining again, start a rebalance.

    SOURCES: kafka4beam/brod#648; apache/kafka PR#8405 (KAFKA-9801)
    """
    a, b = (Member(conns(), group, session_ms=30000) for _ in range(2))
    group_ready(conn, group)
    first = stable([a, b])[0]
    lead, other = (a, b) if first.leader == a.id else (b, a)
    gen = lead.gen
    for told in ({}, {"session_timeout_ms": 20000, "rebalance_timeout_ms": 20000}):
        r = other.join_once(**told)
        assert (r.error_code, r.generation_id, r.leader, r.members) == (0, gen, lead.id, [])
        assert lead.heartbeat() == 0
    changed = [{"name": "range", "metadata": b"changed"}]
    other.post_join(protocols=changed)
    assert retry(lead.heartbeat, lambda e: e == 27, 5) == 27
    lead.post_join()
    assert [lead.got_join().generation_id, other.got_join().generation_id] == [gen + 1] * 2
    # the same again before the leader has synced: still that generation
    r = other.join_once(protocols=changed)
    assert (r.error_code, r.generation_id) == (0, gen + 1)
    assert lead.sync({lead.id: b"x"}).error_code == 0
    lead.post_join()
    assert retry(other.heartbeat, lambda e: e == 27, 5) == 27
    other.post_join(protocols=changed)
    assert [lead.got_join().generation_id, other.got_join().generation_id] == [gen + 2] * 2


@pytest.mark.case("GRP-7")
def test_grp_7_commits_and_heartbeats_by_state(conn, conns, topic, group):
    """Commits by members: 27 while a generation waits for its plan, fine while the next one forms; heartbeats the other
    way round. Wrong generations are 22, unknown members 25, also of a group that is empty or gone.

    SOURCES: apache/kafka PR#10863 (KAFKA-12890), PR#267 (KAFKA-2596); dpkp/kafka-python#571; KxSystems/kafka#69
    """
    a, b = (Member(conns(), group, session_ms=30000) for _ in range(2))
    group_ready(conn, group)
    a.join()
    assert (state_of(conn, group), a.heartbeat(), a.commit(topic, 1)) == (
        "CompletingRebalance",
        0,
        27,
    )
    assert [a.heartbeat(generation_id=0), a.commit(topic, 1, generation_id_or_member_epoch=0)] == [
        22
    ] * 2
    assert simple_commit(conn, group, topic, 1) == 25, "no membership while there are members"
    assert a.sync({a.id: b"A"}).error_code == 0
    assert (state_of(conn, group), a.heartbeat(), a.commit(topic, 2)) == ("Stable", 0, 0)
    assert [a.heartbeat(generation_id=g) for g in (-1, 0, 2)] == [22, 22, 22]
    assert [a.heartbeat(member_id=m) for m in ("zz", "")] == [25, 25]
    assert [
        simple_commit(conn, group, topic, 1, **k)
        for k in ({}, {"generation_id_or_member_epoch": 1})
    ] == [25, 25]
    b.post_join_with_id()
    assert retry(a.heartbeat, lambda e: e == 27, 5) == 27
    assert (state_of(conn, group), a.commit(topic, 3)) == ("PreparingRebalance", 0)
    assert [a.heartbeat(generation_id=0), a.sync(generation_id=0).error_code] == [22, 22]
    assert a.sync().error_code == 27
    a.post_join()
    assert [a.got_join().error_code, b.got_join().error_code] == [0, 0]
    assert [a.commit(topic, 4), b.commit(topic, 4)] == [27, 27]
    assert [b.leave(), a.leave()] == [0, 0]
    assert [a.heartbeat(), a.commit(topic, 5), a.sync().error_code, a.leave()] == [25] * 4
    d = describe_group(conn, group)
    assert (d.group_state, d.protocol_type, d.protocol_data, d.members) == (
        "Empty",
        "consumer",
        "",
        [],
    )
    assert simple_commit(conn, group, topic, 6) == 0
    assert committed(conn, group, topic).committed_offset == 6


@pytest.mark.case("GRP-7")
def test_grp_7_a_pending_member_is_no_member(conn, conns, topic, group):
    """An id that was handed out but not used yet: its heartbeats, syncs and commits are 25, the group is Empty, and can
    be deleted; the id is then void.

    SOURCES: confluentinc/librdkafka PR#5570; apache/kafka PR#6251
    """
    a = Member(conns(), group, session_ms=30000)
    group_ready(conn, group)
    a.id = a.join_once().member_id
    assert [a.heartbeat(generation_id=g) for g in (-1, 0, 1)] == [25, 25, 25]
    assert [a.sync(generation_id=g).error_code for g in (-1, 0)] == [25, 25]
    assert [a.commit(topic, 1, generation_id_or_member_epoch=g) for g in (0, 1)] == [25, 25]
    assert (state_of(conn, group), describe_group(conn, group).members) == ("Empty", [])


@pytest.mark.case("GRP-8")
def test_grp_8_static_members_come_back_while_a_generation_forms(conn, conns, group):
    """A second client with a known instance id fences a join or sync that waits (82), and takes part in its place; a
    generation that waits for its plan is formed anew.

    SOURCES: apache/kafka PR#6899 (KAFKA-8500), PR#8405 (KAFKA-9801)
    """

    def member(instance):
        return Member(conns(), group, session_ms=30000, instance=instance, version=9)

    a, b, b2 = member("ia"), member("ib"), member("ib")
    group_ready(conn, group)
    a.join()
    assert a.sync({a.id: b""}).error_code == 0
    b.post_join()
    retry(a.heartbeat, lambda e: e == 27, 5)
    b2.post_join()
    assert b.got_join(5).error_code == 82
    a.post_join()
    ra, rb = a.got_join(), b2.got_join()
    assert (ra.error_code, rb.error_code, len(ra.members) + len(rb.members)) == (0, 0, 2)
    lead, other = (a, b2) if ra.leader == a.id else (b2, a)
    other.post_sync(version=5)
    again = member(other.instance)
    again.post_join()
    assert other.c.recv(5).error_code == 82
    assert retry(lead.heartbeat, lambda e: e == 27, 5) == 27
    lead.post_join()
    rl, ro = lead.got_join(), again.got_join()
    assert (rl.error_code, ro.error_code) == (0, 0)
    assert rl.generation_id == ro.generation_id == ra.generation_id + 1


@pytest.mark.case("GRP-8")
def test_grp_8_a_static_leader_that_comes_back_does_not_assign_again(conn, conns, group):
    """A static leader that comes back to a Stable group gets its old plan: up to v8 it is told that another one leads;
    from v9 it is the leader again, told to skip the assignment.

    SOURCES: apache/kafka PR#6899 (KAFKA-8500); KIP-814 (KAFKA-13435)
    """
    m = Member(conns(), group, session_ms=30000, instance="ia", version=9)
    group_ready(conn, group)
    m.join()
    assert m.sync({m.id: b"plan"}, version=5).assignment == b"plan"
    before = m.id
    for version in (5, 8, 9):
        n = Member(conns(), group, session_ms=30000, instance="ia", version=version)
        r = n.join_once()
        assert (r.error_code, r.generation_id) == (0, 1)
        assert n.id not in ("", before)
        if version == 9:
            assert (r.leader, r.skip_assignment, len(r.members)) == (n.id, True, 1)
        else:
            assert (r.leader, r.members) == (before, [])
        assert n.sync({n.id: b"other"}, version=5).assignment == b"plan"
        before = n.id


@pytest.mark.case("GRP-8")
def test_grp_8_a_static_member_that_comes_back_has_its_new_rebalance_timeout(conn, conns, group):
    """The timeouts of the second client count from then on: the next rebalance does not wait for the old one's.

    SOURCES: apache/kafka PR#12308 (KAFKA-14009)
    """
    a = Member(conns(), group, session_ms=50000, rebalance_ms=50000, instance="ia")
    group_ready(conn, group)
    a.join()
    assert a.sync({a.id: b"x"}).error_code == 0
    b = Member(conns(), group, session_ms=50000, rebalance_ms=1000, instance="ia")
    r = b.join_once()
    assert (r.error_code, r.generation_id) == (0, 1)
    c = Member(conns(), group, session_ms=50000, rebalance_ms=1000)
    c.post_join_with_id()
    r = c.got_join(20)
    assert (r.error_code, r.generation_id, len(r.members)) == (0, 2, 2), "the static one stays"


@pytest.mark.case("GRP-8")
def test_grp_8_a_static_member_outlasts_a_rebalance_that_it_misses(conn, conns, group):
    """Who does not join in time is dropped, but a static member stays for its session, with a part in the plan.

    SOURCES: apache/kafka PR#6666 (KAFKA-8220)
    """
    a = Member(conns(), group, session_ms=20000, rebalance_ms=1000, instance="ia")
    b = Member(conns(), group, session_ms=20000, rebalance_ms=1000)
    group_ready(conn, group)
    stable([a, b])
    b.post_join(protocols=[{"name": "range", "metadata": b"new"}])
    r = b.got_join(15)
    assert (r.error_code, r.generation_id, r.leader) == (0, a.gen + 1, b.id)
    assert {m.group_instance_id for m in r.members} == {"ia", None}
    assert a.heartbeat() == 22
    assert b.sync({b.id: b"B", a.id: b"A"}).assignment == b"B"
    d = describe_group(conn, group)
    assert {m.group_instance_id: m.member_assignment for m in d.members} == {"ia": b"A", None: b"B"}


@pytest.mark.case("GRP-9")
def test_grp_9_batched_leave(conn, conns, group):
    """LeaveGroup v3-5 answers each member alone; static members go by instance id, with or without their member id; a
    wrong pair is 82, anything unknown 25, and the answer says what was asked.

    SOURCES: apache/kafka PR#7122 (KAFKA-8222); thomhurst/Dekaf PR#2303; twmb/franz-go#931
    """
    a, b = (Member(conns(), group, session_ms=30000, instance=i) for i in ("ia", "ib"))
    c = Member(conns(), group, session_ms=30000)
    group_ready(conn, group)
    stable([a, b, c])

    def leave(version, *members):
        told = [{"member_id": m, "group_instance_id": i} for m, i in members]
        r = conn.send("leave_group", version, group_id=group, members=told)
        assert [(x.member_id, x.group_instance_id) for x in r.members] == list(members)
        return r.error_code, [x.error_code for x in r.members]

    assert leave(3) == (0, [])
    assert leave(3, ("zz", None), ("", None), ("", "none"), ("zz", "ia"), (c.id, "zz")) == (
        0,
        [25, 25, 25, 82, 25],
    )
    assert leave(4, ("", "ia"), (b.id, "ib"), (c.id, None), (c.id, None)) == (0, [0, 0, 0, 25])
    assert (state_of(conn, group), leave(5, ("", "ia"))) == ("Empty", (0, [25]))
    assert leave(5, (c.id, None)) == (0, [25])
    missing = conn.send("leave_group", 5, group_id=group + "-no", members=[{"member_id": "m"}])
    assert (missing.error_code, [m.error_code for m in missing.members]) == (0, [25])

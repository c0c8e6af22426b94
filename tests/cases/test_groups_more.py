"""Classic groups and their offsets, more of them: states, static members, batched leave, commits, names, queries."""

import uuid

import pytest
import wire
from helpers import (
    Member,
    Txn,
    committed,
    describe_group,
    simple_commit,
    stable,
    state_of,
    subscription,
)
from wire import group_ready, retry


def _join(c, group, version, **told):
    body = {
        "group_id": group,
        "session_timeout_ms": 10000,
        "rebalance_timeout_ms": 10000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
    }
    return c.send("join_group", version, {**body, **told})


def _topics(*told):
    """OffsetCommit's topics from (name, partition, offset, metadata)."""
    return [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": partition,
                    "committed_offset": offset,
                    "committed_leader_epoch": -1,
                    "committed_metadata": metadata,
                }
            ],
        }
        for name, partition, offset, metadata in told
    ]


def _commit(c, group, version, topics, **told):
    body = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time_ms": -1,
        "topics": topics,
    }
    r = c.send("offset_commit", version, {**body, **told})
    return [p.error_code for t in r.topics for p in t.partitions]


# ------------------------------------------------------------------ joining


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
            r = _join(conn, unique("g"), version, session_timeout_ms=timeout, **who)
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
        assert _join(conn, group, version, protocols=other, **who).error_code == 23
        assert _join(conn, group, version, protocol_type="connect", **who).error_code == 23
        assert _join(conn, unique("g"), version, protocols=[], **who).error_code == 23
        assert _join(conn, unique("g"), version, protocol_type="", **who).error_code == 23
    r = _join(conn, group, 9, protocols=[{"name": "p3", "metadata": b""}], group_instance_id="i")
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


# ------------------------------------------------------------------ by state


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


# ------------------------------------------------------------------ static members


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


# ------------------------------------------------------------------ offsets


@pytest.mark.case("GRP-6")
def test_grp_6_commits_without_membership(conn, topic, unique):
    """Without generation and member any group takes offsets and is there from then on, the one with the empty name too;
    a generation or a member of a group that is not there is 22, 69 from v9 on.

    SOURCES: apache/kafka PR#267 (KAFKA-2596); KIP-289; redpanda-data/redpanda#2597
    """
    for version in (2, 7, 8, 9):
        g = unique("g")
        group_ready(conn, g)
        told = [(1, "m"), (0, ""), (1, "")]
        codes = [
            simple_commit(
                conn, g, topic, 5, version=version, generation_id_or_member_epoch=e, member_id=m
            )
            for e, m in told
        ]
        assert codes == [69 if version >= 9 else 22] * 3, f"v{version}"
        assert state_of(conn, g) == "Dead"
        assert simple_commit(conn, g, topic, 5, version=version) == 0
        assert state_of(conn, g) == "Empty"
    group_ready(conn, "")
    assert simple_commit(conn, "", topic, 9) == 0
    assert committed(conn, "", topic).committed_offset == 9
    for api, version, told in (
        ("heartbeat", 4, {"generation_id": 1, "member_id": "m"}),
        ("leave_group", 2, {"member_id": "m"}),
        ("sync_group", 3, {"generation_id": 1, "member_id": "m", "assignments": []}),
    ):
        assert conn.send(api, version, group_id="", **told).error_code == 24, api
    assert _join(conn, "", 5).error_code == 24
    assert conn.send("delete_groups", 2, groups_names=[""]).results[0].error_code == 0


@pytest.mark.case("GRP-16")
def test_grp_16_metadata_of_commits(conn, topics, group):
    """At most offset.metadata.max.bytes (4,096) characters of metadata, 12 for more; null is read as empty; each
    partition is answered alone, and one that is not there is 3.

    SOURCES: dpkp/kafka-python#2322; confluentinc/librdkafka#1515; redpanda-data/redpanda#2597
    """
    topic = topics(3)
    group_ready(conn, group)
    for version in (2, 5, 8, 9):
        for metadata, code in (
            ("x" * 4096, 0),
            ("x" * 4097, 12),
            ("é" * 4096, 0),
            ("\U0001f600" * 2048, 0),
            ("\U0001f600" * 2049, 12),
            ("a\0b", 0),
            (None, 0),
        ):
            got = _commit(conn, group, version, _topics((topic, 0, 7, metadata)))
            assert got == [code], (version, metadata and metadata[:3])
            if not code:
                assert committed(conn, group, topic).metadata == (metadata or "")
        several = _topics(
            (topic, 1, 9, ""), (topic, 1, 9, "x" * 5000), (topic, 9, 9, ""), (topic, -1, 9, "")
        )
        assert sorted(_commit(conn, group, version, several)) == [0, 3, 3, 12]
        other = _topics(("no-such-topic", 0, 1, ""), (topic, 2, 11, "m"))
        assert sorted(_commit(conn, group, version, other)) == [0, 3]
    for offset in (-1, -100, 0, 2**63 - 1):
        assert simple_commit(conn, group, topic, offset) == 0, "any offset is taken"
        assert committed(conn, group, topic).committed_offset == offset


@pytest.mark.case("GRP-12")
def test_grp_12_offsets_by_topic_id(conn, topics, group):
    """OffsetCommit and OffsetFetch v10 name topics by id: unknown ids, and the zero id, are 100.

    SOURCES: KIP-848
    """
    topic = topics(2)
    asked = [{"topic_id": None, "name": topic}]
    known = conn.send("metadata", 12, topics=asked, allow_auto_topic_creation=False)
    right, wrong, zero = known.topics[0].topic_id, uuid.UUID(int=77), uuid.UUID(int=0)
    group_ready(conn, group)

    def by_id(which, *told):
        parts = _topics(*((None, p, o, "") for p, o in told))
        return {"topic_id": which, "partitions": [x["partitions"][0] for x in parts]}

    told = [
        by_id(right, (0, 5), (9, 5)),
        by_id(wrong, (0, 6)),
        by_id(zero, (0, 6)),
        by_id(right, (1, 8)),
    ]
    body = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": told}
    r = conn.send("offset_commit", 10, body)
    got = {(t.topic_id, p.partition_index): p.error_code for t in r.topics for p in t.partitions}
    assert got == {(right, 0): 0, (right, 9): 3, (wrong, 0): 100, (zero, 0): 100, (right, 1): 0}
    ask = [{"topic_id": i, "partition_indexes": [0]} for i in (right, wrong, zero)]
    r = conn.send("offset_fetch", 10, groups=[{"group_id": group, "topics": ask}]).groups[0]
    read = [(t.topic_id, p.committed_offset, p.error_code) for t in r.topics for p in t.partitions]
    assert sorted(read, key=str) == sorted(
        [(right, 5, 0), (wrong, -1, 100), (zero, -1, 100)], key=str
    )
    r = conn.send("offset_fetch", 10, groups=[{"group_id": group, "topics": None}]).groups[0]
    read = [(t.topic_id, p.committed_offset) for t in r.topics for p in t.partitions]
    assert sorted(read) == [(right, 5), (right, 8)]


@pytest.mark.case("GRP-14")
def test_grp_14_a_group_outlives_its_last_offset(conn, conns, topics, group):
    """OffsetDelete of the last offset leaves a group without members where it is, to expire; partitions that are not
    there are 3, subscribed ones 86.

    SOURCES: apache/kafka PR#15221 (KAFKA-14505); redpanda-data/redpanda PR#8669
    """
    topic = topics(2)
    group_ready(conn, group)

    def delete(name, *told):
        asked = [
            {"name": t, "partitions": [{"partition_index": p} for p in parts]} for t, parts in told
        ]
        r = conn.send("offset_delete", 0, group_id=name, topics=asked)
        parts = [(t.name, p) for t in r.topics for p in t.partitions]
        return r.error_code, sorted((n, p.partition_index, p.error_code) for n, p in parts)

    assert [simple_commit(conn, group, topic, 1, p) for p in (0, 1)] == [0, 0]
    assert delete(group, (topic, [0, 7, -1])) == (0, [(topic, -1, 3), (topic, 0, 0), (topic, 7, 3)])
    assert state_of(conn, group) == "Empty"
    assert delete(group, (topic, [1])) == (0, [(topic, 1, 0)])
    assert state_of(conn, group) == "Empty"
    assert delete(group, (topic, [1])) == (0, [(topic, 1, 0)])
    m = Member(conns(), group, session_ms=30000, protocols=[("range", subscription([topic]))])
    stable([m])
    assert m.commit(topic, 5) == 0
    assert delete(group, (topic, [0])) == (0, [(topic, 0, 86)])


@pytest.mark.case("GRP-14")
def test_grp_14_groups_and_offsets_of_open_transactions(conn, topic, unique):
    """Offsets of an open transaction: OffsetFetch with RequireStable says 88 until its end; a later plain commit wins.
    What OffsetDelete or DeleteGroups removed meanwhile does not come back with a commit.

    SOURCES: apache/kafka PR#19496 (KAFKA-19163), PR#19497 (KAFKA-19164), PR#15155; redpanda-data/redpanda#6423
    """
    for commit in (True, False):
        g = unique("g")
        group_ready(conn, g)
        t = Txn(conn, unique("tx"))
        assert t.add_offsets(g) == 0
        assert t.commit_offsets(g, {(topic, 0): 5}) == [0]
        assert committed(conn, g, topic, require_stable=True).error_code == 88
        p = committed(conn, g, topic)
        assert (p.error_code, p.committed_offset) == (0, -1)
        assert simple_commit(conn, g, topic, 77) == 0
        assert committed(conn, g, topic, require_stable=True).error_code == 88
        assert committed(conn, g, topic).committed_offset == 77
        assert t.end(commit) == 0
        p = retry(
            lambda name=g: committed(conn, name, topic, require_stable=True),
            lambda p: p.error_code != 88,
            10,
        )
        assert (p.error_code, p.committed_offset) == (0, 77)
    for whole in (True, False):
        g = unique("g")
        group_ready(conn, g)
        t = Txn(conn, unique("tx"))
        assert t.add_offsets(g) == 0
        assert t.commit_offsets(g, {(topic, 0): 5}) == [0]
        if whole:
            assert conn.send("delete_groups", 2, groups_names=[g]).results[0].error_code == 0
        else:
            one = [{"name": topic, "partitions": [{"partition_index": 0}]}]
            r = conn.send("offset_delete", 0, group_id=g, topics=one)
            assert r.topics[0].partitions[0].error_code == 0
        assert committed(conn, g, topic, require_stable=True).error_code == 0
        assert t.end(True) == 0
        ends = retry(lambda t=t: _state(conn, t.tid), lambda s: s.startswith("Complete"), 10)
        assert ends == "CompleteCommit"
        assert committed(conn, g, topic, require_stable=True).committed_offset == -1
        assert state_of(conn, g) == ("Dead" if whole else "Empty")


def _state(c, tid) -> str:
    return (
        c.send("describe_transactions", 0, transactional_ids=[tid])
        .transaction_states[0]
        .transaction_state
    )


# ------------------------------------------------------------------ queries


@pytest.mark.case("GRP-13")
def test_grp_13_groups_that_are_not_there(conn, unique):
    """DescribeGroups of a missing group is Dead without an error, 69 with a text from v6 on; the same name twice is
    answered twice; no groups, no answers.

    SOURCES: oleksiyk/kafka#242; YelpArchive/kafka-utils PR#183; KIP-1043
    """
    g = unique("no")
    group_ready(conn, g)
    for version in (0, 4, 5):
        d = describe_group(conn, g, version)
        assert (d.error_code, d.group_state, d.protocol_type, d.members) == (0, "Dead", "", [])
    r = conn.send("describe_groups", 6, groups=[g, g])
    assert [(d.error_code, d.error_message, d.group_state) for d in r.groups] == [
        (69, f"Group {g} not found.", "Dead")
    ] * 2
    assert conn.send("describe_groups", 6, groups=[]).groups == []


@pytest.mark.case("GRP-19")
def test_grp_19_filters_that_match_nothing(conn, topic, group):
    """Unknown states and types match nothing and are no error; Kafka's names only, in any case.

    SOURCES: linkedin/Burrow#789; redpanda-data/redpanda#2903; KIP-518, KIP-848
    """
    group_ready(conn, group)
    assert simple_commit(conn, group, topic, 1) == 0

    def found(states, types=()):
        r = conn.send("list_groups", 5, states_filter=list(states), types_filter=list(types))
        assert r.error_code == 0
        return group in {g.group_id for g in r.groups}

    assert found([]) and found(["EMPTY"]) and found(["bogus", "empty"]) and found([], ["cLASSIC"])
    assert not any(found([s]) for s in ("bogus", "", "preparing_rebalance", "Assigning"))
    assert not any(found([], [t]) for t in ("bogus", "", "share", "streams", "consumer"))


@pytest.mark.case("GRP-21")
def test_grp_21_kinds_of_coordinators(conn, unique):
    """FindCoordinator: groups and transactions from v1, share groups from v6 by group, topic id and partition; any
    other kind or key is 42. From v4 each key is answered alone, however often it is named.

    SOURCES: twmb/franz-go#37; redpanda-data/redpanda#3655; Jroland/kafka-net#122; KIP-699, KIP-932
    """
    group_ready(conn, unique("g"))
    wire.txn_ready(conn, unique("tx"))
    for version in (1, 2, 3):
        asked = [
            wire.retry(
                lambda k=kind, v=version: (
                    conn.send("find_coordinator", v, key="a", key_type=k).error_code
                ),
                lambda code: code != 15,
                15,
            )
            for kind in (0, 1, 2, 3, -1)
        ]
        assert asked == [0, 0, 42, 42, 42], f"v{version}"
    for version in (4, 5, 6):
        r = conn.send("find_coordinator", version, key_type=0, coordinator_keys=["a", "", "a"])
        assert [(x.key, x.error_code, x.error_message) for x in r.coordinators] == [
            ("a", 0, ""),
            ("", 0, ""),
            ("a", 0, ""),
        ]
        assert (
            conn.send("find_coordinator", version, key_type=0, coordinator_keys=[]).coordinators
            == []
        )
    for version in (4, 5):
        r = conn.send("find_coordinator", version, key_type=2, coordinator_keys=["a"])
        x = r.coordinators[0]
        assert (x.error_code, x.error_message, x.node_id, x.host, x.port) == (42, "", -1, "", -1)
    bad = ["g:no-id:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"]
    r = conn.send("find_coordinator", 6, key_type=2, coordinator_keys=bad)
    assert [(x.error_code, x.error_message) for x in r.coordinators] == [(42, "")] * 3

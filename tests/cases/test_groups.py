"""Classic consumer groups, their offsets and admin calls, and the consumer protocol of KIP-848."""

import time
import uuid

import pytest

from tests import wire
from tests.cases.helpers import (
    Member,
    committed,
    describe_group,
    join_once,
    simple_commit,
    stable,
    state_of,
    subscription,
)
from tests.wire import group_ready, retry


def ms(t0):
    return (time.monotonic() - t0) * 1000


def listed(c, version=4, **kw):
    r = c.send("list_groups", version, dict({"states_filter": [], "types_filter": []}, **kw))
    assert r.error_code == 0, r
    return {g.group_id: g for g in r.groups}


# ------------------------------------------------------------------------------------------------- GRP-1: joining


@pytest.mark.case("GRP-1")
@pytest.mark.parametrize("version", [4, 5, 7, 9])
def test_grp_1_member_id_required(conn, group, version):
    """From v4 on a newcomer first gets error 79 with its id at once, is not a member yet, and enters with that id.

    SOURCES: kafkaex/kafka_ex#539; tulios/kafkajs#856; confluentinc/librdkafka#3470
    """
    group_ready(conn, group)
    t0 = time.monotonic()
    r = join_once(conn, group, version)
    assert ms(t0) < 2500, "must not wait for a rebalance"
    assert (r.error_code, r.generation_id, r.members) == (79, -1, [])
    head, tail = r.member_id[: len("checks-")], r.member_id[len("checks-") :]
    assert head == "checks-" and str(uuid.UUID(tail)) == tail, r.member_id
    assert describe_group(conn, group).members == []
    r2 = join_once(conn, group, version, r.member_id)
    assert (r2.error_code, r2.generation_id, r2.member_id, r2.leader) == (
        0,
        1,
        r.member_id,
        r.member_id,
    )
    assert r2.protocol_name == "range"
    assert [(m.member_id, m.metadata) for m in r2.members] == [(r.member_id, b"meta")]
    if version >= 7:
        assert r2.protocol_type == "consumer"


@pytest.mark.case("GRP-1")
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_grp_1_old_versions_join_at_once(conn, group, version):
    """Before v4 there is no such round trip.

    SOURCES: kafkaex/kafka_ex#539
    """
    group_ready(conn, group)
    r = join_once(conn, group, version)
    assert (r.error_code, r.generation_id, r.leader) == (0, 1, r.member_id)
    assert r.member_id.startswith("checks-")
    assert [(m.member_id, m.metadata) for m in r.members] == [(r.member_id, b"meta")]


@pytest.mark.case("GRP-1")
def test_grp_1_static_member_joins_at_once_and_bogus_id_is_refused(conn, group):
    """A static newcomer joins at once; an unknown non-empty member id is 25 on every version.

    SOURCES: kafkaex/kafka_ex#539
    """
    group_ready(conn, group)
    for v in (0, 3, 5, 9):
        r = join_once(conn, group, v, "bogus")
        assert (r.error_code, r.member_id, r.generation_id, r.members) == (25, "bogus", -1, []), (
            f"v{v}"
        )
    r = join_once(conn, group, 5, group_instance_id="i1")
    assert (r.error_code, r.generation_id, r.leader) == (0, 1, r.member_id)
    assert r.members[0].group_instance_id == "i1"
    # with a live group too
    r = conn.send(
        "heartbeat",
        3,
        group_id=group,
        generation_id=1,
        member_id=r.member_id,
        group_instance_id="i1",
    )
    assert r.error_code == 0
    for v in (3, 5, 9):
        assert join_once(conn, group, v, "bogus").error_code == 25, f"v{v}"


# ------------------------------------------------------------------------------------ GRP-2: pending member ids


@pytest.mark.case("GRP-2")
@pytest.mark.slow
def test_grp_2_pending_member_delays_at_most_its_session(conns, group):
    """A member id that was handed out and never used holds up a rebalance no longer than its session timeout.

    SOURCES: confluentinc/librdkafka PR#5570; apache/kafka PR#6251
    """
    a, b, c = (
        Member(conns(), group, session_ms=s, rebalance_ms=45000) for s in (30000, 6000, 30000)
    )
    group_ready(a.c, group)
    stable([a])
    t0 = time.monotonic()
    r = b.join_once()
    assert r.error_code == 79
    c.post_join_with_id()
    retry(a.heartbeat, lambda e: e == 27, 5)
    a.post_join()
    ra, rc = a.got_join(12), c.got_join(5)
    assert 4500 < ms(t0) < 10000, "pending member B counts until its session timeout"
    assert ra.error_code == rc.error_code == 0
    assert ra.generation_id == rc.generation_id == 2
    assert len(ra.members or rc.members) == 2
    # its id is no longer good
    b.id = r.member_id
    assert b.join_once().error_code == 25


@pytest.mark.case("GRP-2")
def test_grp_2_leave_of_a_pending_member_releases_the_rebalance(conns, group):
    """LeaveGroup by the pending member succeeds and completes the rebalance at once.

    SOURCES: confluentinc/librdkafka PR#5570
    """
    a, b, c = (Member(conns(), group, session_ms=30000, rebalance_ms=45000) for _ in range(3))
    group_ready(a.c, group)
    stable([a])
    b.id = b.join_once().member_id
    c.post_join_with_id()
    retry(a.heartbeat, lambda e: e == 27, 5)
    a.post_join()
    assert a.c.no_reply_within(0.7), "B is still expected"
    t0 = time.monotonic()
    assert b.leave() == 0
    ra, rc = a.got_join(5), c.got_join(5)
    assert ms(t0) < 5000
    assert ra.error_code == rc.error_code == 0
    assert ra.generation_id == rc.generation_id == 2


@pytest.mark.case("GRP-2")
@pytest.mark.slow
def test_grp_2_group_with_only_a_pending_member_becomes_empty(conn, conns, group):
    """When the last real member expires while an id is pending, the group becomes Empty and can be used again.

    SOURCES: redpanda-data/redpanda PR#25270; confluentinc/librdkafka PR#5570
    """
    a, b = Member(conns(), group, session_ms=6000), Member(conns(), group, session_ms=30000)
    group_ready(conn, group)
    stable([a])
    b.id = b.join_once().member_id
    assert retry(lambda: state_of(conn, group), lambda s: s == "Empty", 10, 0.3) == "Empty"
    r = b.join_once(timeout=10)
    assert r.error_code == 0 and r.leader == b.id and r.generation_id >= 2, r
    assert b.sync({b.id: b"x"}).assignment == b"x"


# ------------------------------------------------------------------------------------ GRP-3: rebalance timeout


@pytest.mark.case("GRP-3")
@pytest.mark.parametrize("version", [0, 2])
def test_grp_3_members_meet_in_one_generation(conns, group, version):
    """A newcomer's join waits for the members that heartbeat (27) and rejoin a second later; all get one generation.
    JoinGroup v0 has no rebalance timeout and takes the session timeout for it.

    SOURCES: kafka4beam/brod PR#465; kafka4beam/brod#379
    """
    a = Member(conns(), group, session_ms=10000, rebalance_ms=10000, version=version)
    b = Member(conns(), group, session_ms=10000, rebalance_ms=10000, version=version)
    group_ready(a.c, group)
    a.join()
    assert a.sync({a.id: b""}).error_code == 0
    b.post_join()
    for _ in range(5):
        time.sleep(0.25)
        assert a.heartbeat() == 27
    assert b.c.no_reply_within(0.05)
    a.post_join()
    ra, rb = a.got_join(5), b.got_join(5)
    assert (ra.error_code, rb.error_code, ra.generation_id, rb.generation_id) == (0, 0, 2, 2)
    assert ra.leader == rb.leader
    assert {ra.member_id, rb.member_id} >= {ra.leader}
    full = ra if ra.leader == ra.member_id else rb
    other = rb if full is ra else ra
    assert {m.member_id for m in full.members} == {a.id, b.id}
    assert other.members == []


@pytest.mark.case("GRP-3")
@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 1])
def test_grp_3_member_that_does_not_rejoin_is_dropped(conns, group, version):
    """A member that only heartbeats and never rejoins is removed after the rebalance timeout (v0: its session
    timeout), and the join completes with the rest.

    SOURCES: kafka4beam/brod PR#465
    """
    s, r = (6000, 6000) if version == 0 else (20000, 3000)
    a = Member(conns(), group, session_ms=s, rebalance_ms=r, version=version)
    b = Member(conns(), group, session_ms=s, rebalance_ms=r, version=version)
    group_ready(a.c, group)
    a.join()
    assert a.sync({a.id: b""}).error_code == 0
    t0 = time.monotonic()
    b.post_join()
    while b.c.no_reply_within(0.5) and ms(t0) < 12000:
        a.heartbeat()
    took = ms(t0)
    rb = b.got_join(1)
    assert (rb.error_code, [m.member_id for m in rb.members], rb.generation_id) == (0, [b.id], 2)
    assert r - 700 < took < r + 3000, took
    assert a.heartbeat() == 25


@pytest.mark.case("GRP-3")
def test_grp_3_largest_rebalance_timeout_counts(conns, group):
    """With different rebalance timeouts the group waits for the largest one.

    SOURCES: kafka4beam/brod#379
    """
    a = Member(conns(), group, session_ms=20000, rebalance_ms=4000, version=2)
    b = Member(conns(), group, session_ms=20000, rebalance_ms=1000, version=2)
    group_ready(a.c, group)
    a.join()
    assert a.sync({a.id: b""}).error_code == 0
    t0 = time.monotonic()
    b.post_join()
    assert b.c.no_reply_within(2.5), "A may take 4 s"
    rb = b.got_join(8)
    assert rb.error_code == 0
    assert 3300 < ms(t0) < 7500


@pytest.mark.case("GRP-3")
def test_grp_3_five_members_one_by_one(conns, group):
    """Five members that join one after the other end up in one Stable group.

    SOURCES: kafka4beam/brod PR#465
    """
    ms5 = [Member(conns(), group, version=v) for v in (0, 2, 5, 0, 5)]
    group_ready(ms5[0].c, group)
    t0 = time.monotonic()
    stable(ms5)
    assert ms(t0) < 10000
    d = describe_group(ms5[0].c, group)
    assert d.group_state == "Stable"
    assert {m.member_id for m in d.members} == {m.id for m in ms5}
    assert all(m.heartbeat() == 0 for m in ms5)
    assert {m.gen for m in ms5} == {5}


# ------------------------------------------------------------------------------------- GRP-4: leaving


@pytest.mark.case("GRP-4")
def test_grp_4_leave_of_the_last_missing_member_completes_the_join(conns, group):
    """When the only member that has not rejoined leaves, the waiting joins are answered at once.

    SOURCES: streamnative/kop PR#380
    """
    a, b, c = (Member(conns(), group, session_ms=30000, rebalance_ms=30000) for _ in range(3))
    group_ready(a.c, group)
    stable([a, b])
    c.post_join_with_id()
    retry(b.heartbeat, lambda e: e == 27, 5)
    b.post_join()
    assert b.c.no_reply_within(0.5)
    t0 = time.monotonic()
    assert a.leave() == 0
    rb, rc = b.got_join(5), c.got_join(5)
    assert ms(t0) < 4000
    assert rb.error_code == rc.error_code == 0
    assert rb.generation_id == rc.generation_id == 3
    assert rb.leader == rc.leader and rb.leader in (b.id, c.id), "A was the leader and is gone"
    lead = rb if rb.leader == b.id else rc
    assert {m.member_id for m in lead.members} == {b.id, c.id}


@pytest.mark.case("GRP-4")
def test_grp_4_leave_of_the_last_member(conn, conns, group, topic):
    """The last leave makes the group Empty at once; offsets stay, and the next generation is larger.

    SOURCES: streamnative/kop PR#380
    """
    a = Member(conns(), group)
    group_ready(a.c, group)
    stable([a])
    assert a.commit(topic, 7) == 0
    assert a.leave() == 0
    d = describe_group(conn, group)
    assert (d.group_state, d.protocol_type, d.members) == ("Empty", "consumer", [])
    assert committed(conn, group, topic).committed_offset == 7
    assert a.heartbeat() == 25
    b = Member(conns(), group)
    t0 = time.monotonic()
    assert b.join().generation_id >= 2
    assert ms(t0) < 5000


@pytest.mark.case("GRP-4")
@pytest.mark.timeout(120)
def test_grp_4_quick_restarts_of_a_client(bootstrap, topic, group):
    """A consumer that closes and comes back again and again is assigned its partition each time within seconds.

    SOURCES: streamnative/kop PR#380
    """
    from kafka import KafkaConsumer

    for i in range(12):
        k = KafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, session_timeout_ms=30000
        )
        t0 = time.monotonic()
        # kafka-python 3.0.12 loses an assignment that arrives when a short poll has just ended.
        while not k.assignment() and ms(t0) < 8000:
            k.poll(2000)
        took = ms(t0)
        assert k.assignment(), f"round {i}: no assignment"
        k.close()
        assert took < 7000, f"round {i}: {took:.0f} ms"


# ------------------------------------------------------------------------------------ GRP-5: SyncGroup


def _three(conns, group, version=5):
    """Three members joined (not synced) in one generation; [leader, follower, follower]."""
    m = [
        Member(conns(), group, session_ms=20000, rebalance_ms=20000, version=version)
        for _ in range(3)
    ]
    group_ready(m[0].c, group)
    stable(m[:2])
    m[2].post_join_with_id()
    for x in m[:2]:
        retry(x.heartbeat, lambda e: e == 27, 5)
        x.post_join()
    rs = [x.got_join(10) for x in m]
    assert all(r.error_code == 0 for r in rs)
    m.sort(key=lambda x: x.id != rs[0].leader)
    return m


def _rejoin(members, starter):
    """A new generation: `starter` rejoins, then the others. Returns [leader, others...]."""
    starter.post_join(protocols=[{"name": "range", "metadata": uuid.uuid4().bytes}])
    for x in members:
        if x is not starter:
            retry(x.heartbeat, lambda e: e == 27, 5)
            x.post_join()
    rs = {x: x.got_join(10) for x in members}
    assert all(r.error_code == 0 for r in rs.values()), rs
    return sorted(members, key=lambda x: x.id != rs[x].leader)


@pytest.mark.case("GRP-5")
def test_grp_5_followers_wait_for_the_leader(conns, group):
    """A follower's SyncGroup is answered only after the leader's, with exactly the leader's bytes for it; v5 names
    protocol type and name; a repeat in Stable gives the same bytes.

    SOURCES: nisshi-io/nisshi#679; IBM/sarama#2290; atleon/atleon#366; 514-labs/moosestack PR#3885
    """
    lead, f1, f2 = _three(conns, group)
    f1.post_sync(version=5)
    f2.post_sync(version=3)
    assert f1.c.no_reply_within(2.0) and f2.c.no_reply_within(0.05), (
        "answered before the leader's plan"
    )
    plan = {lead.id: b"L" * 10, f1.id: b"\x00\xff1", f2.id: bytes(range(256))}
    r = lead.sync(plan, version=5)
    assert (r.error_code, r.protocol_type, r.protocol_name, r.assignment) == (
        0,
        "consumer",
        "range",
        plan[lead.id],
    )
    r = f1.c.recv(5)
    assert (r.error_code, r.protocol_type, r.protocol_name, r.assignment) == (
        0,
        "consumer",
        "range",
        plan[f1.id],
    )
    r = f2.c.recv(5)
    assert (r.error_code, r.assignment) == (0, plan[f2.id])
    for m in (f1, lead, f2):
        for v in (0, 3, 5):
            r = m.sync(version=v)
            assert (r.error_code, r.assignment) == (0, plan[m.id]), "repeat in Stable"
    # a leader that repeats itself with another plan in Stable does not change anything
    assert lead.sync({lead.id: b"new"}).assignment == plan[lead.id]
    assert f1.sync().assignment == plan[f1.id]


@pytest.mark.case("GRP-5")
def test_grp_5_omitted_member_gets_empty_bytes(conns, group):
    """A member that the plan leaves out gets error 0 and zero bytes, not the bytes of the last generation.

    SOURCES: nisshi-io/nisshi#679; 514-labs/moosestack PR#3885
    """
    lead, f1, f2 = _three(conns, group)
    plan = {lead.id: b"a", f1.id: b"b", f2.id: b"c"}
    assert lead.sync(plan).assignment == b"a"
    assert f2.sync().assignment == b"c"
    lead, f1, f2 = _rejoin([lead, f1, f2], lead)
    assert lead.sync({lead.id: b"a2", f1.id: b"b2"}).assignment == b"a2"
    assert f1.sync().assignment == b"b2"
    r = f2.sync(version=5)
    assert (r.error_code, r.assignment, r.protocol_name) == (0, b"", "range")


@pytest.mark.case("GRP-5")
def test_grp_5_sync_errors(conns, group):
    """Wrong generation 22, unknown member 25, wrong protocol name or type 23 (v5); a sync that waits while a new
    rebalance starts is answered 27.

    SOURCES: IBM/sarama#2290
    """
    lead, f1, f2 = _three(conns, group)
    assert f1.sync(generation_id=f1.gen - 1).error_code == 22
    assert f1.sync(generation_id=f1.gen + 1).error_code == 22
    assert f1.sync(member_id="nobody").error_code == 25
    assert f1.sync(version=5, protocol_name="roundrobin").error_code == 23
    assert f1.sync(version=5, protocol_type="connect").error_code == 23
    f1.post_sync()
    assert f1.c.no_reply_within(0.3)
    f2.post_join(protocols=[{"name": "range", "metadata": b"changed"}])
    assert f1.c.recv(5).error_code == 27
    assert lead.sync({lead.id: b"x"}).error_code == 27
    c = conns()
    assert (
        c.send(
            "sync_group",
            3,
            group_id=group + "-missing",
            generation_id=1,
            member_id="m",
            group_instance_id=None,
            assignments=[],
        ).error_code
        == 25
    )


@pytest.mark.case("GRP-5")
@pytest.mark.slow
def test_grp_5_member_that_never_syncs_is_removed(conns, group):
    """A member that joined and heartbeats but never syncs is removed after the rebalance timeout.

    SOURCES: nisshi-io/nisshi#679
    """
    a = Member(conns(), group, session_ms=30000, rebalance_ms=3000)
    b = Member(conns(), group, session_ms=30000, rebalance_ms=3000)
    group_ready(a.c, group)
    stable([a])
    b.post_join_with_id()
    retry(a.heartbeat, lambda e: e == 27, 5)
    a.post_join()
    ra = a.got_join(5)
    b.got_join(5)
    lead, lazy = (a, b) if ra.leader == a.id else (b, a)
    t0 = time.monotonic()
    assert lead.sync({lead.id: b"x", lazy.id: b"y"}).error_code == 0
    assert lazy.heartbeat() == 0
    code = retry(lead.heartbeat, lambda e: e == 27, 10, 0.2)
    assert code == 27 and 1500 < ms(t0) < 7000, (code, ms(t0))
    assert lazy.heartbeat() == 25
    assert lead.join(timeout=5).error_code == 0
    assert [m.member_id for m in describe_group(a.c, group).members] == [lead.id]


# ------------------------------------------------------------------ GRP-6: commits without membership


# ------------------------------------------------------------------ GRP-7: commits and heartbeats by state


# ------------------------------------------------------------------------------ GRP-8: static members


@pytest.mark.case("GRP-8")
@pytest.mark.parametrize("version", [5, 9])
@pytest.mark.parametrize("who", ["follower", "leader"])
def test_grp_8_static_member_comes_back_without_rebalance(conn, conns, topic, group, who, version):
    """Known instance id, empty member id, Stable group: same generation, new member id, old assignment, nobody else
    disturbed; from then on the old member id is fenced (82).

    SOURCES: twmb/franz-go#931; aio-libs/aiokafka PR#1188; robot-head/crabka PR#212; apache/kafka PR#6650
    """
    i1 = Member(conns(), group, session_ms=30000, instance="i1", version=version)
    b = Member(conns(), group, session_ms=30000)
    group_ready(conn, group)
    order = [i1, b] if who == "leader" else [b, i1]
    stable(order, lambda members: {m.id: b"part-" + m.id.encode() for m in members})
    m1, gen = i1.id, i1.gen
    assert i1.heartbeat() == 0
    n = Member(conns(), group, session_ms=30000, instance="i1", version=version)
    t0 = time.monotonic()
    r = n.join_once()
    assert ms(t0) < 4000
    assert (r.error_code, r.generation_id) == (0, gen)
    assert r.member_id not in ("", m1)
    assert b.heartbeat() == 0
    assert state_of(conn, group) == "Stable"
    r = n.sync()
    assert (r.error_code, r.assignment) == (0, b"part-" + m1.encode())
    assert b.sync().assignment == b"part-" + b.id.encode()
    # the old incarnation
    assert i1.heartbeat() == 82
    assert i1.commit(topic, 1) == 82
    assert i1.sync().error_code == 82
    assert i1.join_once().error_code == 82
    assert i1.leave(version=3) == 82
    assert i1.heartbeat(group_instance_id=None) == 25, "the old member id alone is unknown"
    # the new one
    assert (n.heartbeat(), n.commit(topic, 2), b.heartbeat()) == (0, 0, 0)
    assert n.heartbeat(group_instance_id="i9") == 25, "unknown instance id"
    assert n.commit(topic, 3, group_instance_id="i9") == 25
    assert join_once(conns(), group, 5, n.id, group_instance_id="i9").error_code == 25
    d = describe_group(conn, group)
    assert {(m.member_id, m.group_instance_id) for m in d.members} == {(n.id, "i1"), (b.id, None)}
    assert committed(conn, group, topic).committed_offset == 2


@pytest.mark.case("GRP-8")
@pytest.mark.slow
def test_grp_8_silent_static_member_keeps_its_place_until_the_session_ends(conn, conns, group):
    """A static member that says nothing stays a member for its session timeout and not longer.

    SOURCES: apache/kafka PR#6650
    """
    i1 = Member(conns(), group, session_ms=6000, instance="i1")
    group_ready(conn, group)
    stable([i1])
    i1.c.close()
    t0 = time.monotonic()
    while ms(t0) < 5000:
        assert [m.group_instance_id for m in describe_group(conn, group).members] == ["i1"], ms(t0)
        time.sleep(0.5)
    assert retry(lambda: state_of(conn, group), lambda s: s == "Empty", 5, 0.2) == "Empty"


@pytest.mark.case("GRP-8")
def test_grp_8_fenced_client(bootstrap, conn, topic, group):
    """librdkafka: a second consumer with the same instance id takes over; the first one fails fatally as fenced and the
    healthy one stays.

    SOURCES: twmb/franz-go#931; aio-libs/aiokafka PR#1188
    """
    from confluent_kafka import Consumer, KafkaError

    errs = []
    conf = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.instance.id": "one",
        "session.timeout.ms": 20000,
        "heartbeat.interval.ms": 300,
    }
    a = Consumer(dict(conf, error_cb=errs.append))
    b = Consumer(conf)
    try:
        a.subscribe([topic])
        retry(lambda: a.poll(0.1) or a.assignment(), bool, 15, 0)
        assert a.assignment()
        gen1 = describe_group(conn, group).members[0].member_id
        b.subscribe([topic])
        retry(lambda: b.poll(0.1) or b.assignment(), bool, 15, 0)
        assert b.assignment()

        def fenced():
            m = a.poll(0.1)
            if m is not None and m.error():
                errs.append(m.error())
            b.poll(0)
            return [
                e for e in errs if e.code() in (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL)
            ]

        assert retry(fenced, bool, 15, 0), errs
        d = describe_group(conn, group)
        assert d.group_state == "Stable"
        assert len(d.members) == 1
        assert d.members[0].member_id != gen1
    finally:
        a.close()
        b.close()


# ------------------------------------------------------------------------------ GRP-9: batched leave


# ------------------------------------------------------------------------------ GRP-10: session timeouts


# ------------------------------------------------------------------------------ GRP-11: protocols


# ------------------------------------------------------------------------------ GRP-12: OffsetFetch


@pytest.mark.case("GRP-12")
def test_grp_12_all_offsets_of_a_group(conn, topics, unique, group):
    """A null topic list means every committed partition and nothing else; unknown groups, topics and partitions answer
    offset -1 without error.

    SOURCES: segmentio/kafka-go#1115; IBM/sarama#1012; platformatic/kafka PR#151; apache/kafka PR#2074
    """
    t = topics(3)
    group_ready(conn, group)
    assert simple_commit(conn, group, t, 5, 0) == 0
    assert simple_commit(conn, group, t, 7, 1) == 0

    def flat(ts):
        return sorted(
            (x.name, p.partition_index, p.committed_offset, p.error_code)
            for x in ts
            for p in x.partitions
        )

    for v in range(2, 8):
        r = conn.send("offset_fetch", v, group_id=group, topics=None)
        assert r.error_code == 0 and flat(r.topics) == [(t, 0, 5, 0), (t, 1, 7, 0)], f"v{v}"
        r = conn.send("offset_fetch", v, group_id=unique("nosuch"), topics=None)
        assert (r.error_code, r.topics) == (0, []), f"v{v}"
    for v in range(1, 8):
        r = conn.send("offset_fetch", v, group_id=group, topics=[])
        assert r.topics == [], f"v{v}"
        ask = [
            {"name": t, "partition_indexes": [2, 1, 9]},
            {"name": "no-such-topic", "partition_indexes": [0]},
        ]
        r = conn.send("offset_fetch", v, group_id=group, topics=ask)
        assert flat(r.topics) == sorted(
            [(t, 2, -1, 0), (t, 1, 7, 0), (t, 9, -1, 0), ("no-such-topic", 0, -1, 0)]
        )
        for x in r.topics:
            for p in x.partitions:
                if p.committed_offset == -1:
                    assert p.metadata == "" and p.get("committed_leader_epoch", -1) == -1, (
                        f"v{v}: {p}"
                    )
        r = conn.send("offset_fetch", v, group_id=unique("nosuch"), topics=ask)
        assert r.get("error_code", 0) == 0 and {x[2:] for x in flat(r.topics)} == {(-1, 0)}, f"v{v}"


@pytest.mark.case("GRP-12")
def test_grp_12_several_groups_in_one_request(conn, topics, unique):
    """OffsetFetch v8+ answers each group in order under its own id.

    SOURCES: apache/kafka PR#2074; platformatic/kafka PR#151
    """
    t = topics(2)
    g1, g2, g3 = (unique("g") for _ in range(3))
    for g, o in ((g1, 11), (g2, 22)):
        group_ready(conn, g)
        assert simple_commit(conn, g, t, o) == 0
    for v in (8, 9):
        r = conn.send(
            "offset_fetch",
            v,
            groups=[
                {"group_id": g2, "topics": None, "member_epoch": -1},
                {"group_id": g3, "topics": None, "member_epoch": -1},
                {
                    "group_id": g1,
                    "topics": [{"name": t, "partition_indexes": [1, 0]}],
                    "member_epoch": -1,
                },
            ],
        )
        assert [(g.group_id, g.error_code) for g in r.groups] == [(g2, 0), (g3, 0), (g1, 0)], (
            f"v{v}"
        )
        assert [
            [(p.partition_index, p.committed_offset) for x in g.topics for p in x.partitions]
            for g in r.groups
        ] == [[(0, 22)], [], [(1, -1), (0, 11)]], f"v{v}"


@pytest.mark.case("GRP-12")
def test_grp_12_deleted_topics_do_not_reappear(conn, topics, group):
    """After a topic was deleted the all-offsets answer no longer has it.

    SOURCES: segmentio/kafka-go#1115
    """
    t, u = topics(), topics()
    group_ready(conn, group)
    assert simple_commit(conn, group, t, 5) == 0
    assert simple_commit(conn, group, u, 6) == 0
    assert wire.delete_topic(conn, t) == 0
    names = retry(
        lambda: [x.name for x in conn.send("offset_fetch", 7, group_id=group, topics=None).topics],
        lambda n: t not in n,
        8,
        0.2,
    )
    assert names == [u]


@pytest.mark.case("GRP-12")
def test_grp_12_admin_client_lists_offsets(bootstrap, conn, topics, group):
    """kafka-python's list of a group's offsets equals the commits.

    SOURCES: segmentio/kafka-go#1115
    """
    from kafka import KafkaAdminClient

    t = topics(3)
    group_ready(conn, group)
    for p, o in ((0, 5), (2, 7)):
        assert simple_commit(conn, group, t, o, p) == 0
    adm = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        r = adm.list_group_offsets(group)[group]
        assert {(tp.topic, tp.partition): o.offset for tp, o in r.items()} == {(t, 0): 5, (t, 2): 7}
    finally:
        adm.close()


# ------------------------------------------------------------------------------ GRP-13: DescribeGroups


# ------------------------------------------------------------------------------ GRP-14: deleting


def _offset_delete(c, group, parts):
    r = c.send(
        "offset_delete",
        0,
        group_id=group,
        topics=[
            {"name": t, "partitions": [{"partition_index": p} for p in ps]}
            for t, ps in parts.items()
        ],
    )
    return r.error_code, {
        (t.name, p.partition_index): p.error_code for t in r.topics for p in t.partitions
    }


@pytest.mark.case("GRP-14")
def test_grp_14_delete_groups(conn, conns, topic, unique):
    """DeleteGroups answers per group: Empty 0 (with or without offsets), with members 68, missing 69.

    SOURCES: redpanda-data/console#458; redpanda-data/redpanda PR#8669; apache/kafka PR#4479
    """
    for v in (0, 1, 2):
        active, empty, left, missing = (unique(n) for n in ("active", "empty", "left", "missing"))
        for g in (active, empty, left, missing):
            group_ready(conn, g)
        stable([Member(conns(), active)])
        assert simple_commit(conn, empty, topic, 3) == 0
        m = Member(conns(), left)
        stable([m])
        assert m.leave() == 0
        assert {active, empty, left} <= set(listed(conn))
        r = conn.send("delete_groups", v, groups_names=[active, empty, missing, left])
        assert {x.group_id: x.error_code for x in r.results} == {
            active: 68,
            empty: 0,
            missing: 69,
            left: 0,
        }, f"v{v}"
        now = set(listed(conn))
        assert active in now
        assert not now & {empty, left, missing}
        assert committed(conn, empty, topic).committed_offset == -1
        assert state_of(conn, empty) == "Dead"
        assert state_of(conn, active) == "Stable"
        r = conn.send("delete_groups", v, groups_names=[empty])
        assert r.results[0].error_code == 69


@pytest.mark.case("GRP-14")
def test_grp_14_offset_delete(conn, conns, topics, unique, group):
    """OffsetDelete: 86 for topics that an active consumer group subscribes to, 0 for its other topics and for offsets
    that do not exist, 3 for unknown topics, 69 for a missing group, 68 for an active group of another kind.

    SOURCES: redpanda-data/redpanda PR#8669
    """
    t0, t1 = topics(), topics(2)
    group_ready(conn, group)
    assert simple_commit(conn, group, t0, 4) == 0
    assert simple_commit(conn, group, t1, 5) == 0
    m = Member(conns(), group, protocols=[("range", subscription([t0]))])
    stable([m])
    top, codes = _offset_delete(conn, group, {t0: [0], t1: [0, 1], "no-such-topic": [0]})
    assert (top, codes) == (0, {(t0, 0): 86, (t1, 0): 0, (t1, 1): 0, ("no-such-topic", 0): 3})
    assert committed(conn, group, t0).committed_offset == 4
    assert committed(conn, group, t1).committed_offset == -1
    assert m.leave() == 0
    assert _offset_delete(conn, group, {t0: [0]}) == (0, {(t0, 0): 0})
    assert committed(conn, group, t0).committed_offset == -1
    missing = unique("missing")
    group_ready(conn, missing)
    assert _offset_delete(conn, missing, {t0: [0]})[0] == 69
    other = unique("connect")
    group_ready(conn, other)
    stable([Member(conns(), other, protocol_type="connect", protocols=[("x", b"x")])])
    assert _offset_delete(conn, other, {t0: [0]})[0] == 68


# ------------------------------------------------------------------------------ GRP-15: names

NAMES = [
    "a/b",
    "../../x",
    "a:b",
    "a b",
    " a",
    "A",
    "a",
    "%41",
    "#",
    "@",
    "emoji \U0001f600",
    "e\u0301",
    "\u00e9",
    "x" * 1000,
    "a\nb",
    "..",
    ".",
    "a\u0000b",
    "x" * 20000,
]


def _name_check(conn, topic, names, between=lambda c: c):
    for i, g in enumerate(names):
        group_ready(conn, g)
        assert simple_commit(conn, g, topic, 100 + i) == 0, repr(g)
    c = between(conn)
    for i, g in enumerate(names):
        group_ready(c, g)
        assert committed(c, g, topic).committed_offset == 100 + i, repr(g[:40])
        assert describe_group(c, g).group_id == g
    assert set(names) <= set(listed(c))
    r = c.send("delete_groups", 2, groups_names=names)
    assert {x.group_id: x.error_code for x in r.results} == dict.fromkeys(names, 0)
    assert not set(names) & set(listed(c))


@pytest.mark.case("GRP-15")
def test_grp_15_any_text_is_a_group_name(conn, topic, unique):
    """Group names are free text: case-sensitive, neither trimmed nor normalised, all kept apart.

    SOURCES: tchiotludo/akhq#1101, #1530; redpanda-data/console#555; linkedin/Burrow PR#399; obsidiandynamics/kafdrop#380
    """
    u = unique("")
    names = [n + u for n in NAMES] + [u + n for n in NAMES]
    _name_check(conn, topic, names)


@pytest.mark.case("GRP-15")
@pytest.mark.restart
@pytest.mark.timeout(150)
def test_grp_15_group_names_survive_a_restart(conn, conns, topic, unique, restart_broker):
    """The same after an orderly restart.

    SOURCES: tchiotludo/akhq#1101; redpanda-data/console#555
    """
    u = unique("")

    def between(c):
        restart_broker(c.bootstrap)
        return conns()

    _name_check(conn, topic, [n + u for n in NAMES], between)


@pytest.mark.case("GRP-15")
def test_grp_15_any_text_is_a_transactional_id(conn, topic, unique):
    """The same for transactional ids.

    SOURCES: redpanda-data/console#555
    """
    from tests.cases.helpers import Txn

    u, seen = unique(""), {}
    for n in NAMES[:14]:
        t = Txn(conn, n + u)
        assert t.produce(topic, [n], add=True).error_code == 0
        assert t.end(True) == 0
        assert t.pid not in seen, f"{n!r} and {seen[t.pid]!r} share a producer id"
        seen[t.pid] = n
    ids = {x.transactional_id for x in conn.send("list_transactions", 0).transaction_states}
    assert {n + u for n in NAMES[:14]} <= ids


# ------------------------------------------------------------------------------ GRP-16: commit metadata


# ------------------------------------------------------------------------------ GRP-17: expiry


# ------------------------------------------------------------------------------ GRP-18: deleted topics


@pytest.mark.case("GRP-18")
def test_grp_18_topic_deletion_removes_its_offsets(conn, topics, unique):
    """Deleting a topic removes its committed offsets from every group and leaves other topics alone; the re-created
    topic starts at 0 with no stale producer state.

    SOURCES: strimzi/strimzi-kafka-operator#9269; redpanda-data/redpanda PR#620; streamnative/kop#530
    """
    t, u = topics(), topics()
    g1, g2 = unique("g"), unique("g")
    pid = wire.init_producer(conn).producer_id

    def send(seq):
        r = wire.produce_once(
            conn,
            t,
            0,
            wire.batch([f"old{seq}"], producer_id=pid, producer_epoch=0, base_sequence=seq),
        )
        return r.error_code, r.base_offset

    assert send(0) == (0, 0)
    assert send(1) == (0, 1)
    for g in (g1, g2):
        group_ready(conn, g)
        assert simple_commit(conn, g, t, 100) == 0
        assert simple_commit(conn, g, u, 7) == 0
    assert wire.delete_topic(conn, t) == 0
    for g in (g1, g2):
        got = retry(lambda: committed(conn, g, t).committed_offset, lambda o: o == -1, 5)
        assert got == -1
        assert committed(conn, g, u).committed_offset == 7
    retry(
        lambda: (
            conn.send("metadata", 9, topics=[{"name": t}], allow_auto_topic_creation=False)
            .topics[0]
            .error_code
        ),
        lambda e: e == 3,
        5,
    )
    wire.new_topic(conn, t)
    assert (wire.earliest(conn, t), wire.latest(conn, t)) == (0, 0)
    assert committed(conn, g1, t).committed_offset == -1
    # the old idempotent producer: either refused or appended, never taken for a duplicate
    assert send(1) == (0, 0), "no state on the new topic: any sequence is a first one"
    assert [b.records[0].value for b in wire.read_log(conn, t)] == [b"old1"]


@pytest.mark.case("GRP-18")
def test_grp_18_consumer_of_a_recreated_topic(bootstrap, conn, topics, group):
    """A consumer that starts after the topic was re-created reads it from the start.

    SOURCES: strimzi/strimzi-kafka-operator#9269; confluentinc/librdkafka#1582
    """
    from kafka import KafkaConsumer

    t = topics()
    group_ready(conn, group)
    wire.produce_once(conn, t, 0, wire.batch(["o"] * 100))
    assert simple_commit(conn, group, t, 100) == 0
    assert wire.delete_topic(conn, t) == 0
    retry(
        lambda: (
            conn.send("metadata", 9, topics=[{"name": t}], allow_auto_topic_creation=False)
            .topics[0]
            .error_code
        ),
        lambda e: e == 3,
        5,
    )
    wire.new_topic(conn, t)
    wire.produce_once(conn, t, 0, wire.batch([b"n%d" % i for i in range(5)]))
    k = KafkaConsumer(t, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    try:
        got, end = [], time.monotonic() + 15
        while len(got) < 5 and time.monotonic() < end:
            got += [r.value for rs in k.poll(200).values() for r in rs]
        assert got == [b"n%d" % i for i in range(5)]
    finally:
        k.close()


# ------------------------------------------------------------------------------ GRP-19: ListGroups


@pytest.mark.case("GRP-19")
def test_grp_19_list_groups_by_state_and_type(conn, conns, topic, unique):
    """All groups are listed, Empty and simple ones included; v4 has the state and filters by it without regard to
    case, v5 has the type.

    SOURCES: Azure/azure-event-hubs-for-kafka#100, #95; redpanda-data/redpanda#2903; linkedin/Burrow#789
    """
    st, em, si = unique("stable"), unique("empty"), unique("simple")
    for g in (st, em, si):
        group_ready(conn, g)
    stable([Member(conns(), st)])
    m = Member(conns(), em)
    stable([m])
    assert m.leave() == 0
    assert simple_commit(conn, si, topic, 1) == 0
    mine = {st, em, si}

    def ask(v, **kw):
        return {g: x for g, x in listed(conn, v, **kw).items() if g in mine}

    for v in range(6):
        r = ask(v)
        assert {g: x.protocol_type for g, x in r.items()} == {
            st: "consumer",
            em: "consumer",
            si: "",
        }, f"v{v}"
        if v >= 4:
            assert {g: x.group_state for g, x in r.items()} == {
                st: "Stable",
                em: "Empty",
                si: "Empty",
            }, f"v{v}"
        if v >= 5:
            assert {x.group_type for x in r.values()} == {"classic"}
    for v in (4, 5):
        assert set(ask(v, states_filter=["Empty"])) == {em, si}
        assert set(ask(v, states_filter=["eMPTY"])) == {em, si}
        assert set(ask(v, states_filter=["Stable", "Empty"])) == mine
        assert set(ask(v, states_filter=["stable"])) == {st}
        assert listed(conn, v, states_filter=["Bogus"]) == {}
    assert set(ask(5, types_filter=["classic"])) == mine
    assert set(ask(5, types_filter=["Classic"])) == mine
    assert set(ask(5, types_filter=["consumer"])) == set()


@pytest.mark.case("GRP-19")
def test_grp_19_client_view(bootstrap, conn, conns, topic, unique):
    """confluent-kafka lists the same with a state filter.

    SOURCES: Azure/azure-event-hubs-for-kafka#100
    """
    from confluent_kafka import ConsumerGroupState
    from confluent_kafka.admin import AdminClient

    st, si = unique("stable"), unique("simple")
    group_ready(conn, st)
    group_ready(conn, si)
    stable([Member(conns(), st)])
    assert simple_commit(conn, si, topic, 1) == 0
    adm = AdminClient({"bootstrap.servers": bootstrap})

    def ids(**kw):
        r = adm.list_consumer_groups(**kw).result(15)
        assert not r.errors
        return {
            g.group_id: (g.state, g.is_simple_consumer_group)
            for g in r.valid
            if g.group_id in (st, si)
        }

    assert ids() == {st: (ConsumerGroupState.STABLE, False), si: (ConsumerGroupState.EMPTY, True)}
    assert set(ids(states={ConsumerGroupState.EMPTY})) == {si}
    assert set(ids(states={ConsumerGroupState.STABLE})) == {st}


# ------------------------------------------------------------------------------ GRP-20: consumer protocol


# ------------------------------------------------------------------------------ GRP-21: FindCoordinator


@pytest.mark.case("GRP-40")
def test_grp_40_nobody_waits_for_a_member_without_rebalance_timeout(conns, group):
    """The rebalance timeout of version 0 is the session timeout. From version 1 on it is what the request says: with
    -1 a rebalance does not wait, who has not rejoined when it begins is out of the group.

    SOURCES: apache/kafka#7072 (KAFKA-8653), redpanda-data/redpanda#1847, kafka4beam/brod#465
    """
    old, new = conns(), conns()
    wire.group_ready(old, group)
    first = Member(old, group, session_ms=30000, rebalance_ms=-1, version=5)
    first.join()
    first.sync({first.id: b""})
    second = Member(new, group, session_ms=30000, rebalance_ms=-1, version=5)
    r = second.join(timeout=10)
    assert r.generation_id > 1
    assert ([m.member_id for m in r.members], r.leader) == ([second.id], second.id)
    assert first.heartbeat() == wire.UNKNOWN_MEMBER_ID


@pytest.mark.case("GRP-40")
def test_grp_40_version_0_waits_for_the_session_timeout(conns, group):
    """Members of version 0 are waited for as long as their session lasts.

    SOURCES: apache/kafka#7072 (KAFKA-8653), zendesk/ruby-kafka#786
    """
    old, new = conns(), conns()
    wire.group_ready(old, group)
    first = Member(old, group, session_ms=30000, rebalance_ms=None, version=0)
    fields = {k: v for k, v in first._join_fields().items() if k != "rebalance_timeout_ms"}
    first._join_fields = lambda **over: dict(fields, member_id=first.id, **over)
    first.join()
    first.sync({first.id: b""}, version=0)
    second = Member(new, group, session_ms=30000, version=0)
    second._join_fields = lambda **over: dict(fields, member_id="", **over)
    second.post_join()
    wire.retry(lambda: first.heartbeat(version=0), lambda e: e == 27, 10)
    first.post_join()
    assert first.got_join(10).generation_id == second.got_join(10).generation_id == 2

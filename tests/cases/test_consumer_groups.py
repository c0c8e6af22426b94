"""Groups of the consumer protocol (KIP-848) by hand: heartbeats, epochs, static members, patterns, removal."""

import uuid

import pytest

from tests import wire
from tests.cases.helpers import Member, committed, simple_commit, stable
from tests.wire import group_ready, retry

NONE = {
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout_ms": -1,
    "subscribed_topic_names": None,
    "server_assignor": None,
    "topic_partitions": None,
}


def beat(c, group, member, epoch, version=1, **fields):
    """One ConsumerGroupHeartbeat; what is not named is left out of it."""
    body = {"group_id": group, "member_id": member, "member_epoch": epoch, **NONE}
    if version >= 1:
        body["subscribed_topic_regex"] = None
    return c.send("consumer_group_heartbeat", version, {**body, **fields})


def join(c, group, member, topics, version=1, **fields):
    """A first heartbeat (epoch 0)."""
    told = {
        "rebalance_timeout_ms": 30000,
        "subscribed_topic_names": topics,
        "topic_partitions": [],
    }
    return beat(c, group, member, 0, version, **{**told, **fields})


def named() -> str:
    return str(uuid.uuid4())


def describe(c, group, version=1):
    return c.send(
        "consumer_group_describe",
        version,
        group_ids=[group],
        include_authorized_operations=False,
    ).groups[0]


def instances(c, group):
    """(state, instance ids of the members)."""
    d = describe(c, group)
    return d.group_state, sorted(m.instance_id or "" for m in d.members)


def topic_id(c, name):
    asked = [{"topic_id": None, "name": name}]
    r = c.send("metadata", 12, topics=asked, allow_auto_topic_creation=False)
    return r.topics[0].topic_id


def owned(r) -> int:
    """How many partitions a heartbeat's answer names; None when it says nothing of them."""
    return (
        None
        if r.assignment is None
        else sum(len(t.partitions) for t in r.assignment.topic_partitions)
    )


# ------------------------------------------------------------------ what a heartbeat may say


@pytest.mark.case("GRP-20")
@pytest.mark.parametrize("version", [0, 1])
def test_grp_20_heartbeats_are_checked(conn, topic, unique, version):
    """A joining heartbeat needs a timeout, a subscription and an empty list of partitions; texts of blanks count as
    empty; from v1 on the member brings its id.

    SOURCES: apache/kafka PR#12972, PR#17651 (KAFKA-17593), PR#17257 (KAFKA-17592); KIP-1082
    """
    wire.group_ready(conn, unique("g"))

    def code(member=None, topics=(topic,), group=None, **fields):
        r = join(
            conn,
            group or unique("g"),
            named() if member is None else member,
            None if topics is None else list(topics),
            version,
            **fields,
        )
        return r.error_code

    some = [{"topic_id": uuid.UUID(int=5), "partitions": [0]}]
    got = {
        "right": code(),
        "no member id": code(""),
        "no topics": code(topics=None),
        "empty topics": code(topics=()),
        "no timeout": code(rebalance_timeout_ms=-1),
        "timeout 0": code(rebalance_timeout_ms=0),
        "owns something": code(topic_partitions=some),
        "owns null": code(topic_partitions=None),
        "no such assignor": code(server_assignor="nope"),
        "assignor in capitals": code(server_assignor="Range"),
        "assignor range": code(server_assignor="range"),
        "empty rack": code(rack_id=""),
        "blank rack": code(rack_id=" "),
        "empty instance": code(instance_id=""),
        "blank instance": code(instance_id=" \t"),
        "blank group": code(group=" \t"),
        "empty group": join(conn, "", named(), [topic], version).error_code,
        "unknown topic": code(topics=("no-such-topic",)),
        "no topic's name": code(topics=("a b",)),
    }
    bad, fine, assignor = 42, 0, 112
    assert got == {
        "right": fine,
        "no member id": bad if version else fine,
        "no topics": bad,
        "empty topics": fine,
        "no timeout": bad,
        "timeout 0": fine,
        "owns something": bad,
        "owns null": bad,
        "no such assignor": assignor,
        "assignor in capitals": assignor,
        "assignor range": fine,
        "empty rack": bad,
        "blank rack": bad,
        "empty instance": bad,
        "blank instance": bad,
        "blank group": bad,
        "empty group": bad,
        "unknown topic": fine,
        "no topic's name": fine,
    }


@pytest.mark.case("GRP-20")
def test_grp_20_epochs_of_members_nobody_knows(conn, group):
    """Only epoch 0 makes a group; -1 and -2 leave one, -2 with an instance id; anything below is invalid.

    SOURCES: apache/kafka PR#14432 (KAFKA-14516), PR#12972
    """
    group_ready(conn, group)
    member = named()
    got = [
        beat(conn, group, member, epoch, **fields).error_code
        for epoch, fields in (
            (1, {}),
            (-1, {}),
            (-2, {}),
            (-2, {"instance_id": "i"}),
            (-3, {}),
        )
    ]
    assert got == [69, 69, 42, 69, 42]
    assert beat(conn, group, " ", 5).error_code == 42
    assert beat(conn, group, " ", -1).error_code == 42
    assert describe(conn, group).error_code == 69


@pytest.mark.case("GRP-20")
def test_grp_20_patterns_are_re2(conn, topic, unique):
    """Patterns are compiled as RE2/J does it: what it lacks is INVALID_REGULAR_EXPRESSION with its reason; an empty one
    matches nothing and is fine.

    SOURCES: apache/kafka PR#17651 (KAFKA-17593), PR#17951 (KAFKA-15561); confluentinc/librdkafka PR#5251
    """
    group_ready(conn, unique("g"))

    def ask(pattern):
        r = join(conn, unique("g"), named(), None, subscribed_topic_regex=pattern)
        return r.error_code, r.error_message

    def wrong(pattern, reason):
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
        return 128, text

    for pattern in (
        "",
        " ",
        ".*",
        "^no-.*$",
        r"\p{Greek}",
        r"\Q.\E",
        "(?i)NO",
        "(?P<n>a)",
        "(?<n>a)",
    ):
        assert ask(pattern) == (0, None), pattern
    for pattern, reason in (
        ("(", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a++", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("(?=a)b", "invalid or unsupported Perl syntax"),
        ("\\1", "invalid escape sequence"),
    ):
        assert ask(pattern) == wrong(pattern, reason)


@pytest.mark.case("GRP-20")
def test_grp_20_patterns_match_whole_names(conn, topics, group, unique):
    """A pattern has to match the whole of a topic's name: a prefix alone does not do; topics made later are found.

    SOURCES: karafka/karafka PR#3023; confluentinc/librdkafka PR#5251; apache/kafka PR#17694 (KAFKA-17593)
    """
    base = unique("rx")
    for name in ("-a", "-bb"):
        topics(name=base + name)
    topics(name="x" + base + "-a")
    group_ready(conn, group)
    member = named()
    r = join(conn, group, member, None, subscribed_topic_regex=f"{base}-[ab]")
    assert r.error_code == 0

    def assigned():
        r = beat(conn, group, member, epoch_of())
        assert r.error_code == 0, r
        m = describe(conn, group).members[0]
        return sorted(t.topic_name.removeprefix(base) for t in m.target_assignment.topic_partitions)

    def epoch_of():
        return describe(conn, group).members[0].member_epoch

    assert retry(assigned, lambda names: names == ["-a"], 10) == ["-a"]
    topics(name=base + "-b")
    assert retry(assigned, lambda names: names == ["-a", "-b"], 20, 0.3) == ["-a", "-b"]
    m = describe(conn, group).members[0]
    assert (m.subscribed_topic_names, m.subscribed_topic_regex) == ([], f"{base}-[ab]")


# ------------------------------------------------------------------ epochs


@pytest.mark.case("GRP-20")
def test_grp_20_a_fenced_member_comes_back_with_epoch_0(conn, topics, group):
    """Wrong epochs are fenced (110); the member then joins again with epoch 0 and has its partitions back, without a
    new epoch of the group.

    SOURCES: apache/kafka PR#21305 (KAFKA-19233); confluentinc/librdkafka PR#4672
    """
    topic = topics(3)
    group_ready(conn, group)
    member = named()
    r = join(conn, group, member, [topic])
    assert (r.error_code, owned(r)) == (0, 3)
    epoch = r.member_epoch
    mine = [{"topic_id": topic_id(conn, topic), "partitions": [0, 1, 2]}]
    r = beat(conn, group, member, epoch, topic_partitions=mine)
    assert (r.error_code, r.member_epoch, owned(r)) == (0, epoch, None)
    assert beat(conn, group, member, epoch + 1).error_code == 110
    r = join(conn, group, member, [topic])
    assert (r.error_code, r.member_epoch, owned(r)) == (0, epoch, 3)
    assert describe(conn, group).group_epoch == epoch
    # what it says again in full is answered in full
    full = {
        "rebalance_timeout_ms": 30000,
        "subscribed_topic_names": [topic],
        "topic_partitions": mine,
    }
    assert owned(beat(conn, group, member, epoch, **full)) == 3
    r = beat(conn, group, member, -1)
    assert (r.error_code, r.member_epoch) == (0, -1)
    assert beat(conn, group, member, -1).error_code == 25
    assert beat(conn, group, member, epoch).error_code == 25
    assert describe(conn, group).group_state == "Empty"


@pytest.mark.case("GRP-20")
def test_grp_20_offsets_and_epochs(conn, topics, group):
    """OffsetCommit and OffsetFetch of members: stale epochs are 113, unknown members 25; versions that cannot carry 113
    get UNSUPPORTED_VERSION; nobody else commits while there are members.

    SOURCES: confluentinc/librdkafka PR#4681, PR#4672; redpanda-data/redpanda PR#31216
    """
    topic = topics(1)
    group_ready(conn, group)
    member = named()
    epoch = join(conn, group, member, [topic]).member_epoch

    def commit(version, epoch, member):
        told = {"generation_id_or_member_epoch": epoch, "member_id": member}
        return simple_commit(conn, group, topic, 5, version=version, **told)

    def fetch(epoch, member):
        wanted = [{"name": topic, "partition_indexes": [0]}]
        asked = [{"group_id": group, "member_id": member, "member_epoch": epoch, "topics": wanted}]
        return conn.send("offset_fetch", 9, groups=asked).groups[0].error_code

    assert [commit(9, *x) for x in ((epoch, member), (epoch + 1, member), (epoch, "zz"))] == [
        0,
        113,
        25,
    ]
    assert [commit(9, *x) for x in ((-1, ""), (0, member), (-1, member))] == [25, 113, 113]
    assert [commit(8, *x) for x in ((epoch, member), (epoch + 1, member), (epoch, "zz"))] == [
        35,
        35,
        25,
    ]
    assert [fetch(*x) for x in ((epoch, member), (epoch + 1, member), (epoch, "zz"))] == [
        0,
        113,
        25,
    ]
    assert [fetch(*x) for x in ((-1, None), (-1, ""), (0, member))] == [0, 25, 113]
    assert committed(conn, group, topic).committed_offset == 5
    assert beat(conn, group, member, -1).error_code == 0
    assert commit(9, -1, "") == 0


# ------------------------------------------------------------------ static members


@pytest.mark.case("GRP-20")
def test_grp_20_static_members(conn, topics, group):
    """An instance id is its member's until that leaves with -2 (then another takes its partitions over, without a new
    epoch of the group) or -1.

    SOURCES: apache/kafka PR#14432 (KAFKA-14516), PR#23542
    """
    topic = topics(2)
    group_ready(conn, group)
    a, b, i1 = named(), named(), {"instance_id": "i1"}
    r = join(conn, group, a, [topic], **i1)
    epoch = r.member_epoch
    assert (r.error_code, owned(r)) == (0, 2)
    assert join(conn, group, b, [topic], **i1).error_code == 111
    assert join(conn, group, a, [topic], **i1).error_code == 111
    assert [beat(conn, group, b, e, **i1).error_code for e in (epoch, -1, -2)] == [82, 82, 82]
    assert beat(conn, group, a, epoch).error_code == 0, "its member id alone does"
    assert beat(conn, group, a, epoch, instance_id="zz").error_code == 25
    r = beat(conn, group, a, -2, **i1)
    assert (r.error_code, r.member_epoch) == (0, -2)
    assert beat(conn, group, a, -2, **i1).error_code == 0
    assert beat(conn, group, a, epoch, **i1).error_code == 110
    d = describe(conn, group)
    assert (d.group_state, d.members[0].member_epoch, d.group_epoch) == ("Reconciling", -2, epoch)
    r = join(conn, group, b, [topic], **i1)
    assert (r.error_code, r.member_epoch, owned(r)) == (0, epoch, 2)
    assert beat(conn, group, a, epoch, **i1).error_code == 82
    assert beat(conn, group, a, epoch).error_code == 25
    d = describe(conn, group)
    assert (d.group_state, d.group_epoch, d.members[0].member_id) == ("Stable", epoch, b)
    assert beat(conn, group, b, -1, **i1).error_code == 0
    assert instances(conn, group) == ("Empty", [])


@pytest.mark.case("GRP-20")
def test_grp_20_a_member_takes_a_free_instance_id(conn, topics, group):
    """A member that is there may join again with an instance id that nobody has: it keeps its partitions, and the group
    its epoch.

    SOURCES: apache/kafka PR#23542
    """
    topic = topics(2)
    group_ready(conn, group)
    member = named()
    epoch = join(conn, group, member, [topic]).member_epoch
    for instance in ("i1", "i2"):
        r = join(conn, group, member, [topic], instance_id=instance)
        assert (r.error_code, r.member_epoch, owned(r)) == (0, epoch, 2)
        d = describe(conn, group)
        assert (d.group_state, d.group_epoch) == ("Stable", epoch)
        assert [m.instance_id for m in d.members] == [instance]
    assert beat(conn, group, member, epoch, instance_id="i2").error_code == 0


# ------------------------------------------------------------------ LeaveGroup


def _three(conn, group, topic):
    a, b, c = named(), named(), named()
    assert join(conn, group, a, [topic], instance_id="ia").error_code == 0
    assert join(conn, group, b, [topic]).error_code == 0
    assert join(conn, group, c, [topic], instance_id="ic").error_code == 0
    return a, b, c


@pytest.mark.case("GRP-9")
def test_grp_9_leave_group_removes_members_of_the_consumer_protocol(conn, topics, unique):
    """An administrator's LeaveGroup removes members of the consumer protocol by member id, by instance id or by both,
    each with a code of its own; the answer names what the request named.

    SOURCES: apache/kafka PR#18116 (KAFKA-18188), PR#16057 (KAFKA-16832); thomhurst/Dekaf PR#2303
    """
    topic = topics(2)

    def leave(group, version, *members):
        told = [{"member_id": m, "group_instance_id": i} for m, i in members]
        r = conn.send("leave_group", version, group_id=group, members=told)
        assert [(x.member_id, x.group_instance_id) for x in r.members] == list(members)
        return r.error_code, [x.error_code for x in r.members]

    g = unique("g")
    group_ready(conn, g)
    a, b, c = _three(conn, g, topic)
    assert leave(g, 5, ("zz", None), ("", "zz"), ("zz", "ia"), ("", None)) == (0, [25, 25, 82, 25])
    assert leave(g, 5, (b, None), (b, None)) == (0, [0, 0])
    assert instances(conn, g)[1] == ["ia", "ic"]
    assert beat(conn, g, b, 2).error_code == 25
    assert leave(g, 4, (a, "ia")) == (0, [0])
    assert leave(g, 4, (c, "ia"), (c, "zz"), ("", "ia")) == (0, [25, 25, 25])
    assert leave(g, 3, (c, None)) == (0, [0])
    assert instances(conn, g) == ("Empty", [])
    assert leave(g, 3, (c, None)) == (0, [25])
    g = unique("g")
    group_ready(conn, g)
    a, b, c = _three(conn, g, topic)
    assert leave(g, 3, (a, None), ("", "ic"), (b, None)) == (0, [0, 0, 0])
    assert instances(conn, g) == ("Empty", [])
    assert conn.send("delete_groups", 2, groups_names=[g]).results[0].error_code == 0
    g = unique("g")
    group_ready(conn, g)
    a, b, c = _three(conn, g, topic)
    for version, member, code in ((0, a, 0), (2, b, 0), (2, "zz", 25)):
        assert conn.send("leave_group", version, group_id=g, member_id=member).error_code == code
    assert beat(conn, g, c, -2, instance_id="ic").error_code == 0
    assert leave(g, 5, ("", "ic")) == (0, [0])
    assert instances(conn, g) == ("Empty", [])


@pytest.mark.case("GRP-9")
def test_grp_9_admin_clients_empty_a_group_of_the_consumer_protocol(bootstrap, conn, topics, group):
    """librdkafka's consumer of the consumer protocol is removed by LeaveGroup and comes back as a new member.

    SOURCES: apache/kafka PR#18116 (KAFKA-18188)
    """
    from confluent_kafka import Consumer

    topic = topics(1)
    group_ready(conn, group)
    told = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"}
    consumer = Consumer(told)
    try:
        consumer.subscribe([topic])
        retry(lambda: consumer.poll(0.1) or consumer.assignment(), bool, 15, 0)
        member = describe(conn, group).members[0].member_id
        r = conn.send("leave_group", 5, group_id=group, members=[{"member_id": member}])
        assert r.members[0].error_code == 0
        assert describe(conn, group).members == []

        def back():
            consumer.poll(0.1)
            return describe(conn, group).members

        assert retry(back, bool, 20, 0), "it joins again"
    finally:
        consumer.close()


# ------------------------------------------------------------------ beside classic groups


@pytest.mark.case("GRP-20")
def test_grp_20_each_kind_has_its_describe(conn, conns, topic, unique):
    """ConsumerGroupDescribe knows consumer groups alone (69 else); DescribeGroups says Dead of them, 69 from v6 on; both
    kinds are listed.

    SOURCES: apache/kafka PR#14544 (KAFKA-14509), PR#15253 (KAFKA-16189), PR#18060; confluentinc/librdkafka PR#4922
    """
    g, cl, si, un = (unique(n) for n in ("con", "cl", "si", "un"))
    for name in (g, cl, si, un):
        group_ready(conn, name)
    assert join(conn, g, named(), [topic]).error_code == 0
    stable([Member(conns(), cl)])
    assert simple_commit(conn, si, topic, 1) == 0
    for version in (0, 1):
        r = conn.send(
            "consumer_group_describe",
            version,
            group_ids=[g, cl, si, un],
            include_authorized_operations=False,
        )
        assert {x.group_id: (x.error_code, x.error_message) for x in r.groups} == {
            g: (0, None),
            cl: (69, f"Group {cl} is not a consumer group."),
            si: (69, f"Group {si} is not a consumer group."),
            un: (69, f"Group {un} not found."),
        }
    for version, code in ((0, 0), (5, 0), (6, 69)):
        d = conn.send("describe_groups", version, groups=[g]).groups[0]
        assert (d.error_code, d.group_state, d.members) == (code, "Dead", []), f"v{version}"
    r = conn.send("list_groups", 5, states_filter=[], types_filter=["CONSUMER"])
    assert [x.group_state for x in r.groups if x.group_id == g] == ["Stable"]
    assert not {cl, si} & {x.group_id for x in r.groups}


@pytest.mark.case("GRP-20")
def test_grp_20_classic_requests_to_a_consumer_group(conn, topic, group):
    """Classic members that cannot be read, are of another kind or not there are refused: 23 and 25; the group cannot be
    deleted (68) nor its offsets taken (86).

    SOURCES: apache/kafka PR#15662 (KAFKA-16436), PR#16057 (KAFKA-16832)
    """
    group_ready(conn, group)
    member = named()
    assert join(conn, group, member, [topic]).error_code == 0
    classic = {
        "group_id": group,
        "session_timeout_ms": 10000,
        "rebalance_timeout_ms": 10000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"bad"}],
    }
    assert conn.send("join_group", 0, classic, member_id="").error_code == 23
    connect = {**classic, "protocol_type": "connect", "group_instance_id": "i"}
    assert conn.send("join_group", 5, connect, member_id="").error_code == 23
    for name in (member, "zz"):
        told = {"group_id": group, "generation_id": 1, "member_id": name}
        assert conn.send("heartbeat", 4, told).error_code == 25
        kind = {"protocol_type": "consumer", "protocol_name": "range", "assignments": []}
        assert conn.send("sync_group", 5, told, **kind).error_code == 25
    assert conn.send("delete_groups", 2, groups_names=[group]).results[0].error_code == 68
    one = [{"name": topic, "partitions": [{"partition_index": 0}]}]
    r = conn.send("offset_delete", 0, group_id=group, topics=one)
    assert r.topics[0].partitions[0].error_code == 86


@pytest.mark.case("GRP-20")
def test_grp_20_classic_groups_that_become_consumer_groups(conn, conns, topic, unique):
    """A simple or an empty classic group of any kind becomes a consumer group and keeps its offsets; one with members
    that cannot be read, or of another kind, stays what it is (69).

    SOURCES: apache/kafka PR#15442 (KAFKA-16313), PR#15662 (KAFKA-16436); robot-head/crabka PR#376
    """
    con, cl, si = (unique(n) for n in ("connect", "cl", "si"))
    for name in (con, cl, si):
        group_ready(conn, name)
    m = Member(conns(), con, protocol_type="connect", protocols=[("x", b"x")])
    stable([m])
    stable([Member(conns(), cl, protocols=[("range", b"unreadable")])])
    assert simple_commit(conn, si, topic, 1) == 0
    assert join(conn, con, named(), [topic]).error_code == 69
    assert join(conn, cl, named(), [topic]).error_code == 69
    assert m.leave() == 0
    assert join(conn, con, named(), [topic]).error_code == 0
    assert join(conn, si, named(), [topic]).error_code == 0
    assert committed(conn, si, topic).committed_offset == 1
    assert [describe(conn, name).error_code for name in (con, cl, si)] == [0, 69, 0]

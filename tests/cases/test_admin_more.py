"""Topics and configs, more of them: what is refused, with which code, and what the rest of a request then is."""

import uuid

import pytest

from tests import wire
from tests.wire import retry

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
ZERO = uuid.UUID(int=0)


def _shape(name, partitions=1, replicas=1, assignment=(), **configs):
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [{"partition_index": i, "broker_ids": b} for i, b in assignment],
        "configs": [{"name": k.replace("_", "."), "value": v} for k, v in configs.items()],
    }


def _create(c, *topics, version=7, validate=True):
    r = c.send(
        "create_topics", version, topics=list(topics), timeout_ms=5000, validate_only=validate
    )
    return sorted((t.name, t.error_code) for t in r.topics)


def _code(c, *told, **configs):
    """The error code of creating one topic, only looked at."""
    name = "look-" + uuid.uuid4().hex
    return _create(c, _shape(name, *told, **configs))[0][1]


def _alter(c, *resources, validate=False):
    """IncrementalAlterConfigs of (type, name, [(key, operation, value)]) -> [(code, message)]."""
    told = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": k, "config_operation": op, "value": v} for k, op, v in configs],
        }
        for kind, name, configs in resources
    ]
    r = c.send("incremental_alter_configs", 1, resources=told, validate_only=validate)
    return [(x.error_code, x.error_message) for x in r.responses]


def _values(c, kind, name, *keys):
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)}]
    r = c.send("describe_configs", 4, resources=asked)
    assert r.results[0].error_code == 0, r
    return {x.name: (x.value, x.config_source) for x in r.results[0].configs}


# ------------------------------------------------------------------ CreateTopics


@pytest.mark.case("ADM-3")
def test_adm_3_counts_and_assignments_of_new_topics(conn):
    """Counts below 1 are 37 and 38, -1 is the default; replicas more than brokers are 38; an assignment excludes counts
    (42), and has to be whole, consecutive and of brokers that are there (39).

    SOURCES: tulios/kafkajs#1162; redpanda-data/redpanda#1573, #17368; apache/kafka PR#5665 (KAFKA-7382), PR#23326 (KAFKA-21003)
    """
    counts = {(0, 1): 37, (-2, 1): 37, (-1, 1): 0, (1, 0): 38, (1, -2): 38, (1, -1): 0, (1, 2): 38}
    assert {told: _code(conn, *told) for told in counts} == counts
    me = conn.send("metadata", 9, topics=[]).brokers[0].node_id
    for told, code in (
        ((-1, -1, [(0, [me]), (1, [me])]), 0),
        ((1, 1, [(0, [me])]), 42),
        ((-1, 1, [(0, [me])]), 42),
        ((1, -1, [(0, [me])]), 42),
        ((-1, -1, [(0, [me, me])]), 39),
        ((-1, -1, [(0, [])]), 39),
        ((-1, -1, [(0, [me]), (2, [me])]), 39),
        ((-1, -1, [(1, [me])]), 39),
        ((-1, -1, [(0, [me + 999])]), 39),
        ((-1, -1, [(0, [me]), (1, [me, me + 999])]), 39),
        ((-1, -1, [(0, [-1])]), 39),
    ):
        assert _code(conn, *told) == code, told


@pytest.mark.case("ADM-3")
def test_adm_3_names_of_topics(conn, topics, unique):
    """Names are up to 249 letters, digits, dots, dashes and underscores, not "." or ".." (17 else), and not two that
    differ in dots for underscores only; a name twice in a request is 42, one that exists 36.

    SOURCES: apache/kafka PR#2361 (KAFKA-4591), PR#4000 (KAFKA-5445)
    """
    for name, code in (
        ("", 17),
        (".", 17),
        ("..", 17),
        ("a b", 17),
        ("a/b", 17),
        ("a:b", 17),
        ("é", 17),
        ("a\n", 17),
        ("x" * 250, 17),
        ("x" * 249, 0),
        ("__consumer_offsets", 36),
    ):
        assert _create(conn, _shape(name)) == [(name, code)]
    base = unique("c.ol_a")
    topics(name=base)
    for other in (base.replace(".", "_"), base.replace("_", ".")):
        assert _create(conn, _shape(other)) == [(other, 17)]
    assert _create(conn, _shape(base)) == [(base, 36)]
    twice, once = unique("t"), unique("u")
    told = [_shape(twice), _shape(twice, 2), _shape(once)]
    assert _create(conn, *told) == sorted([(twice, 42), (once, 0)])


@pytest.mark.case("ADM-3")
def test_adm_3_too_many_partitions_at_once(conn, unique):
    """More than 10,000 partitions in one request are refused as policy (44), whole.

    SOURCES: redpanda-data/redpanda#10025, #17213; apache/kafka PR#2361 (KAFKA-4591)
    """
    for told in ((10001,), (9000, 1001), (2**31 - 1,)):
        asked = [_shape(unique("t"), count) for count in told]
        r = conn.send("create_topics", 7, topics=asked, timeout_ms=5000, validate_only=True)
        assert {t.error_code for t in r.topics} == {44}, told


@pytest.mark.case("ADM-3")
def test_adm_3_configs_of_new_topics(conn):
    """Values that cannot be are 40, unknown keys 40, null 40; a list counts what it has twice once, and has nothing
    empty in it.

    SOURCES: apache/kafka PR#20844, PR#20960 (KAFKA-19875); KIP-1161
    """
    for configs, code in (
        ({"no_such": "1"}, 40),
        ({"retention_ms": None}, 40),
        ({"retention_ms": "x"}, 40),
        ({"retention_ms": ""}, 40),
        ({"retention_ms": " 5 "}, 0),
        ({"retention_ms": "-2"}, 40),
        ({"preallocate": "TRUE"}, 0),
        ({"preallocate": "yes"}, 40),
        ({"segment_bytes": "13"}, 40),
        ({"min_insync_replicas": "0"}, 40),
        ({"min_cleanable_dirty_ratio": "1.5"}, 40),
        ({"compression_type": "Gzip"}, 40),
        ({"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "5"}, 40),
        ({"cleanup_policy": "delete,compact"}, 0),
        ({"cleanup_policy": "delete,delete"}, 0),
        ({"cleanup_policy": ","}, 40),
        ({"cleanup_policy": "delete,"}, 40),
        ({"cleanup_policy": "Delete"}, 40),
        ({"leader_replication_throttled_replicas": "0:1,1:2"}, 0),
        ({"leader_replication_throttled_replicas": "0:1,"}, 0),
        ({"leader_replication_throttled_replicas": "0:1,*"}, 40),
        ({"leader_replication_throttled_replicas": "a:b"}, 40),
    ):
        assert _code(conn, **configs) == code, configs


# ------------------------------------------------------------------ CreatePartitions, DeleteTopics


@pytest.mark.case("ADM-4")
def test_adm_4_more_partitions(conn, topics, unique):
    """CreatePartitions: as many or fewer than there are is 37, assignments that do not fit 39, a topic twice 42, an
    unknown one 3; one bad topic does not keep the others back.

    SOURCES: crossplane-contrib/provider-kafka#180; redpanda-data/redpanda#17368; apache/kafka PR#7493 (KAFKA-8988)
    """
    topic, missing = topics(2), unique("no")
    me = conn.send("metadata", 9, topics=[]).brokers[0].node_id

    def more(*told, version=3, validate=True):
        asked = [
            {"name": n, "count": c, "assignments": a and [{"broker_ids": b} for b in a]}
            for n, c, a in told
        ]
        r = conn.send(
            "create_partitions", version, topics=asked, timeout_ms=5000, validate_only=validate
        )
        return sorted((x.name, x.error_code) for x in r.results)

    for version in (0, 2, 3):
        for count, code in ((2, 37), (1, 37), (0, 37), (-1, 37), (3, 0)):
            assert more((topic, count, None), version=version) == [(topic, code)], (version, count)
        assert more((topic, 3, None), (topic, 4, None), version=version) == [(topic, 42)]
        assert more((missing, 3, None), version=version) == [(missing, 3)]
    for count, assignment, code in (
        (4, [[me]], 39),
        (3, [[me], [me]], 39),
        (3, [[]], 39),
        (3, [[me, me]], 39),
        (3, [[me + 999]], 39),
        (3, [[-1]], 39),
        (3, [[me]], 0),
    ):
        assert more((topic, count, assignment)) == [(topic, code)], assignment
    got = more((topic, 5, None), (missing, 4, None), validate=False)
    assert got == sorted([(topic, 0), (missing, 3)])
    wire.wait_ready(conn, topic, 5)


@pytest.mark.case("ADM-6")
def test_adm_6_topics_are_deleted_by_name_or_id(conn, topics, unique):
    """DeleteTopics v6: a name or an id, not both and not neither (42); a topic named twice, in whatever way, stays (42);
    unknown names are 3, unknown ids 100.

    SOURCES: redpanda-data/redpanda#3382, PR#3913; KIP-516
    """
    a, b, c = topics(), topics(), topics()
    asked = [{"topic_id": None, "name": n} for n in (a, b, c)]
    found = conn.send("metadata", 12, topics=asked, allow_auto_topic_creation=False).topics
    ids = {t.name: t.topic_id for t in found}

    def delete(*told):
        wanted = [{"name": n, "topic_id": i} for n, i in told]
        r = conn.send("delete_topics", 6, topics=wanted, timeout_ms=10000)
        return sorted(x.error_code for x in r.responses)

    missing = unique("no")
    assert delete((a, ids[a])) == [42]
    assert delete((None, ZERO)) == [42]
    assert delete((None, uuid.UUID(int=77))) == [100]
    assert delete((missing, ZERO)) == [3]
    assert delete((a, ZERO), (a, ZERO)) == [42]
    assert delete((None, ids[a]), (None, ids[a])) == [42]
    assert delete((a, ZERO), (None, ids[a])) == [42]
    wire.wait_ready(conn, a)
    assert delete((b, ZERO), (None, ids[c]), (missing, ZERO)) == [0, 0, 3]
    again = retry(lambda: delete((b, ZERO), (None, ids[c])), lambda x: x == [3, 100], 10)
    assert again == [3, 100]


# ------------------------------------------------------------------ configs


@pytest.mark.case("ADM-9")
def test_adm_9_lists_are_added_to_and_taken_from(conn, topics):
    """APPEND and SUBTRACT work on several entries at once and on what is in force; what is there already, or not there,
    changes nothing; they are for lists only.

    SOURCES: apache/kafka PR#12108 (KAFKA-13862), PR#8216 (KAFKA-9644), PR#6247 (KAFKA-7466); confluentinc/librdkafka PR#4110
    """
    topic = topics(1, {"cleanup.policy": "compact"})
    key = "cleanup.policy"

    def step(operation, value, code=0):
        assert _alter(conn, (TOPIC, topic, [(key, operation, value)]))[0][0] == code
        return _values(conn, TOPIC, topic, key)[key][0]

    assert step(APPEND, "delete") == "compact,delete"
    assert step(APPEND, "delete") == "compact,delete"
    assert step(SUBTRACT, "compact") == "delete"
    assert step(SUBTRACT, "compact") == "delete"
    assert step(APPEND, "delete,compact") == "delete,compact"
    assert step(SET, "compact,compact") == "compact"
    assert step(SET, "Delete", 40) == "compact"
    for operation in (APPEND, SUBTRACT):
        assert _alter(conn, (TOPIC, topic, [("retention.ms", operation, "1")]))[0][0] == 40
        assert _alter(conn, (TOPIC, topic, [(key, operation, None)]))[0][0] == 42
    assert _alter(conn, (TOPIC, topic, [(key, DELETE, None)])) == [(0, None)]
    assert _values(conn, TOPIC, topic, key) == {key: ("delete", 5)}


@pytest.mark.case("ADM-9")
def test_adm_9_one_wrong_key_and_nothing_of_the_resource_is_changed(conn, topics, unique):
    """A key or a resource that is named twice is 42, a null to set too; one bad value keeps the whole resource as it is,
    and no other.

    SOURCES: apache/kafka PR#6247 (KAFKA-7466), PR#21005 (KAFKA-19931), PR#20960 (KAFKA-19875)
    """
    a, b = topics(), topics()
    ms = "retention.ms"

    def now(name):
        return _values(conn, TOPIC, name, ms, "segment.ms")[ms]

    default = now(a)

    def code(*changes, name=a):
        return _alter(conn, (TOPIC, name, list(changes)))[0][0]

    assert code((ms, SET, "1"), (ms, DELETE, None)) == 42
    assert code((ms, SET, None)) == 42
    assert code((ms, SET, "1"), ("segment.ms", SET, "x")) == 40
    assert code((ms, SET, "1"), ("no.such", SET, "1")) == 40
    assert code(("segment.ms", DELETE, None)) == 0, "not set: nothing to do"
    assert code((ms, SET, "1"), name=unique("no")) == 3
    assert code((ms, SET, "1"), name="") == 42
    twice = _alter(conn, *[(TOPIC, a, [(ms, SET, "1")])] * 2)
    assert {x[0] for x in twice} == {42}
    assert now(a) == default
    got = _alter(conn, (TOPIC, a, [(ms, SET, "x")]), (TOPIC, b, [(ms, SET, "5000")]))
    assert sorted(x[0] for x in got) == [0, 40]
    assert (now(a), now(b)) == (default, ("5000", 1))
    assert _alter(conn, (TOPIC, b, [(ms, SET, "6000")]), validate=True) == [(0, None)]
    assert now(b) == ("5000", 1)


@pytest.mark.case("ADM-9")
def test_adm_9_what_a_broker_cannot_be_told(conn):
    """Dynamic broker configs are 42 when they cannot change at run time or make no sense: read-only ones, no threads, no
    connections, no retention, lists with repeats; brokers that are not there too. The cleaner's threads at most double.

    SOURCES: redpanda-data/redpanda#2645; apache/kafka PR#8260 (KAFKA-9625), PR#20960 (KAFKA-19875); KIP-226
    """
    me = str(conn.send("metadata", 9, topics=[]).brokers[0].node_id)

    def code(key, value, name=me):
        return _alter(conn, (BROKER, name, [(key, SET, value)]), validate=True)[0][0]

    for key, value in (
        ("log.dirs", "/x"),
        ("log.cleaner.threads", "0"),
        ("log.cleaner.threads", "3"),
        ("log.cleaner.threads", "x"),
        ("log.cleaner.dedupe.buffer.size", "1"),
        ("num.io.threads", "1"),
        ("background.threads", "100"),
        ("max.connections", "0"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "bad"),
        ("max.connections.per.ip.overrides", "[::1]:3"),
        ("max.connections.per.ip.overrides", "a b:3"),
        ("log.retention.ms", "0"),
        ("log.roll.ms", "0"),
        ("log.segment.bytes", "13"),
        ("metric.reporters", "no.such.Reporter"),
        ("compression.type", "bad"),
        ("log.cleanup.policy", "bad"),
        ("log.cleanup.policy", "delete,delete"),
    ):
        assert code(key, value) == 42, (key, value)
        if key != "max.connections.per.ip.overrides":
            assert code(key, value, "") == 42, (key, value)
    for key, value in (
        ("log.cleaner.threads", "2"),
        ("log.retention.ms", "-1"),
        ("log.retention.ms", "-2"),
        ("log.retention.ms", "1"),
        ("max.connections", "5"),
        ("log.cleanup.policy", "compact,delete"),
    ):
        assert code(key, value) == 0, (key, value)
    assert code("log.cleaner.threads", "1", str(int(me) + 99)) == 42
    assert code("log.cleaner.threads", "1", "x") == 42
    removed = _alter(conn, (BROKER, me, [("min.insync.replicas", DELETE, None)]), validate=True)
    assert removed == [
        (40, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    ]


@pytest.mark.case("ADM-11")
def test_adm_11_client_metrics_subscriptions(conn, unique):
    """A subscription matches by what clients tell of themselves: a known key and one pattern in RE2's syntax (40 else);
    intervals are from 100 ms to an hour; lists count repeats once.

    SOURCES: apache/kafka PR#20960 (KAFKA-19875); KIP-714
    """
    name = unique("cm")

    def code(key, value, operation=SET):
        return _alter(conn, (CLIENT_METRICS, name, [(key, operation, value)]), validate=True)[0][0]

    good = ("client_id=a", "client_id=a,client_software_name=b.*", " client_id = a ", "")
    bad = (
        "client_id=",
        "client_id",
        "=",
        "a=b",
        "client_id=a=b",
        "client_id=[",
        "client_id=(?=a)",
        "client_id= ",
        ",",
    )
    assert {x: code("match", x) for x in good} == dict.fromkeys(good, 0)
    assert {x: code("match", x) for x in bad} == dict.fromkeys(bad, 40)
    assert [code("metrics", x) for x in ("", "a", "a,a", "a,")] == [0, 0, 0, 40]
    assert [code("interval.ms", x) for x in ("99", "100", "3600000", "3600001")] == [42, 0, 0, 42]
    assert _alter(conn, (CLIENT_METRICS, "", [("interval.ms", SET, "100")]))[0][0] == 42


@pytest.mark.case("ADM-11")
def test_adm_11_group_configs(conn, unique):
    """Configs of a group stay within the broker's bounds; a group that has none shows the broker's; ListConfigResources
    names those that have some, and refuses kinds that it does not know (35).

    SOURCES: apache/kafka PR#16947 (KAFKA-17359), PR#19493 (KAFKA-18904); KIP-1142
    """
    group = unique("g")
    session, interval = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"

    def code(*changes, name=group):
        return _alter(conn, (GROUP, name, list(changes)))[0][0]

    assert code((session, SET, "1")) == code((session, SET, "999999999")) == 40
    assert code((session, SET, "45000"), (interval, SET, "45000")) == 40
    assert code(("no.such", SET, "1")) == 40
    assert code((session, SET, "50000"), name="") == 42
    assert _values(conn, GROUP, group, session, interval) == {
        session: ("45000", 5),
        interval: ("5000", 5),
    }

    def listed(*kinds):
        r = conn.send("list_config_resources", 1, resource_types=list(kinds))
        return r.error_code, {(x.resource_type, x.resource_name) for x in r.config_resources}

    assert (GROUP, group) not in listed(GROUP)[1]
    assert code((session, SET, "50000")) == 0
    assert _values(conn, GROUP, group, session)[session] == ("50000", 8)
    found = retry(lambda: (GROUP, group) in listed(GROUP)[1], bool, 5)
    assert found and (GROUP, group) in listed()[1]
    assert {kind for kind, _ in listed(GROUP, GROUP)[1]} == {GROUP}
    assert (listed(99)[0], listed(0)[0]) == (35, 35)
    assert code((session, DELETE, None)) == 0


@pytest.mark.case("ADM-11")
def test_adm_11_describe_configs(conn, topics, unique):
    """DescribeConfigs: an empty list of keys is every key, null too; keys that do not exist are left out; a missing
    topic is 3, an impossible name 17, a kind that there is not 42.

    SOURCES: apache/kafka PR#9046 (KAFKA-9432), PR#9990 (KAFKA-12235), PR#16947 (KAFKA-17359)
    """
    topic = topics(1, {"retention.ms": "1000"})

    def ask(kind, name, keys, version=4):
        asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}]
        x = conn.send("describe_configs", version, resources=asked).results[0]
        return x.error_code, {c.name for c in x.configs}

    for version in (1, 3, 4):
        code, everything = ask(TOPIC, topic, None, version)
        assert (code, len(everything) > 20) == (0, True)
        two = ["retention.ms", "segment.ms", "no.such"]
        assert ask(TOPIC, topic, two, version) == (0, {"retention.ms", "segment.ms"})
        assert ask(TOPIC, unique("no"), None, version)[0] == 3
        assert ask(TOPIC, "a b", None, version)[0] == 17
    assert ask(TOPIC, topic, [])[0] == 0
    assert ask(99, "x", None)[0] == 42
    assert ask(BROKER, "999", None)[0] == 42
    assert ask(BROKER, "x", None)[0] == 42

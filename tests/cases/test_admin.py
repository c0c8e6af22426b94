"""Topics, partitions, records and configs through the admin APIs."""

import time

import pytest

from tests import wire as w


def _topic(name, partitions=1, replication=1, assignment=(), configs=()):
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replication,
        "assignments": [{"partition_index": i, "broker_ids": b} for i, b in assignment],
        "configs": [{"name": k, "value": v} for k, v in configs],
    }


def _create(c, *topics, version=7, **kw):
    r = c.send("create_topics", version, topics=list(topics), timeout_ms=15000, **kw)
    return {t.name: t for t in r.topics}


def _partitions(c, name, count, assignments=None, version=3, validate_only=False):
    r = c.send(
        "create_partitions",
        version,
        timeout_ms=15000,
        validate_only=validate_only,
        topics=[
            {
                "name": name,
                "count": count,
                "assignments": None
                if assignments is None
                else [{"broker_ids": a} for a in assignments],
            }
        ],
    )
    return r.results[0]


def _eventually(get, want, seconds=10):
    end = time.monotonic() + seconds
    while (got := get()) != want and time.monotonic() < end:
        time.sleep(0.05)
    assert got == want
    return got


def _dynamic(c, topic):
    """The topic's own settings: {name: value} of source 1."""
    r = w.describe_configs(c, 2, topic)
    assert r.error_code == 0
    return {x.name: x.value for x in r.configs if x.config_source == 1}


def _exists(c, name):
    return w.metadata(c, [name]).topics[0].error_code == 0


@pytest.mark.case("ADM-1")
def test_adm_1_validate_only_changes_nothing(bootstrap, c):
    """validate_only gives the codes of the real call and, for topics, the resulting counts and configs, but changes
    nothing: for CreateTopics, CreatePartitions, AlterConfigs and IncrementalAlterConfigs.

    SOURCES: apache/kafka#11361 (KAFKA-13324)
    """
    good, bad, many, have = w.unique("adm1"), w.unique("adm1"), w.unique("adm1"), w.unique("adm1")
    w.create_topic(c, have, configs={"retention.ms": "1000000"})
    for version in range(2, 8):
        got = _create(
            c,
            _topic(good, 3, 1, configs=[("retention.ms", "123456")]),
            _topic(bad, 1, 1, configs=[("x", "1")]),
            _topic(many, 1, 99),
            _topic(have),
            version=version,
            validate_only=True,
        )
        assert {n: t.error_code for n, t in got.items()} == {good: 0, bad: 40, many: 38, have: 36}
        if version >= 5:
            t = got[good]
            assert (t.num_partitions, t.replication_factor) == (3, 1)
            cfg = {x.name: x.value for x in t.configs}
            assert cfg["retention.ms"] == "123456"
            assert cfg["cleanup.policy"] == "delete"
    p = _partitions(c, have, 5, validate_only=True)
    assert p.error_code == 0
    assert _partitions(c, have, 1, validate_only=True).error_code == 37
    assert (
        w.alter(c, [(2, have, [("retention.ms", w.SET, "abc")])], validate_only=True)[0].error_code
        == 40
    )
    assert (
        w.alter(c, [(2, have, [("retention.ms", w.SET, "77")])], validate_only=True)[0].error_code
        == 0
    )
    for value, want in (("x", 40), ("88", 0)):
        r = c.send(
            "alter_configs",
            2,
            validate_only=True,
            resources=[
                {
                    "resource_type": 2,
                    "resource_name": have,
                    "configs": [{"name": "segment.ms", "value": value}],
                }
            ],
        )
        assert r.responses[0].error_code == want
    from confluent_kafka.admin import AdminClient, NewTopic

    a = AdminClient({"bootstrap.servers": bootstrap})
    n = w.unique("adm1")
    a.create_topics([NewTopic(n, 1, 1)], validate_only=True)[n].result(15)
    time.sleep(1)
    assert not any(_exists(c, x) for x in (good, bad, many, n))
    assert len(w.metadata(c, [have]).topics[0].partitions) == 1
    assert _dynamic(c, have) == {"retention.ms": "1000000"}
    assert _create(c, _topic(good, 3))[good].error_code == 0


@pytest.mark.case("ADM-2")
def test_adm_2_counts_and_assignments(c):
    """-1 takes the broker's default for counts and is required beside a manual assignment; wrong counts,
    assignments and configs each have their code, topic by topic within one request.

    SOURCES: dpkp/kafka-python#1382, tulios/kafkajs#1162, apache/kafka#6728
    """
    node = w.metadata(c, []).brokers[0].node_id
    brokers = len(w.metadata(c, []).brokers)
    have = w.unique("adm2")
    w.create_topic(c, have)
    u = w.unique
    plan = {}

    def add(code, *args, **kw):
        n = u("adm2")
        plan[n] = (code, _topic(n, *args, **kw))

    add(0, -1, -1)
    add(0, 2, 1)
    add(0, -1, -1, [(0, [node]), (1, [node])])
    add(37, 0, 1)
    add(37, -2, 1)
    add(38, 1, 0)
    add(38, 1, -2)
    add(38, 1, brokers + 2)
    add(42, 2, 1, [(0, [node]), (1, [node])])
    add(42, 2, -1, [(0, [node]), (1, [node])])
    add(42, -1, 1, [(0, [node])])
    add(39, -1, -1, [(0, [node]), (2, [node])])
    add(39, -1, -1, [(1, [node])])
    add(39, -1, -1, [(0, [node, node])])
    add(39, -1, -1, [(0, [7777])])
    add(39, -1, -1, [(0, [])])
    add(39, -1, -1, [(0, [node]), (0, [node])])
    add(40, 1, 1, configs=[("no.such.config", "1")])
    add(40, 1, 1, configs=[("retention.ms", "abc")])
    add(40, 1, 1, configs=[("retention.ms", None)])
    twice = u("adm2")
    got = _create(c, *[t for _, t in plan.values()], _topic(have), _topic(twice), _topic(twice))
    assert {n: t.error_code for n, t in got.items()} == {
        **{n: code for n, (code, _) in plan.items()},
        have: 36,
        twice: 42,
    }
    for n, t in got.items():
        if t.error_code:
            assert t.error_message and (t.num_partitions, t.replication_factor) == (-1, -1), n
    good = [n for n, (code, _) in plan.items() if code == 0]
    defaults = int(w.describe_configs(c, 4, str(node), ["num.partitions"]).configs[0].value)
    for n, want in zip(good, (defaults, 2, 2)):
        assert got[n].num_partitions == want
        assert got[n].replication_factor == 1
        assert len(w.wait_topic(c, n, want).partitions) == want
    assert not any(_exists(c, n) for n in (*plan, twice) if n not in good)
    for version in range(2, 7):
        x, y, z = u("adm2"), u("adm2"), u("adm2")
        got = _create(
            c, _topic(x, 1, 1), _topic(y, 0, 1), _topic(z, 1, brokers + 2), version=version
        )
        assert {n: t.error_code for n, t in got.items()} == {x: 0, y: 37, z: 38}


@pytest.mark.case("ADM-5")
def test_adm_5_delete_records(c):
    """DeleteRecords moves the log start forward, never back: -1 means the high watermark, beyond it or below -1 is 1,
    compacted-only topics refuse with 44, and the next record continues at the old end.

    SOURCES: streamnative/kop#1286, tulios/kafkajs#1265, apache/kafka#20527 (KAFKA-19699), redpanda-data/redpanda#10061
    """
    for version in (0, 1, 2):
        topic = w.unique("adm5")
        w.create_topic(c, topic)
        for _ in range(10):
            w.produce(c, topic, [b"x"])

        def cut(offset, t=topic, partition=0):
            r = w.delete_records(c, t, offset, partition, version)
            return r.error_code, r.low_watermark

        assert cut(3) == (0, 3)
        assert cut(2) == (0, 3)
        assert cut(11) == (1, -1)
        assert cut(-2) == (1, -1)
        assert w.earliest(c, topic) == 3
        assert w.fetch_one(c, topic, 2).error_code == 1
        assert cut(-1) == (0, 10)
        assert cut(10) == (0, 10)
        assert w.earliest(c, topic) == w.latest(c, topic) == 10
        assert w.produce(c, topic, [b"x"]).base_offset == 10
        assert w.earliest(c, topic) == 10
        assert cut(1, w.unique("missing")) == (3, -1)
        assert cut(1, topic, 9) == (3, -1)
        for policy, want in (("compact", (44, -1)), ("compact,delete", (0, 1)), ("delete", (0, 1))):
            t = w.unique("adm5")
            w.create_topic(c, t, configs={"cleanup.policy": policy})
            w.produce(c, t, [(b"k", b"v")])
            assert cut(1, t) == want, policy


@pytest.mark.case("ADM-5")
@pytest.mark.restart
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_adm_5_deleted_records_stay_deleted_after_a_restart(bootstrap, restart_broker):
    """The log start set by DeleteRecords, inside a batch even, is the same after an orderly restart.

    SOURCES: streamnative/kop#1286
    """
    topic = w.unique("adm5")
    with w.Conn(bootstrap) as c:
        w.create_topic(c, topic)
        w.produce(c, topic, [b"%d" % i for i in range(10)])
        assert w.delete_records(c, topic, 4).low_watermark == 4
    restart_broker(bootstrap)
    with w.Conn(bootstrap) as c:
        w.wait_ready(c, topic)
        assert (w.earliest(c, topic), w.latest(c, topic)) == (4, 10)
        assert w.fetch_one(c, topic, 3).error_code == 1


@pytest.mark.case("ADM-7")
def test_adm_7_an_override_equal_to_the_default_is_an_override(c):
    """A topic setting that happens to equal the default is reported as set on the topic (source 1) until it is
    deleted, then as a default (source 5) again; the CreateTopics answer says the same.

    SOURCES: redpanda-data/redpanda#21360
    """
    topic = w.unique("adm7")
    mine = [("cleanup.policy", "delete"), ("retention.ms", "604800000")]
    t = _create(c, _topic(topic, configs=mine))[topic]
    assert t.error_code == 0
    source = {x.name: (x.value, x.config_source) for x in t.configs}
    for k, v in mine:
        assert source[k] == (v, 1)
    assert source["compression.type"] == ("producer", 5)
    w.wait_ready(c, topic)
    for version in (1, 2, 3, 4):
        r = w.describe_configs(c, 2, topic, version=version)
        got = {x.name: (x.value, x.config_source) for x in r.configs}
        assert {k for k, (_, s) in got.items() if s == 1} == {"cleanup.policy", "retention.ms"}
        assert got["cleanup.policy"] == ("delete", 1)
        assert got["compression.type"] == ("producer", 5)
    assert w.alter(c, [(2, topic, [("compression.type", w.SET, "producer")])])[0].error_code == 0
    _eventually(lambda: w.config_of(c, topic, "compression.type").config_source, 1)
    assert (
        w.alter(
            c,
            [(2, topic, [("compression.type", w.DELETE, None), ("retention.ms", w.DELETE, None)])],
        )[0].error_code
        == 0
    )
    _eventually(lambda: w.config_of(c, topic, "compression.type").config_source, 5)
    assert _dynamic(c, topic) == {"cleanup.policy": "delete"}


@pytest.mark.case("ADM-8")
def test_adm_8_bad_values_are_refused_per_resource(c):
    """An invalid value or key gives 40 with a text that names the key, applies nothing of that resource and leaves
    the others alone; unknown topics give 3, another node's id 42.

    SOURCES: redpanda-data/redpanda#16281, #2645
    """
    one, two = w.unique("adm8"), w.unique("adm8")
    w.create_topic(c, one)
    w.create_topic(c, two)
    for key, value in (
        ("cleanup.policy", "compactt"),
        ("retention.ms", "abc"),
        ("compression.type", "SNAPPY"),
        ("min.insync.replicas", "0"),
        ("no.such.config", "1"),
        ("max.message.bytes", "-1"),
        ("message.timestamp.type", "Create"),
    ):
        stamp = str(w.now_ms())
        a, b = w.alter(
            c,
            [
                (2, one, [("segment.ms", w.SET, stamp), (key, w.SET, value)]),
                (2, two, [("segment.ms", w.SET, stamp)]),
            ],
        )
        assert (a.error_code, b.error_code) == (40, 0), key
        assert key in a.error_message
        _eventually(lambda: _dynamic(c, two), {"segment.ms": stamp})
        assert _dynamic(c, one) == {}
        r = c.send(
            "alter_configs",
            1,
            validate_only=False,
            resources=[
                {
                    "resource_type": 2,
                    "resource_name": one,
                    "configs": [{"name": key, "value": value}],
                }
            ],
        )
        assert r.responses[0].error_code == 40
        assert key in r.responses[0].error_message
        n = w.unique("adm8")
        t = _create(c, _topic(n, configs=[(key, value)]))[n]
        assert t.error_code == 40
        assert key in t.error_message
        assert not _exists(c, n)
    r = w.alter(c, [(2, w.unique("missing"), [("segment.ms", w.SET, "100000")])])[0]
    assert r.error_code == 3
    other = max(b.node_id for b in w.metadata(c, []).brokers) + 99
    for name in (str(other), "abc"):
        assert (
            w.alter(c, [(4, name, [("log.retention.ms", w.SET, "100000000")])])[0].error_code == 42
        )
    assert (
        w.alter(c, [(4, "", [("log.retention.ms", w.SET, "604800000")])], validate_only=True)[
            0
        ].error_code
        == 0
    )
    assert w.metadata(c, [one]).topics[0].error_code == 0


@pytest.mark.case("ADM-40")
def test_adm_40_moves_between_log_directories(c):
    """AlterReplicaLogDirs: a replica named twice goes where it is named last and is answered once; an unknown directory is
    57, an unknown partition 3; 17 where the name of the copy's directory would be longer than 255 characters.

    SOURCES: KIP-113, apache/kafka#22662 (KAFKA-20723)
    """
    topic = w.unique("adm40")
    w.create_topic(c, topic, partitions=2)
    here = c.send("describe_log_dirs", 1, topics=None).results[0].log_dir

    def ask(*dirs):
        wanted = [
            {"path": path, "topics": [{"name": n, "partitions": ps} for n, ps in topics]}
            for path, topics in dirs
        ]
        r = c.send("alter_replica_log_dirs", 2, dirs=wanted)
        answers = [(t.topic_name, p) for t in r.results for p in t.partitions]
        assert len({(n, p.partition_index) for n, p in answers}) == len(answers)
        return {(n, p.partition_index): p.error_code for n, p in answers}

    assert ask(("/nowhere", [(topic, [0, 0, 1])]), (here, [(topic, [0]), (topic, [0, 7])])) == {
        (topic, 0): 0,
        (topic, 1): 57,
        (topic, 7): 3,
    }
    assert ask((here, [(topic, [0])]), ("/nowhere", [(topic, [0])])) == {(topic, 0): 57}
    for size, index, code in ((213, 0, 57), (214, 0, 17), (210, 1000, 57), (211, 1000, 17)):
        name = "x" * size
        assert ask(("/nowhere", [(name, [index])])) == {(name, index): code}

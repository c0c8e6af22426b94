"""Fetch and ListOffsets: order of the answer, topics named twice, values that there are not."""

import uuid

import pytest

from tests import wire
from tests.cases.helpers import Txn


def _fetch(c, version, topics, **more):
    """One Fetch of [(name, id, [(partition, offset), ...]), ...] with max_wait 0."""
    fields = wire.fetch_fields("x", {0: 0}, version, max_wait=0, **more)
    shape = fields["topics"][0]["partitions"][0]
    fields["topics"] = [
        {
            ("topic_id" if version >= 13 else "topic"): (tid if version >= 13 else name),
            "partitions": [dict(shape, partition=p, fetch_offset=o) for p, o in parts],
        }
        for name, tid, parts in topics
    ]
    return c.send("fetch", version, **fields)


def _order(r, names):
    return [
        (
            names[t.topic_id if "topic_id" in t else t.topic],
            [(p.partition_index, p.error_code) for p in t.partitions],
        )
        for t in r.responses
    ]


def _two(c):
    t, u = wire.unique("fetch"), wire.unique("fetch")
    wire.create_topic(c, t, partitions=3)
    wire.create_topic(c, u, partitions=2)
    for name in (t, u):
        wire.produce(c, name, [b"x"])
    tid, uid = wire.topic_id(c, t), wire.topic_id(c, u)
    return t, u, tid, uid, {t: "T", u: "U", tid: "T", uid: "U"}


@pytest.mark.case("FETCH-20")
@pytest.mark.parametrize("version", [4, 11, 12, 13, 17])
def test_fetch_20_what_is_read_comes_in_the_order_of_the_request(c, version):
    """Partitions that are read are answered in the order in which they were asked for, one entry per run of a topic:
    topics may come twice. What is refused without reading comes behind them, unknown ids first.

    SOURCES: apache/kafka#1812 (KIP-74), apache/kafka#9944 (KAFKA-10580)
    """
    t, u, tid, uid, names = _two(c)
    missing, unknown = wire.unique("missing"), uuid.uuid4()
    names.update({missing: "?", unknown: "?"})
    lost = (0, 100 if version >= 13 else 3)
    for epoch in (-1, 0) if version >= 7 else (-1,):
        more = {"session_epoch": epoch}
        r = _fetch(c, version, [(t, tid, [(0, 0)]), (u, uid, [(0, 0)]), (t, tid, [(1, 0)])], **more)
        assert _order(r, names) == [("T", [(0, 0)]), ("U", [(0, 0)]), ("T", [(1, 0)])]
        r = _fetch(
            c,
            version,
            [
                (t, tid, [(5, 0), (0, 0), (1, 99), (2, 0)]),
                (missing, unknown, [(0, 0)]),
                (u, uid, [(9, 0), (0, 0)]),
            ],
            **more,
        )
        read = [("T", [(0, 0), (1, 1), (2, 0)]), ("U", [(0, 0)])]
        refused = [("T", [(5, 3)]), ("?", [lost]), ("U", [(9, 3)])]
        if version >= 13:
            refused = [refused[1], refused[0], refused[2]]
        assert _order(r, names) == read + refused


@pytest.mark.case("FETCH-21")
@pytest.mark.parametrize("version", [4, 12, 13, 17])
def test_fetch_21_of_a_partition_named_twice_the_last_offset_counts(c, version):
    """A partition that is named twice is answered once, where it was named first, from the offset named last.

    SOURCES: apache/kafka#1812 (KIP-74)
    """
    t, _, tid, _, names = _two(c)
    wire.produce(c, t, [b"y"])
    r = _fetch(c, version, [(t, tid, [(0, 0), (1, 0), (0, 1)])])
    assert _order(r, names) == [("T", [(0, 0), (1, 0)])]
    (b,), _ = wire.parse(r.responses[0].partitions[0].records)
    assert b.base_offset == 1


@pytest.mark.case("FETCH-22")
@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
@pytest.mark.parametrize("level", [2, -1, 127])
def test_fetch_22_an_isolation_level_that_there_is_not(c, version, level):
    """Only 0 and 1 are isolation levels: any other gets no data, but -1 for the whole request (v7 and later) and, up to
    v12, for each partition.

    SOURCES: KIP-98, apache/kafka#2840 (KAFKA-4818)
    """
    t, u, tid, uid, names = _two(c)
    r = _fetch(c, version, [(t, tid, [(0, 0), (1, 0)]), (u, uid, [(0, 0)])], isolation=level)
    if version >= 7:
        assert (r.error_code, r.session_id) == (-1, 0)
    if version >= 13:
        assert r.responses == []
        return
    assert _order(r, names) == [("T", [(0, -1), (1, -1)]), ("U", [(0, -1)])]
    for p in wire.parts_of(r).values():
        assert (p.high_watermark, p.last_stable_offset) == (-1, -1)
        assert not p.records


@pytest.mark.case("FETCH-23")
@pytest.mark.parametrize("version", [4, 12, 18])
def test_fetch_23_negative_limits(c, version):
    """A negative partition_max_bytes or max_bytes is an error of each partition that has something to read; 0 still
    gives one whole batch.

    SOURCES: KIP-74, apache/kafka#1812
    """
    t, _, tid, _, names = _two(c)
    for limits in ({"partition_max_bytes": -1}, {"max_bytes": -1}):
        r = _fetch(c, version, [(t, tid, [(0, 0), (1, 0), (0, 0)])], **limits)
        assert _order(r, names) == [("T", [(0, -1), (1, 0)])]
        assert not wire.parts_of(r)[0].records
    for limits in ({"partition_max_bytes": 0}, {"max_bytes": 0}):
        r = _fetch(c, version, [(t, tid, [(0, 0)])], **limits)
        assert len(wire.parse(wire.parts_of(r)[0].records)[0]) == 1


@pytest.mark.case("LO-20")
@pytest.mark.parametrize("version", [1, 2, 4, 7, 11])
def test_lo_20_topics_named_twice_share_an_entry(c, version):
    """A partition named twice, also under two entries of its topic, is 42; each topic has one entry in the answer, and
    other partitions are not concerned; a topic without partitions has none.

    SOURCES: KIP-79, redpanda-data/redpanda#3403
    """
    t, u, *_ = _two(c)

    def ask(topics, **more):
        fields = {
            "replica_id": -1,
            "topics": [
                {
                    "name": name,
                    "partitions": [{"partition_index": p, "timestamp": ts} for p, ts in parts],
                }
                for name, parts in topics
            ],
        }
        if version >= 2:
            fields["isolation_level"] = more.get("level", 0)
        r = c.send("list_offsets", version, **fields)
        return {t.name: {p.partition_index: p for p in t.partitions} for t in r.topics}, r

    got, r = ask([(t, [(0, -1), (1, -1)]), (u, [(0, -1)]), (t, [(0, -2), (2, -1)])])
    assert len(r.topics) == 2
    assert {i: p.error_code for i, p in got[t].items()} == {0: 42, 1: 0, 2: 0}
    assert (got[t][0].timestamp, got[t][0].offset) == (-1, -1)
    assert got[u][0].offset == 1
    assert ask([(t, []), (u, [(0, -1)])])[0].keys() == {u}
    if version >= 2:
        for level in (2, -1):
            got, _ = ask([(t, [(0, -1)]), (wire.unique("missing"), [(0, -1)])], level=level)
            assert {(p.error_code, p.offset) for ps in got.values() for p in ps.values()} == {
                (-1, -1)
            }


@pytest.mark.case("LO-21")
def test_lo_21_special_timestamps_by_version(c):
    """-1 and -2 are known to every version, -3 from 7 on, -4 from 8, -5 from 9, -6 from 11: before, and for any
    other negative number, the partition gets 35. Without tiered storage -4 is the log's start and -5 and -6 are -1.

    SOURCES: redpanda-data/redpanda#17829, KIP-734, KIP-405, KIP-1005, KIP-1023
    """
    t, *_ = _two(c)
    wire.produce(c, t, [b"y"])
    since = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
    want = {-1: 2, -2: 0, -4: 0, -5: -1, -6: -1}
    for version in range(1, 12):
        for ts in range(-8, 0):
            p = wire.list_offset(c, t, ts, version=version)
            if version < since.get(ts, 99):
                assert (p.error_code, p.timestamp, p.offset) == (35, -1, -1), (version, ts)
                continue
            assert p.error_code == 0, (version, ts)
            assert p.offset == want[ts] if ts in want else p.offset in (0, 1)
            assert (p.timestamp == -1) == (ts != -3)
            if version >= 4:
                assert p.leader_epoch == (-1 if ts in (-5, -6) else 0), (version, ts)


@pytest.mark.case("LO-22")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lo_22_the_largest_timestamp_is_that_of_a_record(c, codec):
    """-3 gives the first record that has the largest timestamp, also inside of a compressed batch, whatever the
    batch's codec on its way in and in the log.

    SOURCES: apache/kafka#15474 (KAFKA-16342), apache/kafka#15621 (KAFKA-16310), apache/kafka#15476 (KAFKA-16341)
    """
    for target in ("producer", "gzip", "uncompressed"):
        t, empty = wire.unique("lo22"), wire.unique("lo22")
        wire.create_topic(c, t, configs={"compression.type": target})
        wire.create_topic(c, empty)
        stamps = (100, 300, 200, 300, 50)
        raw = wire.batch([(None, b"v", (), ts) for ts in stamps], codec=wire.CODECS[codec])
        wire.produce(c, t, raw)
        p = wire.list_offset(c, t, -3)
        assert (p.offset, p.timestamp, p.leader_epoch) == (1, 300, 0)
        wire.produce(c, t, wire.batch([(None, b"v", (), 300)]))
        assert wire.list_offset(c, t, -3).offset == 1
        wire.produce(c, t, wire.batch([(None, b"v", (), 10), (None, b"v", (), 301)]))
        p = wire.list_offset(c, t, -3)
        assert (p.offset, p.timestamp) == (7, 301)
        p = wire.list_offset(c, empty, -3)
        assert (p.error_code, p.offset, p.timestamp, p.leader_epoch) == (0, -1, -1, -1)


@pytest.mark.case("FETCH-24")
@pytest.mark.parametrize("version", [4, 12, 17])
def test_fetch_24_a_limit_that_is_used_up_ends_the_wait(bootstrap, c, version):
    """A consumer that lags is not made to wait: bytes up to partition_max_bytes or max_bytes count towards min_bytes,
    also those of a batch that the limit cuts off; min_bytes above max_bytes means max_bytes.

    SOURCES: tulios/kafkajs#1365, apache/kafka#16749 (KAFKA-8850)
    """
    t, _, tid, *_ = _two(c)
    for _ in range(5):
        wire.produce(c, t, [b"x"])
    size = len(wire.read_log(c, t)[0].raw)
    for part_max, total_max, least in (
        (size + 30, 1 << 20, size + 30),
        (1 << 20, size + 30, size + 30),
        (1 << 20, size + 30, 1 << 20),
        (size - 10, 1 << 20, size),
    ):
        fields = wire.fetch_fields(
            t,
            {0: 0},
            version,
            tid=tid,
            max_wait=60_000,
            min_bytes=least,
            max_bytes=total_max,
            partition_max_bytes=part_max,
        )
        r = c.send("fetch", version, timeout=20, **fields)
        assert len(wire.parse(wire.parts_of(r)[0].records)[0]) == 1


@pytest.mark.case("FETCH-25")
@pytest.mark.parametrize("version", [12, 17])
def test_fetch_25_a_partition_counts_up_to_its_own_limit(bootstrap, c, version):
    """What arrives while a fetch waits counts towards min_bytes up to partition_max_bytes of its partition: many
    records in one partition do not stand in for those of others.

    SOURCES: tulios/kafkajs#1365, confluentinc/confluent-kafka-dotnet#1115
    """
    t, u, tid, *_ = _two(c)
    size = len(wire.read_log(c, u)[0].raw)
    fields = wire.fetch_fields(
        t,
        {1: 0, 2: 0},
        version,
        tid=tid,
        max_wait=60_000,
        min_bytes=2 * size + 20,
        partition_max_bytes=size + 10,
    )
    with wire.Conn(bootstrap) as d:
        d.post("fetch", version, **fields)
        for _ in range(4):
            wire.produce(c, t, [b"x"], partition=1)
        d.expect_silence(0.1)
        for _ in range(2):
            wire.produce(c, t, [b"x"], partition=2)
        r = d.recv(20)
        assert {i: bool(p.records) for i, p in wire.parts_of(r).items()} == {1: True, 2: True}


@pytest.mark.case("FETCH-26")
@pytest.mark.parametrize("version", [7, 12, 17])
def test_fetch_26_an_incremental_fetch_without_partitions_waits_for_those_of_its_session(
    bootstrap, c, version
):
    """A request that names no partitions stands for all of its session: it waits for data like any other.

    SOURCES: redpanda-data/redpanda#1123, KIP-227
    """
    t, _, tid, *_ = _two(c)
    with wire.Conn(bootstrap) as d:
        r = d.send(
            "fetch",
            version,
            **wire.fetch_fields(t, {1: 0}, version, tid=tid, max_wait=0, session_epoch=0),
        )
        fields = wire.fetch_fields(
            t,
            {},
            version,
            tid=tid,
            max_wait=60_000,
            session_id=r.session_id,
            session_epoch=1,
        )
        d.post("fetch", version, **fields)
        d.expect_silence(0.1)
        wire.produce(c, t, [b"x"], partition=1)
        r = d.recv(20)
        assert list(wire.parts_of(r)) == [1]


@pytest.mark.case("FETCH-27")
@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_fetch_27_what_a_session_tells_again(c, version):
    """A partition that joins a session is told of once, also without data; a drained one again only when high
    watermark or log start moved; an error is told each time, and what follows it once; a forgotten one never, and
    named and forgotten in one request it is out.

    SOURCES: redpanda-data/redpanda#31300, redpanda-data/redpanda#580, platformatic/kafka#321
    """
    t, u, tid, uid, names = _two(c)
    state = {"id": 0, "epoch": 0}

    def ask(topics, forgotten=()):
        more = {"session_id": state["id"], "session_epoch": state["epoch"]}
        fields = wire.fetch_fields("x", {0: 0}, version, max_wait=0, **more)
        shape = fields["topics"][0]["partitions"][0]
        key = "topic_id" if version >= 13 else "topic"
        name = {t: tid, u: uid} if version >= 13 else {t: t, u: u}
        fields["topics"] = [
            {
                key: name[n],
                "partitions": [dict(shape, partition=p, fetch_offset=o) for p, o in parts],
            }
            for n, parts in topics
        ]
        if forgotten:
            fields["forgotten_topics_data"] = [
                {key: name[n], "partitions": ps} for n, ps in forgotten
            ]
        r = c.send("fetch", version, **fields)
        assert r.error_code == 0
        state.update(id=r.session_id, epoch=state["epoch"] + 1)
        return [(n, p) for n, parts in _order(r, names) for p in parts]

    assert ask([(t, [(1, 0)])]) == [("T", (1, 0))]
    assert ask([]) == []
    assert ask([(u, [(1, 0)])]) == [("U", (1, 0))]
    assert ask([]) == []
    wire.produce(c, t, [b"x"], partition=1)
    assert ask([(t, [(1, 1)])]) == [("T", (1, 0))]
    assert ask([]) == []
    wire.delete_records(c, t, 1, partition=1)
    assert ask([]) == [("T", (1, 0))]
    assert ask([]) == []
    assert ask([(t, [(1, 99)])]) == [("T", (1, 1))]
    assert ask([]) == [("T", (1, 1))]
    assert ask([(t, [(1, 1)])]) == [("T", (1, 0))]
    assert ask([]) == []
    assert ask([(t, [(0, 0)])], [(t, [0])]) == []
    wire.produce(c, t, [b"x"], partition=1)
    assert ask([], [(t, [1, 7])]) == []
    assert ask([(u, [(7, 0)])]) == [("U", (7, 3))]
    assert ask([]) == [("U", (7, 3))]
    assert ask([], [(u, [7])]) == []
    assert ask([], [(u, [1])]) == []
    assert state["id"] == 0, "a session without partitions is closed"


@pytest.mark.case("FETCH-28")
def test_fetch_28_session_errors(c):
    """An unknown session is 70, a wrong epoch 71 (the session stays), a session opened by names and used by ids, or the
    other way round, 106; any of them is the whole answer. Epochs 0 and -1 close the session that they name.

    SOURCES: logstash-plugins/logstash-input-kafka#323, IBM/sarama#1644, platformatic/kafka#315, KIP-516
    """
    t, _, tid, *_ = _two(c)

    def ask(version, sid, epoch, parts=None):
        fields = wire.fetch_fields(
            t, parts or {}, version, tid=tid, max_wait=0, session_id=sid, session_epoch=epoch
        )
        return c.send("fetch", version, **fields)

    for sid, epoch in ((77, 1), (77, 2**31 - 1), (0, 1), (-5, 3), (0, -2)):
        r = ask(12, sid, epoch)
        assert (r.error_code, r.session_id, r.responses) == (70, 0, []), (sid, epoch)
    for first, other in ((12, 13), (13, 12)):
        sid = ask(first, 0, 0, {0: 1}).session_id
        assert sid > 0
        for epoch in (2, 5, -3):
            assert ask(first, sid, epoch).error_code == 71
        assert ask(other, sid, 1).error_code == 106
        r = ask(first, sid, 1)
        assert (r.error_code, r.session_id) == (0, sid)
        assert ask(first, sid, 1).error_code == 71
        r = ask(first, sid, 0, {0: 1})
        assert (r.error_code, r.session_id in (0, sid)) == (0, False), "a new session"
        assert ask(first, sid, 2).error_code == 70
        assert ask(first, r.session_id, -1, {0: 1}).session_id == 0
        assert ask(first, r.session_id, 1).error_code == 70


@pytest.mark.case("FETCH-29")
@pytest.mark.parametrize("commit", [True, False])
def test_fetch_29_read_committed_waits_for_the_end_of_a_transaction(bootstrap, c, commit):
    """A fetch with read_committed is not woken by records of an open transaction: it waits until the last stable
    offset moves, then gives them all, with the aborted transactions. With read_uncommitted the records end the wait.

    SOURCES: kafka4beam/brod#326, streamnative/kop#1856, redpanda-data/redpanda#3159
    """
    topic = wire.unique("fetch29")
    wire.create_topic(c, topic)
    fields = wire.fetch_fields(topic, {0: 0}, 12, max_wait=60_000, min_bytes=1)
    with wire.Conn(bootstrap) as d, wire.Conn(bootstrap) as e, wire.Conn(bootstrap) as t:
        txn = Txn(t, wire.unique("tx"))
        d.post("fetch", 12, **dict(fields, isolation_level=1))
        e.post("fetch", 12, **fields)
        assert txn.produce(topic, [b"a"], add=True).error_code == 0
        r = e.recv(20)
        assert len(wire.parse(wire.parts_of(r)[0].records)[0]) == 1
        assert txn.produce(topic, [b"b"]).error_code == 0
        d.expect_silence(0.2)
        txn.end(commit)
        r = d.recv(20)
        p = wire.parts_of(r)[0]
        assert (p.last_stable_offset, p.high_watermark) == (3, 3)
        assert [b.base_offset for b in wire.parse(p.records)[0]] == [0, 1, 2]
        aborted = [(a.producer_id, a.first_offset) for a in p.aborted_transactions or []]
        assert aborted == ([] if commit else [(txn.pid, 0)])


@pytest.mark.case("FETCH-30")
@pytest.mark.parametrize("version", [12, 13, 17])
def test_fetch_30_a_topic_that_is_deleted_ends_the_wait(bootstrap, c, version):
    """A fetch that waits for a topic learns at once that it has been deleted: 3, not an error of leadership.

    SOURCES: redpanda-data/redpanda#126, apache/kafka#9944 (KAFKA-10580)
    """
    topic = wire.unique("fetch30")
    wire.create_topic(c, topic)
    fields = wire.fetch_fields(
        topic, {0: 0}, version, tid=wire.topic_id(c, topic), max_wait=60_000, min_bytes=1
    )
    with wire.Conn(bootstrap) as d:
        d.post("fetch", version, **fields)
        d.expect_silence(0.1)
        wire.delete_topic(c, topic)
        r = d.recv(20)
        p = wire.parts_of(r)[0]
        assert (p.error_code, p.high_watermark) == (wire.UNKNOWN_TOPIC_OR_PARTITION, -1)

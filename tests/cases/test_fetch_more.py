"""Fetch and ListOffsets: order of the answer, topics named twice, values that there are not."""

import uuid

import pytest
import wire_extra as w


def _fetch(c, version, topics, **more):
    """One Fetch of [(name, id, [(partition, offset), ...]), ...] with max_wait 0."""
    fields = w.fetch_fields("x", {0: 0}, version, max_wait=0, **more)
    shape = fields["topics"][0]["partitions"][0]
    fields["topics"] = [
        {
            ("topic_id" if version >= 13 else "topic"): (tid if version >= 13 else name),
            "partitions": [dict(shape, partition=p, fetch_offset=o) for p, o in parts],
        }
        for name, tid, parts in topics
    ]
    return c.call("fetch", version, **fields)


def _order(r, names):
    return [
        (
            names[t.topic_id if "topic_id" in t else t.topic],
            [(p.partition_index, p.error_code) for p in t.partitions],
        )
        for t in r.responses
    ]


def _two(c):
    t, u = w.unique("fetch"), w.unique("fetch")
    w.create_topic(c, t, partitions=3)
    w.create_topic(c, u, partitions=2)
    for name in (t, u):
        w.produce(c, name, [b"x"])
    tid, uid = w.topic_id(c, t), w.topic_id(c, u)
    return t, u, tid, uid, {t: "T", u: "U", tid: "T", uid: "U"}


@pytest.mark.case("FETCH-20")
@pytest.mark.parametrize("version", [4, 11, 12, 13, 17])
def test_fetch_20_what_is_read_comes_in_the_order_of_the_request(c, version):
    """Partitions that are read are answered in the order in which they were asked for, one entry per run of a topic:
    topics may come twice. What is refused without reading comes behind them, unknown ids first.

    SOURCES: apache/kafka#1812 (KIP-74), apache/kafka#9944 (KAFKA-10580)
    """
    t, u, tid, uid, names = _two(c)
    missing, unknown = w.unique("missing"), uuid.uuid4()
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
    w.produce(c, t, [b"y"])
    r = _fetch(c, version, [(t, tid, [(0, 0), (1, 0), (0, 1)])])
    assert _order(r, names) == [("T", [(0, 0), (1, 0)])]
    (b,), _ = w.parse(r.responses[0].partitions[0].records)
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
    for p in w.parts_of(r).values():
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
        assert not w.parts_of(r)[0].records
    for limits in ({"partition_max_bytes": 0}, {"max_bytes": 0}):
        r = _fetch(c, version, [(t, tid, [(0, 0)])], **limits)
        assert len(w.parse(w.parts_of(r)[0].records)[0]) == 1


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
        r = c.call("list_offsets", version, **fields)
        return {t.name: {p.partition_index: p for p in t.partitions} for t in r.topics}, r

    got, r = ask([(t, [(0, -1), (1, -1)]), (u, [(0, -1)]), (t, [(0, -2), (2, -1)])])
    assert len(r.topics) == 2
    assert {i: p.error_code for i, p in got[t].items()} == {0: 42, 1: 0, 2: 0}
    assert (got[t][0].timestamp, got[t][0].offset) == (-1, -1)
    assert got[u][0].offset == 1
    assert ask([(t, []), (u, [(0, -1)])])[0].keys() == {u}
    if version >= 2:
        for level in (2, -1):
            got, _ = ask([(t, [(0, -1)]), (w.unique("missing"), [(0, -1)])], level=level)
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
    w.produce(c, t, [b"y"])
    since = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
    want = {-1: 2, -2: 0, -4: 0, -5: -1, -6: -1}
    for version in range(1, 12):
        for ts in range(-8, 0):
            p = w.list_offset(c, t, ts, version=version)
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
        t, empty = w.unique("lo22"), w.unique("lo22")
        w.create_topic(c, t, configs={"compression.type": target})
        w.create_topic(c, empty)
        stamps = (100, 300, 200, 300, 50)
        raw = w.batch([(None, b"v", (), ts) for ts in stamps], codec=w.CODECS[codec])
        w.produce(c, t, raw)
        p = w.list_offset(c, t, -3)
        assert (p.offset, p.timestamp, p.leader_epoch) == (1, 300, 0)
        w.produce(c, t, w.batch([(None, b"v", (), 300)]))
        assert w.list_offset(c, t, -3).offset == 1
        w.produce(c, t, w.batch([(None, b"v", (), 10), (None, b"v", (), 301)]))
        p = w.list_offset(c, t, -3)
        assert (p.offset, p.timestamp) == (7, 301)
        p = w.list_offset(c, empty, -3)
        assert (p.error_code, p.offset, p.timestamp, p.leader_epoch) == (0, -1, -1, -1)

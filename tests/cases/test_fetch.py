"""Fetch: limits, waiting, positions, watermarks, compaction."""

import threading
import time

import pytest

from tests import wire as w


def _more(got, want, last):
    return len(got) < want if last is None else not got or got[-1] < last


def _kafka_python_offsets(bootstrap, topic, want, start=None, last=None, **cfg):
    """Offsets kafka-python delivers for partition 0, from `start` (None: the beginning): `want` of them at least,
    or, with `last`, all up to that offset."""
    from kafka import KafkaConsumer, TopicPartition

    k = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, **cfg)
    tp = TopicPartition(topic, 0)
    k.assign([tp])
    if start is None:
        k.seek_to_beginning(tp)
    else:
        k.seek(tp, start)
    got, end = [], time.monotonic() + 20
    while _more(got, want, last) and time.monotonic() < end:
        for part in k.poll(300).values():
            got += [m.offset for m in part]
    k.close()
    return got


def _confluent_offsets(bootstrap, topic, want, start=None, last=None, **cfg):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    q = Consumer({"bootstrap.servers": bootstrap, "group.id": w.unique("g"), **cfg})
    q.assign([TopicPartition(topic, 0, OFFSET_BEGINNING if start is None else start)])
    got, end = [], time.monotonic() + 20
    while _more(got, want, last) and time.monotonic() < end:
        got += [m.offset() for m in q.consume(100, 0.3) if not m.error()]
    q.close()
    return got


def _aiokafka_offsets(bootstrap, topic, want, start=None, last=None, **cfg):
    import asyncio

    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run():
        a = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, **cfg)
        await a.start()
        try:
            tp = TopicPartition(topic, 0)
            a.assign([tp])
            if start is None:
                await a.seek_to_beginning(tp)
            else:
                a.seek(tp, start)
            got = []
            while _more(got, want, last):
                got.append((await asyncio.wait_for(a.getone(), 20)).offset)
            return got
        finally:
            await a.stop()

    return asyncio.run(run())


CLIENTS = [_kafka_python_offsets, _confluent_offsets, _aiokafka_offsets]


@pytest.mark.case("FETCH-2")
def test_fetch_2_waiting(bootstrap, c):
    """min_bytes and max_wait pace the consumer: zero of either answers at once, otherwise the broker waits for
    data or the time, whichever is first; an error in reading a partition ends the wait, a partition that does not
    exist only when there is no other; min_bytes counts the sum.

    SOURCES: streamnative/kop#699, apache/storm#1391, emqx/emqx#16961, nisshi-io/nisshi#668
    """
    topic = w.unique("fetch2")
    w.create_topic(c, topic, partitions=2)
    w.produce(c, topic, [b"x" * 30])

    def timed(parts, **kw):
        t0 = time.monotonic()
        r = w.fetch(c, topic, parts, **kw)
        return time.monotonic() - t0, w.parts_of(r)

    for kw in ({"min_bytes": 0, "max_wait": 5000}, {"min_bytes": 1, "max_wait": 0}):
        took, got = timed({0: 1}, **kw)
        assert took < 1
        assert got[0].error_code == 0
        assert not got[0].records
    took, got = timed({0: 1}, min_bytes=1, max_wait=1500)
    assert 1.4 <= took < 2.5
    assert got[0].error_code == 0
    assert not got[0].records

    def later():
        with w.Conn(bootstrap) as d:
            w.produce(d, topic, [b"late"], 1)

    t = threading.Timer(0.5, later)
    t.start()
    took, got = timed({0: 1, 1: 0}, min_bytes=1, max_wait=8000)
    t.join()
    assert 0.4 <= took < 3, took
    assert not got[0].records
    assert w.parse(got[1].records)[0][0].records[0].value == b"late"

    took, got = timed({0: 1, 1: 99}, min_bytes=1, max_wait=8000)
    assert took < 2 and got[1].error_code == 1, "an out-of-range partition ends the wait"
    took, got = timed({7: 0}, min_bytes=1, max_wait=8000)
    assert took < 2
    assert got[7].error_code == 3
    took, got = timed({0: 1, 7: 0}, min_bytes=1, max_wait=1200)
    assert 1.1 <= took < 2.5 and got[7].error_code == 3, (
        "one that does not exist does not, if another one waits"
    )

    took, got = timed({0: 0}, min_bytes=10000, max_wait=1200)
    assert 1.1 <= took < 2.5
    assert len(w.parse(got[0].records)[0]) == 1
    size = sum(len(w.fetch_one(c, topic, 0, p).records) for p in (0, 1))
    took, got = timed({0: 0, 1: 0}, min_bytes=size, max_wait=8000)
    assert took < 2
    assert got[0].records
    assert got[1].records


@pytest.mark.case("FETCH-3")
def test_fetch_3_end_of_log_is_not_an_error_beyond_it_is(bootstrap, c):
    """Fetching at the high watermark is an empty success with all offsets filled in; beyond the end or before the
    log start it is 1 at once, with high watermark, stable offset and log start all -1.

    SOURCES: hstreamdb/hstream#1640, grafana/mimir#9153, influxdata/rskafka#148, dart-kafka/kafka#8
    """
    topic = w.unique("fetch3")
    w.create_topic(c, topic)

    def at(offset, version):
        t0 = time.monotonic()
        p = w.fetch_one(c, topic, offset, version=version, max_wait=4000 if offset > 0 else 100)
        took = time.monotonic() - t0
        assert p.records in (None, b"") or p.error_code == 0
        start = p.log_start_offset if version >= 5 else None
        return p.error_code, p.high_watermark, p.last_stable_offset, start, took

    for version in (4, 5, 7, 11, 12):
        s = (lambda x: x) if version >= 5 else (lambda x: None)
        assert at(0, version)[:4] == (0, 0, 0, s(0))
        r = at(1, version)
        assert r[:4] == (1, -1, -1, s(-1))
        assert r[4] < 2
    for _ in range(10):
        w.produce(c, topic, [b"x"])
    assert w.delete_records(c, topic, 5).low_watermark == 5
    for version in (4, 5, 7, 11, 12):
        s = (lambda x: x) if version >= 5 else (lambda x: None)
        for offset in (0, 4, 11, 1 << 40):
            r = at(offset, version)
            assert r[:4] == (1, -1, -1, s(-1)) and r[4] < 2, offset
        assert at(5, version)[:4] == (0, 10, 10, s(5))
        p = w.fetch_one(c, topic, 10, version=version, max_wait=50)
        assert (p.error_code, p.high_watermark, p.records or b"") == (0, 10, b"")

    from confluent_kafka import Consumer, KafkaError, TopicPartition

    q = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": w.unique("g"), "auto.offset.reset": "error"}
    )
    q.assign([TopicPartition(topic, 0, 2)])
    codes, end = [], time.monotonic() + 10
    while not codes and time.monotonic() < end:
        m = q.poll(0.3)
        if m is not None:
            codes.append(m.error() and m.error().code())
    assert codes == [KafkaError._AUTO_OFFSET_RESET]
    q.close()
    assert _confluent_offsets(bootstrap, topic, 5, 2, **{"auto.offset.reset": "earliest"}) == [
        5,
        6,
        7,
        8,
        9,
    ]


@pytest.mark.case("FETCH-8")
def test_fetch_8_partial_batches_only_at_the_end(c):
    """Whatever partition_max_bytes, the record bytes start with at least one complete batch, batches follow each
    other without gaps, only the last may be cut, and only the first batch may exceed the limit.

    SOURCES: influxdata/rskafka#73, segmentio/kafka-go#270, tulios/kafkajs#182, optiopay/kafka#110
    """
    topic = w.unique("fetch8")
    w.create_topic(c, topic)
    for i in range(20):
        w.produce(c, topic, w.batch([b"%d" % i * 20, b"z" * (800 + 20 * i)]))
    all_batches = w.read_log(c, topic)
    assert len(all_batches) == 20
    stream = b"".join(b.raw for b in all_batches)
    start = [0]
    for b in all_batches:
        start.append(start[-1] + len(b.raw))
    for offset in range(0, 40, 3):
        n = offset // 2
        for limit in range(100, 20000, 137 * 7 if offset % 2 else 137 * 3):
            p = w.fetch_one(c, topic, offset, partition_max_bytes=limit)
            assert p.error_code == 0
            data = p.records
            assert stream[start[n] : start[n] + len(data)] == data, (
                "bytes of the log from the batch on"
            )
            got, rest = w.parse(data)
            assert got
            assert got[0].base_offset <= offset <= got[0].last_offset
            assert [b.base_offset for b in got] == [
                b.base_offset for b in all_batches[n : n + len(got)]
            ]
            assert len(data) <= max(limit, len(got[0].raw))
            if rest:
                assert len(data) <= limit
                assert n + len(got) < 20
    for limit in (1, 500):
        offset, turns = 0, 0
        while offset < 40:
            got, _ = w.parse(w.fetch_one(c, topic, offset, partition_max_bytes=limit).records)
            offset, turns = got[-1].last_offset + 1, turns + 1
        assert turns == 20


@pytest.mark.case("FETCH-9")
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_fetch_9_compacted_logs_can_be_read_through_their_holes(bootstrap, c):
    """After compaction a fetch inside a hole returns the next surviving batch, batches keep the offset range they
    had and records keep their offsets; every consumer reaches the end of the log.

    SOURCES: kafka4beam/brod#263, segmentio/kafka-go#813, zendesk/ruby-kafka#555, dpkp/kafka-python#1390
    """
    topic = w.unique("fetch9")
    w.create_topic(
        c,
        topic,
        configs={
            "cleanup.policy": "compact",
            "segment.ms": "200",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "0",
        },
    )
    keys = [b"a", b"b", b"c", b"d"]
    for i in range(12):
        w.produce(c, topic, [(k, b"%d" % i) for k in keys])
    time.sleep(0.5)
    w.produce(c, topic, [(b"only", b"x"), (b"a", b"last")])
    time.sleep(0.5)
    w.produce(c, topic, [(b"tail", b"1"), (b"tail", b"2")])  # rolls; stays in the active segment
    end_offset = w.latest(c, topic)
    assert end_offset == 52
    limit = time.monotonic() + 75
    while True:
        recs = [r for b in w.read_log(c, topic) for r in b.records]
        if len([r for r in recs if r.key != b"tail"]) <= 5:
            break
        if time.monotonic() > limit:
            pytest.fail(f"not compacted within 75 s, {len(recs)} records left")
        time.sleep(0.5)
        w.produce(c, topic, [(b"tail", b"1"), (b"tail", b"2")])  # keeps old segments closing
    end_offset = w.latest(c, topic)
    batches = w.read_log(c, topic)
    survivors = {r.key: r for b in batches for r in b.records if r.key != b"tail"}
    assert {k: (r.offset, r.value) for k, r in survivors.items()} == {
        b"b": (45, b"11"),
        b"c": (46, b"11"),
        b"d": (47, b"11"),
        b"only": (48, b"x"),
        b"a": (49, b"last"),
    }
    by_base = {b.base_offset: b for b in batches}
    assert by_base[44].last_offset == 47 and by_base[44].count == 3, (
        "range kept though the first record is gone"
    )
    assert w.earliest(c, topic) == 0
    for offset in range(end_offset):
        p = w.fetch_one(c, topic, offset, max_wait=1000)
        assert p.error_code == 0
        got, _ = w.parse(p.records)
        assert got and got[0].last_offset >= offset, f"nothing at or after {offset}"
        if offset <= 44:
            assert got[0].base_offset <= 44
        assert p.high_watermark == end_offset
        assert p.log_start_offset == 0
    for client in CLIENTS:
        got = client(bootstrap, topic, 0, last=end_offset - 1)
        assert (
            got[-1] == end_offset - 1 and got == sorted(got) and {45, 46, 47, 48, 49} <= set(got)
        ), client

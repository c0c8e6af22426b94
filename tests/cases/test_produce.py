"""Produce: acknowledgements, batch validation, compression, sizes, timestamps."""

import struct
import time

import pytest

from tests import wire as w


def _two(c, topic, parts, version=9, acks=-1):
    return dict(w.produce_parts(c, topic, parts, version, acks=acks).items())


@pytest.mark.case("PROD-1")
def test_prod_1_acks_zero_has_no_answer_and_errors_close(bootstrap, c):
    """acks=0 is never answered: the next answer on the wire belongs to the next request. A failed partition
    closes the connection; good partitions of that request are stored all the same.

    SOURCES: streamnative/kop#1898, shotover/shotover-proxy#1188, grepplabs/kafka-proxy#54
    """
    topic = w.unique("prod1")
    w.create_topic(c, topic, partitions=2, configs={"max.message.bytes": "5000"})
    hi = min(11, next(k.max_version for k in c.send("api_versions", 0).api_keys if k.api_key == 0))
    for version in range(3, hi + 1):
        with w.Conn(bootstrap) as d:
            d.post(
                "produce",
                version,
                expect_reply=False,
                **w.produce_fields(topic, {0: w.batch([b"%d" % version])}, acks=0),
            )
            assert d.send("api_versions", 0).error_code == 0
            d.expect_silence(0.05)
    assert w.latest(c, topic) == hi - 2

    bad_crc = bytearray(w.batch([b"value"]))
    bad_crc[-2] ^= 1
    before = 0
    for bad in (bytes(bad_crc), w.sized_batch(5001)):
        with w.Conn(bootstrap) as d:
            d.post("produce", 9, **w.produce_fields(topic, {0: bad, 1: w.batch([b"good"])}, acks=0))
            d.expect_close(3)
        before += 1
        assert w.latest(c, topic, 1) == before
        assert w.latest(c, topic, 0) == hi - 2
    with w.Conn(bootstrap) as d:
        d.post("produce", 9, **w.produce_fields(w.unique("missing"), {0: w.batch([b"x"])}, acks=0))
        d.expect_close(3)

    from kafka import KafkaProducer

    other = w.unique("prod1")
    w.create_topic(c, other)
    p = KafkaProducer(bootstrap_servers=bootstrap, acks=0, enable_idempotence=False)
    for i in range(1000):
        p.send(other, b"%d" % i)
    p.flush(20)
    p.close()
    end = time.monotonic() + 10
    while w.latest(c, other) < 1000 and time.monotonic() < end:
        time.sleep(0.1)
    assert w.latest(c, other) == 1000


@pytest.mark.case("PROD-2")
def test_prod_2_min_insync_replicas_is_capped_by_the_replica_count(c):
    """Since Kafka 4 a partition never asks for more in-sync replicas than it has replicas: with one replica and
    min.insync.replicas=2 acks=all is accepted like acks=1, while the config is kept and described as set.

    SOURCES: edenhill/kcat#184, sngular/kloadgen#160
    """
    topic = w.unique("prod2")
    w.create_topic(c, topic, configs={"min.insync.replicas": "2"})
    cfg = w.config_of(c, topic, "min.insync.replicas")
    assert (cfg.value, cfg.config_source) == ("2", 1)
    for i, acks in enumerate((-1, 1, -1)):
        p = w.produce(c, topic, [b"x"], acks=acks)
        assert p.base_offset == i
        assert w.latest(c, topic) == i + 1
    assert w.alter(c, [(2, topic, [("min.insync.replicas", w.SET, "1")])])[0].error_code == 0
    end = time.monotonic() + 5
    while w.config_of(c, topic, "min.insync.replicas").value != "1" and time.monotonic() < end:
        time.sleep(0.05)
    assert w.config_of(c, topic, "min.insync.replicas").value == "1"
    assert w.produce(c, topic, [b"x"], acks=-1).base_offset == 3


@pytest.mark.case("PROD-4")
def test_prod_4_crc_is_checked_before_storing(c):
    """A batch whose CRC does not cover what it carries is refused with 2; the fields before the CRC (leader
    epoch) do not count; a batch that claims more bytes than were sent gives 87, fewer bytes 2.

    SOURCES: twmb/franz-go#716, aio-libs/aiokafka#321, redpanda-data/redpanda#6631, IBM/sarama#1841
    """
    topic = w.unique("prod4")
    w.create_topic(c, topic, configs={"max.message.bytes": "2000"})
    good = w.batch([(b"key", b"some value")])
    for pos in (
        len(good) - 4,
        len(good) - 1,
        22,
        30,
        60,
    ):  # value, end, attributes, base timestamp, count
        bad = bytearray(good)
        bad[pos] ^= 0x40 if pos != 22 else 0x08
        p = w.produce(c, topic, bytes(bad), expect=None)
        assert p.error_code in (w.CORRUPT_MESSAGE,), (pos, p)
        assert p.base_offset == -1
    bad = bytearray(good)
    bad[17] ^= 1  # the CRC itself
    assert w.produce(c, topic, bytes(bad), expect=w.CORRUPT_MESSAGE).base_offset == -1
    for codec in (1, 2, 3, 4):
        bad = bytearray(w.batch([b"v" * 200], codec=codec))
        bad[-3] ^= 1
        w.produce(c, topic, bytes(bad), expect=w.CORRUPT_MESSAGE)
    assert w.latest(c, topic) == 0
    big = bytearray(w.sized_batch(2001))
    big[-1] ^= 1
    w.produce(c, topic, bytes(big), expect=w.MESSAGE_TOO_LARGE)
    for extra in (1, 1000):
        longer = bytearray(good)
        longer[8:12] = struct.pack(">i", len(good) - 12 + extra)
        w.produce(c, topic, bytes(longer), expect=w.INVALID_RECORD)
    for short in (-1, -30, -1000):
        shorter = bytearray(good)
        shorter[8:12] = struct.pack(">i", len(good) - 12 + short)
        w.produce(c, topic, bytes(shorter), expect=w.CORRUPT_MESSAGE)
    assert w.latest(c, topic) == 0
    epoch = bytearray(good)
    epoch[12:16] = struct.pack(">i", 7)
    assert w.produce(c, topic, bytes(epoch)).base_offset == 0
    stored = w.read_log(c, topic)  # checks each stored CRC
    assert len(stored) == 1
    assert stored[0].records[0].value == b"some value"


@pytest.mark.case("PROD-6")
@pytest.mark.parametrize(
    "name",
    [
        "empty",
        "two_batches",
        "magic_0",
        "magic_1",
        "count_zero",
        "count_negative",
        "count_too_small",
        "count_too_large",
        "last_delta_too_large",
        "control",
        "no_sequence",
    ],
)
def test_prod_6_shape_of_the_batch_is_checked(c, name):
    """Anything but exactly one honest v2 batch of data per partition is refused with 87 on that partition alone;
    the other partition of the request is stored, the bad one is not.

    SOURCES: apache/kafka#6816 (KAFKA-8428), streamnative/kop#656, twmb/franz-go#226, IBM/sarama#1841
    """
    recs = [b"a", b"b", b"c"]
    bad = {
        "empty": b"",
        "two_batches": w.batch(recs) + w.batch(recs),
        "magic_0": w.message_v0(b"v"),
        "magic_1": w.message_v0(b"v", magic=1),
        "count_zero": w.batch([], count=0, last_offset_delta=-1),
        "count_negative": w.batch(recs, count=-1, last_offset_delta=2),
        "count_too_small": w.batch(recs, count=2, last_offset_delta=2),
        "count_too_large": w.batch(recs, count=4, last_offset_delta=3),
        "last_delta_too_large": w.batch(recs, last_offset_delta=9),
        "control": w.batch([(b"\0\0\0\1", b"\0\0\0\0\0\0")], attributes=0x20),
        "no_sequence": w.batch(recs, producer_id=12345, producer_epoch=0, base_sequence=-1),
    }[name]
    topic = w.unique("prod6")
    w.create_topic(c, topic, partitions=2)
    p = w.produce(c, topic, bad, expect=None)
    assert (p.error_code, p.base_offset) == (w.INVALID_RECORD, -1)
    assert w.latest(c, topic) == 0
    got = _two(c, topic, {0: bad, 1: w.batch([b"good"])})
    assert {i: p.error_code for i, p in got.items()} == {0: w.INVALID_RECORD, 1: 0}
    assert (w.latest(c, topic, 0), w.latest(c, topic, 1)) == (0, 1)


@pytest.mark.case("PROD-9")
def test_prod_9_max_message_bytes_counts_the_batch_as_it_arrives(bootstrap, c):
    """A batch of exactly max.message.bytes is stored, one byte more gives 10 on that partition alone; what counts
    is the compressed batch, not the records in it.

    SOURCES: confluentinc/librdkafka#1716, redpanda-data/redpanda#1109, twmb/franz-go#1129
    """
    topic = w.unique("prod9")
    w.create_topic(c, topic, partitions=2, configs={"max.message.bytes": "2000"})
    assert w.produce(c, topic, w.sized_batch(2000)).base_offset == 0
    assert w.produce(c, topic, w.sized_batch(2001), expect=w.MESSAGE_TOO_LARGE).base_offset == -1
    got = _two(c, topic, {0: w.sized_batch(2001), 1: w.sized_batch(2000)})
    assert {i: p.error_code for i, p in got.items()} == {0: 10, 1: 0}
    assert (w.latest(c, topic, 0), w.latest(c, topic, 1)) == (1, 1)
    assert w.produce(c, topic, w.batch([b"\0" * 100_000], codec=1)).base_offset == 1
    assert len(w.read_log(c, topic)[1].records[0].value) == 100_000

    from confluent_kafka import KafkaError, Producer

    p = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 1_000_000, "linger.ms": 0})
    out = []
    for size in (100, 50_000, 200):
        p.produce(topic, b"q" * size, partition=0, callback=lambda e, m: out.append(e and e.code()))
        assert p.flush(15) == 0
    assert out == [None, KafkaError.MSG_SIZE_TOO_LARGE, None]
    assert w.latest(c, topic, 0) == 4


@pytest.mark.case("PROD-11")
def test_prod_11_timestamps_outside_the_window_are_refused(c):
    """message.timestamp.before/after.max.ms: a batch with a record outside the window is refused as a whole with
    32, naming the offending record (v8+); LogAppendTime topics and records without a time are exempt.

    SOURCES: apache/kafka#13709 (KAFKA-14991), redpanda-data/redpanda#27419, tulios/kafkajs#188
    """
    topic = w.unique("prod11")
    w.create_topic(
        c,
        topic,
        configs={
            "message.timestamp.after.max.ms": "60000",
            "message.timestamp.before.max.ms": "120000",
        },
    )
    now = w.now_ms()
    for codec in (0, 1):
        for off in (3_600_000, -3_600_000):
            bad = w.batch(
                [(None, b"0", (), now), (None, b"1", (), now + off), (None, b"2", (), now)],
                codec=codec,
            )
            for version in (8, 9):
                p = w.produce(c, topic, bad, version=version, expect=w.INVALID_TIMESTAMP)
                assert p.base_offset == -1
                assert p.error_message
                assert [e.batch_index for e in p.record_errors] == [1]
                assert p.record_errors[0].batch_index_error_message
            assert w.produce(c, topic, bad, version=7, expect=w.INVALID_TIMESTAMP).base_offset == -1
    assert w.latest(c, topic) == 0
    w.produce(c, topic, [(None, b"x", (), now + 30_000)])
    w.produce(c, topic, [(None, b"x", (), now - 60_000)])
    w.produce(c, topic, w.batch([b"x"], base_timestamp=-1, max_timestamp=-1))
    assert w.latest(c, topic) == 3
    append = w.unique("prod11")
    w.create_topic(
        c,
        append,
        configs={
            "message.timestamp.after.max.ms": "60000",
            "message.timestamp.before.max.ms": "60000",
            "message.timestamp.type": "LogAppendTime",
        },
    )
    w.produce(c, append, [(None, b"x", (), now + 3_600_000)])
    default = w.unique("prod11")
    w.create_topic(c, default)
    w.produce(c, default, [(None, b"x", (), now + 7_200_000)], expect=w.INVALID_TIMESTAMP)
    w.produce(c, default, [(None, b"x", (), 1)])


@pytest.mark.case("PROD-14")
def test_prod_14_null_and_empty_stay_distinct(bootstrap, c):
    """Null and empty keys, values and header values stay what they were; repeated header keys, their order and
    an empty header key survive; records are stored byte for byte.

    SOURCES: apache/pulsar#7407, osodevops/kafka-backup#155, thomhurst/Dekaf#1627
    """
    topic = w.unique("prod14")
    w.create_topic(c, topic)
    headers = [("a", None), ("a", b""), ("a", b"x"), ("", b"y")]
    grid = [
        (k, v, h) for k in (None, b"", b"data") for v in (None, b"", b"data") for h in (headers, [])
    ]
    sent = w.batch(grid)
    w.produce(c, topic, sent)

    from confluent_kafka import Consumer, Producer, TopicPartition

    p = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for k, v, h in grid:
        p.produce(topic, key=k, value=v, headers=h, partition=0)
    assert p.flush(15) == 0
    stored = w.read_log(c, topic)
    assert stored[0].raw[61:] == sent[61:]
    want = grid * 2
    assert [(r.key, r.value, r.headers) for b in stored for r in b.records] == want

    q = Consumer({"bootstrap.servers": bootstrap, "group.id": w.unique("g")})
    q.assign([TopicPartition(topic, 0, 0)])
    got, end = [], time.monotonic() + 15
    while len(got) < len(want) and time.monotonic() < end:
        got += [(m.key(), m.value(), m.headers() or []) for m in q.consume(100, 0.5)]
    q.close()
    assert got == want

    from kafka import KafkaConsumer
    from kafka import TopicPartition as KpTP

    k = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    k.assign([KpTP(topic, 0)])
    k.seek(KpTP(topic, 0), 0)
    got, end = [], time.monotonic() + 15
    while len(got) < len(want) and time.monotonic() < end:
        for part in k.poll(500).values():
            got += [(m.key, m.value, [tuple(h) for h in m.headers]) for m in part]
    k.close()
    assert got == want

    import asyncio

    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as AioTP

    async def read():
        a = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        await a.start()
        try:
            a.assign([AioTP(topic, 0)])
            a.seek(AioTP(topic, 0), 0)
            out = []
            for _ in want:
                m = await asyncio.wait_for(a.getone(), 15)
                out.append((m.key, m.value, [tuple(h) for h in m.headers]))
            return out
        finally:
            await a.stop()

    assert asyncio.run(read()) == want

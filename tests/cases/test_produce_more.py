"""Produce: what a partition named twice, odd flags and sizes of batches come to."""

import struct

import pytest

from tests import wire
from tests.cases.helpers import Txn


def _ask(c, topics, version=9, txn=None):
    """One Produce of [(topic, [(partition, records), ...]), ...]; {(topic, partition): answer}."""
    fields = {
        "transactional_id": txn,
        "acks": -1,
        "timeout_ms": 10000,
        "topic_data": [
            {"name": t, "partition_data": [{"index": i, "records": b} for i, b in parts]}
            for t, parts in topics
        ],
    }
    response = c.send("produce", version, **fields)
    answers = [(t.name, p.index, p) for t in response.responses for p in t.partition_responses]
    assert len({t.name for t in response.responses}) == len(response.responses)
    assert len({a[:2] for a in answers}) == len(answers), "a partition is answered once"
    return {a[:2]: a[2] for a in answers}


@pytest.mark.case("PROD-20")
@pytest.mark.parametrize("version", [3, 9, 12])
def test_prod_20_of_a_partition_named_twice_the_last_records_count(c, version):
    """A request that names a partition twice stores the last records only, and answers it once: the records before
    them are neither stored nor told of.

    SOURCES: apache/kafka#22662 (KAFKA-20723)
    """
    t, u = wire.unique("prod20"), wire.unique("prod20")
    wire.create_topic(c, t, partitions=2)
    wire.create_topic(c, u)
    one, two, three = (wire.batch([b"v"] * n) for n in (1, 2, 3))
    got = _ask(c, [(t, [(0, one), (1, one), (0, two)])], version)
    assert {k: (p.error_code, p.base_offset) for k, p in got.items()} == {
        (t, 0): (0, 0),
        (t, 1): (0, 0),
    }
    assert (wire.latest(c, t, 0), wire.latest(c, t, 1)) == (2, 1)
    got = _ask(c, [(t, [(0, one)]), (u, [(0, one)]), (t, [(1, two), (0, three)])], version)
    assert {k: p.base_offset for k, p in got.items()} == {(t, 0): 2, (t, 1): 1, (u, 0): 0}
    assert (wire.latest(c, t, 0), wire.latest(c, t, 1), wire.latest(c, u)) == (5, 3, 1)


@pytest.mark.case("PROD-20")
def test_prod_20_topic_ids_named_twice(c):
    """The same by topic id (v13): one entry per id in the answer.

    SOURCES: apache/kafka#22662 (KAFKA-20723)
    """
    t = wire.unique("prod20")
    wire.create_topic(c, t, partitions=2)
    tid = wire.topic_id(c, t)
    entries = [
        {"topic_id": tid, "partition_data": [{"index": i, "records": wire.batch([b"v"] * n)}]}
        for i, n in ((0, 1), (1, 1), (0, 2))
    ]
    r = c.send("produce", 13, transactional_id=None, acks=-1, timeout_ms=10000, topic_data=entries)
    assert [(x.topic_id, sorted(p.index for p in x.partition_responses)) for x in r.responses] == [
        (tid, [0, 1])
    ]
    assert (wire.latest(c, t, 0), wire.latest(c, t, 1)) == (2, 1)


@pytest.mark.case("PROD-21")
@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "zstd"])
def test_prod_21_a_batch_compressed_anew_keeps_within_max_message_bytes(c, codec):
    """max.message.bytes counts a second time after the broker has changed the compression: a batch that only fits in
    the form in which it arrived is refused with 10 and not stored; on the other hand a batch that is too large
    when it arrives is not saved by the topic's compression.

    SOURCES: confluentinc/confluent-kafka-dotnet#1232, IBM/sarama#150
    """
    topic = wire.unique("prod21")
    wire.create_topic(c, topic, configs={"max.message.bytes": "500", "compression.type": codec})
    if codec == "uncompressed":
        p = wire.produce(
            c, topic, wire.batch([b"x" * 1000], codec=1), expect=wire.MESSAGE_TOO_LARGE
        )
        assert p.base_offset == -1
        assert wire.latest(c, topic) == 0
    wire.produce(c, topic, wire.batch([b"x" * 1000]), expect=wire.MESSAGE_TOO_LARGE)
    assert wire.latest(c, topic) == 0
    wire.produce(c, topic, wire.batch([b"x" * 100], codec=1))
    (stored,) = wire.read_log(c, topic)
    assert stored.codec == {"uncompressed": 0, "gzip": 1, "zstd": 4}[codec]


@pytest.mark.case("PROD-22")
@pytest.mark.parametrize("version", [3, 9, 11, 12])
def test_prod_22_a_transactional_flag_needs_a_transactional_id(c, bootstrap, version):
    """A batch marked as transactional in a request without transactional id is refused with 53. With one, what
    belongs to no producer is not asked about: it is stored like any other, and is not part of a transaction.

    SOURCES: apache/kafka#13607 (KAFKA-14916), KIP-890
    """
    topic, tid = wire.unique("prod22"), wire.unique("tx")
    wire.create_topic(c, topic)
    with wire.Conn(bootstrap) as d:
        wire.txn_ready(d, tid)
    plain = wire.batch([b"x"], attributes=0x10)
    owned = wire.batch(
        [b"x"], attributes=0x10, producer_id=987654, producer_epoch=0, base_sequence=0
    )
    for raw in (plain, owned):
        got = _ask(c, [(topic, [(0, raw)])], version)[topic, 0]
        assert (got.error_code, got.base_offset) == (53, -1)
    got = _ask(c, [(topic, [(0, owned)])], version, txn=tid)[topic, 0]
    assert (got.error_code, got.base_offset) == (49, -1)
    got = _ask(c, [(topic, [(0, plain)])], version, txn=tid)[topic, 0]
    assert (got.error_code, got.base_offset) == (0, 0)
    control = wire.batch([(b"\0\0\0\1", b"\0\0\0\0\0\0")], attributes=0x30)
    got = _ask(c, [(topic, [(0, control)])], version, txn=tid)[topic, 0]
    assert (got.error_code, got.base_offset) == (87, -1), "control records come from brokers"
    assert wire.latest(c, topic) == wire.latest(c, topic, isolation=1) == 1


@pytest.mark.case("PROD-23")
def test_prod_23_snappy_streams_end_at_the_last_whole_block(c):
    """A snappy stream with less than a block's length behind its last block is read up to there, as the Java
    library reads it.

    SOURCES: dpkp/kafka-python#127, kafka-protocol-rs/kafka-protocol-rs#148, dpkp/kafka-python#2414
    """
    topic = wire.unique("prod23")
    wire.create_topic(c, topic)
    text = wire.encode_record(None, b"value")
    for tail in (b"", b"\0", b"\0\0\0"):
        payload = wire.compress(2, text) + tail
        wire.produce(c, topic, wire.batch([b"value"], codec=2, payload=payload))
    assert [p.records[0].value for p in wire.read_log(c, topic)[:1]] == [b"value"]
    assert wire.latest(c, topic) == 3


@pytest.mark.case("PROD-24")
@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
@pytest.mark.parametrize("version", [3, 8, 12])
def test_prod_24_other_acks_are_refused_per_partition(c, version, acks):
    """acks is -1, 0 or 1: anything else is answered with 21 on every partition that exists, and nothing is stored.

    SOURCES: dpkp/kafka-python#294 (KAFKA-1697), kafka-rust/kafka-rust#97, confluentinc/librdkafka#3361,
    segmentio/kafka-go#175
    """
    topic = wire.unique("prod24")
    wire.create_topic(c, topic)
    got = wire.produce_parts(
        c, topic, {0: wire.batch([b"x"]), 7: wire.batch([b"x"])}, version, acks=acks
    )
    assert {i: (p.error_code, p.base_offset) for i, p in got.items()} == {0: (21, -1), 7: (3, -1)}
    assert wire.latest(c, topic) == 0


@pytest.mark.case("PROD-25")
@pytest.mark.parametrize("base", ["before", "range"])
def test_prod_25_offsets_of_a_client_are_checked(c, base):
    """A client's batch begins at offset 0 and its range is as long as its count of records: anything else is 87;
    the leader epoch in it is the broker's to fill in.

    SOURCES: apache/kafka#4585 (KAFKA-6554), IBM/sarama#1013, IBM/sarama#1026
    """
    topic = wire.unique("prod25")
    wire.create_topic(c, topic)
    for codec in (0, 1, 4):
        if base == "before":
            bad = [wire.batch([b"x"], base_offset=n, codec=codec) for n in (5, -1, 2**62)]
        else:
            bad = [wire.batch([b"a", b"b"], codec=codec, last_offset_delta=n) for n in (5, 0, -1)]
        for raw in bad:
            p = wire.produce(c, topic, raw, expect=wire.INVALID_RECORD)
            assert (p.base_offset, p.log_append_time, p.log_start_offset) == (-1, -1, 0)
    assert wire.latest(c, topic) == 0
    wire.produce(c, topic, wire.batch([b"x"], leader_epoch=99))
    assert wire.read_log(c, topic)[0].leader_epoch == 0


@pytest.mark.case("PROD-25")
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_prod_25_gaps_between_uncompressed_records_do_not_reach_readers_as_gaps(c, kind):
    """Offset deltas of uncompressed records are not looked at one by one: a batch whose deltas skip is stored, its
    range counts its records.

    SOURCES: apache/kafka#4585 (KAFKA-6554), IBM/sarama#1026
    """
    topic = wire.unique("prod25")
    wire.create_topic(c, topic, configs={"message.timestamp.type": kind})
    text = wire.encode_record(None, b"a", offset_delta=0) + wire.encode_record(
        None, b"b", offset_delta=2
    )
    for n in range(2):
        assert wire.produce(c, topic, wire.batch([b"a", b"b"], payload=text)).base_offset == 2 * n
    assert [(b.base_offset, b.last_offset) for b in wire.read_log(c, topic)] == [(0, 1), (2, 3)]


@pytest.mark.case("PROD-26")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_prod_26_compacted_topics_name_every_record_without_a_key(c, codec):
    """On a compacted topic a batch with records without a key is refused as a whole, and each of them is named by
    its place in the batch (v8 and later); an empty key is a key.

    SOURCES: apache/kafka#2875 (KAFKA-4808), apache/kafka#7612 (KAFKA-8729)
    """
    topic = wire.unique("prod26")
    wire.create_topic(c, topic, configs={"cleanup.policy": "compact"})
    raw = wire.batch(
        [(b"k", b"0"), (None, b"1"), (b"", b"2"), (None, b"3")], codec=wire.CODECS[codec]
    )
    for version in (7, 8, 9):
        p = wire.produce(c, topic, raw, version=version, expect=wire.INVALID_RECORD)
        assert p.base_offset == -1
        if version >= 8:
            assert [e.batch_index for e in p.record_errors] == [1, 3]
            assert p.error_message
    assert wire.latest(c, topic) == 0
    wire.produce(c, topic, wire.batch([(b"", b"x"), (b"", None)], codec=wire.CODECS[codec]))


@pytest.mark.case("PROD-27")
def test_prod_27_unknown_names_partitions_and_internal_topics(c):
    """An unknown partition, an unknown or impossible name is 3, per partition, and the others are stored; no client
    but an admin client writes to internal topics (17).

    SOURCES: KIP-98, apache/kafka#4567 (KAFKA-6559)
    """
    topic = wire.unique("prod27")
    wire.create_topic(c, topic)
    one = wire.batch([b"x"])
    with wire.Conn(c.bootstrap) as d:
        wire.group_ready(d, wire.unique("g"))
    for version in (3, 9, 12):
        bad = ["", "bad name!", "x" * 250, wire.unique("missing")]
        got = _ask(
            c,
            [(topic, [(-1, one), (0, one), (1, one), (2**31 - 1, one)])]
            + [(name, [(0, one)]) for name in bad]
            + [("__consumer_offsets", [(0, one), (9999, one)])],
            version,
        )
        codes = {k: p.error_code for k, p in got.items()}
        assert codes.pop((topic, 0)) == 0
        assert codes.pop(("__consumer_offsets", 0)) == wire.INVALID_TOPIC
        assert set(codes.values()) == {wire.UNKNOWN_TOPIC_OR_PARTITION}
        assert len(codes) == 8


@pytest.mark.case("PROD-28")
def test_prod_28_a_request_without_partitions_is_answered(c):
    """No topics, or a topic without partitions, is an empty answer and no error.

    SOURCES: apache/kafka#4567 (KAFKA-6559)
    """
    topic = wire.unique("prod28")
    wire.create_topic(c, topic)
    for version in (3, 7, 9, 12):
        for data in ([], [{"name": topic, "partition_data": []}]):
            r = c.send(
                "produce", version, transactional_id=None, acks=-1, timeout_ms=1000, topic_data=data
            )
            assert r.responses == []


@pytest.mark.case("PROD-29")
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("target", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_prod_29_compression_type_of_the_topic(c, target, kind):
    """compression.type=producer keeps what came, every other one changes all batches to its codec; keys, values,
    headers and (CreateTime) timestamps stay, and with LogAppendTime all records have the broker's time.

    SOURCES: redpanda-data/redpanda#29189, confluentinc/librdkafka#2368, apache/kafka#1010 (KAFKA-3252)
    """
    topic = wire.unique("prod29")
    wire.create_topic(
        c, topic, configs={"compression.type": target, "message.timestamp.type": kind}
    )
    base = 1_700_000_000_000
    records = [(b"k%d" % i, b"v" * 50, [("h", b"x"), ("n", None)], base + i) for i in range(4)]
    for codec in range(5):
        p = wire.produce(c, topic, wire.batch(records, codec=codec))
        assert (p.log_append_time > base) == (kind == "LogAppendTime"), p
    stored = wire.read_log(c, topic)
    if target == "producer":
        assert [b.codec for b in stored] == [0, 1, 2, 3, 4]
    else:
        code = 0 if target == "uncompressed" else wire.CODECS[target]
        assert {b.codec for b in stored} == {code}
    for b in stored:
        assert [(r.key, r.value, r.headers) for r in b.records] == [r[:3] for r in records]
        assert b.log_append == (kind == "LogAppendTime")
        if not b.log_append:
            assert [r.timestamp for r in b.records] == [r[3] for r in records]
        else:
            assert b.max_timestamp > base
    if kind == "CreateTime":
        found = wire.list_offset(c, topic, base + 2)
        assert (found.offset, found.timestamp) == (2, base + 2)


@pytest.mark.case("PROD-30")
@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_prod_30_client_batches_do_not_say_log_append_time(c, codec):
    """A batch from a client that claims LogAppendTime: a topic of that type refuses it with 32 and names each record;
    one of CreateTime stores it with the topic's own type.

    SOURCES: KIP-32, apache/kafka#2657 (KAFKA-4861)
    """
    raw = wire.batch([b"x", b"y"], attributes=0x8 | wire.CODECS[codec], codec=wire.CODECS[codec])
    topic, other = wire.unique("prod30"), wire.unique("prod30")
    wire.create_topic(c, topic, configs={"message.timestamp.type": "LogAppendTime"})
    wire.create_topic(c, other, configs={"message.timestamp.type": "CreateTime"})
    p = wire.produce(c, topic, raw, expect=wire.INVALID_TIMESTAMP)
    assert [e.batch_index for e in p.record_errors] == [0, 1]
    assert wire.latest(c, topic) == 0
    assert wire.produce(c, other, raw).log_append_time == -1
    assert not wire.read_log(c, other)[0].log_append


@pytest.mark.case("PROD-31")
def test_prod_31_bytes_behind_the_batch_do_not_count(c):
    """Less than a batch behind the batch is dropped, as a partial batch is in an answer; the batch is stored as
    it came.

    SOURCES: apache/kafka#4567 (KAFKA-6559)
    """
    topic = wire.unique("prod31")
    wire.create_topic(c, topic)
    one = wire.batch([b"x"])
    for tail in (b"abc", one[:12], one[:16]):
        wire.produce(c, topic, one + tail)
    stored = wire.read_log(c, topic)
    assert [len(b.raw) for b in stored] == [len(one)] * 3
    assert [struct.unpack_from(">q", b.raw)[0] for b in stored] == [0, 1, 2]


@pytest.mark.case("PROD-32")
@pytest.mark.parametrize("version", [9, 11, 12])
@pytest.mark.parametrize("added", [False, True])
def test_prod_32_a_stale_epoch_is_told_before_anything_about_the_transaction(
    c, bootstrap, version, added
):
    """Once a partition has records of a later epoch of a producer, a transactional batch of an earlier one gets 47,
    from which a producer recovers, whatever the coordinator would say about its transaction.

    SOURCES: apache/kafka#20534 (KAFKA-19690), KIP-890
    """
    topic, tid = wire.unique("prod32"), wire.unique("tx")
    wire.create_topic(c, topic)
    with wire.Conn(bootstrap) as d:
        txn = Txn(d, tid)
        if added:
            assert txn.add((topic, 0)) == [0]
        for epoch in (txn.epoch + 1, txn.epoch + 2):
            wire.produce(
                c,
                topic,
                wire.batch([b"x"], producer_id=txn.pid, producer_epoch=epoch, base_sequence=0),
            )
            stale = wire.batch(
                [b"x"],
                attributes=0x10,
                producer_id=txn.pid,
                producer_epoch=txn.epoch,
                base_sequence=0,
            )
            p = wire.produce(c, topic, stale, version=version, expect=47, txn=tid)
            assert (p.base_offset, p.log_start_offset) == (-1, -1)

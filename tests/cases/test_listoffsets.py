"""ListOffsets: search by time, special timestamps, isolation."""

import time

import pytest

from tests import wire as w


def _ts(*stamps, codec=0):
    return w.batch([(None, b"v", (), t) for t in stamps], codec=codec)


@pytest.mark.case("LO-1")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_lo_1_search_by_time(bootstrap, c, codec):
    """The answer to a timestamp is the first record at or after it with that record's time, (-1,-1) when there is
    none; -2 and -1 give the log's start and end with timestamp -1.

    SOURCES: streamnative/kop#334, redpanda-data/redpanda#4308, dpkp/kafka-python#2030, linkedin/kafka-tools#78
    """
    codec = w.CODECS[codec]
    topic, jumble, empty = w.unique("lo1"), w.unique("lo1"), w.unique("lo1")
    for t in (topic, jumble, empty):
        w.create_topic(c, t)
    w.produce(c, topic, _ts(2, 4, 6, 8, codec=codec))
    w.produce(c, jumble, _ts(10, 5, 20, codec=codec))
    for version in (1, 2, 4, 7):

        def at(t, ts, partition=0):
            p = w.list_offset(c, t, ts, partition, version=version)
            return p.error_code, p.offset, p.timestamp

        for target, want in (
            (0, (0, 2)),
            (2, (0, 2)),
            (3, (1, 4)),
            (4, (1, 4)),
            (8, (3, 8)),
            (9, (-1, -1)),
        ):
            assert at(topic, target) == (0, *want), (version, target)
        for target, want in ((6, (0, 10)), (10, (0, 10)), (11, (2, 20)), (21, (-1, -1))):
            assert at(jumble, target) == (0, *want), (version, target)
        assert at(topic, -2) == (0, 0, -1)
        assert at(topic, -1) == (0, 4, -1)
        assert at(empty, 0) == (0, -1, -1)
        assert at(empty, -2) == (0, 0, -1)
        assert at(empty, -1) == (0, 0, -1)
        assert at(topic, -1, 9) == (3, -1, -1)
        assert at(w.unique("missing"), -1) == (3, -1, -1)
        fields = {
            "replica_id": -1,
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {"partition_index": 0, "timestamp": -1},
                        {"partition_index": 0, "timestamp": -2},
                    ],
                }
            ],
        }
        r = c.send("list_offsets", version, **fields)
        assert {p.error_code for t in r.topics for p in t.partitions} == {42}, (
            "same partition twice"
        )
    assert w.delete_records(c, topic, 2).low_watermark == 2
    assert w.earliest(c, topic) == 2
    p = w.list_offset(c, topic, 0)
    assert (p.error_code, p.offset, p.timestamp) == (0, 2, 6), (
        "records before the log start do not count"
    )

    from kafka import KafkaConsumer, TopicPartition

    k = KafkaConsumer(bootstrap_servers=bootstrap)
    tp = TopicPartition(topic, 0)
    found = k.offsets_for_times({tp: 7})
    assert (found[tp].offset, found[tp].timestamp) == (3, 8)
    assert k.offsets_for_times({tp: 9})[tp] is None
    k.close()
    from confluent_kafka import OFFSET_END, Consumer
    from confluent_kafka import TopicPartition as CfTP

    q = Consumer({"bootstrap.servers": bootstrap, "group.id": w.unique("g")})
    assert q.offsets_for_times([CfTP(topic, 0, 7)], 10)[0].offset == 3
    assert q.offsets_for_times([CfTP(topic, 0, 9)], 10)[0].offset == OFFSET_END
    q.close()


@pytest.mark.case("LO-3")
@pytest.mark.parametrize("commit", [True, False])
def test_lo_3_latest_depends_on_the_isolation_level(bootstrap, c, commit):
    """While a transaction is open, 'latest' is its first offset for read_committed and the high watermark for
    read_uncommitted, and a search by time sees nothing from it on; after its end both are the end of the log.

    SOURCES: confluentinc/librdkafka#3428, softwaremill/klag-exporter#104, segmentio/kafka-go#407
    """
    from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    topic = w.unique("lo3")
    w.create_topic(c, topic)
    for i in range(3):
        w.produce(c, topic, _ts(100 + i))
    p = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": w.unique("tx"), "linger.ms": 0}
    )
    p.init_transactions(20)
    p.begin_transaction()
    for ts in (1000, 1001):
        p.produce(topic, b"t", timestamp=ts)
    assert p.flush(15) == 0
    for version in (2, 4, 7):
        assert w.list_offset(c, topic, -1, version=version, isolation=1).offset == 3
        assert w.list_offset(c, topic, -1, version=version, isolation=0).offset == 5
        r = w.list_offset(c, topic, 1000, version=version, isolation=1)
        assert (r.error_code, r.offset, r.timestamp) == (0, -1, -1)
        r = w.list_offset(c, topic, 1000, version=version, isolation=0)
        assert (r.offset, r.timestamp) == (3, 1000)
        r = w.list_offset(c, topic, 102, version=version, isolation=1)
        assert (r.offset, r.timestamp) == (2, 102)
    a = AdminClient({"bootstrap.servers": bootstrap})

    def both():
        out = []
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            f = a.list_offsets(
                {TopicPartition(topic, 0): OffsetSpec.latest()}, isolation_level=level
            )
            out.append(next(iter(f.values())).result(10).offset)
        return out

    assert both() == [3, 5]
    q = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": w.unique("g"),
            "isolation.level": "read_committed",
        }
    )
    assert q.get_watermark_offsets(TopicPartition(topic, 0), 10) == (0, 3)
    (p.commit_transaction if commit else p.abort_transaction)(20)
    end = time.monotonic() + 10
    while both() != [6, 6] and time.monotonic() < end:
        time.sleep(0.1)
    assert both() == [6, 6]
    assert w.latest(c, topic, isolation=1) == w.latest(c, topic) == 6
    assert q.get_watermark_offsets(TopicPartition(topic, 0), 10) == (0, 6)
    q.close()

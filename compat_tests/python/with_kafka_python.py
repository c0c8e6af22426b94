"""What a broker must do for kafka-python 3."""

import threading
import time

from harness import CODECS, REPLICAS, case, equal, fresh, main, raises, until
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.structs import OffsetAndMetadata


def admin(bootstrap):
    return KafkaAdminClient(bootstrap_servers=bootstrap)


def make(bootstrap, partitions=1, **configs):
    topic = fresh("topic")
    client = admin(bootstrap)
    client.create_topics(
        [NewTopic(topic, partitions, REPLICAS, topic_configs=configs)], wait_for_metadata=True
    )
    client.close()
    return topic


def send(bootstrap, topic, values, **config):
    producer = KafkaProducer(bootstrap_servers=bootstrap, **config)
    found = [producer.send(topic, value, partition=0) for value in values]
    producer.flush()
    found = [f.get(30) for f in found]
    producer.close()
    return found


def read(bootstrap, topic, count, seconds=20, partitions=(0,), **config):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **config,
    )
    consumer.assign([TopicPartition(topic, p) for p in partitions])
    records, end = [], time.monotonic() + seconds
    while len(records) < count and time.monotonic() < end:
        for batch in consumer.poll(500).values():
            records += batch
    consumer.close()
    return records


@case
def cluster_says_its_id_and_brokers(bootstrap):
    client = admin(bootstrap)
    cluster = client.describe_cluster()
    client.close()
    assert cluster["cluster_id"] and len(cluster["brokers"]) >= 1, cluster


@case
def topic_is_created_once(bootstrap):
    topic = make(bootstrap, 3)
    client = admin(bootstrap)
    equal(len(client.describe_topics([topic])[0]["partitions"]), 3)
    raises("TopicAlreadyExists", client.create_topics, [NewTopic(topic, 3, REPLICAS)])
    client.close()


@case
def topic_name_is_checked(bootstrap):
    client = admin(bootstrap)
    raises("InvalidTopic", client.create_topics, [NewTopic("no spaces allowed", 1, 1)])
    raises("InvalidReplicationFactor", client.create_topics, [NewTopic(fresh("rf"), 1, 99)])
    client.close()


@case
def every_codec_comes_back(bootstrap):
    topic = make(bootstrap)
    values = [b"%d " % i * 50 for i in range(100)]
    for codec in CODECS:
        send(bootstrap, topic, values, compression_type=codec, linger_ms=20)
    records = read(bootstrap, topic, 500)
    equal([r.value for r in records], values * len(CODECS))
    equal([r.offset for r in records], list(range(500)), "offsets")


@case
def key_headers_timestamp_and_null_come_back(bootstrap):
    topic = make(bootstrap)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    headers = [("a", b"1"), ("a", b""), ("\u00fc", b"\xff\x00")]
    producer.send(topic, b"v", key=b"k", headers=headers, timestamp_ms=1_700_000_000_123)
    producer.send(topic, None, key=b"k")
    producer.send(topic, b"", key=None)
    producer.close()
    one, two, three = read(bootstrap, topic, 3)
    equal(
        (one.key, one.value, list(one.headers), one.timestamp, one.timestamp_type),
        (b"k", b"v", headers, 1_700_000_000_123, 0),
    )
    equal((two.key, two.value, three.key, three.value), (b"k", None, None, b""))


@case
def log_append_time_is_the_brokers(bootstrap):
    topic = make(bootstrap, **{"message.timestamp.type": "LogAppendTime"})
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    found = producer.send(topic, b"v", timestamp_ms=1_000).get(20)
    producer.close()
    (record,) = read(bootstrap, topic, 1)
    equal(record.timestamp_type, 1)
    assert (
        abs(record.timestamp - time.time() * 1000) < 60_000 and found.timestamp == record.timestamp
    ), record


@case
def acks_0_1_and_all(bootstrap):
    topic = make(bootstrap)
    for acks in (0, 1, "all"):
        send(bootstrap, topic, [b"x"], acks=acks, enable_idempotence=False)
    equal(len(read(bootstrap, topic, 3)), 3)


@case
def too_large_a_record_is_refused(bootstrap):
    topic = make(bootstrap, **{"max.message.bytes": "2000"})
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=None)
    raises("MessageSizeTooLarge", lambda: producer.send(topic, b"x" * 5000).get(20))
    producer.close()


@case
def offsets_by_time_and_ends(bootstrap):
    topic = make(bootstrap, 2)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for i in range(10):
        producer.send(topic, b"x", partition=0, timestamp_ms=1_700_000_000_000 + 1000 * i).get(20)
    producer.close()
    a, b = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    found = consumer.offsets_for_times({a: 1_700_000_004_500, b: 1})
    equal((found[a].offset, found[a].timestamp), (5, 1_700_000_005_000))
    assert found[b] is None, found
    assert consumer.offsets_for_times({a: 1_800_000_000_000})[a] is None
    equal(consumer.beginning_offsets([a, b]), {a: 0, b: 0})
    equal(consumer.end_offsets([a, b]), {a: 10, b: 0})
    consumer.close()


@case
def seek_pause_and_resume(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"%d" % i for i in range(20)])
    tp = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([tp])
    consumer.seek(tp, 15)
    records = until(lambda: consumer.poll(300).get(tp))
    equal(records[0].offset, 15)
    consumer.seek(tp, 0)
    consumer.pause(tp)
    equal(consumer.poll(500), {})
    consumer.resume(tp)
    equal(until(lambda: consumer.poll(300).get(tp))[0].offset, 0)
    consumer.close()


@case
def offset_out_of_range_resets(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"a", b"b"])
    tp = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([tp])
    consumer.seek(tp, 1000)
    equal(until(lambda: consumer.poll(300).get(tp))[0].offset, 0)
    consumer.close()


class Member(threading.Thread):
    """A member of a group that keeps polling."""

    def __init__(self, bootstrap, topic, group, **config):
        super().__init__(daemon=True)
        self.config = dict(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
            max_poll_interval_ms=30_000,
            **config,
        )
        self.topic, self.stopping, self.owned, self.seen = topic, threading.Event(), set(), []
        self.start()

    def run(self):
        consumer = KafkaConsumer(self.topic, **self.config)
        while not self.stopping.is_set():
            for batch in consumer.poll(200).values():
                self.seen += batch
            self.owned = {tp.partition for tp in consumer.assignment()}
        consumer.close()
        self.owned = set()

    def stop(self):
        self.stopping.set()
        self.join(30)


@case
def group_of_two_shares_and_takes_over(bootstrap):
    topic, group = make(bootstrap, 4), fresh("group")
    one = Member(bootstrap, topic, group)
    until(lambda: one.owned == {0, 1, 2, 3}, 40)
    two = Member(bootstrap, topic, group)
    until(lambda: len(one.owned) == len(two.owned) == 2 and not one.owned & two.owned, 40)
    client = admin(bootstrap)
    found = client.describe_groups([group])[group]
    equal(
        (found["group_state"], len(found["members"]), found["protocol_type"]),
        ("Stable", 2, "consumer"),
    )
    two.stop()
    until(lambda: one.owned == {0, 1, 2, 3}, 90)
    one.stop()
    until(lambda: any(g["group_id"] == group for g in client.list_groups()))
    client.delete_groups([group])
    assert not any(g["group_id"] == group for g in client.list_groups()), "still listed"
    client.close()


@case
def committed_offset_is_where_the_next_member_starts(bootstrap):
    topic, group = make(bootstrap), fresh("group")
    send(bootstrap, topic, [b"%d" % i for i in range(10)])
    tp = TopicPartition(topic, 0)
    config = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    consumer = KafkaConsumer(topic, **config)
    until(lambda: consumer.poll(300))
    consumer.commit({tp: OffsetAndMetadata(7, "note", -1)})
    equal(consumer.committed(tp), 7)
    equal(consumer.committed(tp, metadata=True).metadata, "note")
    consumer.close()
    consumer = KafkaConsumer(topic, **config)
    # Where the first member's LeaveGroup was lost with its coordinator, its session ends first.
    equal(until(lambda: consumer.poll(300).get(tp), 90)[0].offset, 7)
    consumer.close()


@case
def transactions_commit_and_abort(bootstrap):
    topic = make(bootstrap)
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh("tx"))
    producer.init_transactions()
    for word, end in (
        ("kept", producer.commit_transaction),
        ("lost", producer.abort_transaction),
        ("kept", producer.commit_transaction),
    ):
        producer.begin_transaction()
        for i in range(3):
            producer.send(topic, f"{word}{i}".encode())
        producer.flush()
        end()
    producer.close()
    records = read(bootstrap, topic, 6, isolation_level="read_committed")
    equal([r.value for r in records], [b"kept0", b"kept1", b"kept2"] * 2)
    equal([r.offset for r in records], [0, 1, 2, 8, 9, 10], "offsets with the markers' gaps")
    equal(len(read(bootstrap, topic, 9, isolation_level="read_uncommitted")), 9)


@case
def open_transaction_is_not_read(bootstrap):
    topic = make(bootstrap)
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh("tx"))
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"open").get(20)
    send(bootstrap, topic, [b"after"])
    equal(read(bootstrap, topic, 1, seconds=2, isolation_level="read_committed"), [])
    equal([r.value for r in read(bootstrap, topic, 2)], [b"open", b"after"])
    producer.commit_transaction()
    producer.close()
    equal(
        [r.value for r in read(bootstrap, topic, 2, isolation_level="read_committed")],
        [b"open", b"after"],
    )


@case
def offsets_go_with_the_transaction(bootstrap):
    source, target, group = make(bootstrap), make(bootstrap), fresh("group")
    send(bootstrap, source, [b"%d" % i for i in range(5)])
    tp = TopicPartition(source, 0)
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    until(lambda: consumer.poll(300))
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh("tx"))
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        {tp: OffsetAndMetadata(3, "", -1)}, consumer.group_metadata()
    )
    producer.abort_transaction()
    assert consumer.committed(tp) is None, consumer.committed(tp)
    producer.begin_transaction()
    producer.send(target, b"copied")
    producer.send_offsets_to_transaction(
        {tp: OffsetAndMetadata(5, "", -1)}, consumer.group_metadata()
    )
    producer.commit_transaction()
    until(lambda: consumer.committed(tp) == 5)
    producer.close()
    consumer.close()


@case
def second_producer_fences_the_first(bootstrap):
    topic, tx = make(bootstrap), fresh("tx")
    one = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=tx)
    one.init_transactions()
    one.begin_transaction()
    one.send(topic, b"old").get(20)
    two = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=tx)
    two.init_transactions()

    def go_on():
        one.send(topic, b"older").get(20)
        one.commit_transaction()

    raises("Fenced|InvalidProducerEpoch", go_on)
    two.begin_transaction()
    two.send(topic, b"new")
    two.commit_transaction()
    two.close()
    equal([r.value for r in read(bootstrap, topic, 1, isolation_level="read_committed")], [b"new"])


@case
def topic_configs_are_read_and_changed(bootstrap):
    topic = make(bootstrap, **{"retention.ms": "3600000"})
    client = admin(bootstrap)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)

    def value(name):
        found = client.describe_configs([resource], config_filter="all")
        return str(found).split(f"'{name}'")[1][:80] if f"'{name}'" in str(found) else str(found)

    assert "3600000" in value("retention.ms"), value("retention.ms")
    client.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "7200000"})]
    )
    until(lambda: "7200000" in value("retention.ms"))
    refused = client.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "soon"})]
    )
    assert "InvalidConfig" in str(refused), refused
    client.close()


@case
def partitions_grow_and_never_shrink(bootstrap):
    topic = make(bootstrap, 1)
    client = admin(bootstrap)
    client.create_partitions({topic: 3})
    until(lambda: len(client.describe_topics([topic])[0]["partitions"]) == 3)
    raises("InvalidPartitions", client.create_partitions, {topic: 2})
    client.close()


@case
def records_are_deleted_up_to_an_offset(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"x"] * 10)
    tp = TopicPartition(topic, 0)
    client = admin(bootstrap)
    client.delete_records({tp: 4})
    client.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    equal((consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]), (4, 10))
    consumer.close()
    equal(read(bootstrap, topic, 6)[0].offset, 4)


@case
def deleted_topic_is_gone(bootstrap):
    topic = make(bootstrap)
    client = admin(bootstrap)
    client.delete_topics([topic])
    until(lambda: topic not in client.list_topics())
    raises("UnknownTopicOrPartition", client.delete_topics, [topic])
    client.close()


@case
def partition_offsets_log_dirs_and_producers(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"x"] * 3)
    client = admin(bootstrap)
    assert topic in str(client.describe_log_dirs()), "no such topic in the log dirs"
    tp = TopicPartition(topic, 0)
    assert str(client.describe_producers([tp])), "nothing"
    client.close()


main("python-kafka-python")

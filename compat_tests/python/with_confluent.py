"""What a broker must do for confluent-kafka (librdkafka), the classic group protocol and KIP-848's alike."""

import functools
import threading
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from harness import CODECS, REPLICAS, Skip, case, equal, fresh, main, raises, until


@functools.cache
def admin(bootstrap):
    # One for all: an unreferenced client takes its pending futures with it.
    client = AdminClient({"bootstrap.servers": bootstrap})
    # Once it knows the brokers it drops the connection to the address that it began with, and fails
    # what it has sent there (_DESTROY_BROKER).
    client.list_topics(timeout=30)
    return client


def done(futures):
    return {key: future.result(30) for key, future in futures.items()}


def make(bootstrap, partitions=1, **configs):
    topic = fresh("topic")
    client = admin(bootstrap)
    named = {k.replace("_", "."): v for k, v in configs.items()}
    done(client.create_topics([NewTopic(topic, partitions, REPLICAS, config=named)]))
    until(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == partitions)
    return topic


def send(bootstrap, topic, values, **config):
    producer = Producer({"bootstrap.servers": bootstrap, **config})
    found = []
    for value in values:
        producer.produce(
            topic,
            value,
            partition=0,
            on_delivery=lambda error, message: found.append((error, message)),
        )
    equal(producer.flush(30), 0, "left in the queue")
    return found


def read(bootstrap, topic, count, seconds=20, **config):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": fresh("reader"),
            "enable.auto.commit": False,
            **config,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    records, end = [], time.monotonic() + seconds
    while len(records) < count and time.monotonic() < end:
        for message in consumer.consume(count - len(records), 0.3):
            if message.error():
                raise KafkaException(message.error())
            records.append(message)
    consumer.close()
    return records


@case
def cluster_says_its_id_and_brokers(bootstrap):
    found = admin(bootstrap).describe_cluster().result(20)
    assert found.cluster_id
    assert len(found.nodes) >= 1
    assert found.controller is not None


@case
def topic_is_created_once(bootstrap):
    topic = make(bootstrap, 3)
    raises(
        "TOPIC_ALREADY_EXISTS",
        lambda: done(admin(bootstrap).create_topics([NewTopic(topic, 3, REPLICAS)])),
    )
    raises(
        "INVALID_REPLICATION_FACTOR",
        lambda: done(admin(bootstrap).create_topics([NewTopic(fresh("rf"), 1, 99)])),
    )
    raises(
        "TOPIC_EXCEPTION",
        lambda: done(admin(bootstrap).create_topics([NewTopic("no spaces", 1, 1)])),
    )


@case
def every_codec_comes_back(bootstrap):
    topic = make(bootstrap)
    values = [b"%d " % i * 50 for i in range(100)]
    for codec in CODECS:
        send(bootstrap, topic, values, **{"compression.type": codec or "none", "linger.ms": 20})
    records = read(bootstrap, topic, 500)
    equal([r.value() for r in records], values * len(CODECS))
    equal([r.offset() for r in records], list(range(500)), "offsets")


@case
def broker_recompresses_when_the_topic_says_so(bootstrap):
    for codec in CODECS[1:]:
        topic = make(bootstrap, compression_type=codec)
        send(bootstrap, topic, [b"x" * 1000] * 5, **{"compression.type": "none", "linger.ms": 20})
        equal([r.value() for r in read(bootstrap, topic, 5)], [b"x" * 1000] * 5)


@case
def key_headers_timestamp_and_null_come_back(bootstrap):
    topic = make(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap})
    headers = [("a", b"1"), ("a", b""), ("b", None), ("c", b"\xff\x00")]
    producer.produce(topic, b"v", key=b"k", headers=headers, timestamp=1_700_000_000_123)
    producer.produce(topic, None, key=b"k")
    producer.produce(topic, b"", key=None)
    producer.flush(20)
    one, two, three = read(bootstrap, topic, 3)
    equal(
        (one.key(), one.value(), one.headers(), one.timestamp()),
        (b"k", b"v", headers, (TIMESTAMP_CREATE_TIME, 1_700_000_000_123)),
    )
    equal((two.key(), two.value(), three.key(), three.value()), (b"k", None, None, b""))


@case
def log_append_time_is_the_brokers(bootstrap):
    topic = make(bootstrap, message_timestamp_type="LogAppendTime")
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"v", timestamp=1_000)
    producer.flush(20)
    kind, at = read(bootstrap, topic, 1)[0].timestamp()
    equal(kind, TIMESTAMP_LOG_APPEND_TIME)
    assert abs(at - time.time() * 1000) < 60_000, at


@case
def acks_0_1_and_all(bootstrap):
    topic = make(bootstrap)
    for acks in ("0", "1", "all"):
        send(bootstrap, topic, [b"x"], acks=acks)
    equal(len(read(bootstrap, topic, 3)), 3)


@case
def idempotent_producer_keeps_order(bootstrap):
    topic = make(bootstrap)
    values = [b"%d" % i for i in range(5000)]
    found = send(
        bootstrap,
        topic,
        values,
        **{"enable.idempotence": True, "batch.num.messages": 50, "linger.ms": 0},
    )
    equal([e for e, _ in found if e], [])
    equal([r.value() for r in read(bootstrap, topic, 5000)], values)


@case
def too_large_a_record_is_refused(bootstrap):
    topic = make(bootstrap, max_message_bytes="2000")
    ((error, _),) = send(bootstrap, topic, [b"x" * 5000], **{"compression.type": "none"})
    equal(error.name(), "MSG_SIZE_TOO_LARGE")


@case
def offsets_by_time_and_watermarks(bootstrap):
    topic = make(bootstrap, 2)
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(10):
        producer.produce(topic, b"x", partition=0, timestamp=1_700_000_000_000 + 1000 * i)
    producer.flush(20)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": fresh("g")})
    ask = lambda p, at: consumer.offsets_for_times([TopicPartition(topic, p, at)], 20)[0].offset
    equal(
        (ask(0, 1_700_000_004_500), ask(0, 0), ask(0, 1_800_000_000_000), ask(1, 0)), (5, 0, -1, -1)
    )
    equal(consumer.get_watermark_offsets(TopicPartition(topic, 0), 20), (0, 10))
    consumer.close()
    client = admin(bootstrap)
    latest = done(
        client.list_offsets(
            {
                TopicPartition(topic, 0): OffsetSpec.max_timestamp(),
                TopicPartition(topic, 1): OffsetSpec.latest(),
            }
        )
    )
    equal([r.offset for r in latest.values()], [9, 0])


@case
def offset_out_of_range_resets_or_reports(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"a", b"b"])
    for reset, wanted in (("earliest", 0), ("error", "_AUTO_OFFSET_RESET")):
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": fresh("g"), "auto.offset.reset": reset}
        )
        consumer.assign([TopicPartition(topic, 0, 1000)])
        message = until(lambda: consumer.poll(0.3))
        equal(message.error().name() if message.error() else message.offset(), wanted)
        consumer.close()


class Member(threading.Thread):
    def __init__(self, bootstrap, topic, group, **config):
        super().__init__(daemon=True)
        self.config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
        } | config
        if self.config.get("group.protocol") != "consumer":
            self.config |= {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 500}
        self.topic, self.stopping, self.owned, self.seen, self.revoked = (
            topic,
            threading.Event(),
            set(),
            [],
            0,
        )
        self.start()

    def run(self):
        consumer = Consumer(self.config)
        incremental = (
            "cooperative" in self.config.get("partition.assignment.strategy", "")
            or self.config.get("group.protocol") == "consumer"
        )

        def take(c, parts):
            c.incremental_assign(parts) if incremental else c.assign(parts)

        def give(c, parts):
            self.revoked += len(parts)
            c.incremental_unassign(parts) if incremental else c.unassign()

        consumer.subscribe([self.topic], on_assign=take, on_revoke=give)
        while not self.stopping.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                self.seen.append(message)
            self.owned = {tp.partition for tp in consumer.assignment()}
        consumer.close()
        self.owned = set()

    def stop(self):
        self.stopping.set()
        self.join(30)


def share_and_take_over(bootstrap, group_type="CLASSIC", **config):
    topic, group = make(bootstrap, 4), fresh("group")
    one = Member(bootstrap, topic, group, **config)
    until(lambda: one.owned == {0, 1, 2, 3}, 60)
    two = Member(bootstrap, topic, group, **config)
    until(lambda: len(one.owned) == len(two.owned) == 2 and not one.owned & two.owned, 60)
    client = admin(bootstrap)
    found = done(client.describe_consumer_groups([group]))[group]
    equal((found.state.name, len(found.members), found.type.name), ("STABLE", 2, group_type))
    two.stop()
    until(lambda: one.owned == {0, 1, 2, 3}, 60)
    one.stop()
    # Each broker is asked for its own groups: one that has just gone cannot name them.
    until(lambda: any(g.group_id == group for g in client.list_consumer_groups().result(20).valid))
    done(client.delete_consumer_groups([group]))
    return one


@case
def classic_group_eager(bootstrap):
    share_and_take_over(bootstrap, **{"partition.assignment.strategy": "range"})


@case
def classic_group_cooperative_moves_only_what_it_must(bootstrap):
    one = share_and_take_over(bootstrap, **{"partition.assignment.strategy": "cooperative-sticky"})
    equal(one.revoked, 2 + 4, "revoked partitions: two to the second member, four at the end")


@case
def consumer_group_of_kip_848(bootstrap):
    share_and_take_over(bootstrap, "CONSUMER", **{"group.protocol": "consumer"})


@case
def consumer_group_with_each_server_side_assignor(bootstrap):
    for assignor in ("uniform", "range"):
        share_and_take_over(
            bootstrap,
            "CONSUMER",
            **{"group.protocol": "consumer", "group.remote.assignor": assignor},
        )


@case
def consumer_group_subscribes_by_pattern(bootstrap):
    topic, group = make(bootstrap, 2), fresh("group")
    member = Member(bootstrap, "^" + topic[:-2] + ".*", group, **{"group.protocol": "consumer"})
    until(lambda: member.owned == {0, 1}, 40)
    member.stop()


@case
def static_member_comes_back_without_a_rebalance(bootstrap):
    topic, group = make(bootstrap, 4), fresh("group")
    one = Member(bootstrap, topic, group, **{"group.instance.id": "one"})
    two = Member(bootstrap, topic, group, **{"group.instance.id": "two"})
    until(lambda: len(one.owned) == len(two.owned) == 2 and not one.owned & two.owned, 60)
    before, kept = one.revoked, set(two.owned)
    two.stop()
    two = Member(bootstrap, topic, group, **{"group.instance.id": "two"})
    until(lambda: two.owned == kept, 60)
    equal(one.revoked, before, "the other member's revoked partitions")
    one.stop(), two.stop()


@case
def committed_offset_is_where_the_next_member_starts(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"%d" % i for i in range(10)])
    for protocol in ("classic", "consumer"):
        group = fresh("group")
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "group.protocol": protocol,
        }
        consumer = Consumer(config)
        consumer.subscribe([topic])
        until(lambda: consumer.poll(0.3))
        wanted = TopicPartition(topic, 0, 7, metadata="note")
        consumer.commit(offsets=[wanted], asynchronous=False)
        (back,) = consumer.committed([TopicPartition(topic, 0)], 20)
        equal((back.offset, back.metadata), (7, "note"))
        consumer.close()
        consumer = Consumer(config)
        consumer.subscribe([topic])
        equal(until(lambda: consumer.poll(0.3)).offset(), 7)
        consumer.close()


@case
def group_offsets_are_listed_and_moved(bootstrap):
    topic, group = make(bootstrap), fresh("group")
    client = admin(bootstrap)
    done(
        client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 42)])]
        )
    )
    found = done(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))[group]
    equal([(p.topic, p.partition, p.offset) for p in found.topic_partitions], [(topic, 0, 42)])


@case
def transactions_commit_and_abort(bootstrap):
    topic = make(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh("tx")})
    producer.init_transactions(30)
    for word, end in (
        ("kept", producer.commit_transaction),
        ("lost", producer.abort_transaction),
        ("kept", producer.commit_transaction),
    ):
        producer.begin_transaction()
        for i in range(3):
            producer.produce(topic, f"{word}{i}".encode())
        producer.flush(20)
        end(30)
    records = read(bootstrap, topic, 6, **{"isolation.level": "read_committed"})
    equal(
        [(r.offset(), r.value()) for r in records],
        list(zip([0, 1, 2, 8, 9, 10], [b"kept0", b"kept1", b"kept2"] * 2)),
    )
    equal(len(read(bootstrap, topic, 9, **{"isolation.level": "read_uncommitted"})), 9)


@case
def open_transaction_holds_back_the_stable_offset(bootstrap):
    topic = make(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh("tx")})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(20)
    send(bootstrap, topic, [b"after"])
    equal(read(bootstrap, topic, 1, seconds=2, **{"isolation.level": "read_committed"}), [])
    client, at = admin(bootstrap), TopicPartition(topic, 0)
    ends = [
        done(client.list_offsets({at: OffsetSpec.latest()}, isolation_level=level))[at].offset
        for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
    ]
    equal(ends, [2, 0])
    producer.commit_transaction(30)
    equal(len(read(bootstrap, topic, 2, **{"isolation.level": "read_committed"})), 2)


@case
def offsets_go_with_the_transaction(bootstrap):
    source, group = make(bootstrap), fresh("group")
    send(bootstrap, source, [b"%d" % i for i in range(5)])
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([source])
    until(lambda: consumer.poll(0.3))
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh("tx")})
    producer.init_transactions(30)
    committed = lambda: consumer.committed([TopicPartition(source, 0)], 20)[0].offset
    for offset, end, wanted in (
        (3, producer.abort_transaction, -1001),
        (5, producer.commit_transaction, 5),
    ):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition(source, 0, offset)], consumer.consumer_group_metadata(), 30
        )
        end(30)
        until(lambda: committed() == wanted)
    consumer.close()


@case
def second_producer_fences_the_first(bootstrap):
    topic, tx = make(bootstrap), fresh("tx")
    one, two = (
        Producer({"bootstrap.servers": bootstrap, "transactional.id": tx}) for _ in range(2)
    )
    one.init_transactions(30)
    one.begin_transaction()
    one.produce(topic, b"old")
    one.flush(20)
    two.init_transactions(30)

    def go_on():
        one.produce(topic, b"older")
        one.commit_transaction(30)

    raises("FENCED", go_on)
    two.begin_transaction()
    two.produce(topic, b"new")
    two.commit_transaction(30)
    equal(
        [r.value() for r in read(bootstrap, topic, 1, **{"isolation.level": "read_committed"})],
        [b"new"],
    )


@case
def topic_configs_are_read_and_changed(bootstrap):
    topic = make(bootstrap, retention_ms="3600000")
    client = admin(bootstrap)

    def value(name):
        return done(client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])).popitem()[
            1
        ][name]

    def change(name, to, how):
        entry = ConfigEntry(name, to, incremental_operation=how)
        done(
            client.incremental_alter_configs(
                [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
            )
        )

    equal((value("retention.ms").value, value("retention.ms").is_default), ("3600000", False))
    change("retention.ms", "7200000", AlterConfigOpType.SET)
    until(lambda: value("retention.ms").value == "7200000")
    change("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    until(lambda: set(value("cleanup.policy").value.split(",")) == {"delete", "compact"})
    change("retention.ms", None, AlterConfigOpType.DELETE)
    until(lambda: value("retention.ms").value == "604800000")
    raises("INVALID_CONFIG", change, "retention.ms", "soon", AlterConfigOpType.SET)


@case
def partitions_grow_and_never_shrink(bootstrap):
    topic = make(bootstrap)
    client = admin(bootstrap)
    done(client.create_partitions([NewPartitions(topic, 3)]))
    until(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == 3)
    raises("INVALID_PARTITIONS", lambda: done(client.create_partitions([NewPartitions(topic, 2)])))


@case
def records_are_deleted_up_to_an_offset(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"x"] * 10)
    found = done(admin(bootstrap).delete_records([TopicPartition(topic, 0, 4)]))
    equal([r.low_watermark for r in found.values()], [4])
    equal(read(bootstrap, topic, 6)[0].offset(), 4)
    raises(
        "OFFSET_OUT_OF_RANGE",
        lambda: done(admin(bootstrap).delete_records([TopicPartition(topic, 0, 400)])),
    )


@case
def deleted_topic_is_gone_and_may_come_again(bootstrap):
    topic = make(bootstrap)
    send(bootstrap, topic, [b"old"])
    client = admin(bootstrap)
    done(client.delete_topics([topic]))
    until(lambda: topic not in client.list_topics(timeout=10).topics)
    raises("UNKNOWN_TOPIC_OR_PART", lambda: done(client.delete_topics([topic])))
    done(client.create_topics([NewTopic(topic, 1, REPLICAS)]))
    until(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == 1)
    send(bootstrap, topic, [b"new"])
    equal([(r.offset(), r.value()) for r in read(bootstrap, topic, 1)], [(0, b"new")])


@case
def acls_are_kept_where_there_is_an_authorizer(bootstrap):
    client = admin(bootstrap)
    topic = fresh("acl")
    acl = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:someone",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    try:
        done(client.create_acls([acl]))
    except KafkaException as error:
        if "SECURITY_DISABLED" in str(error):
            raise Skip("no authorizer on this broker")
        raise
    which = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    equal(until(lambda: client.describe_acls(which).result(20)), [acl])
    equal([len(v) for v in done(client.delete_acls([which])).values()], [1])
    until(lambda: client.describe_acls(which).result(20) == [])


@case
def topics_are_made_on_first_use_where_that_is_allowed(bootstrap):
    topic = fresh("auto")
    ((error, _message),) = send(bootstrap, topic, [b"x"])
    if error and error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
        raise Skip("auto.create.topics.enable is off on this broker")
    assert error is None, error
    equal(len(read(bootstrap, topic, 1)), 1)


main("python-confluent")

"""What a broker must do for aiokafka."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.structs import OffsetAndMetadata
from harness import CODECS, REPLICAS, case, equal, fresh, main


async def admin(bootstrap):
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    return client


async def until(condition, seconds=40):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        value = await value if asyncio.iscoroutine(value) else value
        if value:
            return value
        await asyncio.sleep(0.1)
    raise AssertionError(f"not so within {seconds} s")


async def fails(name, awaitable):
    try:
        value = await awaitable
    except Exception as error:
        assert any(w in f"{type(error).__name__} {error}" for w in name.split("|")), (
            f"wanted {name}, got {type(error).__name__} {error}"
        )
        return
    raise AssertionError(f"wanted {name}, got {value!r}")


async def make(bootstrap, partitions=1, **configs):
    topic = fresh("topic")
    client = await admin(bootstrap)
    await client.create_topics(
        [
            NewTopic(
                topic,
                partitions,
                REPLICAS,
                topic_configs={k.replace("_", "."): v for k, v in configs.items()},
            )
        ]
    )
    await client.close()
    return topic


async def producer(bootstrap, **config):
    client = AIOKafkaProducer(bootstrap_servers=bootstrap, **config)
    await client.start()
    return client


async def send(bootstrap, topic, values, **config):
    client = await producer(bootstrap, **config)
    found = [await (await client.send(topic, value, partition=0)) for value in values]
    await client.stop()
    return found


async def consumer(bootstrap, *topics, **config):
    client = AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **config,
    )
    await client.start()
    return client


async def read(bootstrap, topic, count, seconds=20, **config):
    client = await consumer(bootstrap, **config)
    client.assign([TopicPartition(topic, 0)])
    records, end = [], time.monotonic() + seconds
    while len(records) < count and time.monotonic() < end:
        for batch in (await client.getmany(timeout_ms=300)).values():
            records += batch
    await client.stop()
    return records


@case
async def topic_is_created_once(bootstrap):
    topic = await make(bootstrap, 3)
    client = await admin(bootstrap)
    equal(len((await client.describe_topics([topic]))[0]["partitions"]), 3)
    answer = await client.create_topics([NewTopic(topic, 3, REPLICAS)])
    equal([code for _, code, *_ in answer.topic_errors], [36])
    assert (await client.describe_cluster())["cluster_id"]
    await client.close()


@case
async def every_codec_comes_back(bootstrap):
    topic = await make(bootstrap)
    values = [b"%d " % i * 50 for i in range(30)]
    for codec in CODECS:
        client = await producer(bootstrap, compression_type=codec, linger_ms=20)
        await asyncio.gather(*[await client.send(topic, value, partition=0) for value in values])
        await client.stop()
    records = await read(bootstrap, topic, 150)
    equal([r.value for r in records], values * len(CODECS))
    equal([r.offset for r in records], list(range(150)), "offsets")


@case
async def key_headers_timestamp_and_null_come_back(bootstrap):
    topic = await make(bootstrap)
    client = await producer(bootstrap)
    headers = [("a", b"1"), ("a", b""), ("c", b"\xff\x00")]
    await client.send_and_wait(
        topic, b"v", key=b"k", headers=headers, timestamp_ms=1_700_000_000_123
    )
    await client.send_and_wait(topic, None, key=b"k")
    await client.send_and_wait(topic, b"")
    await client.stop()
    one, two, three = await read(bootstrap, topic, 3)
    equal(
        (one.key, one.value, list(one.headers), one.timestamp, one.timestamp_type),
        (b"k", b"v", headers, 1_700_000_000_123, 0),
    )
    equal((two.key, two.value, three.key, three.value), (b"k", None, None, b""))


@case
async def log_append_time_is_the_brokers(bootstrap):
    topic = await make(bootstrap, message_timestamp_type="LogAppendTime")
    client = await producer(bootstrap)
    found = await client.send_and_wait(topic, b"v", timestamp_ms=1000)
    await client.stop()
    (record,) = await read(bootstrap, topic, 1)
    equal((record.timestamp_type, record.timestamp), (1, found.timestamp))
    assert abs(record.timestamp - time.time() * 1000) < 60_000


@case
async def acks_and_idempotence(bootstrap):
    topic = await make(bootstrap)
    for acks in (0, 1, "all"):
        await send(bootstrap, topic, [b"x"], acks=acks)
    await send(bootstrap, topic, [b"x"] * 20, enable_idempotence=True)
    equal(len(await read(bootstrap, topic, 23)), 23)


@case
async def too_large_a_record_is_refused(bootstrap):
    topic = await make(bootstrap, max_message_bytes="2000")
    client = await producer(bootstrap)
    await fails("MessageSizeTooLarge", client.send_and_wait(topic, b"x" * 5000))
    await client.stop()


@case
async def offsets_by_time_and_ends(bootstrap):
    topic = await make(bootstrap, 2)
    client = await producer(bootstrap)
    for i in range(10):
        await client.send_and_wait(
            topic, b"x", partition=0, timestamp_ms=1_700_000_000_000 + 1000 * i
        )
    await client.stop()
    a, b = TopicPartition(topic, 0), TopicPartition(topic, 1)
    reader = await consumer(bootstrap)
    found = await reader.offsets_for_times({a: 1_700_000_004_500, b: 1})
    equal((found[a].offset, found[a].timestamp, found[b]), (5, 1_700_000_005_000, None))
    equal(
        (await reader.beginning_offsets([a, b]), await reader.end_offsets([a, b])),
        ({a: 0, b: 0}, {a: 10, b: 0}),
    )
    await reader.stop()


@case
async def group_of_two_shares_and_takes_over(bootstrap):
    topic, group = await make(bootstrap, 4), fresh("group")
    config = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 500,
        "metadata_max_age_ms": 2000,
    }
    one = await consumer(bootstrap, topic, **config)
    await until(lambda: len(one.assignment()) == 4)
    two = await consumer(bootstrap, topic, **config)
    await until(
        lambda: (
            len(one.assignment()) == len(two.assignment()) == 2
            and not one.assignment() & two.assignment()
        )
    )
    await two.stop()
    await until(lambda: len(one.assignment()) == 4)
    client = await admin(bootstrap)
    assert any(name == group for name, *_ in await client.list_consumer_groups()), "not listed"
    await client.close()
    await one.stop()


@case
async def committed_offset_is_where_the_next_member_starts(bootstrap):
    topic, group = await make(bootstrap), fresh("group")
    await send(bootstrap, topic, [b"%d" % i for i in range(10)])
    tp = TopicPartition(topic, 0)
    one = await consumer(bootstrap, topic, group_id=group)
    await one.getone()
    await one.commit({tp: OffsetAndMetadata(7, "note")})
    equal(await one.committed(tp), 7)
    await one.stop()
    two = await consumer(bootstrap, topic, group_id=group)
    equal((await two.getone()).offset, 7)
    await two.stop()
    client = await admin(bootstrap)
    equal((await client.list_consumer_group_offsets(group))[tp], OffsetAndMetadata(7, "note"))
    await client.close()


@case
async def transactions_commit_and_abort(bootstrap):
    topic = await make(bootstrap)
    client = await producer(bootstrap, transactional_id=fresh("tx"))
    for word, end in (
        ("kept", client.commit_transaction),
        ("lost", client.abort_transaction),
        ("kept", client.commit_transaction),
    ):
        await client.begin_transaction()
        for i in range(3):
            await client.send_and_wait(topic, f"{word}{i}".encode())
        await end()
    await client.stop()
    records = await read(bootstrap, topic, 6, isolation_level="read_committed")
    equal(
        [(r.offset, r.value) for r in records],
        list(zip([0, 1, 2, 8, 9, 10], [b"kept0", b"kept1", b"kept2"] * 2)),
    )
    equal(len(await read(bootstrap, topic, 9)), 9)


@case
async def offsets_go_with_the_transaction(bootstrap):
    topic, group = await make(bootstrap), fresh("group")
    await send(bootstrap, topic, [b"x"] * 5)
    tp = TopicPartition(topic, 0)
    reader = await consumer(bootstrap, topic, group_id=group)
    await reader.getone()
    client = await producer(bootstrap, transactional_id=fresh("tx"))
    for offset, end, wanted in (
        (3, client.abort_transaction, None),
        (5, client.commit_transaction, 5),
    ):
        await client.begin_transaction()
        await client.send_offsets_to_transaction({tp: offset}, group)
        await end()

        async def seen():
            return await reader.committed(tp) == wanted

        await until(seen)
    await client.stop()
    await reader.stop()


@case
async def second_producer_fences_the_first(bootstrap):
    topic, tx = await make(bootstrap), fresh("tx")
    one = await producer(bootstrap, transactional_id=tx)
    await one.begin_transaction()
    await one.send_and_wait(topic, b"old")
    two = await producer(bootstrap, transactional_id=tx)

    async def go_on():
        await one.send_and_wait(topic, b"older")
        await one.commit_transaction()

    await fails("Fenced|InvalidProducerEpoch", go_on())
    await two.begin_transaction()
    await two.send_and_wait(topic, b"new")
    await two.commit_transaction()
    await two.stop()
    equal(
        [r.value for r in await read(bootstrap, topic, 1, isolation_level="read_committed")],
        [b"new"],
    )


@case
async def topic_is_described_grown_trimmed_and_deleted(bootstrap):
    topic = await make(bootstrap, retention_ms="3600000")
    await send(bootstrap, topic, [b"x"] * 10)
    client = await admin(bootstrap)
    found = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    assert "3600000" in str(found), found
    await client.create_partitions({topic: NewPartitions(3)})

    async def grown():
        return len((await client.describe_topics([topic]))[0]["partitions"]) == 3

    await until(grown)
    equal(
        await client.delete_records({TopicPartition(topic, 0): RecordsToDelete(4)}),
        {TopicPartition(topic, 0): 4},
    )
    await client.delete_topics([topic])

    async def gone():
        return topic not in await client.list_topics()

    await until(gone)
    await client.close()


main("python-aiokafka")

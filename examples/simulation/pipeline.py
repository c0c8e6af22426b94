"""A stage of a pipeline: it takes records, transforms them and produces what comes of them.

Offsets and results of a batch are one transaction. A stage that reads with `read_uncommitted`
takes what the stage before it has sent in a transaction that is aborted.

aiokafka 0.14 takes a coordinator's error for "nothing is committed": with `auto_offset_reset=
"earliest"` a stage that starts while its coordinator moves takes everything again. So `begin`
commits where a stage begins, once, and the stage refuses to run without.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


async def begin(bootstrap: str, source: str, target: str) -> None:
    """Once, before the stage's first run: it begins with the oldest record."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=f"{source}-to-{target}", enable_auto_commit=False
    )
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        partitions = await partitions_of(producer, source)
    await consumer.start()
    try:
        consumer.assign(partitions)
        await consumer.commit(dict.fromkeys(partitions, 0))
    finally:
        await consumer.stop()


async def stage(
    bootstrap: str,
    source: str,
    target: str,
    transform: Callable[[bytes], Awaitable[bytes]],
    *,
    isolation_level: str = "read_committed",
) -> None:
    """Work for ever. One process runs a stage: it takes all partitions of `source`.

    An error ends it: a stage that starts goes on where the last transaction ended.
    """
    name = f"{source}-to-{target}"
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=name,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level=isolation_level,
    )
    await producer.start()  # the transaction of the process before is over
    try:
        await consumer.start()
        consumer.assign(await partitions_of(producer, source))
        while True:
            batches = await consumer.getmany(timeout_ms=1000)
            if not batches:
                continue
            async with producer.transaction():
                for records in batches.values():
                    for record in records:
                        value = await transform(record.value)
                        await producer.send_and_wait(target, value, key=record.key)
                offsets = {each: records[-1].offset + 1 for each, records in batches.items()}
                await producer.send_offsets_to_transaction(offsets, name)
    finally:
        await consumer.stop()
        await producer.stop()


async def partitions_of(producer: AIOKafkaProducer, topic: str) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number) for number in sorted(await producer.partitions_for(topic))
    ]

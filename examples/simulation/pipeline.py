"""A stage of a pipeline: it takes records, transforms them and produces what comes of them.

Offsets and results of a batch are one transaction. A stage that reads with `read_uncommitted`
takes what the stage before it has sent in a transaction that is aborted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


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
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
    )
    await producer.start()  # the transaction of the process before is over
    try:
        await consumer.start()
        numbers = await producer.partitions_for(source)
        consumer.assign([TopicPartition(source, number) for number in sorted(numbers)])
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

"""A consumer that books orders. `commit_first` commits an order's offset before it is booked.

With `auto_offset_reset="earliest"` it would book everything again where aiokafka 0.14 takes an
error for a reason to begin anew: that of a coordinator that moves, for "nothing is committed", and
that of a broker that has lost its last records with its power, and follows another one since, for
"these offsets are no more". So `begin` commits where booking begins, once, and the consumer ends at
such an error: it is started again, and goes on where it has committed last.
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

TOPIC = "orders"
GROUP = "booking"


async def take_orders(bootstrap: str, numbers, taken) -> None:
    """Send orders, each acknowledged before the next."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    await producer.start()
    try:
        for number in numbers:
            order = b"order-%d" % number
            await producer.send_and_wait(TOPIC, order, key=b"%d" % (number % 5))
            taken(order)
            await asyncio.sleep(0.5)
    finally:
        await producer.stop()


async def begin(bootstrap: str) -> None:
    """Once, before the first run of `book_orders`: it begins with the oldest order."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False
    )
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        partitions = [
            TopicPartition(TOPIC, number) for number in sorted(await producer.partitions_for(TOPIC))
        ]
    await consumer.start()
    try:
        consumer.assign(partitions)
        await consumer.commit(dict.fromkeys(partitions, 0))
    finally:
        await consumer.stop()


async def book_orders(bootstrap: str, book, *, commit_first: bool) -> None:
    """Book each order; `book` is the database's, and takes a moment."""
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="none",
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        async for record in consumer:
            if commit_first:
                await consumer.commit()
            await book(record.value)
            if not commit_first:
                await consumer.commit()
    finally:
        await consumer.stop()

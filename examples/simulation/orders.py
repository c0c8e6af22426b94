"""A consumer that books orders. `commit_first` commits an order's offset before it is booked."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

TOPIC = "orders"


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


async def book_orders(bootstrap: str, book, *, commit_first: bool) -> None:
    """Book each order; `book` is the database's, and takes a moment."""
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="booking",
        auto_offset_reset="earliest",
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

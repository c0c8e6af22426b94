"""An outbox relay: what a database's transaction has written to a table of events goes to a topic.

`Outbox` stands for the table. With `transactional_id` the relay sends each batch of rows in a
transaction and asks the topic, at its start, which rows are there. Without, a reply that is lost
has its producer send a row again, and a relay that ends before it has marked a row does so too.
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

TOPIC = "events"
ROW = "row"


class Outbox:
    """Rows of (number, key, event), in the order of their numbers, until they are relayed."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[bytes, bytes]] = {}
        self._written = 0

    def write(self, key: bytes, event: bytes) -> None:
        self._rows[self._written] = key, event
        self._written += 1

    def waiting(self, limit: int) -> list[tuple[int, bytes, bytes]]:
        return [(number, *self._rows[number]) for number in sorted(self._rows)[:limit]]

    def mark(self, number: int) -> None:
        self._rows.pop(number, None)


async def relay(bootstrap: str, outbox: Outbox, *, transactional_id: str | None) -> None:
    """Relay rows for ever. One relay runs at a time."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", transactional_id=transactional_id
    )
    await producer.start()  # with an id: the transaction of the relay before is over
    try:
        if transactional_id is not None:
            for number in await relayed(bootstrap):
                outbox.mark(number)
        while True:
            rows = outbox.waiting(10)
            if not rows:
                await asyncio.sleep(0.2)
            elif transactional_id is None:
                await send(producer, rows)
            else:
                async with producer.transaction():
                    await send(producer, rows)
            for number, _, _ in rows:
                outbox.mark(number)
    finally:
        await producer.stop()


async def send(producer: AIOKafkaProducer, rows: list[tuple[int, bytes, bytes]]) -> None:
    for number, key, event in rows:
        await producer.send_and_wait(TOPIC, event, key=key, headers=[(ROW, b"%d" % number)])


async def relayed(bootstrap: str) -> list[int]:
    """The numbers of the rows that are in the topic."""
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    try:
        found = []
        for partition, end in (await consumer.end_offsets(consumer.assignment())).items():
            while await consumer.position(partition) < end:
                records = await consumer.getmany(partition, timeout_ms=500)
                for record in records.get(partition, []):
                    found.append(int(dict(record.headers)[ROW]))
        return found
    finally:
        await consumer.stop()

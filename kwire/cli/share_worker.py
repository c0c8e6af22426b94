"""`kwire consume --share GROUP`: a worker of a queue. Without a command it prints and accepts.

With `--exec CMD` the command runs by the shell once for each record: the value is its standard
input, and KWIRE_TOPIC, KWIRE_PARTITION, KWIRE_OFFSET, KWIRE_KEY, KWIRE_TIMESTAMP and
KWIRE_DELIVERY_COUNT are in its environment. One that ends with 0 accepts the record, with 75
(EX_TEMPFAIL) releases it, with anything else rejects it. The lock of a record is renewed while its
command runs. A command that a signal ended has not said what is to become of the record: it is
released. One that the shell cannot run (126, 127) would be the end of every record: the worker
gives its record back and ends, and so it does with a record that cannot be decoded where that was
asked for. A registry is asked beside the loop, and locks are renewed meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import NamedTuple, TypeVar

from kwire.cli.record_format import Show
from kwire.cli.records import Consumed
from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError
from kwire.client.properties import settings_of
from kwire.client.share_consumer import RECORDS_MAX, Delivered, ShareConsumer, Unacknowledged
from kwire.clock import SystemClock, SystemRandom
from kwire.protocol.records import Record

Decode = Callable[[Consumed], Consumed]
T = TypeVar("T")

RELEASED = 75
"""The exit status EX_TEMPFAIL of sysexits."""
NOT_RUN = (126, 127)
"""What a shell says of a command that it may not run, or cannot find."""
BY_SIGNAL = 128
"""And of one that a signal has ended: this and the signal's number."""


class Work(NamedTuple):
    """What to do: `command` is None for printing by `show`. It ends after `count_max` records, or
    when nothing has come for `idle_ms` although there is something to read (0: never). `decode`
    makes of a record what is printed, or given to the command; it may block."""

    topic: str
    group: str
    command: str | None
    show: Show
    count_max: int
    idle_ms: int
    decode: Decode | None = None


def work(bootstrap: str, command_config: str | None, asked: Work) -> None:
    """Work until there is enough, or the user stops it. ClientError."""
    properties = {} if command_config is None else _properties(command_config)
    asyncio.run(_work(bootstrap, properties, asked))


def _properties(path: str) -> dict[str, str]:
    from kwire.config.errors import ConfigError
    from kwire.config.properties import read_properties

    try:
        return dict(read_properties(path))
    except ConfigError as error:
        raise ClientError(str(error)) from None


async def _work(bootstrap: str, properties: dict[str, str], asked: Work) -> None:
    clock = SystemClock()
    settings = settings_of(properties, SystemRandom(), clock.wall_ms, bootstrap)
    runs = asked.command is not None
    async with (
        Cluster(settings) as cluster,
        ShareConsumer(
            cluster,
            asked.group,
            [asked.topic],
            explicit=True,
            records_max=1 if runs else min(asked.count_max or RECORDS_MAX, RECORDS_MAX),
            limited=runs or bool(asked.count_max),
        ) as consumer,
    ):
        await cluster.topic(asked.topic)
        done, last_s = 0, cluster.loop.time()
        while True:
            delivered = await consumer.poll()
            for at, one in enumerate(delivered):
                if asked.count_max and done == asked.count_max:
                    consumer.release(one)
                    continue
                await take(consumer, delivered[at:], asked)
                done += 1
            sys.stdout.flush()
            _report(await consumer.commit())
            now_s = cluster.loop.time()
            if delivered or not consumer.assigned:
                last_s = now_s
            if asked.count_max and done == asked.count_max:
                return
            if asked.idle_ms and now_s - last_s > asked.idle_ms / 1000:
                return


async def take(consumer: ShareConsumer, held: Sequence[Delivered], asked: Work) -> None:
    """See to the first of those that are held and not seen to."""
    one = held[0]
    consumed = Consumed(one.topic, one.partition, one.record)
    if asked.decode is not None:
        consumed = await _kept(consumer, held, asyncio.to_thread(asked.decode, consumed))
    if asked.command is None:
        sys.stdout.buffer.write(asked.show(consumed))
        consumer.accept(one)
        return
    status = await _run(consumer, one, consumed.record, asked.command)
    if status == 0:
        consumer.accept(one)
    elif status in NOT_RUN:
        raise ClientError(
            f"{asked.command}: exit status {status}, it cannot be run; "
            f"{one.topic}-{one.partition} offset {one.record.offset} is given back"
        )
    elif status == RELEASED or status < 0 or status > BY_SIGNAL:
        consumer.release(one)
    else:
        consumer.reject(one)


async def _run(consumer: ShareConsumer, one: Delivered, record: Record, command: str) -> int:
    """The exit status of the command for one record, whose lock is kept meanwhile."""
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "KWIRE_TOPIC": one.topic,
            "KWIRE_PARTITION": str(one.partition),
            "KWIRE_OFFSET": str(record.offset),
            "KWIRE_KEY": bytes(record.key or b"").decode(errors="replace").replace("\0", ""),
            "KWIRE_TIMESTAMP": str(record.timestamp),
            "KWIRE_DELIVERY_COUNT": str(one.delivery_count),
        },
    )
    try:
        await _kept(consumer, [one], process.communicate(bytes(record.value or b"")))
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    assert process.returncode is not None
    return process.returncode


async def _kept(
    consumer: ShareConsumer, held: Sequence[Delivered], work: Coroutine[object, None, T]
) -> T:
    """What some work comes to; the locks of records are renewed meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait([task], timeout=consumer.lock_s / 3)
            if done:
                return task.result()
            await consumer.renew(*held)
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


def _report(failures: list[Unacknowledged]) -> None:
    for failed in failures:
        offsets = f"{failed.offsets[0]}" if failed.offsets else "?"
        print(
            f"{failed.topic}-{failed.partition} offset {offsets}: {failed.error}; it may be "
            "delivered again",
            file=sys.stderr,
        )

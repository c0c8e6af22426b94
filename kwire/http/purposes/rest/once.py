"""Publishing with an `Idempotency-Key`: the same request again gives the same offsets (ADR 47)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from kwire.client.errors import RequestFailed
from kwire.client.idempotency.key_records import KEY_CHARACTERS_MAX, digest_of
from kwire.client.idempotency.publisher import KeyedPublisher, KeyUsed, Throttled
from kwire.client.producer import Outgoing
from kwire.client.transactional_producer import RecordTooLarge
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.problems import Offset, Problem, throttled
from kwire.http.purposes.rest.publishing import Publishing, check_sizes, too_large
from kwire.http.purposes.rest.records import Message, last_partition, to_records
from kwire.http.purposes.rest.shapes import WORDS
from kwire.protocol.errors import ErrorCode

IDEMPOTENCY_KEY = "Idempotency-Key"
_PATTERN = r"^[\x21-\x7e]+$"
WORDS[_PATTERN] = "printable ASCII characters without spaces"
REPLAYED = "idempotent-replayed"
"""The header of an answer that was given before."""
IdempotencyKey: TypeAlias = Annotated[
    str,
    Meta(
        pattern=_PATTERN,
        min_length=1,
        max_length=KEY_CHARACTERS_MAX,
        description="A name of this request, new for each: a UUID, say.",
    ),
]
TIMEOUT_S = 30.0
IDLE_S = 300.0


class Once:
    """A caller's publisher with keys (a `Part` of its client), on connections of its own: a
    transaction that waits holds up nothing else."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cluster = client.new_cluster()
        self._publisher = KeyedPublisher(self._cluster, client.name)
        self._used_s = client.loop.time()
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being published."""
        return self._publisher.is_busy

    @property
    def publisher(self) -> KeyedPublisher:
        """The one of now."""
        self._used_s = self._client.loop.time()
        return self._publisher

    def check_quota(self) -> None:
        """Problem 429 while the producer's quota holds back what is sent."""
        wait_s = self._publisher.throttled_until_s - self._client.loop.time()
        if wait_s > 0:
            raise throttled(wait_s)

    def check(self, now_s: float) -> None:
        """Forget what is known of keys: who publishes with one again reads them again."""
        if not self.is_busy and now_s - self._used_s > IDLE_S:
            old, self._publisher = self._publisher, KeyedPublisher(self._cluster, self._client.name)
            self._used_s = now_s
            self._closing = self._client.loop.create_task(old.close())

    async def close(self) -> None:
        """Publish no more; what is on its way may be there or not."""
        if self._closing is not None:
            await asyncio.gather(self._closing, return_exceptions=True)
        await self._publisher.close()
        await self._cluster.close()


async def publish_once(
    client: Client, topic: str, messages: Sequence[Message], key: str
) -> tuple[list[Offset], bool]:
    """Where the messages are, in their order, and whether they were before; Problem or
    ClientError."""
    cluster, publishing, once = (
        client.cluster,
        client.part(Publishing, Publishing),
        client.part(Once, Once),
    )
    publishing.check_quota()
    once.check_quota()
    found = await cluster.topic(topic, partition=last_partition(messages))
    count = len(found.partitions)
    unkeyed = publishing.next_unkeyed() % count
    records, placed = to_records(messages, count, unkeyed, cluster.clock.wall_ms())
    next_of = {index: iter(of_partition) for index, of_partition in records.items()}
    outgoing: list[Outgoing] = []
    for index in placed:
        record = next(next_of[index])
        headers = tuple(record.headers)
        outgoing.append(Outgoing(record.key, record.value, headers, record.timestamp, index))
    body = digest_of(topic.encode(), msgspec.json.encode(messages))
    limit = await publishing.limit(topic)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            published = await once.publisher.publish(
                topic, outgoing, key, body, batch_bytes_max=limit
            )
    except RequestFailed as error:
        cluster.forget_topic(topic)  # it may be another one by now, with fewer partitions
        if error.code == ErrorCode.MESSAGE_TOO_LARGE:  # of a key that was used it is no matter
            check_sizes(messages, records, placed, limit)
        if isinstance(error, RecordTooLarge):
            raise too_large(error.at, str(error)) from None
        raise
    except Throttled as error:
        raise throttled(error.wait_s) from None
    except KeyUsed as error:
        raise Problem(422, "idempotency_key_used", str(error), header=IDEMPOTENCY_KEY) from None
    except TimeoutError:
        message = (
            f"it is not known after {TIMEOUT_S:g} s whether the messages are kept: send the same "
            f"request with the same {IDEMPOTENCY_KEY} again"
        )
        raise Problem(503, "unavailable", message, headers={"retry-after": "1"}) from None
    offsets = [Offset(*place) for place in published.record.places()]
    return offsets, published.is_repeated

"""What a caller publishes by: one producer for each acks, shared by all of its requests.

They have connections of their own: a broker holds one back that has sent more than the producer's
quota, and reads nothing that is behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kwire.client.configs import Configs, Resource
from kwire.client.errors import ClientError
from kwire.client.shared_producer import SharedProducer
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.problems import Problem, throttled
from kwire.protocol.records import Record
from kwire.protocol.records.build import record_size
from kwire.protocol.records.header import HEADER_SIZE

ACKS = {"0": 0, "1": 1, "all": -1}
MAX_MESSAGE_BYTES = "max.message.bytes"
LIMIT_KEPT_S = 30.0
NO_LIMIT = 2**31


class Publishing:
    """See the module."""

    def __init__(self, client: Client) -> None:
        self.cluster = client.new_cluster()
        self._client = client
        self._producers: dict[int, SharedProducer] = {}
        self._limits: dict[str, tuple[float, int]] = {}
        self._unkeyed = 0

    def producer(self, acks: int) -> SharedProducer:
        """The one of this kind."""
        found = self._producers.get(acks)
        if found is None:
            found = self._producers[acks] = SharedProducer(self.cluster, acks=acks)
        return found

    def next_unkeyed(self) -> int:
        """Where messages without a key go: those of a request together, of the next to another
        partition."""
        self._unkeyed += 1
        return self._unkeyed

    @property
    def throttled_s(self) -> float:
        """How long the producer's quota holds back what is sent."""
        until_s = max((one.throttled_until_s for one in self._producers.values()), default=0.0)
        return max(0.0, until_s - self._client.loop.time())

    def check_quota(self) -> None:
        """Problem 429 while the producer's quota holds back what is sent."""
        if self.throttled_s > 0:
            raise throttled(self.throttled_s)

    async def limit(self, topic: str) -> int:
        """The topic's `max.message.bytes`; NO_LIMIT where the caller may not know it: the broker
        refuses what is over it."""
        now_s = self._client.loop.time()
        known = self._limits.get(topic)
        if known is not None and now_s < known[0]:
            return known[1]
        limit = NO_LIMIT
        try:
            for one in await Configs(self._client.cluster).describe(
                Resource.TOPIC, topic, [MAX_MESSAGE_BYTES]
            ):
                if one.name == MAX_MESSAGE_BYTES and one.value is not None:
                    limit = int(one.value)
        except ClientError:
            pass
        self._limits[topic] = now_s + LIMIT_KEPT_S, limit
        return limit

    @property
    def is_busy(self) -> bool:
        """Whether something waits to be acknowledged."""
        return any(one.is_busy for one in self._producers.values())

    def check(self, now_s: float) -> None:
        """Forget limits that are old."""
        self._limits = {name: one for name, one in self._limits.items() if now_s < one[0]}

    async def close(self) -> None:
        """Send no more."""
        for producer in self._producers.values():
            await producer.close()
        await self.cluster.close()


def batch_bytes(record: Record) -> int:
    """The size of a batch of this record alone."""
    return HEADER_SIZE + record_size(record, timestamp_delta=0, offset_delta=0)


def check_sizes(
    messages: Sequence[Struct],
    records: Mapping[int, Sequence[Record]],
    placed: Sequence[int],
    limit: int,
) -> None:
    """Refuse a message that no batch can hold before any is sent; Problem."""
    next_of = {index: iter(of_partition) for index, of_partition in records.items()}
    for at, index in enumerate(placed):
        record = next(next_of[index])
        if HEADER_SIZE + record_size(record) > limit:
            size = batch_bytes(record)
            if size > limit:
                raise too_large(at, f"{size} bytes are over the topic's max.message.bytes={limit}")


def too_large(at: int, why: str) -> Problem:
    """The message of this index is over `max.message.bytes`."""
    name = f"messages[{at}]"
    return Problem(400, "message_too_large", f"{name}: {why}", field=name, index=at)

"""Publishing with keys: a key that was used gives the places of what was published with it.

    publisher = KeyedPublisher(cluster, scope="alice")
    published = await publisher.publish("orders", messages, "payment-17", body)

`body` is a digest of what is published (`key_records.digest_of`). Whoever sends the same again,
here or by another node, gets the same places, also while the first attempt runs, or after the node
that took it has died; the same key with another body is `KeyUsed`. Keys are a scope's own (a
principal's), and are kept for `writing.RETENTION_MS`. Consumers see each message once if they read
committed records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError
from kwire.client.idempotency import key_records
from kwire.client.idempotency.keeper import (
    Committed,
    Effect,
    Failed,
    Finish,
    HeldBack,
    Input,
    Keeper,
    Left,
    Lost,
    NotPublished,
    Open,
    Opened,
    OtherBody,
    Posted,
    Published,
    Read,
    ReadUp,
    Refused,
    Write,
    Written,
)
from kwire.client.idempotency.key_records import KeyRecord
from kwire.client.idempotency.known_keys import KnownKeys
from kwire.client.idempotency.reading import KeysReader
from kwire.client.idempotency.writing import (
    BATCH_BYTES_MAX,
    RETENTION_MS,
    GroupWriter,
    OutcomeUnknown,
    Post,
    PostsRefused,
    Runs,
    keys_partitions,
    size_of,
)
from kwire.client.producer import Outgoing
from kwire.kept_errors import anew, kept


class KeyUsed(ClientError):
    """The key was used for something else."""


class Throttled(ClientError):
    """The producer's quota holds back what is sent, for `wait_s` from then on: the messages are not
    there."""

    wait_s = 0.0

    @property
    def is_retriable(self) -> bool:
        return True


class _Driven:
    """One keeper, and what it wants done: one thing at a time. `check` is called where something
    was sent."""

    def __init__(
        self,
        cluster: Cluster,
        sending: Cluster,
        scope: str,
        partition: int,
        check: Callable[[], None],
    ) -> None:
        self._check = check
        self._loop = cluster.loop
        self._clock = cluster.clock
        self._partition = partition
        known = KnownKeys(RETENTION_MS)
        self.keeper = Keeper(known)
        self._reader = KeysReader(cluster, scope, partition, known)
        self._writer = GroupWriter(cluster, scope, partition, sending=sending)
        self._posts: dict[int, Post] = {}
        self._waiting: dict[int, asyncio.Future[Published]] = {}
        self._written: dict[int, Runs] = {}
        self._next_number = 0
        self._doing: asyncio.Task[None] | None = None
        self.is_broken = False

    @property
    def is_busy(self) -> bool:
        return self.keeper.is_busy

    @property
    def throttled_until_s(self) -> float:
        return self._writer.throttled_until_s

    async def publish(self, post: Post) -> Published:
        number = self._next_number
        self._next_number += 1
        future: asyncio.Future[Published] = self._loop.create_future()
        self._posts[number] = post
        self._waiting[number] = future
        try:
            self._step(Posted(number, post.key, post.body, post.size_bytes))
            return await future
        finally:
            if self._waiting.pop(number, None) is not None:
                self._step(Left(number))
                if not self.keeper.has(number):
                    self._posts.pop(number, None)

    def hold_back(self, error: Throttled) -> None:
        """Tell whoever waits, and has nothing written."""
        if not self.is_broken:
            self._step(HeldBack(error))

    async def close(self) -> None:
        task, self._doing = self._doing, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._fail_all("the publisher was closed")

    def _fail_all(self, why: str) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ClientError(why))

    # -- effects

    def _step(self, given: Input) -> None:
        for effect in self.keeper.step(given, self._clock.wall_ms()):
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, (Published, OtherBody, NotPublished)):
            self._answer(effect)
            return
        assert self._doing is None, f"{type(effect).__name__} beside another"
        self._doing = self._loop.create_task(self._do(effect))

    def _answer(self, answer: Published | OtherBody | NotPublished) -> None:
        self._posts.pop(answer.number, None)
        future = self._waiting.pop(answer.number, None)
        if future is None or future.done():
            return
        if isinstance(answer, Published):
            future.set_result(answer)
        elif isinstance(answer, OtherBody):
            future.set_exception(
                KeyUsed(
                    "the idempotency key was used for other messages, to topic "
                    f"{answer.record.topic}: use a new key, or send the same"
                )
            )
        else:
            future.set_exception(anew(answer.error))

    async def _do(self, effect: Open | Read | Write | Finish) -> None:
        try:
            given = await self._outcome(effect)
        except Exception:
            self.is_broken = True
            self._fail_all("a fault of kwire's; the log says more")
            raise
        self._check()
        self._doing = None
        self._step(given)

    async def _outcome(self, effect: Open | Read | Write | Finish) -> Input:
        try:
            if isinstance(effect, Open):
                await self._writer.open()
                return Opened()
            if isinstance(effect, Read):
                await self._reader.read_up()
                return ReadUp()
            if isinstance(effect, Write):
                posts = {number: self._posts[number] for number in effect.numbers}
                self._written = await self._writer.write(posts)
                return Written()
            return await self._finish(effect)
        except OutcomeUnknown:
            return Lost()
        except PostsRefused as refused:
            return Refused(refused.numbers, kept(refused.error))
        except ClientError as error:
            return Failed(kept(error))

    async def _finish(self, effect: Finish) -> Committed:
        records: dict[int, KeyRecord] = {}
        for number in effect.numbers:
            post = self._posts[number]
            partitions = [message.partition for message in post.messages]
            records[number] = key_records.made(
                post.body,
                post.topic,
                [index for index in partitions if index is not None],
                self._written[number],
            )
        await self._writer.finish({self._posts[number].key: records[number] for number in records})
        return Committed(records)


class KeyedPublisher:
    """See the module. It may be used by many tasks; `close` ends it."""

    def __init__(self, cluster: Cluster, scope: str) -> None:
        self._cluster = cluster
        self._sending = cluster.another()
        self._scope = scope
        self._driven: dict[int, _Driven] = {}
        self._partitions = 0

    @property
    def is_busy(self) -> bool:
        """Whether something is being published."""
        return any(one.is_busy for one in self._driven.values())

    @property
    def throttled_until_s(self) -> float:
        """Until when the broker holds back what is sent, by the producer's quota."""
        return max((one.throttled_until_s for one in self._driven.values()), default=0.0)

    async def close(self) -> None:
        """End it; what is being published fails, and may have been."""
        for one in self._driven.values():
            await one.close()
        await self._sending.close()

    def _check(self) -> None:
        """Where the quota holds back what is sent, whoever waits is told."""
        wait_s = self.throttled_until_s - self._cluster.loop.time()
        if wait_s > 0:
            error = _throttled(wait_s)
            for one in self._driven.values():
                one.hold_back(error)

    async def publish(
        self,
        topic: str,
        messages: Sequence[Outgoing],
        key: str,
        body: bytes,
        *,
        batch_bytes_max: int = BATCH_BYTES_MAX,
    ) -> Published:
        """See the module: messages with a partition each; ClientError, of which KeyUsed. Where the
        caller is cancelled nobody knows whether they are there: the same again tells. Throttled
        where the producer's quota holds them back before they are written.
        `batch_bytes_max` is what the topic takes in one batch."""
        if not self._partitions:
            self._partitions = await keys_partitions(self._cluster)
        post = Post(
            topic,
            key_records.key_bytes(self._scope, key),
            body,
            list(messages),
            sum(size_of(message) for message in messages),
            batch_bytes_max,
        )
        index = key_records.partition_of_key(self._scope, key, self._partitions)
        driven = self._driven.get(index)
        if driven is None or driven.is_broken:
            driven = self._driven[index] = _Driven(
                self._cluster, self._sending, self._scope, index, self._check
            )
        wait_s = self.throttled_until_s - self._cluster.loop.time()
        if wait_s > 0:
            raise _throttled(wait_s)
        return await driven.publish(post)


def _throttled(wait_s: float) -> Throttled:
    error = Throttled(f"the producer's quota is exceeded, for {wait_s:.1f} s")
    error.wait_s = wait_s
    return error

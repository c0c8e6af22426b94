"""Messages of a topic: published, and read from an offset on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.fetching import Fetcher
from kwire.client.offsets import EARLIEST, LATEST, Offsets
from kwire.client.shared_producer import Sent
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.once import (
    IDEMPOTENCY_KEY,
    REPLAYED,
    IdempotencyKey,
    publish_once,
)
from kwire.http.purposes.rest.problems import Offset, Problem, problem_of
from kwire.http.purposes.rest.publishing import ACKS, Publishing, check_sizes
from kwire.http.purposes.rest.records import (
    Fetched,
    Messages,
    from_records,
    last_partition,
    to_records,
)
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.shapes import AnOffset, Partition, Topic
from kwire.protocol.errors import ErrorCode

FETCH_BYTES = 1 << 20
FETCH_BYTES_MAX = 16 << 20
WAIT_MS = 500
WAIT_MS_MAX = 60_000
NEXT_OFFSET = "next-offset"

MaxBytes = Annotated[int, Meta(ge=1, le=FETCH_BYTES_MAX)]
WaitMs = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]
Isolation = Literal["read_uncommitted", "read_committed"]


class Publish(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages for a topic. `acks`: "0" asks for no answer of the broker, "1" for the leader's,
    "all" for that of all replicas in sync, each message once."""

    messages: Messages
    acks: Literal["0", "1", "all"] = "all"


class Publishes(Struct, frozen=True, forbid_unknown_fields=True):
    """Where to publish."""

    topic: Topic
    idempotency_key: IdempotencyKey | None = None


class Published(Struct, frozen=True):
    """Where the messages are, in their order."""

    offsets: list[Offset]


class Read(Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages to read. `wait_ms` is how long to wait for the first of them."""

    topic: Topic
    partition: Partition
    offset: AnOffset
    max_bytes: MaxBytes = FETCH_BYTES
    wait_ms: WaitMs = WAIT_MS
    isolation: Isolation = "read_uncommitted"


class Found(Struct, frozen=True):
    """Messages from an offset on."""

    partition: int
    messages: list[Fetched]
    high_watermark: int


async def publish(call: Call[Publishes, Publish]) -> Reply:
    """Append messages; those of all requests of a caller go by its shared producers."""
    acks = call.body.acks
    topic, key = call.parameters.topic, call.parameters.idempotency_key
    if key is not None:
        if acks == "0":
            message = 'acks: "0" keeps nothing that an Idempotency-Key could find again'
            raise Problem(400, "invalid_body", message, field="acks")
        offsets, is_repeated = await publish_once(call.client, topic, call.body.messages, key)
        return Reply(200, Published(offsets), {REPLAYED: "true"} if is_repeated else {})
    offsets = await publish_messages(call.client, topic, call.body.messages, acks)
    return Reply(202 if acks == "0" else 200, Published(offsets))


async def publish_messages(
    client: Client, topic: str, messages: Messages, acks: str
) -> list[Offset]:
    """Where the messages are, in their order; Problem or ClientError."""
    publishing = client.part(Publishing, Publishing)
    publishing.check_quota()
    cluster = client.cluster
    found = await cluster.topic(topic, partition=last_partition(messages))
    count = len(found.partitions)
    unkeyed = publishing.next_unkeyed() % count
    records, placed = to_records(messages, count, unkeyed, cluster.clock.wall_ms())
    check_sizes(messages, records, placed, await publishing.limit(topic))
    sent = await publishing.producer(ACKS[acks]).send(topic, records)
    for one in sent.values():
        if one.error is not None:
            cluster.forget_topic(topic)  # it may be another one by now, with fewer partitions
            raise _refused(sent, placed)
    if len(sent) == 1:
        ((index, only),) = sent.items()
        return [Offset(index, offset) for offset in only.offsets]
    next_of = {index: iter(one.offsets) for index, one in sent.items()}
    return [Offset(index, next(next_of[index])) for index in placed]


def _refused(sent: dict[int, Sent], placed: Sequence[int]) -> Problem:
    """What is told of a publish that has failed, and of what was kept of it all the same."""
    index, one = next((index, one) for index, one in sent.items() if one.error is not None)
    error = one.error
    assert error is not None
    problem = problem_of(error)
    if one.failed_at >= 0:
        rows = [row for row, placed_in in enumerate(placed) if placed_in == index]
        at = rows[one.failed_at]
        problem.told.index = at
        problem.told.field = f"messages[{at}]"
        problem.told.message = f"messages[{at}]: {problem.told.message}"
    if any(other.offsets for other in sent.values()):
        next_of = {index: iter(other.offsets) for index, other in sent.items()}
        offsets: list[Offset | None] = []
        for index in placed:
            offset = next(next_of[index], None)
            offsets.append(None if offset is None else Offset(index, offset))
        problem.told.offsets = offsets
    return problem


async def read(call: Call[Read, Nothing]) -> Reply:
    """Read a partition from an offset on."""
    asked = call.parameters
    topic = await call.client.cluster.topic(asked.topic, partition=asked.partition)
    if all(one.partition_index != asked.partition for one in topic.partitions):
        message = f"topic {asked.topic} has no partition {asked.partition}"
        raise Problem(404, "not_found", message, parameter="partition")
    async with call.client.reader() as cluster:
        try:
            return await _read(cluster, asked)
        except RequestFailed as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise problem_of(error) from None
            raise await _out_of_range(cluster, asked) from None
        except ClientError as error:
            raise problem_of(error) from None


async def _read(cluster: Cluster, asked: Read) -> Reply:
    name = (asked.topic, asked.partition)
    fetcher = Fetcher(
        cluster,
        committed_only=asked.isolation == "read_committed",
        bytes_max=asked.max_bytes,
    )
    offset = asked.offset
    end_s = cluster.loop.time() + asked.wait_ms / 1000
    while True:
        left_ms = max(0, int((end_s - cluster.loop.time()) * 1000))
        found = (await fetcher.fetch({name: offset}, wait_ms=left_ms)).get(name)
        if found is not None:
            offset = max(offset, found.next_offset)
            headers = {NEXT_OFFSET: str(offset)}
            if found.records:
                records = await from_records(found.records)
                return Reply(200, Found(asked.partition, records, found.high_watermark), headers)
        if left_ms == 0:
            return Reply(204, None, {NEXT_OFFSET: str(offset)})


async def _out_of_range(cluster: Cluster, asked: Read) -> Problem:
    name = (asked.topic, asked.partition)
    offsets = Offsets(cluster)
    first = (await offsets.at([name], EARLIEST))[name]
    last = (await offsets.at([name], LATEST))[name]
    message = f"offset {asked.offset} is out of range: {first} to {last} can be read"
    return Problem(416, "offset_out_of_range", message, parameter="offset")


ROUTES: list[AnyRoute] = [
    Route(
        "POST",
        "/topics/{topic}/messages",
        publish,
        summary="Publish messages",
        description=(
            "With acks all each message is kept once, however often the connection to the broker "
            "breaks meanwhile. Where only a part could be kept, the error says where these are. "
            "With an Idempotency-Key all are kept or none, and the same request with the same key "
            "gives the same offsets, by whichever node, for 24 hours."
        ),
        tag="messages",
        parameters=Publishes,
        headers={"idempotency_key": IDEMPOTENCY_KEY},
        body=Publish,
        answers={
            200: Answered(Published, "Where the messages are, in their order."),
            202: Answered(Published, 'Sent with acks "0": nobody knows whether they are kept.'),
        },
        refusals=(404, 422, 429),
    ),
    Route(
        "GET",
        "/topics/{topic}/messages",
        read,
        summary="Read messages of a partition",
        description=(
            "The header Next-Offset says where to read on. At least one batch is read, whatever "
            "max_bytes says."
        ),
        tag="messages",
        parameters=Read,
        body=Nothing,
        answers={
            200: Answered(Found, "Messages from the offset on."),
            204: Answered(None, "There was none within wait_ms."),
        },
        refusals=(404, 416),
        waits=True,
    ),
]

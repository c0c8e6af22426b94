"""Members of consumer groups that a caller has here: made, subscribed, read by, committed, deleted.

The group's coordinator assigns partitions to a member (KIP-848). A member lives in the HTTP process
where it was made; one that nobody asks for its `timeout_ms` leaves its group and is forgotten. What
was given out and not committed comes again, to this or another member: at least once.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kwire.client.cluster import Cluster
from kwire.client.consumer import Consumer
from kwire.client.offsets import EARLIEST, LATEST
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.expiring import Expiring
from kwire.http.purposes.rest.groups import as_shown, by_partition, check_partitions
from kwire.http.purposes.rest.messages import (
    FETCH_BYTES,
    WAIT_MS,
    Isolation,
    MaxBytes,
    WaitMs,
)
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.records import Fetched, from_records
from kwire.http.purposes.rest.route import (
    Answered,
    AnyRoute,
    B,
    Call,
    Handler,
    Nothing,
    Reply,
    Route,
)
from kwire.http.purposes.rest.shapes import (
    LIST_MAX,
    Group,
    GroupOffset,
    GroupOffsets,
    OfGroup,
    Topic,
    whole,
)
from kwire.protocol import uuids

TIMEOUT_MS = 300_000
TIMEOUT_MS_MAX = 3_600_000
INSTANCES_MAX = 64
TOPICS_MAX = 1000

InstanceId = Annotated[
    str, whole("[A-Za-z0-9_-]{1,64}", "1 to 64 letters, digits, underscores and hyphens")
]
Topics = Annotated[list[Topic], Meta(min_length=1, max_length=TOPICS_MAX)]


class Create(Struct, frozen=True, forbid_unknown_fields=True):
    """How a member reads: where from, where the group has committed nothing."""

    auto_offset_reset: Literal["earliest", "latest"] = "latest"
    isolation: Isolation = "read_uncommitted"
    timeout_ms: Annotated[int, Meta(ge=1000, le=TIMEOUT_MS_MAX)] = TIMEOUT_MS


class Created(Struct, frozen=True):
    """A member that subscribes to nothing yet."""

    group: str
    instance: str


class OfInstance(Struct, frozen=True, forbid_unknown_fields=True):
    """Which member."""

    group: Group
    instance: InstanceId


class Subscription(Struct, frozen=True, forbid_unknown_fields=True):
    """Topics that a member reads, with the others of its group."""

    topics: Topics


class Poll(Struct, frozen=True, forbid_unknown_fields=True):
    """How much to read at most, and how long to wait for the first message."""

    group: Group
    instance: InstanceId
    max_bytes: MaxBytes = FETCH_BYTES
    wait_ms: WaitMs = WAIT_MS


class Given(Struct, frozen=True):
    """Messages of the partitions that the member is assigned."""

    records: list[Fetched]


class CommitGiven(Struct, frozen=True, forbid_unknown_fields=True):
    """Which offsets to commit: where to read on. Without them all that was given out."""

    offsets: Annotated[list[GroupOffset], Meta(max_length=LIST_MAX)] | None = None


class Assigned(Struct, frozen=True):
    """A partition of a topic."""

    topic: str
    partition: int


class Assignment(Struct, frozen=True):
    """What a member reads now."""

    partitions: list[Assigned]


class _Instance:
    """One member, on connections of its own."""

    def __init__(self, cluster: Cluster, group: str, asked: Create) -> None:
        self.cluster = cluster
        self._group = group
        self._asked = asked
        self._consumer: Consumer | None = None

    @property
    def consumer(self) -> Consumer:
        """Its reading; Problem 409 before it subscribes to anything."""
        if self._consumer is None:
            raise Problem(409, "not_subscribed", "the instance subscribes to no topic yet")
        return self._consumer

    async def subscribe(self, topics: list[str]) -> None:
        """Read these topics, and no others. ClientError."""
        for topic in topics:
            await self.cluster.topic(topic)
        await self._leave()
        consumer = Consumer(
            self.cluster,
            self._group,
            topics,
            start=EARLIEST if self._asked.auto_offset_reset == "earliest" else LATEST,
            committed_only=self._asked.isolation == "read_committed",
            commits_revoked=False,
        )
        await consumer.__aenter__()
        self._consumer = consumer

    async def _leave(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.__aexit__(None, None, None)

    async def close(self) -> None:
        await self._leave()
        await self.cluster.close()


class Instances:
    """The members of one caller."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.open: Expiring[_Instance] = Expiring(client.loop, INSTANCES_MAX, _missing)

    def create(self, group: str, asked: Create) -> Created:
        """A member without a subscription; Problem where there are too many."""
        self.open.check_room()
        cluster = self._client.new_cluster()
        name = uuids.to_text(uuids.random_uuid(cluster.random))
        instance = _Instance(cluster, group, asked)
        self.open.add(_key(group, name), instance, asked.timeout_ms / 1000)
        return Created(group, name)

    @property
    def is_busy(self) -> bool:
        """Whether there is one."""
        return len(self.open) > 0

    def check(self, now_s: float) -> None:
        """They expire by themselves."""

    async def close(self) -> None:
        """Have all leave their groups."""
        await self.open.close()


def _key(group: str, instance: str) -> str:
    return f"{group}/{instance}"


def _missing(key: str) -> Problem:
    group, _, instance = key.rpartition("/")
    message = f"group {group} has no instance {instance} here: it was deleted, or has expired"
    return Problem(404, "not_found", message, parameter="instance")


def _of(client: Client) -> Instances:
    return client.part(Instances, Instances)


async def create(call: Call[OfGroup, Create]) -> Reply:
    """A new member; it joins the group when it subscribes."""
    return Reply(200, _of(call.client).create(call.parameters.group, call.body))


async def subscribe(call: Call[OfInstance, Subscription]) -> Reply:
    """Join the group, or join anew with other topics."""
    key = _key(call.parameters.group, call.parameters.instance)
    async with _of(call.client).open.used(key) as instance:
        await instance.subscribe(list(dict.fromkeys(call.body.topics)))
    return Reply(200, call.body)


async def records(call: Call[Poll, Nothing]) -> Reply:
    """What has come since the last call."""
    asked = call.parameters
    async with _of(call.client).open.used(_key(asked.group, asked.instance)) as instance:
        consumer, loop = instance.consumer, call.client.loop
        end_s = loop.time() + asked.wait_ms / 1000
        while True:
            left_ms = max(0, int((end_s - loop.time()) * 1000))
            found = await consumer.poll(wait_ms=left_ms, bytes_max=asked.max_bytes)
            if found:
                break
            if left_ms == 0:
                return Reply(204)
    given = await from_records(one.record for one in found)
    for fetched, one in zip(given, found, strict=True):
        fetched.topic, fetched.partition = one.topic, one.partition
    return Reply(200, Given(given))


async def commit(call: Call[OfInstance, CommitGiven]) -> Reply:
    """Commit as this member."""
    key = _key(call.parameters.group, call.parameters.instance)
    async with _of(call.client).open.used(key) as instance:
        consumer = instance.consumer
        given = call.body.offsets
        await check_partitions(instance.cluster, given or ())
        offsets = consumer.positions if given is None else by_partition(GroupOffsets(given))
        await consumer.commit(offsets)
    return Reply(200, as_shown(offsets))


async def assignment(call: Call[OfInstance, Nothing]) -> Reply:
    """What the member reads now."""
    key = _key(call.parameters.group, call.parameters.instance)
    async with _of(call.client).open.used(key) as instance:
        assigned = instance.consumer.assigned
    return Reply(200, Assignment([Assigned(*one) for one in assigned]))


async def delete(call: Call[OfInstance, Nothing]) -> Reply:
    """Leave the group."""
    key = _key(call.parameters.group, call.parameters.instance)
    instances = _of(call.client).open
    async with instances.used(key):
        instances.drop(key)
    return Reply(204)


_PATH = "/consumers/{group}/instances"
_ONE = _PATH + "/{instance}"
_TAG = "consumer instances"


def _of_one(
    method: str,
    what: str,
    handler: Handler[OfInstance, B],
    body: type[B],
    answer: Answered,
    summary: str,
) -> Route[OfInstance, B]:
    """A call of the member that its path names."""
    return Route(
        method,
        f"{_ONE}/{what}",
        handler,
        summary=summary,
        tag=_TAG,
        parameters=OfInstance,
        body=body,
        answers={200: answer},
        refusals=(404, 409),
    )


ROUTES: list[AnyRoute] = [
    Route(
        "POST",
        _PATH,
        create,
        summary="Make a member of a group",
        description="It is deleted when nobody has asked it for timeout_ms.",
        tag=_TAG,
        parameters=OfGroup,
        body=Create,
        answers={200: Answered(Created, "It subscribes to nothing yet.")},
        refusals=(429,),
    ),
    _of_one(
        "POST",
        "subscription",
        subscribe,
        Subscription,
        Answered(Subscription, "It is a member of its group."),
        "Subscribe to topics, in the place of those before",
    ),
    Route(
        "GET",
        _ONE + "/records",
        records,
        summary="Read on in the partitions that the member is assigned",
        tag=_TAG,
        parameters=Poll,
        body=Nothing,
        answers={
            200: Answered(Given, "Messages that it was not given before."),
            204: Answered(None, "There was none within wait_ms."),
        },
        refusals=(404, 409),
        waits=True,
    ),
    _of_one(
        "POST",
        "offsets",
        commit,
        CommitGiven,
        Answered(GroupOffsets, "They are committed."),
        "Commit offsets, or all that was given out",
    ),
    _of_one(
        "GET",
        "assignment",
        assignment,
        Nothing,
        Answered(Assignment, "What it reads now."),
        "The partitions that the member is assigned",
    ),
    Route(
        "DELETE",
        _ONE,
        delete,
        summary="Leave the group, and delete the member",
        tag=_TAG,
        parameters=OfInstance,
        body=Nothing,
        answers={204: Answered(None, "It is gone.")},
        refusals=(404,),
    ),
]

"""A work queue over a share group (KIP-932): messages go to one asker at a time, and come again
where nobody says that they are done.

A queue is a topic, and a share group of the queue's name unless another is given. What is given out
is locked for the group's `share.record.lock.duration.ms`; a message id says which delivery it is.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from kwire.client.errors import ClientError
from kwire.client.share_consumer import Delivered
from kwire.http.purposes.rest.message_ids import ID_CHARACTERS_MAX, Delivery, Foreign, NoId
from kwire.http.purposes.rest.messages import publish_messages
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.queue_members import Member, Members, Saying
from kwire.http.purposes.rest.records import Message as Published
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.shapes import Group, Topic

TAG = "queues"
COUNT_MAX = 500
WAIT_MS_MAX = 30_000
HEADERS_MAX = 1000
T = TypeVar("T")


class Sent(Struct, frozen=True, forbid_unknown_fields=True):
    """A message for a queue."""

    queue: Topic
    body: str
    key: str | None = None
    headers: Annotated[dict[str, str], Meta(max_length=HEADERS_MAX)] = {}


class Place(Struct, frozen=True):
    """Where a message is."""

    queue: str
    partition: int
    offset: int


class Taking(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for."""

    queue: Topic
    group: Annotated[Group | None, Meta(description="The share group; the queue's name.")] = None
    max: Annotated[int, Meta(ge=1, le=COUNT_MAX, description="At most so many messages.")] = 10
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)] = 500


class Message(Struct, frozen=True, rename="camel"):
    """A delivery. `body` is text; where the bytes are none, `bodyBase64` has them."""

    message_id: str
    body: str | None
    key: str | None
    headers: dict[str, str | None]
    partition: int
    offset: int
    timestamp: int
    delivery_count: int
    body_base64: bytes | UnsetType = UNSET


class Messages(Struct, frozen=True, rename="camel"):
    """Deliveries, and for how long they are locked."""

    messages: list[Message]
    lock_ms: int


class OfMessage(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One delivery."""

    message_id: Annotated[str, Meta(min_length=1, max_length=ID_CHARACTERS_MAX)]


class Renewed(Struct, frozen=True, rename="camel"):
    """For how long a message is locked from now on."""

    lock_ms: int


async def post(call: Call[Nothing, Sent]) -> Reply:
    """Keep a message; the answer comes when all replicas in sync have it."""
    sent = call.body
    message = Published(sent.body.encode(), sent.key, dict(sent.headers))
    try:
        (kept,) = await publish_messages(call.client, sent.queue, [message], "all")
    except Problem as problem:
        told = problem.told
        if told.index is not UNSET:
            told.message = told.message.replace(f"{told.field}: ", "body: ", 1)
            told.field, told.index = "body", UNSET
        raise
    return Reply(200, Place(sent.queue, kept.partition, kept.offset))


async def take(call: Call[Taking, Nothing]) -> Reply:
    """Give messages out."""
    asked = call.parameters
    members = call.client.part(Members, Members)
    group = asked.group or asked.queue
    member = await members.of(asked.queue, group)
    if member.is_full:
        message = "too many messages are held: say what became of them, or wait for their locks"
        raise Problem(429, "too_many_held", message, headers={"retry-after": "1"})
    taken = await _or_end(members, member, member.take(asked.max, asked.wait_ms))
    if not taken:
        return Reply(204)
    key = call.client.key
    found = [_message(one, asked.queue, group, key) for one in taken]
    return Reply(200, Messages(found, int(member.lock_s * 1000)))


async def _or_end(members: Members, member: Member, work: Awaitable[T]) -> T:
    """A member that cannot go on makes room for a new one."""
    try:
        return await work
    except ClientError as error:
        if not error.is_retriable:
            members.ended(member)
        raise


def _message(one: Delivered, queue: str, group: str, caller: bytes) -> Message:
    record = one.record
    delivery = Delivery(queue, group, one.partition, record.offset, one.delivery_count)
    value = bytes(record.value or b"")
    body = _text(value)
    return Message(
        Members.ids.made(delivery, caller),
        body,
        None if record.key is None else bytes(record.key).decode(errors="replace"),
        {_name(name): None if value is None else _shown(value) for name, value in record.headers},
        one.partition,
        record.offset,
        record.timestamp,
        one.delivery_count,
        UNSET if body is not None else value,
    )


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _name(name: str | bytes) -> str:
    return name if isinstance(name, str) else bytes(name).decode(errors="replace")


def _shown(value: bytes | memoryview) -> str:
    return bytes(value).decode(errors="replace")


def _found(call: Call[Nothing, OfMessage]) -> tuple[Members, Member, Delivery]:
    try:
        delivery = Members.ids.read(call.body.message_id, call.client.key)
    except Foreign:
        message = (
            "the message was delivered by another node, to another caller, or before a restart: "
            "it is delivered again when its lock runs out"
        )
        raise Problem(409, "not_held", message, field="messageId") from None
    except NoId:
        message = "messageId: no id that was given out"
        raise Problem(400, "invalid_message_id", message, field="messageId") from None
    members = call.client.part(Members, Members)
    return members, members.known(delivery.queue, delivery.group), delivery


async def _say(call: Call[Nothing, OfMessage], saying: Saying) -> Reply:
    members, member, delivery = _found(call)
    place = (delivery.partition, delivery.offset)
    await _or_end(members, member, member.say(place, delivery.delivery_count, saying))
    return Reply(204)


async def ack(call: Call[Nothing, OfMessage]) -> Reply:
    """The message is done."""
    return await _say(call, Saying.ACK)


async def release(call: Call[Nothing, OfMessage]) -> Reply:
    """Somebody may try again at once."""
    return await _say(call, Saying.RELEASE)


async def reject(call: Call[Nothing, OfMessage]) -> Reply:
    """Nobody is to try again."""
    return await _say(call, Saying.REJECT)


async def renew(call: Call[Nothing, OfMessage]) -> Reply:
    """It takes longer."""
    members, member, delivery = _found(call)
    place = (delivery.partition, delivery.offset)
    lock_s = await _or_end(members, member, member.renew(place, delivery.delivery_count))
    return Reply(200, Renewed(int(lock_s * 1000)))


def _of_message(path: str, summary: str, words: str) -> AnyRoute:
    handlers = {"/ack": ack, "/release": release, "/reject": reject}
    return Route(
        "POST",
        path,
        handlers[path],
        summary=summary,
        tag=TAG,
        parameters=Nothing,
        body=OfMessage,
        answers={204: Answered(None, words)},
        refusals=(409,),
    )


ROUTES: list[AnyRoute] = [
    Route(
        "POST",
        "/messages",
        post,
        summary="Send a message to a queue",
        tag=TAG,
        parameters=Nothing,
        body=Sent,
        answers={200: Answered(Place, "It is kept by all replicas in sync.")},
        refusals=(404, 429),
    ),
    Route(
        "GET",
        "/messages",
        take,
        summary="Take messages of a queue",
        tag=TAG,
        parameters=Taking,
        body=Nothing,
        answers={
            200: Answered(Messages, "Messages; each comes again unless it is acknowledged."),
            204: Answered(None, "None came within `wait_ms`."),
        },
        refusals=(404, 409, 429),
        waits=True,
    ),
    _of_message("/ack", "A message is done", "It does not come again."),
    _of_message("/release", "Give a message back", "It is delivered again."),
    _of_message("/reject", "Give a message up", "It goes to the group's dead letters, if any."),
    Route(
        "POST",
        "/renew",
        renew,
        summary="Keep a message for longer",
        tag=TAG,
        parameters=Nothing,
        body=OfMessage,
        answers={200: Answered(Renewed, "It is locked anew.")},
        refusals=(409,),
    ),
]

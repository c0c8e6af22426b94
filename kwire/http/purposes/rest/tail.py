"""A topic as it grows: server-sent events, one a message.

    id: 0:17,1:4              where each partition is read on after this message
    data: {"partition":0,"offset":16,...}

A client that was cut off sends the last id as `Last-Event-ID` and gets what came since. When there
is nothing to tell, a comment with an id goes out every `HEARTBEAT_S`. One fetch is on its way, and
none while the client does not read what the last one brought. Source: HTML Living Standard,
server-sent events.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError
from kwire.client.fetching import Fetcher
from kwire.client.fetching import Partition as Name
from kwire.client.offsets import EARLIEST, LATEST, Offsets
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.messages import Isolation
from kwire.http.purposes.rest.problems import Problem, problem_of
from kwire.http.purposes.rest.records import from_record
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Route, Streamed
from kwire.http.purposes.rest.shapes import AnOffset, Partition, Topic
from kwire.protocol.records import Record

EVENTS = "text/event-stream"
PARTITIONS_MAX = 100
"""Of a tail of a whole topic: the id of every event tells where all of them are."""
FETCH_BYTES = 256 << 10
WAIT_MS = 500
HEARTBEAT_S = 15.0
RETRY_MS = 1000
ID_CHARACTERS_MAX = 4096
FILTER_CHARACTERS_MAX = 1024
LAST_EVENT_ID = "Last-Event-ID"
_PLACE = re.compile(r"(\d{1,10}):(\d{1,19})")


Filter = Annotated[str, Meta(max_length=FILTER_CHARACTERS_MAX)]
EventId = Annotated[str, Meta(max_length=ID_CHARACTERS_MAX)]


class Tail(Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages: of one partition or of all; from the end on unless something else is said;
    with this key alone, or with this header (`name` or `name:value`)."""

    topic: Topic
    partition: Partition | None = None
    begin: Literal["beginning", "end"] = field(default="end", name="from")
    offset: AnOffset | None = None
    key: Filter | None = None
    header: Filter | None = None
    isolation: Isolation = "read_committed"
    last_event_id: EventId | None = None


async def tail(call: Call[Tail, Nothing]) -> Streamed:
    """What is wrong is said before the first event."""
    asked = call.parameters
    names = await _names(call.client.cluster, asked)
    positions = await _positions(call.client.cluster, asked, names)
    return Streamed(_events(call.client, asked, positions), EVENTS)


async def _names(cluster: Cluster, asked: Tail) -> list[Name]:
    wanted = -1 if asked.partition is None else asked.partition
    topic = await cluster.topic(asked.topic, partition=wanted)
    indexes = sorted(one.partition_index for one in topic.partitions)
    if asked.partition is None:
        if asked.offset is not None:
            raise _wrong("offset", "it is of one partition: say which")
        if len(indexes) > PARTITIONS_MAX:
            raise _wrong("partition", f"it is needed with more than {PARTITIONS_MAX} partitions")
    elif asked.partition not in indexes:
        message = f"topic {asked.topic} has no partition {asked.partition}"
        raise Problem(404, "not_found", message, parameter="partition")
    else:
        indexes = [asked.partition]
    return [(asked.topic, index) for index in indexes]


async def _positions(cluster: Cluster, asked: Tail, names: Sequence[Name]) -> dict[Name, int]:
    offsets = Offsets(cluster)
    if asked.last_event_id is None and asked.offset is None:
        return await offsets.at(names, EARLIEST if asked.begin == "beginning" else LATEST)
    first = await offsets.at(names, EARLIEST)
    if asked.last_event_id is not None:
        # A partition that the id does not know is new: all of it came since. Of one that has
        # lost messages meanwhile, those that are left are what came.
        known = _read(asked.last_event_id)
        return {name: max(first[name], known.get(name[1], 0)) for name in names}
    ((name, last),) = (await offsets.at(names, LATEST)).items()
    if not first[name] <= (asked.offset or 0) <= last:
        message = f"offset {asked.offset} is out of range: {first[name]} to {last} can be read"
        raise Problem(416, "offset_out_of_range", message, parameter="offset")
    return {name: asked.offset or 0}


def _read(text: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in text.split(","):
        place = _PLACE.fullmatch(part)
        if place is None or int(place[2]) >= 2**63:
            message = f"{LAST_EVENT_ID}: expected the id of an event, such as 0:17,1:4"
            raise Problem(400, "invalid_header", message, header=LAST_EVENT_ID)
        found[int(place[1])] = int(place[2])
    return found


def _wrong(parameter: str, what: str) -> Problem:
    return Problem(400, "invalid_parameter", f"{parameter}: {what}", parameter=parameter)


async def _events(
    client: Client, asked: Tail, positions: dict[Name, int]
) -> AsyncGenerator[bytes, None]:
    wanted = _Wanted(asked)
    async with client.reader() as cluster:
        fetcher = Fetcher(
            cluster,
            committed_only=asked.isolation == "read_committed",
            bytes_max=FETCH_BYTES,
            wait_ms=WAIT_MS,
        )
        yield b"retry: %d\n%s\n\n" % (RETRY_MS, _id(positions))
        told_s = cluster.loop.time()
        while True:
            try:
                found = await fetcher.fetch(positions)
            except ClientError as error:
                yield b"event: error\ndata: %s\n\n" % problem_of(error).body()
                return
            for name, fetched in found.items():
                events: list[bytes] = []
                for record in fetched.records:
                    positions[name] = record.offset + 1
                    if wanted.has(record):
                        events.append(_event(record, name, positions))
                positions[name] = max(positions[name], fetched.next_offset)
                if events:
                    yield b"".join(events)
                    told_s = cluster.loop.time()
            if cluster.loop.time() - told_s >= HEARTBEAT_S:
                yield b": heartbeat\n%s\n\n" % _id(positions)
                told_s = cluster.loop.time()


def _id(positions: dict[Name, int]) -> bytes:
    places = ",".join(f"{index}:{offset}" for (_, index), offset in positions.items())
    return b"id: " + places.encode()


def _event(record: Record, name: Name, positions: dict[Name, int]) -> bytes:
    told = from_record(record)
    told.partition = name[1]
    return b"%s\ndata: %s\n\n" % (_id(positions), msgspec.json.encode(told))


class _Wanted:
    """Which records are told."""

    def __init__(self, asked: Tail) -> None:
        self._key = None if asked.key is None else asked.key.encode()
        name, colon, value = (asked.header or "").partition(":")
        self._header = name if asked.header is not None else None
        self._value = value.encode() if colon else None

    def has(self, record: Record) -> bool:
        if self._key is not None and (record.key is None or bytes(record.key) != self._key):
            return False
        return self._header is None or any(map(self._is_header, record.headers))

    def _is_header(self, header: tuple[str | bytes, bytes | None]) -> bool:
        name, value = header
        shown = name if isinstance(name, str) else bytes(name).decode(errors="replace")
        if shown != self._header:
            return False
        return self._value is None or (value is not None and bytes(value) == self._value)


ROUTES: list[AnyRoute] = [
    Route(
        "GET",
        "/topics/{topic}/tail",
        tail,
        summary="Messages as they come, as server-sent events",
        description=(
            "Of one partition or all; from the end, `from` the beginning or an offset of the one; "
            "with a `key` or a `header` (`name` or `name:value`) alone. Each event's data is a "
            "message as JSON. Its id says where all partitions are read on: sent as Last-Event-ID, "
            "it brings what came since. An event `error` ends the answer."
        ),
        tag="messages",
        parameters=Tail,
        headers={"last_event_id": LAST_EVENT_ID},
        body=Nothing,
        answers={200: Answered(None, "Events, until the client leaves.", EVENTS)},
        refusals=(404, 416),
    ),
]

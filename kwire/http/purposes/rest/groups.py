"""What groups have committed: offsets read, written, and set to a place in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from kwire.client.cluster import Cluster
from kwire.client.offsets import EARLIEST, LATEST, Offsets
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.shapes import (
    INT64_MAX,
    GroupOffset,
    GroupOffsets,
    OfGroup,
    Topic,
)


class Timestamp(Struct, frozen=True, forbid_unknown_fields=True):
    """The first message that is as late, in ms."""

    timestamp: Annotated[int, Meta(ge=0, le=INT64_MAX)]


class Seek(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a group is to read on in all partitions of a topic."""

    topic: Topic
    to: Literal["beginning", "end"] | Timestamp


def by_partition(offsets: GroupOffsets) -> dict[tuple[str, int], int]:
    """As the client has them; Problem where a partition is named twice."""
    found: dict[tuple[str, int], int] = {}
    for at, one in enumerate(offsets.offsets):
        name = (one.topic, one.partition)
        if name in found:
            field = f"offsets[{at}]"
            message = f"{field}: {one.topic}-{one.partition} is there already"
            raise Problem(400, "invalid_body", message, field=field, index=at)
        found[name] = one.offset
    return found


def as_shown(offsets: Mapping[tuple[str, int], int]) -> GroupOffsets:
    """The same as JSON has them."""
    return GroupOffsets(
        [GroupOffset(topic, index, offset) for (topic, index), offset in sorted(offsets.items())]
    )


async def check_partitions(cluster: Cluster, offsets: Sequence[GroupOffset]) -> None:
    """Whether there are such partitions: a coordinator would be asked again and again, for a topic
    may be new. Problem 404, ClientError."""
    counts: dict[str, int] = {}
    for at, one in enumerate(offsets):
        count = counts.get(one.topic)
        if count is None or one.partition >= count:
            found = await cluster.topic(one.topic, partition=one.partition)
            count = counts[one.topic] = len(found.partitions)
        if one.partition >= count:
            field = f"offsets[{at}]"
            message = f"{field}: topic {one.topic} has no partition {one.partition}"
            raise Problem(404, "not_found", message, field=field, index=at)


async def commit(call: Call[OfGroup, GroupOffsets]) -> Reply:
    """Commit on behalf of nobody: a group with members refuses it."""
    offsets = by_partition(call.body)
    await check_partitions(call.client.cluster, call.body.offsets)
    if offsets:
        await Offsets(call.client.cluster).commit(call.parameters.group, offsets)
    return Reply(200, call.body)


async def committed(call: Call[OfGroup, Nothing]) -> Reply:
    """What the group has committed."""
    found = await Offsets(call.client.cluster).committed(call.parameters.group)
    return Reply(200, as_shown(found))


async def seek(call: Call[OfGroup, Seek]) -> Reply:
    """Commit the offsets of a place in time."""
    topic, to = call.body.topic, call.body.to
    offsets = Offsets(call.client.cluster)
    ends: dict[int, int] = {}
    if isinstance(to, Timestamp):
        found = await offsets.of_topic(topic, to.timestamp)
        if any(offset < 0 for offset in found.values()):  # nothing is as late
            ends = await offsets.of_topic(topic, LATEST)
    else:
        found = await offsets.of_topic(topic, EARLIEST if to == "beginning" else LATEST)
    moved = {
        (topic, index): ends[index] if offset < 0 else offset for index, offset in found.items()
    }
    await offsets.commit(call.parameters.group, moved)
    return Reply(200, as_shown(moved))


ROUTES: list[AnyRoute] = [
    Route(
        "POST",
        "/consumers/{group}/offsets",
        commit,
        summary="Commit offsets of a group without members",
        tag="groups",
        parameters=OfGroup,
        body=GroupOffsets,
        answers={200: Answered(GroupOffsets, "They are committed.")},
        refusals=(404, 409),
    ),
    Route(
        "GET",
        "/consumers/{group}/offsets",
        committed,
        summary="What a group has committed",
        tag="groups",
        parameters=OfGroup,
        body=Nothing,
        answers={200: Answered(GroupOffsets, "Empty where it has committed nothing.")},
        refusals=(404,),
    ),
    Route(
        "POST",
        "/consumers/{group}/seek",
        seek,
        summary="Have a group without members read on elsewhere",
        description=(
            "At a time: from the first message that is as late, at the end where there is none."
        ),
        tag="groups",
        parameters=OfGroup,
        body=Seek,
        answers={200: Answered(GroupOffsets, "The offsets that are committed by it.")},
        refusals=(404, 409),
    ),
]

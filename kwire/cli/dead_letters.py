"""The work of `kwire share`: dead letters of a group listed, and redriven. See `share.py`."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from kwire.cli import output
from kwire.cli.record_format import json_value
from kwire.client.cluster import Cluster
from kwire.client.dead_letters.filters import Filter, Subject
from kwire.client.dead_letters.letters import DeadLetter
from kwire.client.dead_letters.originals import Absence, Original, Originals
from kwire.client.dead_letters.progress import Progress, from_position
from kwire.client.dead_letters.redrive import (
    Gone,
    Left,
    PartitionRedrive,
    Sent,
    Told,
    progress_group,
    transactional_id,
)
from kwire.client.dead_letters.source import Source, Stranger, topic_of
from kwire.client.errors import ClientError
from kwire.client.offsets import Offsets
from kwire.client.transactional_producer import TransactionalProducer

CELL_CHARACTERS_MAX = 60
SETTLED, WAITING = "settled", "waiting"


class Listed(NamedTuple):
    """One dead letter in a `partition` of the dead letter `topic`; `is_settled` is None where
    the progress of redrives may not be read."""

    topic: str
    partition: int
    letter: DeadLetter
    original: Original | Absence | None
    is_settled: bool | None


# -- listed


async def listed(
    cluster: Cluster,
    group: str,
    topic: str | None,
    wanted: Filter,
    reads_originals: bool,
    show: Callable[[Listed], bool],
    strange: Callable[[str], None],
) -> None:
    """Show the dead letters of a group, partition by partition, until `show` says that it is
    enough; `strange` gets a line for each record that is none. ClientError."""
    source = Source(cluster, topic or await topic_of(cluster, group), group)
    originals = Originals(cluster) if reads_originals or wanted.needs_headers else None
    partitions = await source.partitions()
    progress = await _progress(cluster, source)
    for index in partitions:
        settled = None if progress is None else progress.get(index, Progress())
        async for letter, original in _letters(source, index, originals, strange):
            headers = original.headers if isinstance(original, Original) else ()
            if not wanted.matches(Subject(letter, headers, cluster.clock.wall_ms())):
                continue
            is_settled = None if settled is None else settled.is_settled(letter.offset)
            if not show(Listed(source.topic, index, letter, original, is_settled)):
                return


async def _letters(
    source: Source, index: int, originals: Originals | None, strange: Callable[[str], None]
) -> AsyncIterator[tuple[DeadLetter, Original | Absence | None]]:
    at, end = await source.bounds(index)
    while at < end:
        found = await source.read(index, at, end)
        for stranger in found.strangers:
            strange(_no_letter(source.topic, index, stranger))
        letters = found.letters
        while letters and originals is not None:
            loaded = await originals.load(letters)
            for pair in zip(letters, loaded):
                yield pair
            letters = letters[len(loaded) :]
        for letter in letters:
            yield letter, None
        at = found.end


async def _progress(cluster: Cluster, source: Source) -> dict[int, Progress] | None:
    """Of redrives, by partition; None where it may not be read, or is something else."""
    try:
        found = await Offsets(cluster).positions(progress_group(source.group))
        return {
            index: from_position(position)
            for (topic, index), position in found.items()
            if topic == source.topic
        }
    except ClientError:
        return None


LIST_COLUMNS = ("letter", "from", "written", "deliveries", "reason", "state", "key", "value")


def row(one: Listed) -> tuple[output.Json, ...]:
    """A letter for people: what is long is cut."""
    letter = one.letter
    written = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(
        milliseconds=min(max(letter.timestamp, 0), 253_402_300_799_000)
    )
    if isinstance(one.original, Original):
        key, value = _cell(one.original.key), _cell(one.original.value)
    else:
        key = _cell(letter.key)
        value = _cell(letter.value)
        if one.original is not None:
            value = f"({one.original.value})"
    return (
        f"{one.topic}-{one.partition}:{letter.offset}",
        f"{letter.origin.topic}-{letter.origin.partition}:{letter.origin.offset}",
        written.strftime("%Y-%m-%dT%H:%M:%SZ"),
        letter.delivery_count,
        _printable(letter.reason),
        _state(one.is_settled),
        key,
        value,
    )


def as_object(one: Listed) -> dict[str, output.Json]:
    """A letter for programs: all of it."""
    letter, original = one.letter, one.original
    found: dict[str, output.Json] = {
        "letter": {"topic": one.topic, "partition": one.partition, "offset": letter.offset},
        "topic": letter.origin.topic,
        "partition": letter.origin.partition,
        "offset": letter.origin.offset,
        "group": letter.group,
        "written": letter.timestamp,
        "deliveries": letter.delivery_count,
        "reason": letter.reason,
        "state": _state(one.is_settled) or None,
    }
    if isinstance(original, Original):
        return found | {
            "original": "copied" if original.is_copied else "read",
            "timestamp": original.timestamp,
            "key": json_value(original.key),
            "value": json_value(original.value),
            "headers": [
                [json_value(name.encode() if isinstance(name, str) else name), json_value(value)]
                for name, value in original.headers
            ],
        }
    return found | {
        "original": None if original is None else original.value,
        "timestamp": None,
        "key": json_value(letter.key),
        "value": json_value(letter.value),
        "headers": None,
    }


def _state(is_settled: bool | None) -> str:
    return "" if is_settled is None else SETTLED if is_settled else WAITING


def _cell(value: bytes | None) -> str:
    if value is None:
        return ""
    return _printable(bytes(value[: 4 * CELL_CHARACTERS_MAX]).decode(errors="replace"))


def _printable(text: str) -> str:
    """One line that changes no terminal, and not a long one."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return shown if len(shown) <= CELL_CHARACTERS_MAX else f"{shown[: CELL_CHARACTERS_MAX - 3]}..."


# -- redriven


class Sums:
    """What a redrive has done so far."""

    def __init__(self) -> None:
        self.sent: dict[str, int] = {}
        self.gone = 0
        self.left = 0

    def add(self, told: Told) -> None:
        if isinstance(told, Sent):
            topic = told.letter.origin.topic
            self.sent[topic] = self.sent.get(topic, 0) + 1
        elif isinstance(told, Gone):
            self.gone += 1
        elif isinstance(told, Left):
            self.left += 1

    def __bool__(self) -> bool:
        return bool(self.sent or self.gone or self.left)

    def text(self, is_dry: bool) -> str:
        """In one line."""
        would = "would be " if is_dry else ""
        parts = [f"{count} {would}sent to {topic}" for topic, count in self.sent.items()]
        parts = parts or [f"0 {would}sent"]
        if self.gone:
            parts.append(f"{self.gone} gone")
        if self.left:
            parts.append(f"{self.left} left")
        return ", ".join(parts)


async def redriven(
    cluster: Cluster,
    group: str,
    topic: str | None,
    wanted: Filter,
    *,
    is_dry: bool,
    count_max: int,
    trusts_offsets: bool,
    tell: Callable[[str, int, Told], None],
) -> None:
    """Redrive what a group's dead letter topic has now; `tell` gets (topic, partition, what).
    ClientError, with what was told until then done."""
    source = Source(cluster, topic or await topic_of(cluster, group), group)
    originals = Originals(cluster, trusts_offsets=trusts_offsets)
    sent = 0
    for index in await source.partitions():
        identity = transactional_id(source.topic, index, group)

        def said(told: Told, index: int = index) -> None:
            tell(source.topic, index, told)

        redrive = PartitionRedrive(
            source,
            originals,
            Offsets(cluster),
            None if is_dry else TransactionalProducer(cluster, identity),
            index,
            wanted,
            cluster.clock.wall_ms(),
            said,
        )
        sent += await redrive.run(count_max - sent if count_max else None)
        if count_max and sent >= count_max:
            return


def line(topic: str, index: int, told: Told, is_dry: bool) -> str:
    """What is told of one record, for people."""
    if isinstance(told, Stranger):
        return _no_letter(topic, index, told)
    where = f"{topic}-{index} offset {told.letter.offset}"
    if isinstance(told, Gone):
        return f"gone: {told.letter.origin}: {told.absence.value} ({where})"
    if isinstance(told, Left):
        return f"left: {told.letter.origin}: {told.reason} ({where})"
    what = "would be sent" if is_dry else "sent"
    copied = ", from the copy in the dead letter" if told.is_copied else ""
    return f"{what}: {told.letter.origin}{copied} ({where})"


def told_object(topic: str, index: int, told: Told, is_dry: bool) -> dict[str, output.Json]:
    """The same for programs."""
    offset = told.offset if isinstance(told, Stranger) else told.letter.offset
    found: dict[str, output.Json] = {
        "letter": {"topic": topic, "partition": index, "offset": offset}
    }
    if isinstance(told, Stranger):
        return {"what": "no dead letter", "reason": told.reason, **found}
    origin = told.letter.origin
    found |= {"topic": origin.topic, "partition": origin.partition, "offset": origin.offset}
    if isinstance(told, Gone):
        return {"what": "gone", "reason": told.absence.value, **found}
    if isinstance(told, Left):
        return {"what": "left", "reason": told.reason, **found}
    new = None if is_dry else told.offset
    what = "would be sent" if is_dry else "sent"
    return {"what": what, "copied": told.is_copied, "new_offset": new, **found}


def _no_letter(topic: str, index: int, stranger: Stranger) -> str:
    return f"no dead letter: {topic}-{index} offset {stranger.offset}: {stranger.reason}"

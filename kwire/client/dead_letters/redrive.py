"""Dead letters sent once more to where they came from: each once, whatever ends who does it.

For each partition of the dead letter topic, round by round: letters are read, the filter chooses,
originals are read, and one transaction holds the records that go to the origin partitions and the
progress, committed for a group of its own (`progress_group`). The transactional id is one for the
partition and the group: who begins ends the transaction of who was there before, then reads the
progress. So the progress decides what was sent, also where an answer was lost.

Letters that the filter does not choose stay, and so do those whose topic is missing: a later
redrive may send them. What retention or compaction has taken is told, and settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from kwire.client.dead_letters.filters import Filter, Subject
from kwire.client.dead_letters.letters import DeadLetter
from kwire.client.dead_letters.originals import Absence, Original
from kwire.client.dead_letters.progress import Progress, from_position, to_position
from kwire.client.dead_letters.source import Letters, Stranger
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.offsets import Partition, Position
from kwire.client.producer import Outgoing
from kwire.client.transactional_producer import Fenced, Identity
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec

PREFIX = "kwire-redrive/"
BATCH_BYTES_MAX = 512 << 10
_REFUSALS = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
)
"""What a topic may have against one record: others go on."""


def progress_group(group: str) -> str:
    """The group that keeps how far the dead letters of a share group are redriven."""
    return f"{PREFIX}{group}"


def transactional_id(topic: str, partition: int, group: str) -> str:
    """One for each partition of a dead letter topic and group. No topic has a slash in its name."""
    return f"{PREFIX}{topic}-{partition}/{group}"


class Sent(NamedTuple):
    """A letter that is redriven: `offset` is where its record is now, in its origin partition; -1
    where it would be sent."""

    letter: DeadLetter
    offset: int
    is_copied: bool


class Gone(NamedTuple):
    """A letter that cannot be redriven any more."""

    letter: DeadLetter
    absence: Absence


class Left(NamedTuple):
    """A letter that was chosen, is not sent, and stays; `reason` is for a user."""

    letter: DeadLetter
    reason: str


Told: TypeAlias = "Sent | Gone | Left | Stranger"


class Reads(Protocol):
    """What `source.Source` does."""

    topic: str
    group: str

    async def bounds(self, partition: int) -> tuple[int, int]: ...

    async def read(self, partition: int, offset: int, end: int) -> Letters: ...


class Loads(Protocol):
    """What `originals.Originals` does."""

    async def load(self, letters: Sequence[DeadLetter]) -> list[Original | Absence]: ...


class Keeps(Protocol):
    """What `offsets.Offsets` does."""

    async def positions(self, group: str, *, stable: bool = False) -> dict[Partition, Position]: ...


class Produces(Protocol):
    """What `transactional_producer.TransactionalProducer` does."""

    @property
    def identity(self) -> Identity: ...

    async def open(self) -> None: ...

    async def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[Outgoing],
        *,
        codec: Codec = Codec.NONE,
    ) -> int: ...

    async def commit_offsets(self, group: str, positions: Mapping[Partition, Position]) -> None: ...

    async def commit(self) -> None: ...

    async def abort(self) -> None: ...


class _Chosen(NamedTuple):
    letter: DeadLetter
    original: Original


class _Round(NamedTuple):
    """What becomes of the letters up to `end`: `left` are the offsets of those that stay."""

    end: int
    chosen: list[_Chosen]
    left: list[int]
    told: list[Told]


class _Refused(Exception):
    """A batch that its partition does not take."""

    def __init__(self, letters: list[DeadLetter], error: RequestFailed) -> None:
        super().__init__(str(error))
        self.letters = letters


class PartitionRedrive:
    """The redrive of one partition of a dead letter topic. Without a `producer` nothing is sent,
    only told."""

    def __init__(
        self,
        source: Reads,
        originals: Loads,
        keeper: Keeps,
        producer: Produces | None,
        partition: int,
        wanted: Filter,
        now_ms: int,
        tell: Callable[[Told], None],
    ) -> None:
        self._source = source
        self._originals = originals
        self._keeper = keeper
        self._producer = producer
        self._partition = partition
        self._wanted = wanted
        self._now_ms = now_ms
        self._tell = tell
        self._group = progress_group(source.group)
        self._name = (source.topic, partition)
        self._what = f"{source.topic}-{partition}"
        self._stored: Position | None = None
        self._progress = Progress()

    async def run(self, sent_max: int | None = None) -> int:
        """Redrive what is there now, at most so many letters; how many. ClientError, with all that
        was told until then done."""
        if self._producer is not None:
            await self._producer.open()
        self._stored = await self._committed()
        self._progress = self._read_progress()
        first, end = await self._source.bounds(self._partition)
        if self._progress.first > end:
            raise ClientError(
                f"{self._what}: the redrive is at offset {self._progress.first}, behind the end "
                f"({end}): the topic was made anew; delete group {self._group} to begin again"
            )
        self._progress = self._progress.after(0, first)
        sent = 0
        at = self._progress.first
        is_kept = False
        while at < end and (sent_max is None or sent < sent_max):
            found = await self._source.read(self._partition, at, end)
            planned = await self._plan(found, None if sent_max is None else sent_max - sent)
            is_changed = self._progress.after(at, planned.end, planned.left) != self._progress
            if is_changed or planned.chosen:
                is_kept = True
                sent += await self._settle(at, planned)
            else:
                self._tell_all(planned.told)
            at = planned.end
        if self._stored is not None and not is_kept:
            # What is committed again does not expire (offsets.retention.minutes).
            await self._settle(at, _Round(at, [], [], []))
        return sent

    async def _committed(self) -> Position | None:
        found = await self._keeper.positions(self._group, stable=True)
        return found.get(self._name)

    def _read_progress(self) -> Progress:
        if self._stored is None:
            return Progress()
        try:
            return from_position(self._stored)
        except ClientError as error:
            raise ClientError(f"group {self._group}, {self._what}: {error}") from None

    async def _plan(self, found: Letters, count_max: int | None) -> _Round:
        """What is to become of what was read, or of the first part of it."""
        left: list[int] = []
        asked: list[DeadLetter] = []
        end = found.end
        for letter in found.letters:
            if self._progress.is_settled(letter.offset):
                continue
            if not self._wanted.needs_headers and not self._matches(letter, None):
                left.append(letter.offset)
            elif count_max is not None and len(asked) == count_max:
                end = letter.offset
                break
            else:
                asked.append(letter)
        originals = await self._originals.load(asked) if asked else []
        if len(originals) < len(asked):
            end = min(end, asked[len(originals)].offset)
        chosen: list[_Chosen] = []
        told: list[Told] = [one for one in found.strangers if one.offset < end]
        for letter, original in zip(asked, originals):
            if self._wanted.needs_headers and not self._matches(letter, original):
                left.append(letter.offset)
            elif isinstance(original, Original):
                chosen.append(_Chosen(letter, original))
            elif original.is_final:
                told.append(Gone(letter, original))
            else:
                left.append(letter.offset)
                told.append(Left(letter, original.value))
        return _Round(end, chosen, sorted(x for x in left if x < end), told)

    def _matches(self, letter: DeadLetter, original: Original | Absence | None) -> bool:
        headers = original.headers if isinstance(original, Original) else ()
        return self._wanted.matches(Subject(letter, headers, self._now_ms))

    async def _settle(self, at: int, planned: _Round) -> int:
        """One transaction, or more tries where a partition refuses records; how many were sent."""
        refused: dict[int, Left] = {}
        is_single = False
        while True:
            left = sorted([*planned.left, *refused])
            progress = self._progress.after(at, planned.end, left)
            chosen = [one for one in planned.chosen if one.letter.offset not in refused]
            try:
                told = await self._transaction(chosen, progress, is_single)
            except _Refused as error:
                await self._begin_again()
                if len(error.letters) == 1 and is_single:
                    refused[error.letters[0].offset] = Left(error.letters[0], str(error))
                is_single = True
                continue
            self._progress = progress
            self._tell_all([*planned.told, *refused.values(), *told])
            return len(chosen)

    def _tell_all(self, told: Sequence[Told]) -> None:
        for one in sorted(told, key=_offset_of):
            self._tell(one)

    async def _transaction(
        self, chosen: list[_Chosen], progress: Progress, is_single: bool
    ) -> list[Told]:
        by = None if self._producer is None else self._producer.identity
        position = to_position(progress, by)
        if position is None:
            raise ClientError(
                f"{self._what}: no room to note what the filter leaves between; nothing more is "
                "sent: redrive with a wider filter, or with none, first"
            )
        if self._producer is None:
            return [Sent(one.letter, -1, one.original.is_copied) for one in chosen]
        told: list[Told] = []
        try:
            for batch in _batches(chosen, 1 if is_single else len(chosen)):
                offset = await self._send(self._producer, batch, is_single)
                for at, one in enumerate(batch):
                    told.append(Sent(one.letter, offset + at, one.original.is_copied))
            await self._producer.commit_offsets(self._group, {self._name: position})
        except (Exception, asyncio.CancelledError):
            await self._producer.abort()
            raise
        try:
            await self._producer.commit()
        except Fenced:
            raise
        except ClientError:
            await self._producer.open()
            if await self._committed() != position:
                raise
        self._stored = position
        return told

    async def _send(self, producer: Produces, batch: list[_Chosen], is_single: bool) -> int:
        topic, partition, _ = batch[0].letter.origin
        records = [
            Outgoing(one.original.key, one.original.value, one.original.headers) for one in batch
        ]
        # A record that was compressed may be too large as it is.
        codec = Codec.GZIP if is_single else Codec.NONE
        try:
            return await producer.send(topic, partition, records, codec=codec)
        except RequestFailed as error:
            if error.code not in _REFUSALS:
                raise
            raise _Refused([one.letter for one in batch], error) from None

    async def _begin_again(self) -> None:
        assert self._producer is not None
        await self._producer.open()
        if await self._committed() != self._stored:
            raise Fenced(f"{self._what}: another redrive works on it")


def _batches(chosen: list[_Chosen], records_max: int) -> list[list[_Chosen]]:
    """Those of one partition in their order, in batches of BATCH_BYTES_MAX and one at least."""
    batches: list[list[_Chosen]] = []
    open_ones: dict[Partition, tuple[list[_Chosen], int]] = {}
    for one in chosen:
        name = (one.letter.origin.topic, one.letter.origin.partition)
        size = one.original.size_bytes
        batch, taken = open_ones.get(name, ([], 0))
        if not batch or len(batch) == records_max or taken + size > BATCH_BYTES_MAX:
            batch, taken = [], 0
            batches.append(batch)
        batch.append(one)
        open_ones[name] = batch, taken + size
    return batches


def _offset_of(told: Told) -> int:
    return told.offset if isinstance(told, Stranger) else told.letter.offset

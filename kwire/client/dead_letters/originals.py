"""The records that dead letters are of, read at their origin offsets."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from kwire.client.cluster import Cluster
from kwire.client.dead_letters.letters import DeadLetter, Origin
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.fetching import Fetcher, Partition
from kwire.client.offsets import EARLIEST, LATEST, Offsets
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record

FETCH_BYTES_MAX = 256 << 10
ROUND_BYTES_MAX = 4 << 20
ANSWERLESS_S = 20.0
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


class Absence(enum.Enum):
    """Why there is no original; the value is how it is said."""

    RETENTION = "retention took it"
    COMPACTION = "there is no record any more: compaction took it"
    END = "it is behind the end of the partition: the topic was made anew"
    NO_TOPIC = "the topic does not exist"
    NO_PARTITION = "the topic has no such partition"
    YOUNGER = "the record there is younger than the dead letter: the topic was made anew"
    DIFFERENT = "the record there is another one than was copied: the topic was made anew"

    @property
    def is_final(self) -> bool:
        """Whether it cannot come back."""
        return self in (Absence.RETENTION, Absence.COMPACTION)

    @property
    def allows_copy(self) -> bool:
        """Whether what the dead letter has copied may stand for it."""
        return self not in (Absence.COMPACTION, Absence.NO_TOPIC, Absence.NO_PARTITION)


class Original(NamedTuple):
    """What there is of a record; `is_copied` where it is the dead letter's copy, which has no
    headers and no time of the original's."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str | bytes, bytes | None], ...]
    timestamp: int | None
    is_copied: bool = False

    @property
    def size_bytes(self) -> int:
        """Roughly what it takes in a batch."""
        sizes = [len(self.key or b""), len(self.value or b"")]
        sizes += [len(name) + len(value or b"") for name, value in self.headers]
        return sum(sizes) + 8 * len(sizes)


class Originals:
    """Reads originals; `trusts_offsets` takes what is at an offset for the original even where it
    is younger than its dead letter (producers with clocks that are ahead)."""

    def __init__(self, cluster: Cluster, *, trusts_offsets: bool = False) -> None:
        self._cluster = cluster
        self._offsets = Offsets(cluster)
        # What a read_uncommitted group was given may be a part of an aborted transaction.
        self._fetcher = Fetcher(cluster, bytes_max=FETCH_BYTES_MAX, wait_ms=0)
        self._trusts_offsets = trusts_offsets

    async def load(self, letters: Sequence[DeadLetter]) -> list[Original | Absence]:
        """The originals of the first ones, as many as fit into ROUND_BYTES_MAX and at least one.
        ClientError where a topic may not be read."""
        wanted: dict[Partition, set[int]] = {}
        for letter in letters:
            topic, partition, offset = letter.origin
            wanted.setdefault((topic, partition), set()).add(offset)
        read: dict[Origin, Original | Absence] = {}
        found: list[Original | Absence] = []
        size = 0
        for letter in letters:
            topic, partition, offset = letter.origin
            if letter.origin not in read:
                await self._read(topic, partition, offset, wanted[topic, partition], read)
            original = self._judged(letter, read[letter.origin])
            if isinstance(original, Original):
                size += original.size_bytes
            if found and size > ROUND_BYTES_MAX:
                break
            found.append(original)
        return found

    def _judged(self, letter: DeadLetter, found: Original | Absence) -> Original | Absence:
        if isinstance(found, Original):
            if letter.is_copy and (letter.key, letter.value) != (found.key, found.value):
                found = Absence.DIFFERENT
            elif not letter.is_copy and not self._trusts_offsets and _is_younger(found, letter):
                found = Absence.YOUNGER
        if isinstance(found, Absence) and letter.is_copy and found.allows_copy:
            return Original(letter.key, letter.value, (), None, is_copied=True)
        return found

    async def _read(
        self,
        topic: str,
        partition: int,
        offset: int,
        wanted: set[int],
        read: dict[Origin, Original | Absence],
    ) -> None:
        """Learn of the record at an offset, and of those wanted that come with it."""
        missing = await self._missing(topic, partition, offset)
        origin = Origin(topic, partition, offset)
        if missing is not None:
            read[origin] = missing
            return
        end_s = self._cluster.loop.time() + ANSWERLESS_S
        while True:
            try:
                answer = await self._fetcher.fetch({(topic, partition): offset})
            except RequestFailed as error:
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                read[origin] = await self._missing(topic, partition, offset) or Absence.RETENTION
                return
            fetched = answer.get((topic, partition))
            if fetched is not None and fetched.next_offset > offset:
                break
            if self._cluster.loop.time() > end_s:
                raise ClientError(f"{origin}: it is not read for {ANSWERLESS_S:.0f} s")
        for record in fetched.records:
            if record.offset in wanted:
                read[Origin(topic, partition, record.offset)] = _original(record)
        for each in sorted(wanted):
            if offset <= each < fetched.next_offset:
                read.setdefault(Origin(topic, partition, each), Absence.COMPACTION)

    async def _missing(self, topic: str, partition: int, offset: int) -> Absence | None:
        """Why nothing can be at an offset."""
        try:
            known = await self._cluster.topic(topic)
        except RequestFailed as error:
            if error.code not in _UNKNOWN:
                raise
            return Absence.NO_TOPIC
        if all(entry.partition_index != partition for entry in known.partitions):
            return Absence.NO_PARTITION
        name = (topic, partition)
        if offset < (await self._offsets.at([name], EARLIEST))[name]:
            return Absence.RETENTION
        if offset >= (await self._offsets.at([name], LATEST))[name]:
            return Absence.END
        return None


def _is_younger(original: Original, letter: DeadLetter) -> bool:
    return original.timestamp is not None and original.timestamp > letter.timestamp


def _original(record: Record) -> Original:
    return Original(
        _kept(record.key),
        _kept(record.value),
        tuple((name, _kept(value)) for name, value in record.headers),
        record.timestamp,
    )


def _kept(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)

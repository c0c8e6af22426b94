"""What has been committed, as the checkers know it: the union of what any leader has committed.

A `CommittedLog` grows when a leader's high watermark moves, and never changes: another leader, a
follower or a client that has something else at one of its offsets has broken a promise. From it
follow the transactions and exactly what a read_committed consumer gets.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from kwire.protocol.records import BatchHeader, iterate_headers, read_batch
from kwire.protocol.records.control import ControlType, parse_control


class Violation(AssertionError):
    """A promise is broken. The text names what and where."""


class Batch(NamedTuple):
    """A committed batch: offsets (inclusive), the leader epoch in it, its checksum."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


def batch_of(header: BatchHeader) -> Batch:
    """What is compared of a batch."""
    return Batch(header.base_offset, header.last_offset, header.partition_leader_epoch, header.crc)


class Visible(NamedTuple):
    """A record that consumers may see."""

    offset: int
    value: bytes


class Keyed(NamedTuple):
    """A record of a compacted log."""

    key: bytes
    value: bytes | None
    is_transactional: bool


class CommittedLog:
    """One partition. `end` is the largest high watermark any leader has reached."""

    def __init__(self, name: str, *, is_user_topic: bool, is_compacted: bool = False) -> None:
        """`is_compacted`: the cleaner takes records out of it, so records are compared, by key."""
        self.name = name
        self.is_compacted = is_compacted
        self.keyed: dict[int, Keyed] = {}  # of a compacted log, by offset
        self.end = 0
        self.batches: list[Batch] = []
        self.starts: list[int] = []
        self.commit_epochs: list[tuple[int, int]] = []  # (epoch of a committing leader, end)
        self.values: dict[int, bytes] = {}  # of every data record, by offset
        self.visible: list[Visible] = []  # to read_committed, in order
        self.aborted: dict[bytes, None] = {}
        self.last_stable_offset = 0
        self._is_user_topic = is_user_topic
        self._open: dict[int, int] = {}  # producer id -> first offset of its transaction
        self._undecided: list[tuple[int, bytes, int]] = []  # offset, value, producer id or -1
        self._decided: dict[tuple[int, int], bool] = {}  # (producer id, first offset) -> commit
        self._first: dict[int, int] = {}  # undecided offset -> its transaction's first offset
        self._sequences: dict[bytes, int] = {}

    def is_open(self, producer_id: int) -> bool:
        """Whether a transaction of this producer has no marker yet."""
        return producer_id in self._open

    # -- growing

    def end_before(self, leader_epoch: int) -> int:
        """What leaders of earlier epochs have committed: a leader at this one must have it.

        A node that is behind with the metadata may begin a leadership that has been over for long;
        it commits nothing, and what later leaders commit it need not have.
        """
        return max((end for epoch, end in self.commit_epochs if epoch < leader_epoch), default=0)

    def extend(self, data: Any, high_watermark: int, leader_epoch: int, who: str) -> None:
        """The leader at `leader_epoch` has committed what is in `data` (whole batches)."""
        for position, header in iterate_headers(data):
            if header.base_offset < self.end or header.base_offset >= high_watermark:
                continue
            if header.base_offset != self.end:
                raise Violation(
                    f"{who} committed {self.name} up to {high_watermark}, and has a batch at "
                    f"{header.base_offset} behind {self.end}"
                )
            batch = batch_of(header)
            if self.batches and batch.leader_epoch < self.batches[-1].leader_epoch:
                raise Violation(f"{who}: leader epochs of {self.name} go back: {batch}")
            self.batches.append(batch)
            self.starts.append(batch.base_offset)
            self.end = batch.last_offset + 1
            if self._is_user_topic:
                self._records(data, position, header)
            elif self.is_compacted:
                self.keyed.update(keyed_records(data, position, header))
        if self.commit_epochs and self.commit_epochs[-1][0] == leader_epoch:
            self.commit_epochs.pop()
        self.commit_epochs.append((leader_epoch, self.end))
        if self.end < high_watermark:
            raise Violation(
                f"{who} committed {self.name} up to {high_watermark}, its log there ends at "
                f"{self.end}"
            )

    def _records(self, data: Any, position: int, header: Any) -> None:
        producer_id = header.producer_id
        records = read_batch(data, position)
        if header.is_control:
            is_commit = parse_control(records[0]).type is ControlType.COMMIT
            first = self._open.pop(producer_id, None)
            if first is not None:
                self._decided[producer_id, first] = is_commit
        else:
            if header.is_transactional:
                self._open.setdefault(producer_id, header.base_offset)
            for record in records:
                value = bytes(record.value or b"")
                self._in_order(record.offset, value)
                self.values[record.offset] = value
                owner = producer_id if header.is_transactional else -1
                if owner >= 0:
                    self._first[record.offset] = self._open[owner]
                self._undecided.append((record.offset, value, owner))
        self._settle()

    def _in_order(self, offset: int, value: bytes) -> None:
        """Values are `source:number:...`; each source's numbers rise, without a duplicate."""
        source, number, _ = value.split(b":", 2)
        last = self._sequences.get(source, -1)
        if int(number) <= last:
            raise Violation(
                f"{self.name} has {value!r} at {offset} after number {last} of the same producer: "
                "a duplicate, or the order is lost"
            )
        self._sequences[source] = int(number)

    def _settle(self) -> None:
        """Move what is decided to `visible` or `aborted`, up to the last stable offset."""
        stable = min(self._open.values(), default=self.end)
        self.last_stable_offset = stable
        count = 0
        for offset, value, owner in self._undecided:
            if offset >= stable:
                break
            count += 1
            if owner < 0 or self._decided[owner, self._first.pop(offset)]:
                self.visible.append(Visible(offset, value))
            else:
                self.aborted[value] = None
        del self._undecided[:count]

    # -- comparing

    def batch_at(self, offset: int) -> Batch | None:
        """The committed batch that holds `offset`."""
        at = bisect_right(self.starts, offset) - 1
        if at < 0 or self.batches[at].last_offset < offset:
            return None
        return self.batches[at]

    def compare(self, data: Any, start: int, end: int, who: str) -> None:
        """`data` (whole batches around [start, end)) must be what is committed there."""
        if self.is_compacted:
            self._compare_cleaned(data, start, end, who)
            return
        at = bisect_right(self.starts, start) - 1
        expected = start
        for _, header in iterate_headers(data):
            if header.last_offset < start:
                continue
            if header.base_offset >= end:
                break
            found = batch_of(header)
            if at < 0 or at >= len(self.batches) or self.batches[at] != found:
                known = self.batches[at] if 0 <= at < len(self.batches) else None
                raise Violation(f"{who} has {found} in {self.name}, committed is {known}")
            at += 1
            expected = header.last_offset + 1
        if expected < min(end, self.end):
            raise Violation(
                f"{who} has nothing of {self.name} from {expected} on, committed is up to "
                f"{self.end}"
            )

    def _compare_cleaned(self, data: Any, start: int, end: int, who: str) -> None:
        """Batches may be missing or hold fewer records; those that are left are the same."""
        for position, header in iterate_headers(data):
            if header.last_offset < start or header.base_offset >= end:
                continue
            if self.batch_at(header.base_offset) == batch_of(header):
                continue
            for offset, record in keyed_records(data, position, header).items():
                if self.keyed.get(offset) != record:
                    raise Violation(
                        f"{who} has {record} at {offset} of {self.name}, committed is "
                        f"{self.keyed.get(offset)}"
                    )

    def check_last_values(self, found: dict[int, Keyed], end: int, who: str) -> None:
        """The last value of every key is there, whatever the cleaner has taken out.

        Of transactions the cleaner knows more than we do here: those keys are left out.
        """
        last: dict[bytes, int] = {}
        for offset, record in self.keyed.items():
            if offset < end:
                last[record.key] = -1 if record.is_transactional else offset
        for key, offset in last.items():
            if offset >= 0 and offset not in found:
                raise Violation(
                    f"{who}: the last value of {key!r} in {self.name}, at {offset}, is gone"
                )


def keyed_records(data: Any, position: int, header: BatchHeader) -> dict[int, Keyed]:
    """The records of one batch by offset; none of a control batch."""
    if header.is_control:
        return {}
    return {
        record.offset: Keyed(
            bytes(record.key or b""),
            None if record.value is None else bytes(record.value),
            header.is_transactional,
        )
        for record in read_batch(data, position)
    }

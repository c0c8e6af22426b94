"""What has been committed, as the checkers know it: the union of what any leader has committed.

A `CommittedLog` grows when a leader's high watermark moves, and never changes: another leader, a
follower or a client that has something else at one of its offsets has broken a promise. From it
follow the transactions and exactly what a read_committed consumer gets.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from kwire.protocol.records import iterate_headers, read_batch
from kwire.protocol.records.control import ControlType, parse_control


class Violation(AssertionError):
    """A promise is broken. The text names what and where."""


class Batch(NamedTuple):
    """A committed batch: offsets (inclusive), the leader epoch in it, its checksum."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


class Visible(NamedTuple):
    """A record that consumers may see."""

    offset: int
    value: bytes


class CommittedLog:
    """One partition. `end` is the largest high watermark any leader has reached."""

    def __init__(self, name: str, *, is_user_topic: bool) -> None:
        self.name = name
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
            batch = Batch(
                header.base_offset, header.last_offset, header.partition_leader_epoch, header.crc
            )
            if self.batches and batch.leader_epoch < self.batches[-1].leader_epoch:
                raise Violation(f"{who}: leader epochs of {self.name} go back: {batch}")
            self.batches.append(batch)
            self.starts.append(batch.base_offset)
            self.end = batch.last_offset + 1
            if self._is_user_topic:
                self._records(data, position, header)
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

    def compare(self, data: Any, start: int, end: int, who: str) -> None:
        """`data` (whole batches around [start, end)) must be what is committed there."""
        at = bisect_right(self.starts, start) - 1
        expected = start
        for _, header in iterate_headers(data):
            if header.last_offset < start:
                continue
            if header.base_offset >= end:
                break
            found = Batch(
                header.base_offset, header.last_offset, header.partition_leader_epoch, header.crc
            )
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

"""Where each leader epoch starts in a log (`leader-epoch-checkpoint`, KIP-101, KIP-279).

A text file: line `0`, a line with the number of entries, then lines `epoch start-offset` in
ascending order, every line with a line feed. The file may be lost in a power cut, or be older than
the log: recovery makes it agree with the epochs in the batches, so that assigning one needs no
sync.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

from kwire.kept_errors import kept
from kwire.log.files import Files, write_atomically

EPOCHS_FILE = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """The ascending (epoch, start offset) entries of a log; `save` is called at each change, but
    `added` where one came behind those there are.

    An epoch that begins at the log's end may wait for its first batch to be saved: a start would
    give it up anyhow, and a node becomes leader of all its partitions at once. `latest_saved` is
    the latest epoch that does not wait.
    """

    def __init__(
        self,
        save: Callable[[bytes], None] | None = None,
        added: Callable[[], bool] | None = None,
    ) -> None:
        self.entries: list[tuple[int, int]] = []
        self.latest_saved = UNDEFINED_EPOCH
        self._save = save
        self._added = added  # whether the entry may be saved later

    @property
    def latest(self) -> int:
        """The latest epoch, -1 without one."""
        return self.entries[-1][0] if self.entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int, *, is_saved: bool = True) -> bool:
        """Note that `epoch` starts at `start_offset`; entries that contradict it go.

        Not `is_saved`: before there is a batch of it; assigned again with its first one.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"impossible leader epoch {epoch} at offset {start_offset}")
        entries = self.entries
        if entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
            if is_saved and self.latest_saved < epoch:
                self._has_more()
            return False
        kept = [e for e in entries if e[0] < epoch and e[1] < start_offset]
        self.entries = [*kept, (epoch, start_offset)]
        # Where saved entries went, this is more than one more.
        if (kept[-1][0] if kept else UNDEFINED_EPOCH) != self.latest_saved:
            self._changed()
        elif is_saved:
            self._has_more()
        return True

    def observe(self, epoch: int, offset: int) -> None:
        """`offset` is in a batch of `epoch`: entries that say otherwise go.

        The others stay, also those of epochs whose batches compaction has removed: only they say
        where such an epoch began, and by that a replica finds what it has to cut off (KIP-101).
        """
        if self.epoch_for(offset) == epoch:
            return
        start_offset = min([offset, *(e[1] for e in self.entries if e[0] == epoch)])
        before = [e for e in self.entries if e[0] < epoch and e[1] < start_offset]
        behind = [e for e in self.entries if e[0] > epoch and e[1] > offset]
        self.entries = [*before, (epoch, start_offset), *behind]
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(largest epoch at or below `epoch`, where it ends), as OffsetForLeaderEpoch answers.

        (-1, -1) when unknown; an epoch before all known ones ends where the first one starts.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if self.entries and epoch == self.entries[-1][0]:
            return epoch, log_end_offset
        above = bisect_right(self.entries, epoch, key=_epoch)
        if above == len(self.entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        end = self.entries[above][1]
        return (self.entries[above - 1][0] if above else epoch), end

    def epoch_for(self, offset: int) -> int:
        """The epoch of the batch at `offset`, -1 when unknown."""
        at = bisect_right(self.entries, offset, key=_start_offset) - 1
        return self.entries[at][0] if at >= 0 else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop epochs that start at or above `end_offset`."""
        kept = [e for e in self.entries if e[1] < end_offset]
        if len(kept) != len(self.entries):
            self.entries = kept
            self._changed()

    def take_back(self, end_offset: int, led_epoch: int) -> bool:
        """Drop the epochs of batches from `end_offset` on, which were not written; that in which
        this node leads (`led_epoch`) may begin there. Nothing is saved; whether one was dropped.
        """
        led = (led_epoch, end_offset)
        kept = [e for e in self.entries if e[1] < end_offset or e == led]
        is_changed = len(kept) != len(self.entries)
        self.entries = kept
        written = [e[0] for e in kept if e[1] < end_offset]
        self.latest_saved = min(self.latest_saved, written[-1] if written else UNDEFINED_EPOCH)
        return is_changed

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop epochs that end at or below `start_offset`; the one that holds it starts there."""
        at = bisect_right(self.entries, start_offset, key=_start_offset) - 1
        if at < 0 or (at == 0 and self.entries[0][1] == start_offset):
            return
        self.entries = [(self.entries[at][0], start_offset), *self.entries[at + 1 :]]
        self._changed()

    def clear(self) -> None:
        if self.entries:
            self.entries = []
            self._changed()

    def load(self, entries: list[tuple[int, int]]) -> None:
        """Take over the entries of the file."""
        self.entries = entries
        self.latest_saved = self.latest

    def replace(self, entries: list[tuple[int, int]]) -> None:
        """Set all entries (recovery)."""
        self.entries = entries
        self._changed()

    def encode(self) -> bytes:
        lines = ["0", str(len(self.entries)), *(f"{e} {o}" for e, o in self.entries), ""]
        return "\n".join(lines).encode()

    def _has_more(self) -> None:
        """Those that were saved, or are to be, and behind them the latest."""
        if self._added is None or not self._added():
            self._changed()
        self.latest_saved = self.latest

    def _changed(self) -> None:
        self.latest_saved = self.latest
        if self._save is not None:
            self._save(self.encode())


class EpochFile:
    """The epochs of a log, and the file that holds them. `on_error` hears when it cannot be
    written. `content` is what the file holds, None while that is not known or less than there is.

    A new leader of thousands of partitions replaces no file at the first batch of each: an epoch
    that comes behind those in the file is written with the next sync, or at the end (ADR 3).
    """

    __slots__ = (
        "_directory",
        "_files",
        "_is_there",
        "content",
        "epochs",
        "is_unsaved",
        "is_unsynced",
        "on_error",
    )

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self.epochs = LeaderEpochs(self._save, self._save_later)
        self._is_there = False  # a file that recovery can build on
        self.is_unsaved = False
        self.content: bytes | None = None
        self.is_unsynced = False
        self.on_error: Callable[[OSError], None] | None = None

    @property
    def path(self) -> str:
        return f"{self._directory}/{EPOCHS_FILE}"

    def load(self) -> None:
        """Take over what the file says. Raises OSError, ValueError."""
        content = self._files.read_file(self.path)
        self.epochs.load(parse_epochs(content))
        self.content = content
        self._is_there = True

    def put_back(self, content: bytes, entries: Sequence[tuple[int, int]]) -> None:
        """As `load`, of what is known to be in the file, and what that says."""
        self.epochs.load(list(entries))
        self.content = content
        self._is_there = True

    def relocate(self, directory: str) -> None:
        """The directory was renamed."""
        self._directory = directory

    def take_back(self, end_offset: int, led_epoch: int) -> None:
        """As `LeaderEpochs.take_back`; the file is written when there is room (`save_missing`)."""
        if self.epochs.take_back(end_offset, led_epoch):
            self.is_unsaved = True

    def save_missing(self) -> None:
        """Write what the file was not given yet, or could not be. Raises OSError."""
        if self.is_unsaved:
            self._write(self.epochs.encode())

    def save_first(self) -> None:
        """Write the file where there is none yet, or what it was not given."""
        if self.is_unsaved or not self._files.exists(self.path):
            self._save(self.epochs.encode())

    def save_waiting(self) -> None:
        """Write what the file was not given; `on_error` hears where that fails."""
        if self.is_unsaved:
            self._save(self.epochs.encode())

    def _save_later(self) -> bool:
        """Whether the file may wait: recovery finds in the batches what it lacks at its end."""
        if self._is_there:
            self.is_unsaved = self.is_unsynced = True
            self.content = None
        return self._is_there

    def _save(self, data: bytes) -> None:
        try:
            self._write(data)
        except OSError as error:
            self.is_unsaved = True
            if self.on_error is not None:
                self.on_error(kept(error))

    def _write(self, data: bytes) -> None:
        self.is_unsynced = True
        self.content = None
        write_atomically(self._files, self.path, data, sync=False)
        self.content = data
        self._is_there = True
        self.is_unsaved = False


def parse_epochs(data: bytes) -> list[tuple[int, int]]:
    """The entries of a checkpoint file; raises ValueError for one that is damaged."""
    lines = data.decode("ascii").split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) < 2 or lines[0] != "0":
        raise ValueError("no version 0 and count at the beginning")
    entries = []
    for line in lines[2:]:
        epoch, offset = line.split(" ")
        entries.append((int(epoch), int(offset)))
    if len(entries) != int(lines[1]):
        raise ValueError(f"{len(entries)} entries where {lines[1]} are announced")
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(entries)):
        raise ValueError("entries that do not ascend")
    if entries and min(entries[0]) < 0:
        raise ValueError("a negative entry")
    return entries


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start_offset(entry: tuple[int, int]) -> int:
    return entry[1]

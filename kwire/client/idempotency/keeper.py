"""Who decides about the keys of one principal in one partition of `__kwire_idempotency_keys`.

    phase        what happens                                 ends by
    IDLE         nothing; what is known may be old            a post
    OPENING      becoming the only writer                     Opened, Failed
    READING      up to the end of what others have written    ReadUp, Lost, Failed
    READY        the only writer, nothing to do               a post
    WRITING      messages of a group of posts                 Written, Refused, Lost
    COMMITTING   the keys' records, then the end              Committed, Refused, Lost

Whoever becomes the writer ends what the one before has left and fences it; so what is read after
that is all there is, and a key that is not among it was not published. A group of posts is one
transaction, its keys' records last. `Lost` leaves open what became of it: reading on tells. A post
whose batch is refused is tried alone, so that it costs others nothing but time.

`step(input, now_ms)` gives effects. Pure: no clock, no connection, no record's bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from kwire.client.errors import ClientError
from kwire.client.idempotency.key_records import KeyRecord
from kwire.client.idempotency.known_keys import KnownKeys

GROUP_POSTS_MAX = 256
GROUP_BYTES_MAX = 4 << 20
QUEUE_MAX = 4096


class Phase(enum.Enum):
    """See the module."""

    IDLE = enum.auto()
    OPENING = enum.auto()
    READING = enum.auto()
    READY = enum.auto()
    WRITING = enum.auto()
    COMMITTING = enum.auto()


# -- inputs


class Posted(NamedTuple):
    """Somebody wants messages published; `key` and `body` are what a record of them has."""

    number: int
    key: bytes
    body: bytes
    size_bytes: int


class Left(NamedTuple):
    """Nobody waits for this post."""

    number: int


class Opened(NamedTuple):
    """This is the only writer."""


class ReadUp(NamedTuple):
    """Everything up to the end is in the known keys."""


class Written(NamedTuple):
    """The messages of the group are in their partitions."""


class Committed(NamedTuple):
    """The group is there for good; a record for each of its posts."""

    records: dict[int, KeyRecord]


class Refused(NamedTuple):
    """A part of the group cannot be written; nothing of the group is there."""

    numbers: tuple[int, ...]
    error: ClientError


class Lost(NamedTuple):
    """Another writer was opened, or nobody answers: what became of the group is not known."""


class Failed(NamedTuple):
    """It cannot become the writer, or not read."""

    error: ClientError


class HeldBack(NamedTuple):
    """A quota holds back what is sent: whoever waits with nothing written yet is told so."""

    error: ClientError


Input: TypeAlias = (
    "Posted | Left | HeldBack | Opened | ReadUp | Written | Committed | Refused | Lost | Failed"
)


# -- effects


class Open(NamedTuple):
    """Become the only writer."""


class Read(NamedTuple):
    """Read from the known keys' position up to the end."""


class Write(NamedTuple):
    """Write the messages of these posts in one transaction."""

    numbers: tuple[int, ...]


class Finish(NamedTuple):
    """Write the records of these posts' keys, and commit."""

    numbers: tuple[int, ...]


class Published(NamedTuple):
    """An answer: where the messages are; `is_repeated` where they were before."""

    number: int
    record: KeyRecord
    is_repeated: bool


class OtherBody(NamedTuple):
    """An answer: the key was used for something else."""

    number: int
    record: KeyRecord


class NotPublished(NamedTuple):
    """An answer: it was refused, and is not there."""

    number: int
    error: ClientError


Effect: TypeAlias = "Open | Read | Write | Finish | Published | OtherBody | NotPublished"


class TooMany(ClientError):
    """More posts wait, or more keys are kept, than there may be."""

    @property
    def is_retriable(self) -> bool:
        return True


class Keeper:
    """See the module. `known` is changed by what is read, and by what is committed here."""

    def __init__(self, known: KnownKeys) -> None:
        self.known = known
        self.phase = Phase.IDLE
        self._waiting: dict[int, Posted] = {}
        """In the order of their arrival."""
        self._group: dict[int, Posted] = {}
        self._alone: dict[int, None] = {}
        self._unsure: dict[int, None] = {}
        """Those that wait again, and may have been published."""
        self._now_ms = 0

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits, or something is on its way."""
        return bool(self._waiting) or self.phase not in (Phase.IDLE, Phase.READY)

    def has(self, number: int) -> bool:
        """Whether a post waits or is being written."""
        return number in self._waiting or number in self._group

    def step(self, given: Input, now_ms: int) -> list[Effect]:
        """See the module."""
        self._now_ms = now_ms
        if isinstance(given, Posted):
            return self._posted(given)
        if isinstance(given, Left):
            self._waiting.pop(given.number, None)
            self._alone.pop(given.number, None)
            return []
        if isinstance(given, HeldBack):
            return self._held_back(given.error)
        allowed = _ALLOWED[self.phase]
        assert isinstance(given, allowed), f"{type(given).__name__} while {self.phase.name}"
        if isinstance(given, Opened):
            self.phase = Phase.READING
            return [Read()]
        if isinstance(given, Written):
            self.phase = Phase.COMMITTING
            return [Finish(tuple(self._group))]
        if isinstance(given, Committed):
            return self._committed(given)
        if isinstance(given, Refused):
            return self._refused(given)
        if isinstance(given, Lost):
            self._unsure.update(dict.fromkeys(self._group))
            self._take_back()
            return self._reopen()
        if isinstance(given, Failed):
            return self._failed(given)
        return self._decide()

    def _posted(self, post: Posted) -> list[Effect]:
        answer = self._answer_of(post)
        if answer is not None:
            return [answer]
        if len(self._waiting) + len(self._group) >= QUEUE_MAX:
            error = TooMany(f"more than {QUEUE_MAX} posts with idempotency keys wait")
            return [NotPublished(post.number, error)]
        self._waiting[post.number] = post
        if self.phase is Phase.IDLE:
            return self._reopen()
        return self._decide() if self.phase is Phase.READY else []

    def _held_back(self, error: ClientError) -> list[Effect]:
        told = [number for number in self._waiting if number not in self._unsure]
        for number in told:
            del self._waiting[number]
            self._alone.pop(number, None)
        return [NotPublished(number, error) for number in told]

    def _answer_of(self, post: Posted) -> Effect | None:
        """What is committed stays so, whoever is the writer."""
        known = self.known.find(post.key, self._now_ms)
        if known is None:
            return None
        record = known.record()
        if record.body != post.body:
            return OtherBody(post.number, record)
        return Published(post.number, record, is_repeated=True)

    def _decide(self) -> list[Effect]:
        """Everything is known: answer what was published, and write what was not."""
        effects: list[Effect] = []
        self._unsure.clear()
        for post in list(self._waiting.values()):
            answer = self._answer_of(post)
            if answer is not None:
                del self._waiting[post.number]
                self._alone.pop(post.number, None)
                effects.append(answer)
        if self._waiting and self.known.is_full(self._now_ms):
            error = TooMany("there are too many idempotency keys within their retention")
            effects += self._all_fail(error)
        self._group = self._next_group()
        if not self._group:
            self.phase = Phase.READY
            return effects
        self.phase = Phase.WRITING
        return [*effects, Write(tuple(self._group))]

    def _next_group(self) -> dict[int, Posted]:
        group: dict[int, Posted] = {}
        keys: set[bytes] = set()
        size_bytes = 0
        for number, post in self._waiting.items():
            if number in self._alone:
                if not group:
                    group[number] = post
                    break
                continue
            size_bytes += post.size_bytes
            if len(group) >= GROUP_POSTS_MAX or (group and size_bytes > GROUP_BYTES_MAX):
                break
            if post.key not in keys:  # else it waits for what becomes of the first
                keys.add(post.key)
                group[number] = post
        for number in group:
            del self._waiting[number]
        return group

    def _committed(self, given: Committed) -> list[Effect]:
        effects: list[Effect] = [
            Published(number, given.records[number], is_repeated=False) for number in self._group
        ]
        for number, post in self._group.items():
            self._alone.pop(number, None)
            self.known.replay_own(post.key, given.records[number], self._now_ms)
        self._group = {}
        return [*effects, *self._decide()]

    def _refused(self, given: Refused) -> list[Effect]:
        effects: list[Effect] = []
        if len(self._group) == 1:
            (number,) = self._group
            effects.append(NotPublished(number, given.error))
            self._alone.pop(number, None)
            self._group = {}
        else:
            self._alone.update(dict.fromkeys(given.numbers))
            self._take_back()
        return [*effects, *self._reopen()]

    def _take_back(self) -> None:
        """The group goes in front of what waits."""
        self._waiting = {**self._group, **self._waiting}
        self._group = {}

    def _reopen(self) -> list[Effect]:
        if not self._waiting:
            self.phase = Phase.IDLE
            return []
        self.phase = Phase.OPENING
        return [Open()]

    def _failed(self, given: Failed) -> list[Effect]:
        self.phase = Phase.IDLE
        return self._all_fail(given.error)

    def _all_fail(self, error: ClientError) -> list[Effect]:
        effects: Sequence[Effect] = [NotPublished(number, error) for number in self._waiting]
        self._waiting.clear()
        self._alone.clear()
        self._unsure.clear()
        return list(effects)


_ALLOWED: dict[Phase, tuple[type[Input], ...]] = {
    Phase.IDLE: (),
    Phase.OPENING: (Opened, Failed),
    Phase.READING: (ReadUp, Lost, Failed),
    Phase.READY: (),
    Phase.WRITING: (Written, Refused, Lost),
    Phase.COMMITTING: (Committed, Refused, Lost),
}
"""What may come in each phase, beside Posted, Left and HeldBack."""

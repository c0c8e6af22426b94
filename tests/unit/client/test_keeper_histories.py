"""Histories of idempotency keys: nodes die, are fenced, do not hear what became of a commit; each
message is there once, and every answer of a key is the same.

A world of one key partition: its log with the ends of transactions, the epoch of the transactional
id, what is committed in the topic. Several nodes have a keeper each; what they do takes its time,
and others come between. One seed, one history. Mutations of the keeper are found by it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import pytest

from kwire.client.errors import ClientError
from kwire.client.idempotency import keeper as keepers
from kwire.client.idempotency import key_records
from kwire.client.idempotency.keeper import Keeper
from kwire.client.idempotency.key_records import KeyRecord, Run
from kwire.client.idempotency.known_keys import KnownKeys
from tests.support.effort import seeds

SEEDS = 300
NODES = 3
KEYS = 6
STEPS = 400
PATIENCE = 30
"""Turns that the transaction of another is given to end."""
NOW_MS = 1_000_000
HELD_BACK = ClientError("held back")
Work: TypeAlias = "Iterator[keepers.Input | None]"


class Entry(NamedTuple):
    """A record of a key, or (without one) the end of a transaction."""

    epoch: int
    key: bytes = b""
    value: bytes = b""
    is_committed: bool = False


class Broken(AssertionError):
    """The history is wrong."""


class World:
    """What the brokers have."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.log: list[Entry] = []
        self.epoch = 0
        self.is_open = False
        self.ending: Entry | None = None
        self.written: list[tuple[bytes, int]] = []
        """(key, offset) of the open transaction."""
        self.committed: dict[bytes, list[int]] = {}
        self.next_offset = 0

    def end(self, is_committed: bool) -> None:
        """Decide; the end comes into the log later."""
        if not self.is_open:
            return
        self.is_open = False
        self.ending = Entry(self.epoch, is_committed=is_committed)
        for key, offset in self.written if is_committed else []:
            self.committed.setdefault(key, []).append(offset)
        self.written = []

    def write_end(self) -> None:
        """What the coordinator does behind its answer, and before the next transaction."""
        if self.ending is not None:
            self.log.append(self.ending)
            self.ending = None

    def opened(self) -> int:
        self.write_end()
        self.end(False)
        self.write_end()
        self.epoch += 1
        return self.epoch


class Node:
    """A node with its keeper, one thing on its way at a time."""

    kind: type[Keeper] = Keeper

    def __init__(self, world: World) -> None:
        self.world = world
        self.keeper = self.kind(KnownKeys(10**9))
        self.epoch = -1
        self.keys: dict[int, bytes] = {}
        self.work: Work | None = None
        self.answers: list[tuple[bytes, KeyRecord]] = []
        self.held_back: set[int] = set()
        self.kept: set[int] = set()
        """Numbers of posts that are in a transaction that was committed."""

    def step(self, given: keepers.Input) -> None:
        for effect in self.keeper.step(given, NOW_MS):
            if isinstance(effect, keepers.Published):
                self.answers.append((self.keys[effect.number], effect.record))
            elif isinstance(effect, keepers.NotPublished) and effect.error is HELD_BACK:
                self.held_back.add(effect.number)
                if effect.number in self.kept:
                    raise Broken(f"post {effect.number} is there, and was told to be held back")
            elif isinstance(effect, keepers.Open):
                self.work = self.open()
            elif isinstance(effect, keepers.Read):
                self.work = self.read()
            elif isinstance(effect, keepers.Write):
                self.work = self.write(effect.numbers)
            elif isinstance(effect, keepers.Finish):
                self.work = self.finish(effect.numbers)
            else:
                raise AssertionError(f"{effect} without a reason")

    def go_on(self) -> None:
        assert self.work is not None
        given = next(self.work)
        if given is not None:
            self.work = None
            self.step(given)

    def open(self) -> Work:
        for _ in range(PATIENCE):
            yield None
            if not self.world.is_open:
                break
        self.epoch = self.world.opened()
        yield keepers.Opened()

    def read(self) -> Work:
        known = self.keeper.known
        end = len(self.world.log)
        while known.position < end:
            yield None
            entry = self.world.log[known.position]
            known.moved_to(known.position + 1)
            if entry.key:
                known.replay(entry.epoch, entry.key, entry.value, NOW_MS)
            else:
                known.replay_end(entry.epoch, entry.is_committed)
        yield keepers.ReadUp()

    def write(self, numbers: tuple[int, ...]) -> Work:
        world = self.world
        for number in numbers:
            if number in self.held_back:
                raise Broken(f"post {number} is written after it was told to be held back")
            yield None
            if self.epoch != world.epoch:
                yield keepers.Lost()
            world.write_end()
            world.is_open = True
            world.written.append((self.keys[number], world.next_offset))
            world.next_offset += 1
        if world.random.random() < 0.1:
            yield keepers.Lost()
        yield keepers.Written()

    def finish(self, numbers: tuple[int, ...]) -> Work:
        world = self.world
        yield None
        if self.epoch != world.epoch:
            yield keepers.Lost()
        offsets = dict(world.written)
        records = {
            number: key_records.made(b"", "t", [0], {0: [Run(offsets[self.keys[number]], 1)]})
            for number in numbers
        }
        for number, record in records.items():
            value = key_records.encoded(record)
            world.log.append(Entry(self.epoch, self.keys[number], value))
        yield None
        chance = world.random.random()
        if self.epoch != world.epoch or chance < 0.1:
            yield keepers.Lost()
        world.end(True)
        self.kept.update(numbers)
        if chance < 0.3:
            yield keepers.Lost()
        yield keepers.Committed(records)


def run(seed: int, kind: type[Node] = Node) -> None:
    """One history; Broken."""
    world = World(seed)
    chance = world.random
    nodes = [kind(world) for _ in range(NODES)]
    answers: dict[bytes, set[int]] = {}
    number = 0
    for turn in range(10 * STEPS):
        at = chance.randrange(NODES)
        node = nodes[at]
        event = chance.random() if turn < STEPS else 1.0
        if chance.random() < 0.1:
            world.write_end()
        if event < 0.15:
            number += 1
            node.keys[number] = key = b"%d" % chance.randrange(KEYS)
            node.step(keepers.Posted(number, key, b"", 1))
        elif event < 0.17:
            nodes[at] = kind(world)  # killed: whoever waited asks again, or does not
        elif event < 0.19:
            node.step(keepers.HeldBack(HELD_BACK))
        elif node.work is not None:
            node.go_on()
        elif turn >= STEPS and not any(one.work for one in nodes):
            break
        for key, record in node.answers:
            answers.setdefault(key, set()).add(record.runs[0][0].first)
        node.answers.clear()
    else:
        raise Broken("it does not come to an end")
    for key, offsets in answers.items():
        if sorted(offsets) != world.committed.get(key):
            raise Broken(f"{key!r}: answered {offsets}, kept {world.committed.get(key)}")
    for key, kept in world.committed.items():
        if len(kept) != 1:
            raise Broken(f"{key!r} is there {len(kept)} times")


def test_each_message_is_there_once_and_every_answer_says_where() -> None:
    for seed in seeds(SEEDS):
        try:
            run(seed)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


class ReadsNothing(Node):
    """It takes over without reading what was there."""

    def read(self) -> Work:
        yield keepers.ReadUp()


class _KeepsWriting(Keeper):
    def _reopen(self) -> list[keepers.Effect]:
        if self.phase is keepers.Phase.IDLE:
            return super()._reopen()
        return self._decide()


class DoesNotReopen(Node):
    """What it has not heard of is written again, by the same transaction."""

    kind = _KeepsWriting


class _NeverAborts(KnownKeys):
    def replay_end(self, producer_id: int, is_committed: bool) -> None:
        super().replay_end(producer_id, True)


class BelievesOpenTransactions(Node):
    """Records count whatever becomes of their transaction."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.keeper = Keeper(_NeverAborts(10**9))


class _ReadsItsOwn(Keeper):
    def _committed(self, given: keepers.Committed) -> list[keepers.Effect]:
        effects: list[keepers.Effect] = [
            keepers.Published(number, record, False) for number, record in given.records.items()
        ]
        self._group = {}
        self.phase = keepers.Phase.READING
        return [*effects, keepers.Read()]


class WaitsForNoEnd(Node):
    """It reads what it has committed itself, as if the end was in the log with the answer."""

    kind = _ReadsItsOwn


class _HoldsAllBack(Keeper):
    def _held_back(self, error: ClientError) -> list[keepers.Effect]:
        self._unsure.clear()
        return super()._held_back(error)


class HoldsBackWhatIsThere(Node):
    """What may be there is told to be held back."""

    kind = _HoldsAllBack


@pytest.mark.parametrize(
    "mutation",
    [ReadsNothing, DoesNotReopen, BelievesOpenTransactions, WaitsForNoEnd, HoldsBackWhatIsThere],
)
def test_a_mutation_is_found(mutation: type[Node]) -> None:
    for seed in range(SEEDS):
        try:
            run(seed, mutation)
        except AssertionError:
            return
    pytest.fail(f"{mutation.__doc__} and no history of {SEEDS} shows it")

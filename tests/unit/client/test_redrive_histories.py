"""Redrives over histories: kills between any two calls, two at once, lost answers, refused records.

The world is a model of what a cluster promises: transactions are there all or not at all, `open`
ends and fences what was before. Redrives run as coroutines that give way at each call, so a seed
decides who goes on and who is killed. In the end one redrive runs alone; then each letter that was
chosen is committed once, in the order of its partition, and none that was not.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Coroutine, Generator, Mapping, Sequence
from typing import Any

import pytest

from kwire.client.dead_letters.filters import EVERYTHING, Filter, Subject, parse_filter
from kwire.client.dead_letters.letters import DeadLetter, Origin
from kwire.client.dead_letters.originals import Absence, Original
from kwire.client.dead_letters.redrive import Left, PartitionRedrive, Sent, Told
from kwire.client.dead_letters.source import Letters, Stranger
from kwire.client.errors import ClientError, RequestFailed, Unanswered
from kwire.client.offsets import Partition, Position
from kwire.client.producer import Outgoing
from kwire.client.transactional_producer import Fenced, Identity
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec
from tests.support.effort import seeds

LETTERS = "dlq"
GROUP = "g"
ROUND = 4


class _GiveWay:
    def __await__(self) -> Generator[None]:
        yield


class World:
    """Letters, their originals, what is committed, and one transaction."""

    def __init__(self, chance: random.Random, count: int) -> None:
        self.chance = chance
        self.first = chance.choice((0, 0, 3))
        self.end = self.first + count
        self.letters: dict[int, DeadLetter] = {}
        self.strangers: list[Stranger] = []
        self.absent: dict[int, Absence] = {}
        self.refused: set[int] = set()
        self.answers_lost = 0
        for offset in range(self.first, self.end):
            kind = chance.randrange(12)
            if kind == 0:
                self.strangers.append(Stranger(offset, "no letter"))
            elif kind > 1:  # else a gap: another group's, or a marker
                origin = Origin("mail", chance.randrange(2), offset)
                self.letters[offset] = DeadLetter(
                    offset, 0, origin, GROUP, offset % 3, "r", b"%d" % offset, None
                )
                if kind == 2:
                    self.absent[offset] = Absence.RETENTION
                elif kind == 3:
                    self.absent[offset] = Absence.NO_TOPIC
                elif kind == 4:
                    self.refused.add(offset)
        self.epoch = 0
        self.open_records: list[tuple[int, int]] = []
        self.open_position: Position | None = None
        self.records: list[tuple[int, int]] = []
        self.position: Position | None = None
        self.told: list[int] = []  # letters that were told to be sent

    def wanted(self, chosen: Filter) -> list[tuple[int, int]]:
        """(origin partition, letter) of what is to be sent."""
        return [
            (letter.origin.partition, offset)
            for offset, letter in self.letters.items()
            if offset not in self.absent
            and offset not in self.refused
            and chosen.matches(Subject(letter, (), 0))
        ]


class Ports:
    """The world as one redrive sees it: each call gives way before and behind what it does."""

    topic, group = LETTERS, GROUP

    def __init__(self, world: World, *, bug: str = "") -> None:
        self.world = world
        self.bug = bug
        self.epoch = -1
        self.told: list[Told] = []

    # -- letters, originals, the progress

    async def bounds(self, partition: int) -> tuple[int, int]:
        await _GiveWay()
        return self.world.first, self.world.end

    async def read(self, partition: int, offset: int, end: int) -> Letters:
        await _GiveWay()
        end = min(end, offset + ROUND)
        letters = [one for at, one in self.world.letters.items() if offset <= at < end]
        return Letters(letters, [x for x in self.world.strangers if offset <= x.offset < end], end)

    async def load(self, letters: Sequence[DeadLetter]) -> list[Original | Absence]:
        await _GiveWay()
        few = letters[: self.world.chance.randint(1, len(letters))]
        return [self.world.absent.get(x.offset, Original(x.key, x.value, (), None)) for x in few]

    async def positions(self, group: str, *, stable: bool = False) -> dict[Partition, Position]:
        await _GiveWay()
        assert stable
        found = self.world.position
        return {} if found is None or self.bug == "forgets" else {(LETTERS, 0): found}

    def tell(self, told: Told) -> None:
        self.told.append(told)
        if isinstance(told, Sent):
            self.world.told.append(told.letter.offset)

    # -- the producer

    @property
    def identity(self) -> Identity:
        return Identity(7, self.epoch)

    async def open(self) -> None:
        await _GiveWay()
        world = self.world
        if self.bug != "fences nobody":
            world.epoch += 1
            world.open_records, world.open_position = [], None
        self.epoch = world.epoch
        await _GiveWay()

    async def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[Outgoing],
        *,
        codec: Codec = Codec.NONE,
    ) -> int:
        await self._allowed()
        offsets = [int(record.key or b"") for record in records]
        if self.world.refused.intersection(offsets):
            raise RequestFailed(ErrorCode.MESSAGE_TOO_LARGE, f"mail-{partition}")
        self.world.open_records += [(partition, offset) for offset in offsets]
        if self.bug == "sends at once":
            self._commit_now()
        await _GiveWay()
        return 100

    async def commit_offsets(self, group: str, positions: Mapping[Partition, Position]) -> None:
        await self._allowed()
        self.world.open_position = positions[LETTERS, 0]
        if self.bug == "progress first":
            self.world.position = self.world.open_position
        await _GiveWay()

    async def commit(self) -> None:
        await self._allowed()
        world = self.world
        is_lost = world.answers_lost > 0 and world.chance.random() < 0.4
        if is_lost:
            world.answers_lost -= 1
            if world.chance.random() < 0.5:
                raise Unanswered("the commit was not heard")
        self._commit_now()
        await _GiveWay()
        if is_lost:
            raise Unanswered("the answer was lost")

    async def abort(self) -> None:
        await _GiveWay()
        if self.epoch == self.world.epoch:
            self.world.open_records, self.world.open_position = [], None

    async def _allowed(self) -> None:
        await _GiveWay()
        if self.epoch != self.world.epoch:
            raise Fenced("another one is here")

    def _commit_now(self) -> None:
        world = self.world
        world.records += world.open_records
        world.position = world.open_position or world.position
        world.open_records, world.open_position = [], None


def redrive(ports: Ports, chosen: Filter, sent_max: int | None = None) -> Coroutine[Any, Any, int]:
    work = PartitionRedrive(ports, ports, ports, ports, 0, chosen, 0, ports.tell)
    return work.run(sent_max)


def run(work: Coroutine[Any, Any, int]) -> int:
    while True:
        try:
            work.send(None)
        except StopIteration as ended:
            return int(ended.value)


def settle(world: World, chosen: Filter, bug: str = "") -> Ports:
    """One redrive alone, to the end."""
    ports = Ports(world, bug=bug)
    world.answers_lost = 0
    run(redrive(ports, chosen))
    return ports


def check(world: World, *filters: Filter) -> None:
    wanted = sorted({one for chosen in filters for one in world.wanted(chosen)})
    assert sorted(world.records) == wanted
    assert len(set(world.told)) == len(world.told), "a letter is told to be sent twice"


def filter_of(chance: random.Random) -> Filter:
    texts = ("deliveries = 0", "deliveries != 1", "partition = 1", "offset < 9 or deliveries = 2")
    return chance.choice([EVERYTHING, *map(parse_filter, texts)])


def history(seed: int, bug: str = "") -> None:
    """Two redrives at once, again and again, killed anywhere; then filters one after the other."""
    chance = random.Random(seed)
    world = World(chance, chance.randint(1, 24))
    world.answers_lost = chance.randrange(4)
    chosen = filter_of(chance)
    for _ in range(chance.randint(1, 4)):
        works = [
            redrive(Ports(world, bug=bug), chosen, chance.choice((None, None, 1, 5)))
            for _ in range(chance.randint(1, 2))
        ]
        for _ in range(chance.randint(1, 120)):
            if not works:
                break
            work = chance.choice(works)
            try:
                work.send(None)
            except (StopIteration, ClientError):
                works.remove(work)
        for killed in works:
            _kill(killed)
    settle(world, chosen, bug)
    check(world, chosen)
    settle(world, EVERYTHING, bug)
    check(world, EVERYTHING)
    settle(world, EVERYTHING, bug)
    check(world, EVERYTHING)


def _kill(work: Coroutine[Any, Any, int]) -> None:
    """It does nothing more: not even what stands under `except` and `finally`."""
    try:
        while True:
            work.throw(_Killed())
    except (_Killed, StopIteration, ClientError):
        return


class _Killed(BaseException):
    pass


def test_each_letter_is_sent_once_whatever_happens() -> None:
    for seed in seeds(400):
        history(seed)


def test_a_kill_between_any_two_calls_loses_and_doubles_nothing() -> None:
    for seed in seeds(6):
        for steps in itertools.count():
            world = World(random.Random(seed), 10)
            work = redrive(Ports(world), EVERYTHING)
            try:
                for _ in range(steps):
                    work.send(None)
            except StopIteration:
                break
            _kill(work)
            settle(world, EVERYTHING)
            check(world, EVERYTHING)
        assert steps > 10


@pytest.mark.parametrize("bug", ["forgets", "fences nobody", "sends at once", "progress first"])
def test_a_cluster_without_one_of_its_promises_is_found(bug: str) -> None:
    def is_found(seed: int) -> bool:
        try:
            history(seed, bug)
        except (AssertionError, ClientError):
            return True
        return False

    assert any(map(is_found, range(200)))


class Unheard(Ports):
    """Its first commit does not arrive."""

    is_unheard = False

    async def commit(self) -> None:
        if self.is_unheard:
            await super().commit()
        self.is_unheard = True
        raise Unanswered("the commit was not heard")


def test_what_another_has_sent_meanwhile_is_told_by_nobody_else() -> None:
    """It found the progress that it wanted to commit, and told offsets of records that were
    aborted; another redrive had done the same work."""
    for seed in seeds(20):
        world = World(random.Random(seed), ROUND)
        if not world.wanted(EVERYTHING):
            continue
        ports = Unheard(world)
        late = redrive(ports, EVERYTHING)
        while not ports.is_unheard:
            late.send(None)
        settle(world, EVERYTHING)
        with pytest.raises(Unanswered):
            run(late)
        check(world, EVERYTHING)


def test_what_is_refused_is_told_and_stays() -> None:
    world = World(random.Random(3), 0)
    for offset in range(6):
        origin = Origin("mail", 0, offset)
        world.letters[world.first + offset] = DeadLetter(
            world.first + offset, 0, origin, GROUP, 1, "r", b"%d" % (world.first + offset), None
        )
    world.end = world.first + 6
    world.refused = {world.first + 2}
    ports = settle(world, EVERYTHING)
    check(world, EVERYTHING)
    left = [one for one in ports.told if isinstance(one, Left)]
    assert [(one.letter.offset, one.reason) for one in left] == [
        (world.first + 2, "mail-0: MESSAGE_TOO_LARGE")
    ]
    world.refused.clear()
    settle(world, EVERYTHING)
    check(world, EVERYTHING)


def test_no_more_are_sent_than_asked_for() -> None:
    for seed in seeds(30):
        world = World(random.Random(seed), 20)
        run(redrive(Ports(world), EVERYTHING, 3))
        assert len(world.records) == min(3, len(world.wanted(EVERYTHING)))
        settle(world, EVERYTHING)
        check(world, EVERYTHING)


def test_a_topic_that_was_made_anew_is_told() -> None:
    world = World(random.Random(1), 5)
    world.position = Position(world.end + 1)
    with pytest.raises(ClientError, match="the topic was made anew; delete group kwire-redrive/g"):
        run(redrive(Ports(world), EVERYTHING))

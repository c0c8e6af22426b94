"""Batches of a topic that asks for schemas, while schemas are registered and deleted, reads of
`_schemas` are late or fail, schemas are parsed late or cannot be, the topic is made anew and the
broker is started anew; all by a seed. Some batches are to decode by their schemas (deep): an int,
or a boolean.

What is looked at:
    a batch is accepted only with schemas that were registered when it was decided or before
    one whose deletion was read to the end before the batch came is not accepted
    one that does not decode is not accepted
    a batch is INVALID_RECORD only where one of its schemas was not registered all the while, or
    where it does not decode
    once nothing fails any more, what is registered is accepted, what is not or is deleted refused
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.schema_checks import Topic, World

STEPS = 120
SUBJECT, OTHER = "t-value", "u-value"
NEVER = 1_000_000
SCHEMAS = ('"int"', '"boolean"')
EITHER, NO_BOOLEAN = b"\1", b"\2"
LATE_MS = 1500


class Fault(AssertionError):
    """What the checks must not do."""


@dataclass
class Known:
    """A schema: when it was registered, when it went; `schema` is its text."""

    version: int
    subject: str
    since: int
    schema: str
    until: int | None = None

    def is_live_throughout(self, first: int, last: int) -> bool:
        return (
            self.subject == SUBJECT
            and self.since < first
            and (self.until is None or self.until > last)
        )


@dataclass
class Sent:
    """A batch under way."""

    ids: list[int]
    came: int
    answer: Pending[None]
    undecodable: list[int]
    """Those whose bytes are no boolean, of a batch that is to decode."""


@dataclass
class Run:
    rng: random.Random
    world: World = field(default_factory=World)
    known: dict[int, Known] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    step: int = 0
    read_to: list[tuple[int, int]] = field(default_factory=list)
    """(when a read began that saw the end of the topic, when its answer came)."""
    accepted: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.world.topic.held = []
        self.world.readings = []

    # -- what happens

    def register(self) -> None:
        subject = SUBJECT if self.rng.random() < 0.8 else OTHER
        schema_id, schema = len(self.known) + 1, self.rng.choice(SCHEMAS)
        self.add(schema_id, subject, schema)

    def add(self, schema_id: int, subject: str, schema: str) -> None:
        self.known[schema_id] = Known(schema_id, subject, self.step, schema)
        self.world.topic.add(subject, schema_id, schema_id, schema)

    def delete(self) -> None:
        live = [one for one, known in self.known.items() if known.until is None]
        if live:
            self.forget(self.rng.choice(live))

    def forget(self, schema_id: int) -> None:
        known = self.known[schema_id]
        known.until = self.step
        told = known.subject, known.version, schema_id, known.schema
        self.world.topic.add(*told, is_deleted=True)

    def send(self) -> None:
        live = [one for one, known in self.known.items() if known.until is None]
        ids = [
            self.rng.choice([*self.known, *live, *live, len(self.known) + 1, NEVER])
            for _ in range(self.rng.randint(1, 3))
        ]
        self.produce(ids, self.rng.choice((EITHER, NO_BOOLEAN)), self.rng.random() < 0.5)

    def produce(self, ids: list[int], data: bytes = EITHER, deep: bool = False) -> Pending[None]:
        values: list[bytes | None] = [b"\0" + one.to_bytes(4, "big") + data for one in ids]
        undecodable = ids if deep and data == NO_BOOLEAN else []
        sent = Sent(ids, self.step, self.world.check(values, deep), undecodable)
        self.sent.append(sent)
        return sent.answer

    def settle(self) -> None:
        held, readings = self.world.topic.held, self.world.readings
        if held and (not readings or self.rng.random() < 0.5):
            held.pop(0)()
        elif readings:
            readings.pop(self.rng.randrange(len(readings)))()
        self.world.turns.turn()

    def late(self) -> None:
        self.world.now_ms += self.rng.randint(1, LATE_MS)

    def time_out(self) -> None:
        self.world.turns.time_out()
        self.world.turns.turn()

    def fail(self) -> None:
        topic = self.world.topic
        failing = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        topic.failure = None if topic.failure else failing

    def cannot_read(self) -> None:
        """For want of a processor, say: what begins now fails."""
        world = self.world
        late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "not read")
        world.reading_failure = None if world.reading_failure else late

    def make_anew(self) -> None:
        topic = self.world.topic
        topic.id = self.rng.randbytes(16)
        topic.values = []
        for known in self.known.values():
            if known.until is None:
                known.until = self.step

    def restart(self) -> None:
        """Another process: what it had read is gone, who waited is not answered."""
        topic, now_ms = self.world.topic, self.world.now_ms
        topic.held = []
        self.sent = []
        self.world = World()
        self.world.readings = []
        self.world.topic = topic
        self.world.now_ms = now_ms
        self.world.follower._source = topic

    # -- what is looked at

    def look(self) -> None:
        waiting = []
        for sent in self.sent:
            if not sent.answer.done:
                waiting.append(sent)
                continue
            error = sent.answer.error()
            if error is None:
                self.accepted += 1
                self.check_accepted(sent)
            elif isinstance(error, KafkaError) and error.code is ErrorCode.INVALID_RECORD:
                self.refused += 1
                if all(
                    self.is_live(one, sent.came) and not self.is_undecodable(one, sent)
                    for one in sent.ids
                ):
                    raise Fault(f"{sent.ids} were refused and registered all the while")
            elif not isinstance(error, KafkaError) or error.code is not ErrorCode.REQUEST_TIMED_OUT:
                raise Fault(f"{sent.ids}: {error!r}")
        self.sent = waiting

    def is_live(self, schema_id: int, came: int) -> bool:
        known = self.known.get(schema_id)
        return known is not None and known.is_live_throughout(came, self.step)

    def is_undecodable(self, schema_id: int, sent: Sent) -> bool:
        known = self.known.get(schema_id)
        return known is not None and known.schema == SCHEMAS[1] and schema_id in sent.undecodable

    def check_accepted(self, sent: Sent) -> None:
        for one in sent.ids:
            known = self.known.get(one)
            if known is None or known.subject != SUBJECT:
                raise Fault(f"{one} was accepted and is not registered under the subject")
            if known.until is not None and self.was_read(known.until, sent.came):
                raise Fault(f"{one} was accepted after its deletion had been read")
            if self.is_undecodable(one, sent):
                raise Fault(f"{one} was accepted and does not decode")

    def was_read(self, gone: int, came: int) -> bool:
        return any(began > gone and ended < came for began, ended in self.read_to)


class Watched(Topic):
    """It tells the run which reads saw its end."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def read(self, offset: int):  # type: ignore[no-untyped-def]
        began, ends = self.run.step, offset + 2 >= self.first + len(self.values)
        follower = self.run.world.follower
        asked = follower._under_way  # one that took too long is not listened to
        answer = super().read(offset)

        def settled(done) -> None:  # type: ignore[no-untyped-def]
            if ends and done.error() is None and follower._under_way is asked:
                self.run.read_to.append((began, self.run.step))

        answer.add_done_callback(settled)
        return answer


def simulate(seed: int, steps: int = STEPS) -> Run:
    """Raises Fault."""
    run = Run(random.Random(seed))
    topic = Watched(run)
    topic.held = []
    run.world.topic = topic
    run.world.follower._source = topic
    happens = (
        *([run.register] * 4 + [run.send] * 8 + [run.settle] * 12 + [run.late] * 3),
        *(run.delete, run.delete, run.time_out, run.fail, run.make_anew, run.restart),
        run.cannot_read,
    )
    for run.step in range(1, steps + 1):
        run.rng.choice(happens)()
        run.look()
    _healed(run)
    return run


def _healed(run: Run) -> None:
    def quiet() -> None:
        run.step += 1
        while run.world.topic.held or run.world.readings or run.world.turns.due:
            run.settle()
        run.look()

    run.world.topic.failure = run.world.reading_failure = None
    quiet()
    last = len(run.known) + 1
    run.add(last, SUBJECT, SCHEMAS[1])
    run.step += 1
    live, never = run.produce([last], deep=True), run.produce([NEVER])
    wrong = run.produce([last], NO_BOOLEAN, deep=True)
    quiet()
    if not wrong.done or wrong.error() is None:
        raise Fault(f"{last} does not decode and was not refused in the end")
    if not live.done or live.error() is not None:
        raise Fault(f"{last} is registered and was not accepted in the end")
    if not never.done or never.error() is None:
        raise Fault("what nobody registered was not refused in the end")
    run.forget(last)
    run.step += 1
    run.world.now_ms += LATE_MS
    run.produce([last])  # it may be accepted: what is known is read anew beside it
    quiet()
    run.step += 1
    deleted = run.produce([last])
    quiet()
    if not deleted.done or deleted.error() is None:
        raise Fault(f"{last} is deleted and was accepted more than a second later")

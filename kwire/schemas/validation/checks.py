"""Batches of topics that ask for schemas, checked before they are appended.

A batch whose schemas are known is decided on the spot. One that names a schema nobody knows waits
until the registry's topic is read to its end: only then is it refused. One with many records, or
whose schema has to be parsed first, is checked in turns of the loop and beside it (ADR 17). What
takes too long to be parsed is refused: anybody who may write the topic of schemas may write it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from kwire.log.partition.deferred_checks import run_steps
from kwire.log.scheduling import Scheduler
from kwire.pending import Answer, Pending, gather
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.compression import Work
from kwire.protocol.records.header import BatchHeader, Buffer
from kwire.schemas.formats import InvalidSchema
from kwire.schemas.registry.schemas import Schemas
from kwire.schemas.registry.version import Version
from kwire.schemas.registry.work import SchemaWork
from kwire.schemas.validation.batch import Outcome, PreparedOrFault, Schema, pass_over
from kwire.schemas.validation.closures import CHARACTERS_MAX, closure_of, refusal
from kwire.schemas.validation.follower import Follower
from kwire.schemas.validation.rules import TopicRules

PREPARED_MAX = 500
READING_MAX = 32
"""How many schemas of a topic are parsed, or wait for it."""
WAIT_MS = 20_000
"""How long a batch waits for a schema to be parsed, which goes on then; producers wait longer."""
REFUSED_KEPT_MS = 600_000
"""What is refused may have been so for want of memory: another time it is parsed anew."""
ROUNDS_MAX = 8 + PREPARED_MAX // READING_MAX
HELD_BYTES_MAX = 128 * 1024 * 1024
OLD_MS = 1000
"""After this what is known is read anew, beside what is being checked: schemas are deleted, too."""

ReadSchema = Callable[[str, SchemaWork], Pending[PreparedOrFault]]
"""`read(topic, closure)` parses beside the loop, within limits, for records of a topic; fails with
KafkaError where that cannot be done now."""


class SchemaChecks:
    """See the module."""

    def __init__(
        self,
        follower: Follower,
        scheduler: Scheduler,
        now_ms: Callable[[], int],
        read: ReadSchema,
    ) -> None:
        self.follower = follower
        self.scheduler = scheduler
        self.prepared: dict[Schema, PreparedOrFault] = {}
        self.held_bytes = 0
        self._read = read
        self._reading: dict[Schema, _Reading] = {}
        self._kept: dict[Schema, _Kept] = {}
        self._now_ms = now_ms
        self._refreshed_ms = now_ms()

    def check(self, rules: TopicRules, records: Buffer, header: BatchHeader) -> Answer[None]:
        """None when every record has its schema; a Pending of that. Raises, or fails with,
        KafkaError: InvalidRecordsError with the records at fault, REQUEST_TIMED_OUT where schemas
        cannot be read, CORRUPT_MESSAGE and the like where the batch cannot be."""
        now_ms = self._now_ms()
        if now_ms - self._refreshed_ms > OLD_MS and not self.follower.is_refreshing:
            self._refreshed_ms = now_ms
            self._forget_refused(now_ms)
            self.follower.refresh()
        checking = _Checking(self, rules, records, header)
        checking.attempt()
        if checking.done.done:
            return checking.done.result()
        if self.held_bytes + len(records) > HELD_BYTES_MAX:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Too many batches wait for their check")
        self.held_bytes += len(records)
        checking.done.add_done_callback(lambda _: self._let_go(len(records)))
        return checking.done

    def _let_go(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes

    def prepare(
        self, topic: str, wanted: dict[Schema, Version]
    ) -> Pending[list[Pending[PreparedOrFault]]]:
        """Done when the first of these schemas, READING_MAX, are parsed, or cannot be now."""
        schemas = Schemas(self.follower.state)
        first = islice(wanted.items(), READING_MAX)
        return gather([self._prepared(topic, schemas, *one) for one in first])

    def _prepared(
        self, topic: str, schemas: Schemas, schema: Schema, version: Version
    ) -> Pending[PreparedOrFault]:
        """Who asks for one that is being parsed waits for that."""
        under_way = self._reading.get(schema)
        if under_way is not None:
            return self._awaited(under_way.found)
        if sum(one.topic == topic for one in self._reading.values()) >= READING_MAX:
            told = f"{READING_MAX} schemas of {topic} wait to be read"
            return Pending.failed(KafkaError(ErrorCode.REQUEST_TIMED_OUT, told))
        try:
            closure = closure_of(schemas, version)
        except InvalidSchema as error:
            fault = refusal(str(error))
            self._keep(schema, fault, 0)
            return Pending.completed(fault)
        found = self._read(topic, closure)
        self._reading[schema] = _Reading(topic, found)
        found.add_done_callback(lambda done: self._parsed(schema, done, closure.characters))
        return self._awaited(found)

    def _awaited(self, found: Pending[PreparedOrFault]) -> Pending[PreparedOrFault]:
        if found.done:
            return found
        awaited: Pending[PreparedOrFault] = Pending()
        told = f"A schema was not parsed within {WAIT_MS // 1000} s"
        late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, told)

        def give_up() -> None:
            awaited.fail(late)

        timer = self.scheduler.call_later(WAIT_MS, give_up)

        def settle(done: Pending[PreparedOrFault]) -> None:
            timer.cancel()
            error = done.error()
            if error is None:
                awaited.complete(done.result())
            else:
                awaited.fail(error)

        found.add_done_callback(settle)
        return awaited

    def _parsed(self, schema: Schema, done: Pending[PreparedOrFault], characters: int) -> None:
        del self._reading[schema]
        if done.error() is None:
            self._keep(schema, done.result(), characters)

    def _keep(self, schema: Schema, found: PreparedOrFault, characters: int) -> None:
        self._forget(schema)
        self.prepared[schema] = found
        self._kept[schema] = _Kept(0 if isinstance(found, str) else characters, self._now_ms())
        while len(self.prepared) > PREPARED_MAX or self._characters > CHARACTERS_MAX:
            self._forget(next(iter(self.prepared)))

    @property
    def _characters(self) -> int:
        return sum(kept.characters for kept in self._kept.values())

    def _forget(self, schema: Schema) -> None:
        self.prepared.pop(schema, None)
        self._kept.pop(schema, None)

    def _forget_refused(self, now_ms: int) -> None:
        for schema, found in list(self.prepared.items()):
            if isinstance(found, str) and now_ms - self._kept[schema].since_ms > REFUSED_KEPT_MS:
                self._forget(schema)


class _Reading(NamedTuple):
    topic: str
    found: Pending[PreparedOrFault]


class _Kept(NamedTuple):
    """Of what is parsed: the text that it was made of, and when."""

    characters: int
    since_ms: int


class _Checking:
    """One batch."""

    def __init__(
        self, checks: SchemaChecks, rules: TopicRules, records: Buffer, header: BatchHeader
    ) -> None:
        self._checks = checks
        self._rules = rules
        self._records = records
        self._header = header
        self._rounds = 0
        self._is_fresh = False
        self.done: Pending[None] = Pending()

    def attempt(self) -> None:
        checks = self._checks
        self._rounds += 1
        if self._rounds > ROUNDS_MAX:
            self._fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The schemas change all the time"))
            return
        if not checks.follower.is_loaded:
            checks.follower.load().add_done_callback(self._loaded)
            return
        state, prepared = checks.follower.state, checks.prepared
        steps = pass_over(self._rules, self._records, self._header, state, prepared, self._is_fresh)
        try:
            work = next(steps)
        except StopIteration as stop:
            self._decide(stop.value)
        except KafkaError as error:
            self._fail(KafkaError(error.code, error.message))
        else:
            passed = run_steps(work, steps, checks.scheduler, _perform)
            passed.add_done_callback(self._passed)

    def _passed(self, done: Pending[Outcome]) -> None:
        error = done.error()
        if error is None:
            self._decide(done.result())
        else:
            self._fail(error)

    def _decide(self, outcome: Outcome) -> None:
        if outcome.is_unknown:
            self._checks.follower.refresh().add_done_callback(self._refreshed)
        elif outcome.unprepared:
            wanted = self._checks.prepare(self._rules.topic, outcome.unprepared)
            wanted.add_done_callback(self._prepared)
        elif outcome.faults:
            self._fail(outcome.error())  # every one of them
        else:
            self.done.complete(None)

    def _prepared(self, done: Pending[list[Pending[PreparedOrFault]]]) -> None:
        errors = [error for error in (one.error() for one in done.result()) if error is not None]
        if errors:
            self._fail(errors[0])
        else:
            self.attempt()

    def _loaded(self, done: Pending[None]) -> None:
        error = done.error()
        if error is None:
            self.attempt()
        else:
            self._fail(error)

    def _refreshed(self, done: Pending[None]) -> None:
        error = done.error()
        if error is None:
            self._is_fresh = True
            self.attempt()
        else:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.done.fail(error)


def _perform(work: Work) -> None:
    work.perform()

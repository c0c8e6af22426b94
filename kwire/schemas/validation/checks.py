"""Batches of topics that ask for schemas, checked before they are appended.

A batch whose schemas are known is decided on the spot. One that names a schema nobody knows waits
until the registry's topic is read to its end: only then is it refused. One with many records, or
whose schema has to be parsed first, is checked in turns of the loop and beside it (ADR 17).
"""

from __future__ import annotations

from collections.abc import Callable

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
from kwire.schemas.validation.closures import closure_of, prepare
from kwire.schemas.validation.follower import Follower
from kwire.schemas.validation.rules import TopicRules

PREPARED_MAX = 500
ROUNDS_MAX = 8
HELD_BYTES_MAX = 128 * 1024 * 1024
OLD_MS = 1000
"""After this what is known is read anew, beside what is being checked: schemas are deleted, too."""


class SchemaChecks:
    """See the module."""

    def __init__(self, follower: Follower, scheduler: Scheduler, now_ms: Callable[[], int]) -> None:
        self.follower = follower
        self.scheduler = scheduler
        self.prepared: dict[Schema, PreparedOrFault] = {}
        self.held_bytes = 0
        self._now_ms = now_ms
        self._refreshed_ms = now_ms()

    def check(self, rules: TopicRules, records: Buffer, header: BatchHeader) -> Answer[None]:
        """None when every record has its schema; a Pending of that. Raises, or fails with,
        KafkaError: InvalidRecordsError with the records at fault, REQUEST_TIMED_OUT where schemas
        cannot be read, CORRUPT_MESSAGE and the like where the batch cannot be."""
        now_ms = self._now_ms()
        if now_ms - self._refreshed_ms > OLD_MS and not self.follower.is_refreshing:
            self._refreshed_ms = now_ms
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

    def prepare(self, wanted: dict[Schema, Version]) -> Pending[list[Pending[PreparedOrFault]]]:
        """Done when these schemas are parsed."""
        schemas = Schemas(self.follower.state)
        jobs = []
        for schema, version in wanted.items():
            try:
                closure = closure_of(schemas, version)
            except InvalidSchema as error:
                self._keep(schema, f"its schema cannot be read: {error}")
            else:
                jobs.append(self._parse(schema, closure))
        return gather(jobs)

    def _parse(self, schema: Schema, closure: SchemaWork) -> Pending[PreparedOrFault]:
        job = self.scheduler.run(lambda: prepare(closure))
        job.add_done_callback(
            lambda done: self._keep(schema, done.result()) if done.error() is None else None
        )
        return job

    def _keep(self, schema: Schema, found: PreparedOrFault) -> None:
        self.prepared[schema] = found
        if len(self.prepared) > PREPARED_MAX:
            del self.prepared[next(iter(self.prepared))]


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
            self._checks.prepare(outcome.unprepared).add_done_callback(lambda _: self.attempt())
        elif outcome.faults:
            self._fail(outcome.error())  # every one of them
        else:
            self.done.complete(None)

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

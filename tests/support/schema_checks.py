"""A topic of schemas in memory, and who checks batches by it, in turns that a test gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.log.scheduling import Timer
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch
from kwire.protocol.records.header import BatchHeader, Codec, parse_header
from kwire.schemas.registry.json_values import JsonObject, written
from kwire.schemas.registry.records import schema_key
from kwire.schemas.registry.work import SchemaWork
from kwire.schemas.validation.batch import PreparedOrFault
from kwire.schemas.validation.checks import SchemaChecks
from kwire.schemas.validation.closures import prepare
from kwire.schemas.validation.follower import Follower, Page
from kwire.schemas.validation.rules import TOPIC_NAME, SideRules, TopicRules

T = TypeVar("T")


class ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Turns:
    """A scheduler whose turns and timers come when the test says so; jobs run at once."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.timers: list[ManualTimer] = []

    def call_soon(self, callback: Callable[[], None]) -> object:
        self.due.append(callback)
        return None

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(ManualTimer(callback))
        return self.timers[-1]

    def run(self, job: Callable[[], T]) -> Pending[T]:
        return Pending.completed(job())

    def turn(self) -> None:
        while self.due:
            self.due.pop(0)()

    def time_out(self) -> None:
        for timer in self.timers:
            if timer.callback is not None:
                timer.callback()


class Topic:
    """A log in memory, one record a batch. `answers` holds reads back while it is a list."""

    def __init__(self) -> None:
        self.id: bytes | None = b"1" * 16
        self.first = 0
        self.values: list[tuple[bytes, bytes | None]] = []
        self.held: list[Callable[[], None]] | None = None
        self.failure: KafkaError | None = None
        self.reads = 0

    def add(
        self,
        subject: str,
        version: int,
        schema_id: int,
        schema: str = '"int"',
        is_deleted: bool = False,
        schema_type: str = "AVRO",
    ) -> None:
        value: JsonObject = {
            **({} if schema_type == "AVRO" else {"schemaType": schema_type}),
            "subject": subject,
            "version": version,
            "id": schema_id,
            "schema": schema,
        }
        told = written({**value, "deleted": is_deleted})
        self.values.append((schema_key(subject, version), told))

    def topic_id(self) -> bytes | None:
        return self.id

    def read(self, offset: int) -> Pending[Page]:
        self.reads += 1
        answer: Pending[Page] = Pending()
        page = self._page(offset)

        def settle() -> None:
            if isinstance(page, Page):
                answer.complete(page)
            else:
                answer.fail(page)

        if self.held is None:
            settle()
        else:
            self.held.append(settle)
        return answer

    def _page(self, offset: int) -> Page | KafkaError:
        end = self.first + len(self.values)
        if self.failure is not None:
            return self.failure
        if not self.first <= offset <= end:
            return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        buffers = [
            build_batch([Record(key=key, value=value)], base_offset=at)
            for at, (key, value) in enumerate(self.values, self.first)
            if offset <= at < offset + 2
        ]
        return Page(buffers, end)

    def start(self) -> Pending[int]:
        return Pending.completed(self.first)


class World:
    def __init__(self) -> None:
        self.topic, self.turns, self.now_ms = Topic(), Turns(), 0
        self.readings: list[Callable[[], None]] | None = None
        """Schemas that are being parsed, held back while it is a list."""
        self.reading_failure: KafkaError | None = None
        self.follower = Follower(self.topic, self.turns)
        self.checks = SchemaChecks(
            self.follower,
            self.turns,
            lambda: self.now_ms,
            lambda topic, closure: self._read(closure),
        )

    def _read(self, closure: SchemaWork) -> Pending[PreparedOrFault]:
        answer: Pending[PreparedOrFault] = Pending()
        failure = self.reading_failure

        def settle() -> None:
            if failure is None:
                answer.complete(prepare(closure))
            else:
                answer.fail(failure)

        if self.readings is None:
            settle()
        else:
            self.readings.append(settle)
        return answer

    def subjects(self) -> list[str]:
        return self.follower.state.subjects()

    def refresh(self) -> Pending[None]:
        pending = self.follower.refresh()
        self.turns.turn()
        return pending

    def check(
        self, values: list[bytes | None], deep: bool = False, codec: Codec = Codec.NONE
    ) -> Pending[None]:
        batch = build_batch([Record(value=value) for value in values], codec=codec)
        rules = TopicRules("t", None, SideRules("value", TOPIC_NAME), deep)
        header: BatchHeader = parse_header(batch)
        try:
            answer = self.checks.check(rules, batch, header)
        except KafkaError as error:
            return Pending.failed(error)
        self.turns.turn()
        return answer if isinstance(answer, Pending) else Pending.completed(None)

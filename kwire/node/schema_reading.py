"""Schemas that records name are parsed beside the loop, within limits.

    up to 8 KB   by a thread: the worst that is known takes 0.3 s
    more         first by a process that may take WORK_S of a processor and a gigabyte
                 (`kwire/http/schema_reader.py`); what it can read is parsed by a thread then

Topics take turns with what is large: one whose schemas take long holds the others up for one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kwire.http.schema_process import WORK_S, SchemaProcess
from kwire.log.scheduling import Scheduler
from kwire.node.waiting import end_of
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.schemas.registry.work import Kind, Refused, SchemaWork, WorkDone, encoded
from kwire.schemas.validation.batch import PreparedOrFault
from kwire.schemas.validation.closures import CHARACTERS_MAX, prepare, refusal

WAIT_S = 60.0
"""For one that is read: where the machine has no processor to spare."""


class _Asked(NamedTuple):
    closure: SchemaWork
    found: Pending[PreparedOrFault]


class SchemaReading:
    """See the module. `new_scheduler` has threads, by their names."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        new_scheduler: Callable[[str], Scheduler],
        work_s: int = WORK_S,
    ) -> None:
        self._loop = loop
        self._small = new_scheduler("kwire-schema-parsing")
        self._large = new_scheduler("kwire-large-schema-parsing")
        self.process = SchemaProcess(work_s)
        self._asked: dict[str, deque[_Asked]] = {}
        self._serving: asyncio.Task[None] | None = None
        self._is_closed = False

    def read(self, topic: str, closure: SchemaWork) -> Pending[PreparedOrFault]:
        """Parsed, or why it cannot be; KafkaError REQUEST_TIMED_OUT where that is not known. It may
        take minutes, where many wait."""
        if self._is_closed:
            return Pending.failed(_unknown("the broker stops"))
        found: Pending[PreparedOrFault] = Pending()
        if closure.is_inline:
            self._parse(self._small, closure, found)
            return found
        if closure.characters > CHARACTERS_MAX:
            told = f"with what it refers to it has {closure.characters} characters, of at most "
            return Pending.completed(refusal(f"{told}{CHARACTERS_MAX}"))
        self._asked.setdefault(topic, deque()).append(_Asked(closure, found))
        if self._serving is None:
            self._serving = self._loop.create_task(self._serve())
        return found

    async def _serve(self) -> None:
        """One schema after the other, of each topic in its turn."""
        try:
            while self._asked:
                topic = next(iter(self._asked))
                waiting = self._asked.pop(topic)
                asked = waiting.popleft()
                if waiting:
                    self._asked[topic] = waiting
                try:
                    await self._answer(asked)
                finally:
                    asked.found.fail(_unknown("the broker stops"))  # where it has no answer yet
        finally:
            self._serving = None

    async def _answer(self, asked: _Asked) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                told = await self._told(asked.closure)
        except TimeoutError:
            asked.found.fail(_unknown(f"not within {WAIT_S:g} s"))
        except OSError as error:
            why = f"no process can be started: {error.strerror or error}"
            asked.found.fail(_unknown(why))
        except Exception as error:  # whoever waits must hear of it, whatever it is
            asked.found.fail(_unknown(f"{type(error).__name__}: {error}"))
        else:
            if isinstance(told, Refused):
                asked.found.complete(refusal(told.why, told.package))
            else:
                self._parse(self._large, asked.closure, asked.found)
                await end_of(self._loop, asked.found)

    async def _told(self, closure: SchemaWork) -> WorkDone | None:
        """Whether it can be read; None where the loop starts no processes (a simulated one)."""
        question = self._large.run(lambda: encoded(closure._replace(kind=Kind.CHECK)))
        await end_of(self._loop, question)
        try:
            return await self.process.done(question.result())
        except NotImplementedError:
            return None

    def _parse(
        self, scheduler: Scheduler, closure: SchemaWork, found: Pending[PreparedOrFault]
    ) -> None:
        job = scheduler.run(lambda: prepare(closure))
        job.add_done_callback(lambda done: _settle(done, found))

    async def close(self) -> None:
        """End what is under way: who waits is told to try again. Nothing raises."""
        self._is_closed = True
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        for waiting in self._asked.values():
            for asked in waiting:
                asked.found.fail(_unknown("the broker stops"))
        self._asked.clear()
        await self.process.close()


def _settle(done: Pending[PreparedOrFault], found: Pending[PreparedOrFault]) -> None:
    error = done.error()
    if error is None:
        found.complete(done.result())
    else:
        found.fail(_unknown(f"{type(error).__name__}: {error}"))


def _unknown(why: str) -> KafkaError:
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"A schema cannot be read now: {why}")

"""Schemas that are too large to be read on the loop are read by a process beside it.

One process, one schema after the other: it is started for the first of them, ends when none has
come for IDLE_S, and is ended when a schema takes longer than it may (`schema_reader.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar

from kwire.http.schema_reader import SIZE_BYTES
from kwire.python_module import python_module
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.work import (
    Refused,
    SchemaWork,
    WorkDone,
    WorkNeeded,
    decoded_done,
    encoded,
)

T = TypeVar("T")

WORK_S = 5
"""Of a processor, for one schema or one comparison."""
WAITING_MAX = 32
WAIT_S = 60.0
"""Of a request, for all that it needs to be read: where the machine has no processor to spare."""
IDLE_S = 60.0


class SchemaReading:
    """See the module."""

    def __init__(self, work_s: int = WORK_S) -> None:
        self._work_s = work_s
        self._too_much = (
            f"It takes more than {work_s} s of a processor, or too much memory, to read"
        )
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._idle: asyncio.TimerHandle | None = None
        self.started = 0

    async def decided(self, registry: Callable[[], Registry], look: Callable[[Registry], T]) -> T:
        """What `look` says, with everything read that it needs; what it raises, and RegistryError
        where that cannot be done now."""
        unread: list[tuple[Registry, SchemaWork]] = []
        try:
            async with asyncio.timeout(WAIT_S):
                while True:
                    asked = registry()
                    try:
                        return look(asked)
                    except WorkNeeded as needed:
                        work = needed.work
                    found = await self._done(work)
                    asked.schemas.tell(work, found)
                    if isinstance(found, Refused) and found.why == self._too_much:
                        unread.append((asked, work))
        except TimeoutError:
            raise RegistryError(
                Code.TIMED_OUT, f"The schemas were not read within {WAIT_S:g} s: try again"
            ) from None
        finally:
            for asked, work in unread:  # another time there may be more of a processor
                asked.schemas.forget(work)

    async def _done(self, work: SchemaWork) -> WorkDone:
        if self._waiting >= WAITING_MAX:
            raise RegistryError(Code.TIMED_OUT, f"{WAITING_MAX} schemas wait to be read: try again")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._asked(encoded(work))
        finally:
            self._waiting -= 1

    async def _asked(self, question: bytes) -> WorkDone:
        if self._idle is not None:
            self._idle.cancel()
        process = self._process or await self._start()
        assert process.stdin is not None, "a pipe"
        assert process.stdout is not None, "a pipe"
        try:
            process.stdin.write(len(question).to_bytes(SIZE_BYTES, "big") + question)
            await process.stdin.drain()
            size = int.from_bytes(await process.stdout.readexactly(SIZE_BYTES), "big")
            answer = await process.stdout.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._end()
            return Refused(self._too_much)
        except BaseException:  # nobody waits for it any more: the next answer is another one's
            self._end()
            raise
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end)
        return decoded_done(answer)

    async def _start(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            *python_module("kwire.http.schema_reader"),
            *(str(os.getpid()), str(self._work_s)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self.started += 1
        return self._process

    async def close(self) -> None:
        """End the process, and wait until it has."""
        process = self._process
        if self._idle is not None:
            self._idle.cancel()
        self._end()
        if process is not None:
            await process.wait()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()

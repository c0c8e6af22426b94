"""Schemas that are too large to be read on the loop are read by a process beside it
(`schema_process.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from kwire.http.schema_process import WORK_S, SchemaProcess
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.work import (
    Refused,
    SchemaWork,
    WorkDone,
    WorkNeeded,
    encoded,
)

T = TypeVar("T")

WAITING_MAX = 32
WAIT_S = 60.0
"""Of a request, for all that it needs to be read: where the machine has no processor to spare."""


class RegistryReading:
    """See the module."""

    def __init__(self, work_s: int = WORK_S) -> None:
        self._process = SchemaProcess(work_s)
        self._waiting = 0

    @property
    def started(self) -> int:
        """How many processes there have been."""
        return self._process.started

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
                    if isinstance(found, Refused) and found.why == self._process.too_much:
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
            return await self._process.done(encoded(work))
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """End the process, and wait until it has."""
        await self._process.close()

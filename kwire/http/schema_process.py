"""The process that reads schemas (`schema_reader.py`), as whoever asks it sees it.

One process, one schema after the other: it is started for the first of them, ends when none has
come for IDLE_S, and is ended when a schema takes longer than it may. Where it was killed from
outside another one is asked, once: it may be the schema that has the system kill it.
"""

from __future__ import annotations

import asyncio
import os
import signal

from kwire.http.schema_reader import SIZE_BYTES
from kwire.python_module import python_module
from kwire.schemas.registry.work import Refused, WorkDone, decoded_done

WORK_S = 5
"""Of a processor, for one schema or one comparison."""
IDLE_S = 60.0
ASKED_MAX = 2


class SchemaProcess:
    """See the module."""

    def __init__(self, work_s: int = WORK_S) -> None:
        self.too_much = f"It takes more than {work_s} s of a processor, or too much memory, to read"
        """Why a schema is refused that takes longer than it may."""
        self._refused = Refused(self.too_much)
        self.started = 0
        self._work_s = work_s
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._ended: list[asyncio.subprocess.Process] = []

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def is_idle(self) -> bool:
        """Whether nobody has asked it anything that is not answered."""
        return not self._turn.locked()

    async def done(self, question: bytes) -> WorkDone:
        """What came of work as `kwire/schemas/registry/work.py` has it as bytes. OSError where the
        process cannot be started."""
        async with self._turn:
            for _ in range(ASKED_MAX):
                found = await self._asked(question)
                if found is not None:
                    return found
        return self._refused

    async def _asked(self, question: bytes) -> WorkDone | None:
        """None where the process was killed."""
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
            try:
                status = await process.wait()
            finally:
                self._end()
            return None if status == -signal.SIGKILL else self._refused
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
        if self._idle is not None:
            self._idle.cancel()
        self._end()
        for process in self._ended:
            await process.wait()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            self._ended = [one for one in self._ended if one.returncode is None]
            self._ended.append(process)

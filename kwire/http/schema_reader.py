"""The process that reads schemas: `python -m kwire.http.schema_reader PARENT WORK_S`.

    in     size, uint32 | work, as `kwire/schemas/registry/work.py` has it as bytes
    out    size, uint32 | what came of it

A text may take minutes and gigabytes to be read. Here it gets WORK_S of a processor, and
MEMORY_BYTES_MAX: with more, this process ends, and whoever asked starts another one.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import BinaryIO

from kwire.http.parent import die_with
from kwire.schemas.registry.work import decoded, done, encoded_done

MEMORY_BYTES_MAX = 1 << 30
SIZE_BYTES = 4


def main(arguments: list[str]) -> int:
    """Answer until nobody asks; returns the exit status."""
    parent, work_s = map(int, arguments)
    if not die_with(parent):
        return 0
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the parent decides
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    except (OSError, ValueError):
        pass  # a container, or another system, has its own limit
    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    while (data := _message(sys.stdin.buffer)) is not None:
        signal.setitimer(signal.ITIMER_PROF, work_s)
        answer = encoded_done(done(decoded(data)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        told.write(len(answer).to_bytes(SIZE_BYTES, "big") + answer)
        told.flush()
    return 0


def _message(source: BinaryIO) -> bytes | None:
    size = source.read(SIZE_BYTES)
    if len(size) < SIZE_BYTES:
        return None
    return source.read(int.from_bytes(size, "big"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

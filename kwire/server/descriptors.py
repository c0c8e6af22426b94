"""Descriptors kept back for files: connections give way before a log cannot be opened.

The kernel gives the lowest descriptor that is free. So the number of a connection that was just
accepted says how many are in use, and nothing has to be counted.
"""

from __future__ import annotations

import asyncio

from kwire.log.files import open_files_limit

RESERVE_MIN, RESERVE_MAX = 64, 4096
UNKNOWN = -1


class DescriptorReserve:
    """`limit` is what this process may have open (0: unknown); a quarter of it is for files."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept = min(max(limit // 4, RESERVE_MIN), limit // 2, RESERVE_MAX)

    @classmethod
    def of_process(cls) -> DescriptorReserve:
        """The limit that is in effect now."""
        return cls(open_files_limit())

    def is_touched_by(self, descriptor: int) -> bool:
        """Whether a connection with this descriptor takes of what is kept for files."""
        return self.limit > 0 and descriptor >= self.limit - self.kept


def descriptor_of(transport: asyncio.BaseTransport) -> int:
    """The number of a connection's socket, UNKNOWN where it has none (a simulated one)."""
    fileno = getattr(transport.get_extra_info("socket"), "fileno", None)
    return UNKNOWN if fileno is None else int(fileno())

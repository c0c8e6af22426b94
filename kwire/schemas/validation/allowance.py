"""How much work one check may be: whoever looks at a value of a schema or of a record takes steps.

    on the loop    those of a turn (`batch.py`); what needs more is done by a worker, from the start
    by a worker    as many as `of_record` says; a record that needs more is refused

A step takes 1 to 10 us.
"""

from __future__ import annotations

STEPS_FREE, STEPS_PER_BYTE = 20_000, 20
READ_BYTES_MAX = 1_048_576
"""Of a JSON document or a message of Protobuf: while one is read no other thread runs."""


class AllowanceSpentError(Exception):
    """A check needs more steps than it has."""


class Allowance:
    """`left` steps. `is_of_loop`: what takes long at once is not begun. `read_bytes_max`: of what
    is read at once."""

    __slots__ = ("is_of_loop", "left", "read_bytes_max")

    def __init__(
        self, left: int, *, is_of_loop: bool = False, read_bytes_max: int = READ_BYTES_MAX
    ) -> None:
        self.left = left
        self.is_of_loop = is_of_loop
        self.read_bytes_max = read_bytes_max

    def take(self, count: int) -> None:
        """Raises AllowanceSpentError where that many are not left."""
        self.left -= count
        if self.left < 0:
            raise AllowanceSpentError


def of_record(size_bytes: int) -> int:
    """What the check of a key or value of that size may take."""
    return STEPS_FREE + STEPS_PER_BYTE * size_bytes

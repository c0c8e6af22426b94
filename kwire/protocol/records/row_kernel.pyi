"""Types of the row kernel, compiled or not (its source has C types)."""

from typing import Final

from kwire.protocol.records.header import Buffer

COMPILED: Final[bool]
DONE: Final[int]
FULL: Final[int]
OTHER: Final[int]
ROW_FIELDS: Final[int]

class RowScan:
    position: int
    @property
    def rows(self) -> int: ...
    def __init__(self, position: int = 0) -> None: ...
    def step(self, data: Buffer, end: int, table: memoryview[int]) -> int: ...

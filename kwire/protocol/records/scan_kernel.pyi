"""Types of the scan kernel, compiled or not (its source has C types)."""

from typing import Final

from kwire.protocol.records.header import Buffer

COMPILED: Final[bool]
DONE: Final[int]
RUNNING: Final[int]
TORN: Final[int]
CORRUPT: Final[int]
BAD_CRC: Final[int]
ROW_FIELDS: Final[int]

class BatchScan:
    @property
    def position(self) -> int: ...
    @property
    def rows(self) -> int: ...
    def __init__(self, position: int = 0, verify: bool = False) -> None: ...
    def step(self, data: Buffer, end: int, table: memoryview[int], limit: int) -> int: ...

"""Types of the compaction kernel, compiled or not (its source has C types)."""

from typing import Final

from kwire.protocol.records.header import Buffer

COMPILED: Final[bool]

class OffsetMap:
    @property
    def capacity(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def used_max(self) -> int: ...
    latest_offset: int
    def __init__(self, memory_bytes: int, seed: bytes, load_factor: float = 0.9) -> None: ...
    def put(self, key: Buffer, offset: int) -> bool: ...
    def get(self, key: Buffer) -> int: ...
    def digest(self, key: Buffer) -> bytes: ...

class Selection:
    @property
    def count(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def tombstones(self) -> int: ...
    @property
    def first_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    def __init__(self) -> None: ...

def index_keys(
    data: Buffer, table: memoryview[int], rows: int, offsets: OffsetMap, offset_min: int
) -> int: ...
def select(
    data: Buffer,
    table: memoryview[int],
    rows: int,
    offsets: OffsetMap,
    keep_tombstones: bool,
    flags: bytearray,
    first: int,
    selection: Selection,
) -> None: ...
def index_rows(data: Buffer, table: memoryview[int], rows: int, offsets: OffsetMap) -> None: ...
def latest_rows(
    data: Buffer, table: memoryview[int], rows: int, offsets: OffsetMap, tombstones: bool
) -> int: ...
def rewrite(
    data: Buffer,
    table: memoryview[int],
    rows: int,
    flags: bytearray,
    first: int,
    out: bytearray,
    at: int,
    base_timestamp: int,
    verbatim: bool,
) -> int: ...

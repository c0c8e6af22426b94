"""Types of the record kernel, compiled or not (its source has C types, which mypy cannot read)."""

from typing import Final

from kwire.protocol.records.header import Buffer

COMPILED: Final[bool]
DONE: Final[int]
RUNNING: Final[int]
NULL_KEY: Final[int]
TIMESTAMP: Final[int]
MAP_FULL: Final[int]
SHORT: Final[int]
STRUCTURE: Final[int]
REMAINING: Final[int]
TOO_LARGE: Final[int]

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]
Place = tuple[int, int, int, int, int, int, int, int, int]

class RecordWalk:
    position: int
    end: int
    index: int
    count: int
    base_offset: int
    base_timestamp: int
    max_timestamp: int
    max_timestamp_index: int
    consecutive: bool
    timestamp: int
    offset_delta: int
    record_start: int
    body_start: int
    offset_start: int
    key_start: int
    key_size: int
    value_start: int
    value_size: int
    header_count: int
    headers_start: int
    retained_count: int
    retained_bytes: int
    retained_first_timestamp: int
    retained_last_delta: int
    retained_tombstones: int
    def __init__(
        self,
        data: Buffer,
        position: int,
        end: int,
        count: int,
        base_offset: int = 0,
        base_timestamp: int = 0,
        append_time: int | None = None,
    ) -> None: ...
    def validate(
        self,
        limit: int,
        key_required: bool = False,
        timestamp_min: int = ...,
        timestamp_max: int = ...,
        refuse_all: bool = False,
        body_size_max: int = ...,
    ) -> int: ...
    def find_timestamp(self, limit: int, target: int, offset_min: int) -> int: ...
    def read(self, limit: int) -> tuple[int, list[Row]]: ...
    def locate(self, limit: int) -> tuple[int, list[Place]]: ...
    def headers(self) -> list[tuple[bytes, bytes | None]]: ...

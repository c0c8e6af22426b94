"""Types of the envelope kernel, compiled or not (its source has C types)."""

from typing import Any, Final

COMPILED: Final[bool]

def read_elements(
    items: list[Any], view: memoryview, position: int, index_name: str, records_name: str
) -> tuple[int, int]: ...

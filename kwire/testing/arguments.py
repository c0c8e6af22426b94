"""What a test says of its brokers, looked at before anything is made of it.

TypeError for what is of another type, ValueError for what is out of bounds: one line, which names
the argument and what is accepted.
"""

from __future__ import annotations

from pathlib import Path

PORT_MAX = 65_535
INT64_MAX = (1 << 63) - 1


def whole(name: str, value: int, lowest: int, highest: int) -> int:
    """A whole number within bounds."""
    accepted = f"accepted are {lowest} to {highest}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: {accepted}")
    if not lowest <= value <= highest:
        raise ValueError(f"{name}={value!r}: {accepted}")
    return value


def flag(name: str, value: bool) -> bool:
    """True or False, and not what is as good as one."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: accepted are True and False")
    return value


def text(name: str, value: str) -> str:
    """A text that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: accepted is a text")
    if not value:
        raise ValueError(f"{name}={value!r}: accepted is a text that is not empty")
    return value


def data_directory(value: str | Path) -> Path:
    """A directory that a broker has alone. It is the one entry of `log.dirs`, a list whose entries
    are parted by commas and have no space around them: another name would lead elsewhere."""
    if not isinstance(value, str | Path):
        raise TypeError(f"directory={value!r}: accepted is a path")
    if not str(value) or "," in str(value) or str(value) != str(value).strip():
        raise ValueError(
            f"directory={str(value)!r}: accepted is a path that is not empty, without commas and "
            "without space at its ends"
        )
    return Path(value)

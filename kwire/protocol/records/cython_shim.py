"""What the record kernel needs of the `cython` module when it runs uncompiled and without Cython.

Only no-op decorators; annotations are never evaluated (`from __future__ import annotations`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

compiled = False


def _same(target: T) -> T:
    return target


cclass = cfunc = ccall = inline = final = freelist = no_gc = _same


class _NoGil:
    """`@cython.nogil` on a function, `with cython.nogil:` around a block."""

    def __call__(self, target: T) -> T:
        return target

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


nogil = _NoGil()
gil = nullcontext()


def exceptval(*_: Any, **__: Any) -> Callable[[T], T]:
    return _same


def declare(kind: Any = None, value: Any = None, **_: Any) -> Any:
    return value


longlong = ulonglong = int = Py_ssize_t = bint = uchar = uint = None

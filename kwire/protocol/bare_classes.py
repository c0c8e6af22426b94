"""Classes whose instances have no values yet: for decoders, which set every field themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_made: dict[type, type] = {}


def bare_class(cls: type[T]) -> Callable[[], T]:
    """The subclass of a struct (`structs.Struct`) whose instances have no field set yet.

    Its `__init__` is that of `object`: an instance costs a third of one whose fields get their
    defaults. Whoever makes one sets all fields, `_tagged` included. For `isinstance`, `==`, `repr`
    and `copy` it is the struct.
    """
    bare = _made.get(cls)
    if bare is None:
        members = {"__slots__": (), "__init__": object.__init__, "__module__": cls.__module__}
        bare = _made[cls] = type(cls.__name__, (cls,), members, bare=True)
        bare.__qualname__ = cls.__qualname__
    return bare

"""What is left of requests when nobody collects garbage: cycles that only the collector undoes.

    with Leftovers() as leftovers:
        ...                             # requests, answered, refused, given up
        assert not leftovers.look()     # {} or what was found, with how many of each

An object of kwire's in a cycle keeps all that it can reach: its request, and the buffer that the
request was received into.
"""

from __future__ import annotations

import collections
import gc
import types
from typing import Any

LARGE_BYTES = 64 * 1024


class Leftovers:
    """While it is entered, nothing is collected but by `look`."""

    def __enter__(self) -> Leftovers:
        gc.collect()
        gc.freeze()
        gc.disable()
        return self

    def __exit__(self, *_: object) -> None:
        gc.enable()
        gc.unfreeze()

    def look(self) -> dict[str, int]:
        """What of kwire's only the collector would have freed; it is freed by this."""
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            gc.collect()
        finally:
            gc.set_debug(0)
        found = collections.Counter(name for x in gc.garbage if (name := _name(x)) is not None)
        gc.garbage.clear()
        gc.collect()
        return dict(found.most_common(12))


def _name(found: Any) -> str | None:
    """How an object is told, None if it is not ours."""
    if isinstance(found, types.FrameType):
        file = found.f_code.co_filename
        is_ours = "/kwire/" in file and "/kwire/testing/" not in file
        return f"frame of {found.f_code.co_qualname}" if is_ours else None
    if isinstance(found, types.FunctionType):
        is_ours = found.__module__.startswith("kwire.")
        return f"{found.__module__}.{found.__qualname__}()" if is_ours else None
    if isinstance(found, (bytearray, memoryview)):
        return f"a {type(found).__name__} of a read" if len(found) >= LARGE_BYTES else None
    cls = type(found)
    if not cls.__module__.startswith("kwire.") or cls.__module__.startswith("kwire.testing"):
        return None
    name = f"{cls.__module__}.{cls.__qualname__}"
    return f"{name} {found}" if isinstance(found, BaseException) else name

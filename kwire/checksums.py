"""CRC-32C, without the price of importing the package that computes it.

`crc32c` reads its own distribution metadata when it is imported, which takes as long as a third of
a broker's start. Its compiled part needs none of that; where it cannot be found by itself, the
package is imported as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

Crc32c = Callable[..., int]


def _load() -> Crc32c:
    try:
        package = find_spec("crc32c")
        locations = None if package is None else package.submodule_search_locations
        found = PathFinder.find_spec("_crc32c", locations)
        if found is not None and found.loader is not None:
            module: Any = module_from_spec(found)
            found.loader.exec_module(module)
            compiled: Crc32c = module.crc32c
            return compiled
    except (ImportError, AttributeError):
        pass
    from crc32c import crc32c as whole

    return whole


crc32c: Crc32c = _load()
"""`crc32c(buffer, value=0)`: CRC-32C of a buffer, continuing from `value`."""

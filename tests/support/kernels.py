"""Both lives of the record kernels: the package compiled as installed, and from its source alone.

`record_packages()` gives kwire.protocol.records twice where the kernels are compiled. The second
copy is imported with the kernels' source in place of their extension modules and without Cython,
as on a machine that has neither.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import kwire.protocol
import kwire.protocol.records

PREFIX = "kwire.protocol.records"
MODULES = (
    "build",
    "compaction",
    "compaction_kernel",
    "compression",
    "control",
    "envelope_kernel",
    "header",
    "kernel",
    "legacy",
    "reading",
    "row_kernel",
    "validation",
)


class _FromSource:
    """Finds the kernels' .py files where extension modules lie beside them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(PREFIX) or not name.endswith("kernel"):
            return None
        file = Path(kwire.protocol.records.__file__).parent / (name.rpartition(".")[2] + ".py")
        return importlib.util.spec_from_loader(name, SourceFileLoader(name, str(file)))


def _import_all() -> ModuleType:
    package = importlib.import_module(PREFIX)
    for name in MODULES:
        importlib.import_module(f"{PREFIX}.{name}")
    return package


@cache
def interpreted() -> ModuleType:
    """kwire.protocol.records with uncompiled kernels, beside the one that everybody imports."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(PREFIX)}
    finder = _FromSource()
    without_cython = {name: sys.modules.get(name) for name in ("cython", "Cython")}
    sys.meta_path.insert(0, finder)
    sys.modules["cython"] = sys.modules["Cython"] = None  # type: ignore[assignment]
    try:
        package = _import_all()
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.startswith(PREFIX)]:
            del sys.modules[name]
        for name, module in without_cython.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
        sys.modules.update(kept)
        kwire.protocol.records = kept[PREFIX]
    return package


@cache
def installed() -> ModuleType:
    """kwire.protocol.records as it is installed, all modules imported."""
    return _import_all()


def record_packages() -> list[Any]:
    """Parameters for a test: every life of the kernels that this installation has."""
    import pytest

    packages = [pytest.param(interpreted(), id="interpreted")]
    if installed().kernel.COMPILED:
        packages.append(pytest.param(installed(), id="compiled"))
    return packages

"""A decorated test by its file and name, in a process that has not imported it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from kwire.testing.simulation.simulated_test import SimulatedTest


class NotFound(Exception):
    """There is no such test: says what was asked for and what is accepted."""


def load(path: str, qualified: str, module: str = "") -> SimulatedTest:
    """The test `qualified` of the file at `path`; imported as `module` if that is known."""
    file = Path(path).resolve()
    if not file.is_file():
        raise NotFound(f"{path!r} is no file; accepted is FILE::TEST")
    found: object = _module_of(file, module)
    for name in qualified.split("."):
        found = getattr(found, name, None)
    simulated = getattr(found, "simulated", None)
    if not isinstance(simulated, SimulatedTest):
        raise NotFound(f"{qualified!r} of {path} is no test; accepted are those with @simulate")
    return simulated


def _module_of(file: Path, module: str) -> ModuleType:
    root, parts = file.parent, [file.stem]
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    for directory in (str(root), str(Path.cwd())):
        if directory not in sys.path:
            sys.path.insert(0, directory)
    name = module or ".".join(parts)
    if name not in ("__main__", "__mp_main__"):
        try:
            found = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
        else:
            if found.__file__ is not None and Path(found.__file__).resolve() == file:
                return found
    spec = importlib.util.spec_from_file_location(f"simulated_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made

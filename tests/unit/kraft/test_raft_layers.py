"""Raft's layers: each knows those below it only (the package's docstring lists them)."""

from __future__ import annotations

import ast
import pathlib

from kwire.kraft import raft

ROOT = pathlib.Path(raft.__file__).parent
LAYERS = ("nouns", "roles", "state", "handlers", "machine")


def layer_of(module: str) -> str:
    """`module` is relative to the package: `roles.leader`."""
    first = module.split(".")[0]
    return first if first in LAYERS else "nouns"


def imports_of(path: pathlib.Path) -> set[str]:
    """Modules of raft that a file imports anywhere in it, relative to the package."""
    prefix = "kwire.kraft.raft."
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full.startswith(prefix):
                    found.add(full.removeprefix(prefix))
    return found


def test_no_layer_knows_one_above_it() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module.endswith("__init__"):
            continue
        own = LAYERS.index(layer_of(module))
        above = {name for name in imports_of(path) if LAYERS.index(layer_of(name)) > own}
        assert not above, f"{module} imports {sorted(above)}"


def test_every_file_is_looked_at() -> None:
    layers = {
        layer_of(".".join(p.relative_to(ROOT).with_suffix("").parts)) for p in ROOT.rglob("*.py")
    }
    assert layers == set(LAYERS)
    assert "state.RaftState" in imports_of(ROOT / "machine.py")

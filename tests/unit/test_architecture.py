"""The rules of the packages: who imports whom, what is pure, how long things are.

Imports point one way (docs/DESIGN.md); pure packages know no clock, socket, randomness or files;
time and chance come from `kwire/clock.py` alone; nothing iterates over a set where order may
reach the outside; a file has at most 600 lines and a function at most 70.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import pathlib
import re
from collections.abc import Iterator
from typing import TypeGuard

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kwire"

# Package (or module) -> what it may import besides itself; BASE is below all. In the order of the
# lists in docs/DESIGN.md and CONTRIBUTING.md.
BASE = (
    "checksums",
    "clock",
    "json_numbers",
    "kept_errors",
    "pending",
    "python_module",
    "slices",
    "turn_budget",
    "urls",
)
FACTS = (*BASE, "config", "protocol")
LOW = (*FACTS, "network", "log", "security", "quota")
MIDDLE = (*LOW, "replica", "kraft", "share")
HIGH = (*MIDDLE, "coordinator", "membership", "telemetry")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "checksums": (),
    "clock": (),
    "json_numbers": (),
    "kept_errors": (),
    "pending": ("kept_errors",),
    "slices": ("pending",),
    "turn_budget": (),
    "python_module": (),
    "urls": (),
    "protocol": BASE,
    "config": (*BASE, "protocol"),
    "network": FACTS,
    "quota": FACTS,
    "log": FACTS,
    "security": (*FACTS, "network"),
    "client": (*FACTS, "network", "security"),
    "trace": (*FACTS, "network", "security", "client"),
    "tiered": (*FACTS, "log"),
    "replica": LOW,
    "kraft": LOW,
    "share": (*LOW, "replica"),
    "coordinator": MIDDLE,
    "membership": MIDDLE,
    "telemetry": FACTS,
    "faults": FACTS,
    "schemas": (*FACTS, "log"),
    "server": (*HIGH, "faults", "schemas"),
    "api": (*HIGH, "server"),
    "metrics": (*HIGH, "server"),
    "http": (*FACTS, "network", "security", "schemas", "client", "telemetry", "metrics"),
    "node": (*HIGH, "faults", "schemas", "tiered", "server", "api", "metrics", "http"),
    "spark": (*FACTS, "log", "schemas"),
    "cli": (*HIGH, "faults", "schemas", "node", "server", "client", "http", "spark", "trace"),
    "testing": (*HIGH, "faults", "node", "server", "client", "cli"),
    "__main__": ("cli",),
}
KNOW_THE_NODE = (
    "cli/serve.py",
    "testing/brokers/thread_runner.py",
    "testing/cluster/in_thread.py",
    "testing/simulation/nodes.py",
)
STANDS_IN = "testing/simulation/stand_ins.py"  # it replaces time and chance for applications
STANDS_IN = "testing/simulation/stand_ins.py"  # it replaces time and chance for applications
IMPURE_MODULES = ("asyncio", "socket", "time", "random", "os")
# Also what drives loops and files does so by what it was given.
PURE = (
    *("protocol/", "security/acls/", "security/sasl/", "security/audit", "quota/", "kraft/"),
    *("replica/", "share/", "coordinator/", "telemetry/", "faults/", "server/connection_limits.py"),
    *("schemas/formats/", "schemas/compatibility", "schemas/registry/"),
    "schemas/validation/",
    *("trace/explaining", "trace/statistics", "trace/dialogues", "trace/recorder"),
    *("trace/rendering", "trace/filters", "trace/events"),
    *("trace/replay/identities", "trace/replay/differences"),
)
TIME_AND_CHANCE = {
    ("time", "time"),
    ("time", "time_ns"),
    ("uuid", "uuid1"),
    ("uuid", "uuid4"),
    ("os", "urandom"),
}
FSYNC = {("os", "fsync"), ("os", "fdatasync"), ("os", "sync_file_range")}
ORDER_FREE = ("sorted", "min", "max", "sum", "any", "all", "len", "set", "frozenset")
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
GENERATED = ("protocol/messages/api/", "protocol/messages/records/", "protocol/messages/index.py")


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Path below kwire/ -> syntax tree, of every module."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(), str(path))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt) and is_type_checking(child):
            continue
        yield child
        yield from runtime_nodes(child)


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, full module name) of every import that happens at run time."""
    for node in runtime_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def is_pure(path: str) -> bool:
    return path.startswith(PURE)


def test_imports_point_one_way() -> None:
    wrong = []
    for path, tree in modules().items():
        own = path.split("/")[0].removesuffix(".py")
        if own == "__init__":
            continue
        for line, name in imports(tree):
            parts = name.split(".")
            if parts[0] != "kwire" or len(parts) < 2 or parts[1] == "__version__":
                continue
            if parts[1] != own and parts[1] not in MAY_IMPORT[own]:
                wrong.append(f"kwire/{path}:{line} imports kwire.{parts[1]}")
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_no_files_import_each_other_in_a_circle() -> None:
    """Nor for types: what stands under `if TYPE_CHECKING` counts."""
    paths = {
        "kwire." + path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
        for path in modules()
    }
    imported: dict[str, set[str]] = {path: set() for path in modules()}
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported[path] |= {paths[x.name] for x in node.names if x.name in paths}
            elif isinstance(node, ast.ImportFrom) and node.module in paths:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                imported[path] |= {paths.get(name, paths[node.module]) for name in names} - {path}
    graphlib.TopologicalSorter(imported).prepare()  # CycleError names the files of a circle


@pytest.mark.parametrize(
    ("page", "entry"),
    [("docs/DESIGN.md", r"^  (\w+)/ +"), ("CONTRIBUTING.md", r"^\| .*\| `kwire/(\w+)`")],
)
def test_pages_list_the_packages_in_the_order_of_their_imports(page: str, entry: str) -> None:
    listed = re.findall(entry, (ROOT / page).read_text(), re.M)
    assert sorted(listed) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    for at, name in enumerate(listed):
        allowed = {other for other in MAY_IMPORT[name] if (PACKAGE / other).is_dir()}
        assert allowed <= set(listed[:at]), f"{name} stands too early"


def test_only_who_runs_a_node_knows_it() -> None:
    """All others take narrow Protocols or plain values; `node/node.py` wires them."""
    wrong = [
        f"kwire/{path}:{node.lineno}"
        for path, tree in modules().items()
        if path not in KNOW_THE_NODE
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "kwire.node.node"
    ]
    assert not wrong, "\n".join(wrong)


def test_pure_packages_know_no_clock_socket_or_files() -> None:
    wrong = [
        f"kwire/{path}:{line} imports {name}"
        for path, tree in modules().items()
        if is_pure(path)
        for line, name in imports(tree)
        if name.split(".")[0] in IMPURE_MODULES
    ]
    assert not wrong, "\n".join(wrong)


def errors_with_frames(
    node: ast.AST, bound: frozenset[str] = frozenset(), handed: frozenset[str] = frozenset()
) -> Iterator[ast.AST]:
    """Every statement that keeps or raises an error in a way that makes a cycle of it.

    An error of a handler that is returned or stored as it is, and one raised that was kept (one
    that is handed to a function may be raised by it: a codec's handler).
    """
    for child in ast.iter_child_nodes(node):
        names, given = bound, handed
        if isinstance(child, ast.ExceptHandler) and child.name:
            names = bound | {child.name}
        elif isinstance(child, (ast.FunctionDef, ast.Lambda)):
            names = frozenset()
            given = frozenset(argument.arg for argument in child.args.args)
        value = getattr(child, "value", None)
        is_caught = isinstance(value, ast.Name) and value.id in names
        if isinstance(child, (ast.Return, ast.Assign, ast.AnnAssign)) and is_caught:
            yield child
        if isinstance(child, ast.Raise) and isinstance(child.exc, (ast.Name, ast.Attribute)):
            name = ast.unparse(child.exc).rpartition(".")[2]
            if name not in names | given and not name[0].isupper():
                yield child
        yield from errors_with_frames(child, names, given)


def test_no_error_is_kept_with_its_frames() -> None:
    """`kwire/kept_errors.py`; a command that ends with its error may keep it."""
    wrong = [
        f"kwire/{path}:{found.lineno} {ast.unparse(found)}"  # type: ignore[attr-defined]
        for path, tree in modules().items()
        if not path.startswith(("cli/", "spark/", "testing/"))
        for found in errors_with_frames(tree)
    ]
    assert not wrong, "\n".join(wrong)


def own_functions(function: ast.AST) -> dict[str, ast.AST]:
    """Those that are defined in a function itself, by name."""
    found: dict[str, ast.AST] = {}
    for child in ast.iter_child_nodes(function):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[child.name] = child
        elif not isinstance(child, (ast.ClassDef, ast.Lambda)):
            found.update(own_functions(child))
    return found


def circles(function: ast.AST) -> Iterator[str]:
    """The nested functions that reach themselves by what they name."""
    own = own_functions(function)
    named = {
        name: {node.id for node in ast.walk(inner) if isinstance(node, ast.Name)} & own.keys()
        for name, inner in own.items()
    }
    for name in own:
        reached: dict[str, None] = {}
        ahead = sorted(named[name])
        while ahead:
            other = ahead.pop()
            if other not in reached:
                reached[other] = None
                ahead += sorted(named[other])
        if name in reached:
            yield name


def test_no_nested_functions_refer_to_each_other_in_a_circle() -> None:
    """Each keeps the other, and both the request they work for, until garbage is collected: a
    class with methods does not."""
    wrong = [
        f"kwire/{path}:{node.lineno} {node.name}: {name}"
        for path, tree in modules().items()
        if not path.startswith(("cli/", "spark/", "testing/"))
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name in circles(node)
    ]
    assert not wrong, "\n".join(wrong)


def uses(tree: ast.Module, wanted: set[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """Where a `module.name` of `wanted` is used or imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in wanted:
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module or "", alias.name) in wanted:
                    yield node.lineno, f"{node.module}.{alias.name}"


def test_time_and_chance_come_from_the_clock_module() -> None:
    wrong = []
    for path, tree in modules().items():
        if path in ("clock.py", STANDS_IN):
            continue
        wrong += [f"kwire/{path}:{line} uses {name}" for line, name in uses(tree, TIME_AND_CHANCE)]
        wrong += [
            f"kwire/{path}:{line} imports {name}"
            for line, name in imports(tree)
            if name in ("random", "secrets")
        ]
    assert not wrong, "\n".join(wrong)


def test_no_identity_of_objects() -> None:
    wrong = [
        f"kwire/{path}:{node.lineno} uses id()"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if calls(node, ("id",))
    ]
    assert not wrong, "\n".join(wrong)


def test_only_one_file_syncs() -> None:
    wrong = [
        f"kwire/{path}:{line} uses {name}"
        for path, tree in modules().items()
        if path != "log/files.py"
        for line, name in uses(tree, FSYNC)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [path for path in modules() if not path.startswith(GENERATED)])
def test_files_and_functions_are_short(path: str) -> None:
    lines = (PACKAGE / path).read_text().count("\n")
    wrong = [f"kwire/{path}: {lines} lines"] if lines > FILE_LINES_MAX else []
    for node in ast.walk(modules()[path]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                wrong.append(f"kwire/{path}:{node.lineno} {node.name}: {length} lines")
    assert not wrong, "\n".join(wrong)


def is_set(node: ast.expr | None) -> bool:
    """A set display, comprehension, `set(...)`, `frozenset(...)` or a union of such."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub):
        return is_set(node.left) or is_set(node.right)
    return False


def is_set_type(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).split("[")[0] in ("set", "frozenset", "AbstractSet", "Set")


def set_names(tree: ast.AST) -> set[str]:
    """Names and attributes (as source text) that are assigned or annotated as sets."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and is_set_type(node.annotation):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign) and is_set(node.value):
            names.update(ast.unparse(target) for target in node.targets)
        elif isinstance(node, ast.arg) and node.annotation and is_set_type(node.annotation):
            names.add(node.arg)
    return names


def calls(node: ast.AST, names: tuple[str, ...]) -> TypeGuard[ast.Call]:
    """Whether `node` calls one of these by its bare name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def iterated(tree: ast.AST) -> Iterator[ast.expr]:
    """Every expression whose order becomes the order of something else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor):
            yield node.iter
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
            yield from (generator.iter for generator in node.generators)
        elif calls(node, ("list", "tuple", "iter", "enumerate", "next")):
            yield from node.args[:1]


def unordered(tree: ast.Module) -> Iterator[int]:
    """Lines that iterate over a set, as far as one can see without types."""
    ordered_by = {
        id(argument) for node in ast.walk(tree) if calls(node, ORDER_FREE) for argument in node.args
    }
    order_free = {
        id(generator.iter)
        for node in ast.walk(tree)
        if isinstance(node, ast.GeneratorExp | ast.ListComp) and id(node) in ordered_by
        for generator in node.generators
    }
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        names = set_names(scope)
        if isinstance(scope, ast.ClassDef):
            # Attributes are known by the whole class, local names only inside of their function.
            names = {name for name in names if name.startswith("self.")}
        for node in iterated(scope):
            if id(node) not in order_free and (is_set(node) or ast.unparse(node) in names):
                yield node.lineno


def test_no_order_comes_from_a_set() -> None:
    wrong = [
        f"kwire/{path}:{line} iterates over a set"
        for path, tree in modules().items()
        if not path.startswith(("cli/", "http/"))
        for line in dict.fromkeys(unordered(tree))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f():\n    for x in {1, 2}: pass", True),
        ("def f(s: set[int]):\n    return [x for x in s]", True),
        ("def f(s: set[int]):\n    return sorted(x for x in s)", False),
        ("def f():\n    s = set()\n    return list(s)", True),
        ("def f(s: set[int]):\n    return sorted(s)", False),
        ("class A:\n    s: set[int]\n    def f(self):\n        self.s: set[int] = set()\n", False),
        (
            "class A:\n    def __init__(self):\n        self.s = set()\n"
            "    def f(self):\n        for x in self.s: pass",
            True,
        ),
        ("def f(d: dict[int, int]):\n    for x in d: pass", False),
    ],
)
def test_the_rule_about_sets_sees_them(code: str, found: bool) -> None:
    assert bool(list(unordered(ast.parse(code)))) is found

"""Where types end: `Any` and its stand-ins stay within the files that `untyped.tsv` names.

Counted together are uses of `Any`, `object` as a whole annotation, `cast(...)` and
`type: ignore`. The list gives each file's number and why it has any; the numbers only fall: one
that is lower than its row fails too, until the row says so.
"""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kwire"
LIST = pathlib.Path(__file__).with_name("untyped.tsv")
IGNORE = re.compile(r"#\s*type:\s*ignore")


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    """Every annotation of a parameter, a result or a variable; not those that Python prescribes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name in ("__eq__", "__ne__", "__contains__", "__exit__"):
                continue
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
            yield from (one.annotation for one in every if one.annotation is not None)
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation


def untyped(source: str) -> int:
    """How often a file gives up types."""
    tree = ast.parse(source)
    count = len(IGNORE.findall(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            count += node.id == "Any"
        elif isinstance(node, ast.Attribute):
            count += node.attr == "Any"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            count += node.func.id == "cast"
    return count + sum(
        isinstance(found, ast.Name) and found.id == "object" for found in annotations(tree)
    )


def listed() -> dict[str, tuple[int, str]]:
    """Path below kwire/ -> number and reason."""
    return parsed(LIST.read_text())


def parsed(text: str) -> dict[str, tuple[int, str]]:
    """As `listed`, of the list's text; ValueError for a file that has two rows."""
    rows: dict[str, tuple[int, str]] = {}
    for line in text.splitlines()[1:]:
        path, count, reason = line.split("\t")
        if path in rows:
            raise ValueError(f"kwire/{path} has two rows in {LIST.name}: keep the one that holds")
        rows[path] = int(count), reason
    return rows


def found() -> dict[str, int]:
    counts = {
        path.relative_to(PACKAGE).as_posix(): untyped(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
        if "protocol/messages" not in path.as_posix()
    }
    return {path: count for path, count in counts.items() if count}


def test_types_end_only_where_the_list_says() -> None:
    known = {path: count for path, (count, _) in listed().items()}
    counted = found()
    wrong = [
        f"kwire/{path}: {counted.get(path, 0)} uses, {known.get(path, 0)} in {LIST.name}"
        for path in sorted({*known, *counted})
        if counted.get(path, 0) != known.get(path, 0)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_file_with_two_rows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kwire/a\.py has two rows"):
        parsed("path\tuses\twhy\na.py\t1\tone reason\nb.py\t1\tanother\na.py\t2\tone more")


def test_every_row_has_a_reason() -> None:
    assert [path for path, (_, reason) in listed().items() if len(reason) < 10] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(x: Any) -> Any: ...", 2),
        ("x: list[Any] = []", 1),
        ("def f(x: object) -> None: ...", 1),
        ("def f(x: Callable[[], object]) -> None: ...", 0),
        ("class A:\n    def __eq__(self, other: object) -> bool: ...", 0),
        ("x = cast(int, y)", 1),
        ("x = y  # type: ignore[attr-defined]", 1),
        ("import typing\ndef f(x: typing.Any) -> int: ...", 1),
        ("def f(x: int) -> int: ...", 0),
    ],
)
def test_what_is_counted(source: str, count: int) -> None:
    assert untyped(source) == count

"""Every place of a source file at which an operator makes a mutant.

    operator    what it does
    compare     < and <=, > and >=, == and !=, is, in: the neighbour, and the opposite
    boolean     `and` and `or` change places; one side is left out; a `not` is left out
    negate      the condition of an if, while, conditional expression or comprehension
    constant    an integer is one more, one less; True and False change places
    arithmetic  + and -, * and //, min and max, any and all change places
    statement   a call, an assignment to an attribute or an item, a del, raise, break, continue:
                nothing in its place
    return      a function returns nothing where it returned something; or at once
    arguments   two neighbouring positional arguments change places

Only code is changed: annotations are not run, and a docstring is no code. Nothing else is left
out, neither log lines nor messages nor what may well be equivalent.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

Change = Callable[[ast.AST], ast.AST]

OPPOSITES: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}
TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file. `function` is the outermost function (with its classes) that holds
    it, and `function_line` where its code begins; without one it is made when the module is
    imported. `at` is the place among the nodes of the file, `choice` which change it is there."""

    path: str
    line: int
    last_line: int
    operator: str
    before: str
    after: str
    at: int
    choice: int
    function: str | None
    function_line: int

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}:{self.operator}:{self.at}.{self.choice}"


def places_of(source: str) -> list[tuple[int, int]]:
    """(at, choice) of all mutants of a file, in the order of its text."""
    return [
        (at, choice)
        for at, (node, _) in enumerate(_code_nodes(ast.parse(source)))
        for choice, _ in enumerate(_changes(node))
    ]


def mutants_of(
    path: str, source: str, wanted: Container[tuple[int, int]] | None = None
) -> list[Mutant]:
    """The mutants of a file at the `wanted` places (all), in the order of its text."""
    tree = ast.parse(source)
    found: list[Mutant] = []
    for at, (node, place) in enumerate(_code_nodes(tree)):
        for choice, (operator, change) in enumerate(_changes(node)):
            if wanted is not None and (at, choice) not in wanted:
                continue
            changed = change(copy.deepcopy(node))
            before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed))
            if isinstance(node, ast.FunctionDef):
                before, after = f"def {node.name}", f"def {node.name}: return at once"
            shown = node.ifs[0] if isinstance(node, ast.comprehension) else node
            line = shown.lineno  # type: ignore[attr-defined]
            last_line = shown.end_lineno or line  # type: ignore[attr-defined]
            if isinstance(node, ast.FunctionDef):
                line, last_line = node.body[0].lineno, node.body[-1].end_lineno or node.lineno
            elif isinstance(node, ast.If | ast.While):
                before, after = ast.unparse(node.test), f"not ({ast.unparse(node.test)})"
                line, last_line = node.test.lineno, node.test.end_lineno or node.lineno
            found.append(
                Mutant(
                    path, line, last_line, operator, before, after, at, choice, place[0], place[1]
                )
            )
    return found


def mutated(mutant: Mutant, source: str) -> ast.Module:
    """The file's tree with the change in it; what it consists of stays on its lines."""
    tree = ast.parse(source)
    for at, (node, _) in enumerate(_code_nodes(tree)):
        if at == mutant.at:
            _, change = list(_changes(node))[mutant.choice]
            changed = change(copy.deepcopy(node))
            _replace(tree, node, ast.copy_location(changed, node))
            return ast.fix_missing_locations(tree)
    raise LookupError(mutant.name)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list):
                for index, item in enumerate(value):
                    if item is old:
                        value[index] = new
                        return
    raise LookupError(ast.dump(old))


# -- places


def _code_nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[str | None, int]]]:
    """Every node that is run, with the outermost function that holds it and its first line."""
    yield from _walk(tree, (), None, 0)


def _walk(
    node: ast.AST, classes: tuple[str, ...], function: str | None, line: int
) -> Iterator[tuple[ast.AST, tuple[str | None, int]]]:
    for name, value in ast.iter_fields(node):
        inside, inside_line = function, line
        if name in ("annotation", "returns", "type_comment", "type_params"):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if name == "args":
                value = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
            elif name == "body" and function is None:
                inside = ".".join((*classes, node.name))
                inside_line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        within = (*classes, node.name) if isinstance(node, ast.ClassDef) else classes
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_docstring(node, name, child):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            own = inside, inside_line
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and inside is None:
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                own = ".".join((*within, child.name)), first
            if hasattr(child, "lineno") or (isinstance(child, ast.comprehension) and child.ifs):
                yield child, own
            yield from _walk(child, within, inside, inside_line)


def _is_docstring(node: ast.AST, field: str, child: ast.AST) -> bool:
    return (
        field == "body"
        and isinstance(child, ast.Expr)
        and isinstance(child.value, ast.Constant)
        and isinstance(child.value.value, str)
    )


# -- operators


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """(operator, change) of every mutant at this node."""
    if isinstance(node, ast.Compare):
        yield from _compare(node)
    elif isinstance(node, ast.BoolOp):
        yield from _boolean(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "boolean", lambda n: n.operand  # type: ignore[attr-defined, no-any-return]
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        if not _is_text(node):
            yield "arithmetic", _with(op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Call):
        yield from _call(node)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "negate", _negate_test
    elif isinstance(node, ast.comprehension):
        for index in range(len(node.ifs)):
            yield "negate", _negate_filter(index)
    if _may_be_left_out(node):
        yield "statement", lambda n: ast.Pass()
    elif isinstance(node, ast.Return) and not _is_nothing(node.value):
        yield "return", _with(value=ast.Constant(None))
    elif isinstance(node, ast.FunctionDef) and not _yields(node):
        yield "return", _return_at_once


def _with(**fields: object) -> Change:
    def change(node: ast.AST) -> ast.AST:
        for name, value in fields.items():
            setattr(node, name, value)
        return node

    return change


def _compare(node: ast.Compare) -> Iterator[tuple[str, Change]]:
    for index, operator in enumerate(node.ops):
        for other in OPPOSITES[type(operator)]:
            ops = list(node.ops)
            ops[index] = other()
            yield "compare", _with(ops=ops)


def _boolean(node: ast.BoolOp) -> Iterator[tuple[str, Change]]:
    yield "boolean", _with(op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for index in range(len(node.values)):
        rest = [value for i, value in enumerate(node.values) if i != index]
        if len(rest) == 1:
            yield "boolean", lambda n, rest=rest: rest[0]  # type: ignore[misc]
        else:
            yield "boolean", _with(values=rest)


def _constant(node: ast.Constant) -> Iterator[tuple[str, Change]]:
    if isinstance(node.value, bool):
        yield "constant", _with(value=not node.value)
    elif isinstance(node.value, int):
        yield "constant", _with(value=node.value + 1)
        yield "constant", _with(value=node.value - 1)


def _call(node: ast.Call) -> Iterator[tuple[str, Change]]:
    if isinstance(node.func, ast.Name) and node.func.id in TWINS:
        yield "arithmetic", _with(func=ast.Name(TWINS[node.func.id], ast.Load()))
    plain = [not isinstance(argument, ast.Starred) for argument in node.args]
    for index in range(len(node.args) - 1):
        if plain[index] and plain[index + 1]:
            args = list(node.args)
            args[index], args[index + 1] = args[index + 1], args[index]
            yield "arguments", _with(args=args)


def _negate_test(node: ast.AST) -> ast.AST:
    node.test = ast.UnaryOp(ast.Not(), node.test)  # type: ignore[attr-defined]
    return node


def _negate_filter(index: int) -> Change:
    def change(node: ast.AST) -> ast.AST:
        node.ifs[index] = ast.UnaryOp(ast.Not(), node.ifs[index])  # type: ignore[attr-defined]
        return node

    return change


def _may_be_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets)
    return isinstance(node, ast.AugAssign | ast.Delete | ast.Raise | ast.Break | ast.Continue)


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Text and lists are joined with + and have no other side."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _yields(node: ast.FunctionDef) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node))


def _return_at_once(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.FunctionDef)
    first = node.body[0]
    node.body = [ast.copy_location(ast.Return(None), first), *node.body]
    return node

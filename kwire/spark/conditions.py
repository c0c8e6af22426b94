"""What can be said about an SQL condition before Spark starts, which takes seconds.

Not a parser of Spark's SQL: the text is cut into tokens, and what cannot be right in any condition
is refused: open quotes and brackets, a column that is not there, an operator without its operand, a
value right behind a column. What passes may still be wrong; Spark says so (`narrow_frame`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from kwire.spark.usage import UsageError

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<comment>--|/\*)
    |(?P<text>(?:\b[rRxX])?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
    |(?P<open_quote>['"`])
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYfFdD])?\b)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<operator><=>|->|=>|::|\|\||&&|<>|!=|==|<=|>=|<<|>>|[-+*/%=<>!&|^~:?])
    |(?P<bracket>[()\[\]])
    |(?P<mark>[.,])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED_NAME = re.compile(r"`(?:[^`]|``)+`")
_CLOSES = {")": "(", "]": "["}
# Words of expressions that name no column; what has another meaning elsewhere is one as well.
_WORDS_TEXT = """
    all and any array as between binary bigint boolean both byte case cast char current_date
    current_timestamp current_user date day days dec decimal distinct div double else end escape
    exists false filter first float for from hour hours ignore ilike in int integer interval is last
    leading like long map microsecond microseconds millisecond milliseconds minute minutes month
    months not null nulls numeric of or quarter real regexp respect rlike second seconds short
    smallint some string struct then time timestamp timestamp_ltz timestamp_ntz tinyint to trailing
    true try_cast unknown variant varchar void week weeks when within year years zone
"""
_WORDS = frozenset(_WORDS_TEXT.split())
_NEED_RIGHT = frozenset(
    ("and", "or", "not", "between", "like", "ilike", "rlike", "regexp", "in", "is", "div", "when")
)
_PREFIX = frozenset("-+~!")


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """A bare name in small letters, else nothing."""
        return self.text.lower() if self.kind == "name" else ""


def check_condition(text: str, option: str, columns: Collection[str]) -> None:
    """UsageError when the text cannot be a condition on these columns."""
    tokens = list(_without_inner_types(_tokens(text, option)))
    if not tokens:
        raise UsageError(f"{option}: the condition is empty")
    _check_brackets(tokens, option)
    _check_operands(tokens, option)
    _check_names(tokens, option, columns)


def _tokens(text: str, option: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        quoted = _QUOTED_NAME.match(text, position)
        if quoted is not None:
            yield _Token("quoted", quoted[0][1:-1].replace("``", "`"), position)
            position = quoted.end()
            continue
        found = _TOKEN.match(text, position)
        assert found is not None, text
        kind = found.lastgroup or ""
        if kind == "open_quote":
            raise UsageError(f"{option}: the {found[0]} at {position + 1} is not closed")
        if kind in ("comment", "other"):
            raise UsageError(f"{option}: {found[0]!r} at {position + 1} is not understood")
        if kind != "space":
            yield _Token(kind, found[0], position)
        position = found.end()


def _without_inner_types(tokens: Iterator[_Token]) -> Iterator[_Token]:
    """The tokens without what stands in `array<...>`, `map<...>` and `struct<...>`."""
    before = ""
    for token in tokens:
        if token.text in ("<", "<>") and before in ("array", "map", "struct"):
            depth = token.text.count("<") - token.text.count(">")
            while depth > 0 and (inner := next(tokens, None)) is not None:
                depth += inner.text.count("<") - inner.text.count(">")
        else:
            yield token
        before = token.word


def _check_brackets(tokens: list[_Token], option: str) -> None:
    opened: list[_Token] = []
    for token in tokens:
        if token.kind != "bracket":
            continue
        if token.text not in _CLOSES:
            opened.append(token)
        elif not opened or opened.pop().text != _CLOSES[token.text]:
            raise UsageError(f"{option}: the {token.text} at {token.at + 1} closes nothing")
    if opened:
        raise UsageError(f"{option}: the {opened[-1].text} at {opened[-1].at + 1} is not closed")


def _check_operands(tokens: list[_Token], option: str) -> None:
    """Operators have something on both sides."""
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        behind = tokens[at + 1] if at + 1 < len(tokens) else None
        needs_right = token.kind == "operator" or token.word in _NEED_RIGHT
        is_call = behind is not None and behind.text == "("
        if needs_right and (behind is None or behind.text in (")", "]", ",")):
            raise UsageError(f"{option}: nothing behind {token.text} at {token.at + 1}")
        needs_left = token.kind == "operator" and token.text not in _PREFIX
        needs_left = needs_left or token.word in ("and", "or", "between", "is", "div")
        # `count(*)` has a star of its own.
        star = token.text == "*" and behind is not None and behind.text == ")"
        opens = before is None or before.text in ("(", "[", ",") or before.kind == "operator"
        if needs_left and opens and not star and not (is_call and token.kind == "name"):
            raise UsageError(f"{option}: nothing before {token.text} at {token.at + 1}")


def _check_names(tokens: list[_Token], option: str, columns: Collection[str]) -> None:
    known = {name.lower() for name in columns} | _parameters(tokens)
    for at, token in enumerate(tokens):
        if token.kind not in ("name", "quoted"):
            continue
        before = tokens[at - 1].text.lower() if at else ""
        behind = tokens[at + 1] if at + 1 < len(tokens) else None
        if token.word == "select":
            raise UsageError(f"{option}: a condition on records has no SELECT")
        if before in (".", "as", "::") or (behind is not None and behind.text == "("):
            continue
        name = token.text.lower()
        if name not in known:
            if token.kind == "quoted" or name not in _WORDS:
                there = ", ".join(columns)
                raise UsageError(f"{option}: no column {token.text}; there are {there}")
        elif behind is not None and (
            # `timestamp '...'` is a literal, whatever columns there are.
            (behind.kind == "text" and name not in _WORDS)
            or behind.kind in ("number", "quoted")
            or behind.word in known - _WORDS
        ):
            raise UsageError(
                f"{option}: no operator between {token.text} and {behind.text} at {behind.at + 1}"
            )


def _parameters(tokens: list[_Token]) -> set[str]:
    """The names that lambdas (`x -> ...`, `(x, y) -> ...`) bring."""
    found: set[str] = set()
    for at, token in enumerate(tokens):
        if token.text != "->" or not at:
            continue
        if tokens[at - 1].text != ")":
            found.add(tokens[at - 1].text.lower())
            continue
        for inner in reversed(tokens[: at - 1]):
            if inner.text == "(":
                break
            found.add(inner.text.lower())
    return found - {","}

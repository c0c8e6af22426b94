"""Which dead letters are meant: a small language of conditions.

    topic = mail and (deliveries >= 3 or reason ~ rejected) and not header.tenant = test

| field | compared by | with |
|---|---|---|
| topic, reason, header.NAME | = != ~ !~ | text; ~ is "contains" |
| partition, offset, deliveries | = != < <= > >= | a number |
| age | = != < <= > >= | a time: 30s, 15m, 2h, 7d |

Topic, partition and offset are those of the original, headers too; a header that is not there
equals nothing and contains nothing. Age is that of the dead letter. Text that is no plain word
stands between quotes, 'as here' or "here"; a quote in it is doubled.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kwire.client.dead_letters.letters import DeadLetter
from kwire.client.errors import ClientError

CHARACTERS_MAX = 2000
DEPTH_MAX = 20
SHOWN_MAX = 40
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<operator><=|>=|!=|!~|[=<>~()])
    |(?P<word>[^\s'"=<>!~()]+))""",
    re.VERBOSE,
)
_NUMBERS = ("partition", "offset", "deliveries")
_TEXTS = ("topic", "reason")
_HEADER = "header."
_FIELDS = (*_TEXTS, *_NUMBERS, "age", "header.NAME")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")
_DIGITS = re.compile(r"[0-9]{1,18}")
_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TEXT_OPERATORS = ("=", "!=", "~", "!~")
_WORDS = ("and", "or", "not")

Header = tuple[str | bytes, bytes | None]


class Subject(NamedTuple):
    """What is decided about: `headers` are those of the original, empty where it is gone."""

    letter: DeadLetter
    headers: Iterable[Header]
    now_ms: int


Condition = Callable[[Subject], bool]


class Filter(NamedTuple):
    """`matches` decides; it looks at headers only where `needs_headers`."""

    matches: Condition
    needs_headers: bool


EVERYTHING = Filter(lambda _: True, False)


def parse_filter(text: str) -> Filter:
    """The filter that a text says; ClientError, one line, where it says none."""
    if len(text) > CHARACTERS_MAX:
        raise ClientError(f"a filter has at most {CHARACTERS_MAX} characters")
    reading = _Reading(_tokens(text))
    condition = reading.any_of(0)
    if reading.now is not None:
        raise ClientError(f"{_shown(reading.now)}: expected and, or, or the end of the filter")
    return Filter(condition, reading.needs_headers)


class _Token(NamedTuple):
    text: str
    is_quoted: bool
    is_operator: bool = False

    def is_word(self, word: str) -> bool:
        return not self.is_quoted and self.text.lower() == word


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise ClientError(f"{text[at:].strip()[:SHOWN_MAX]}: expected a field, as topic")
        quoted, sign, word = found["quoted"], found["operator"], found["word"]
        if quoted is not None:
            tokens.append(_Token(quoted[1:-1].replace(quoted[0] * 2, quoted[0]), True))
        else:
            tokens.append(_Token(sign or word, False, sign is not None))
        at = found.end()
    return tokens


def _shown(token: _Token | None) -> str:
    return "the end of the filter" if token is None else token.text[:SHOWN_MAX]


class _Reading:
    """Tokens on their way to a condition: `or` binds less than `and`, `and` less than `not`."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self.needs_headers = False

    @property
    def now(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _takes(self, word: str) -> bool:
        token = self.now
        if token is None or not token.is_word(word):
            return False
        self._at += 1
        return True

    def any_of(self, depth: int) -> Condition:
        parts = [self._all_of(depth)]
        while self._takes("or"):
            parts.append(self._all_of(depth))
        return parts[0] if len(parts) == 1 else lambda x: any(part(x) for part in parts)

    def _all_of(self, depth: int) -> Condition:
        parts = [self._one(depth)]
        while self._takes("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else lambda x: all(part(x) for part in parts)

    def _one(self, depth: int) -> Condition:
        if depth == DEPTH_MAX:
            raise ClientError(f"a filter has at most {DEPTH_MAX} brackets and nots in each other")
        if self._takes("not"):
            inner = self._one(depth + 1)
            return lambda x: not inner(x)
        if self._takes("("):
            inner = self.any_of(depth + 1)
            if not self._takes(")"):
                raise ClientError(f"{_shown(self.now)}: expected )")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        field = self.now
        if field is None or field.is_quoted or field.is_operator or field.text.lower() in _WORDS:
            raise ClientError(f"{_shown(field)}: expected a field: {', '.join(_FIELDS)}")
        self._at += 1
        name = field.text
        if name.lower() == _HEADER and self.now is not None and self.now.is_quoted:
            name += self.now.text
            self._at += 1
        sign = self.now
        if sign is None or not sign.is_operator or sign.text in "()":
            raise ClientError(f"{_shown(sign)}: expected an operator behind {name[:SHOWN_MAX]}")
        self._at += 1
        value = self.now
        if value is None or value.is_operator:
            raise ClientError(f"{_shown(value)}: expected a value behind {sign.text}")
        self._at += 1
        return self._made(name, sign.text, value.text)

    def _made(self, name: str, sign: str, value: str) -> Condition:
        field = name.lower()
        if field.startswith(_HEADER) and len(name) > len(_HEADER):
            self.needs_headers = True
            return _of_header(name[len(_HEADER) :], _checked(name, sign, _TEXT_OPERATORS), value)
        if field in _TEXTS:
            return _of_text(field, _checked(name, sign, _TEXT_OPERATORS), value)
        if field not in (*_NUMBERS, "age"):
            raise ClientError(f"{name[:SHOWN_MAX]}: the fields are {', '.join(_FIELDS)}")
        compare = _ORDERS[_checked(name, sign, tuple(_ORDERS))]
        if field == "age":
            age_ms = _milliseconds(value)
            return lambda x: compare(x.now_ms - x.letter.timestamp, age_ms)
        return _of_number(field, compare, value)


def _checked(name: str, sign: str, known: tuple[str, ...]) -> str:
    if sign not in known:
        raise ClientError(f"{name[:SHOWN_MAX]} {sign}: it is compared by {' '.join(known)}")
    return sign


def _of_text(field: str, sign: str, wanted: str) -> Condition:
    def found(x: Subject) -> str:
        return x.letter.origin.topic if field == "topic" else x.letter.reason

    if sign in ("~", "!~"):
        folded = wanted.casefold()
        return lambda x: (folded in found(x).casefold()) == (sign == "~")
    return lambda x: (found(x) == wanted) == (sign == "=")


def _of_header(name: str, sign: str, wanted: str) -> Condition:
    expected = wanted.encode(errors="surrogateescape")
    key = name.encode(errors="surrogateescape")

    def has(x: Subject) -> bool:
        for each, value in x.headers:
            if value is None or (each.encode() if isinstance(each, str) else bytes(each)) != key:
                continue
            held = bytes(value)
            if held == expected or (sign in ("~", "!~") and expected in held):
                return True
        return False

    return has if sign in ("=", "~") else lambda x: not has(x)


def _of_number(field: str, compare: Callable[[int, int], bool], value: str) -> Condition:
    if not _DIGITS.fullmatch(value):
        raise ClientError(f"{field} {value[:SHOWN_MAX]}: expected a number of at most 18 digits")
    wanted = int(value)
    if field == "partition":
        return lambda x: compare(x.letter.origin.partition, wanted)
    if field == "offset":
        return lambda x: compare(x.letter.origin.offset, wanted)
    return lambda x: compare(x.letter.delivery_count or 0, wanted)


def _milliseconds(value: str) -> int:
    found = _AGE.fullmatch(value)
    if found is None:
        raise ClientError(f"age {value[:SHOWN_MAX]}: expected a time such as 30s, 15m, 2h or 7d")
    return int(found[1]) * _UNITS_MS[found[2]]

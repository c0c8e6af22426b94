"""The words of a `.proto` text.

Source: Protocol Buffers language specification, lexical elements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from kwire.schemas.formats.parsed import InvalidSchema

TOKENS_MAX = 200_000
_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')
    |(?P<float>(?:\d++\.\d*+(?:[eE][+-]?\d++)?|\d++[eE][+-]?\d++|\.\d++(?:[eE][+-]?\d++)?)[fF]?)
    |(?P<int>0[xX][0-9a-fA-F]++|\d++)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<mark>[{}\[\]()<>=;,.:+\-/])""",
    re.X,
)
_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.S
)
_LETTERS = {b"a": 7, b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11}


def _unescaped(found: re.Match[bytes]) -> bytes:
    octal, short, *wide, letter = found.groups()
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if short:
        return bytes([int(short, 16)])
    rune = wide[0] or wide[1]
    if rune:
        value = int(rune, 16)
        if value > 0x10FFFF or 0xD800 <= value < 0xE000:
            raise InvalidSchema(f"\\{rune.decode()} is no character")
        return chr(value).encode()
    return bytes([_LETTERS[letter]]) if letter in _LETTERS else bytes(letter)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # string, float, int, name, mark or end
    text: str
    at: int


class Tokens:
    """Reads on, one token at a time; every refusal names the line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.next = 0
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                self.refuse(f"unexpected {text[position]!r}", position)
            kind = found.lastgroup or ""
            if kind != "skip":
                self.tokens.append(Token(kind, found.group(), position))
                if len(self.tokens) > TOKENS_MAX:
                    raise InvalidSchema(f"The schema has more than {TOKENS_MAX} words")
            position = found.end()
        self.tokens.append(Token("end", "the end", position))

    def refuse(self, why: str, at: int | None = None) -> NoReturn:
        at = self.peek().at if at is None else at
        raise InvalidSchema(f"Line {self.text.count(chr(10), 0, at) + 1}: {why}")

    def peek(self) -> Token:
        return self.tokens[self.next]

    def take(self) -> Token:
        token = self.tokens[self.next]
        if token.kind != "end":
            self.next += 1
        return token

    def accept(self, text: str) -> bool:
        token = self.peek()
        if token.text == text and token.kind in ("name", "mark"):
            self.next += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.refuse(f"{text!r} is expected, not {self.peek().text[:50]!r}")

    def name(self) -> str:
        if self.peek().kind != "name":
            self.refuse(f"a name is expected, not {self.peek().text[:50]!r}")
        return self.take().text

    def dotted(self) -> str:
        """`a.b.C`, with a dot in front if it has one."""
        parts = "." if self.accept(".") else ""
        parts += self.name()
        while self.accept("."):
            parts += f".{self.name()}"
        return parts

    def integer(self) -> int:
        is_negative = self.accept("-")
        if self.peek().kind != "int":
            self.refuse(f"an integer is expected, not {self.peek().text[:50]!r}")
        text = self.take().text
        if len(text) > 25:
            self.refuse("the integer is too large")
        is_octal = text.startswith("0") and text.isdigit() and len(text) > 1
        try:
            value = int(text, 8 if is_octal else 0)
        except ValueError:
            self.refuse(f"{text} is no integer")
        return -value if is_negative else value

    def string(self) -> bytes:
        """Strings that stand side by side are one."""
        if self.peek().kind != "string":
            self.refuse(f"a string is expected, not {self.peek().text[:50]!r}")
        found = b""
        while self.peek().kind == "string":
            found += _ESCAPE.sub(_unescaped, self.take().text[1:-1].encode())
        return found

    def text_string(self) -> str:
        try:
            return self.string().decode()
        except UnicodeDecodeError:
            self.refuse("the string is no UTF-8")

    def aggregate(self) -> str:
        """The words between `{` and its `}`, as they stand; the first brace is taken already."""
        depth, words = 1, []
        while depth:
            token = self.take()
            if token.kind == "end":
                self.refuse("a '}' is missing")
            depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "mark" else 0
            words.append(token.text)
        return " ".join(words[:-1])

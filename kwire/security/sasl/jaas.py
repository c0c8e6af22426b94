"""JAAS text: the login modules that `sasl.jaas.config` and a JAAS file name, with their options.

    module flag name=value name="value" ... ;               a setting: one module
    Section { module flag ... ; module flag ... ; };        a file that KAFKA_OPTS names

Words are letters, digits, `. _ - $`; values may stand in quotes of either kind, with Java's
escapes. `//`, `/* */` and `/` begin comments, as for Java's tokenizer, which Kafka uses; a bare
number is no value (measured on Apache Kafka 4.4). No class is ever loaded: a module is known by its
name, and only Kafka's own are. Errors never show a value.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from kwire.config.errors import ConfigError

_KAFKA = "org.apache.kafka.common.security."
PLAIN_MODULE = f"{_KAFKA}plain.PlainLoginModule"
SCRAM_MODULE = f"{_KAFKA}scram.ScramLoginModule"
OAUTHBEARER_MODULE = f"{_KAFKA}oauthbearer.OAuthBearerLoginModule"
MODULES = (PLAIN_MODULE, SCRAM_MODULE, OAUTHBEARER_MODULE)
FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
TEXT_MAX = 1 << 20

_ESCAPES = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"


class LoginModule(NamedTuple):
    """One entry: a module's class name and its options."""

    name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {len(self.options)} options)"


class _Kind(enum.Enum):
    WORD = enum.auto()
    STRING = enum.auto()
    NUMBER = enum.auto()
    OTHER = enum.auto()
    END = enum.auto()


class _Token(NamedTuple):
    kind: _Kind
    text: str

    @property
    def is_value(self) -> bool:
        return self.kind in (_Kind.WORD, _Kind.STRING)

    def is_sign(self, sign: str) -> bool:
        return self.kind is _Kind.OTHER and self.text == sign


_END = _Token(_Kind.END, "")


def parse_jaas(text: str) -> list[LoginModule]:
    """The modules of a `sasl.jaas.config`; ConfigError in Kafka's words."""
    tokens = _Tokens(text)
    modules: list[LoginModule] = []
    while (token := tokens.next()) is not _END:
        modules.append(_module(token, tokens))
    if not modules:
        raise ConfigError("Login module not specified in JAAS config")
    return modules


def parse_jaas_file(text: str) -> dict[str, list[LoginModule]]:
    """The sections of a JAAS file by name; ConfigError when it is malformed."""
    tokens = _Tokens(text)
    sections: dict[str, list[LoginModule]] = {}
    while (token := tokens.next()) is not _END:
        if not token.is_value or not tokens.next().is_sign("{"):
            raise ConfigError("JAAS file: expected the name of a section and {")
        if token.text in sections:
            raise ConfigError(f"JAAS file: section {token.text} stands twice")
        modules: list[LoginModule] = []
        while not (inner := tokens.next()).is_sign("}"):
            if inner is _END:
                raise ConfigError(f"JAAS file: section {token.text} is not closed by }}")
            modules.append(_module(inner, tokens))
        if not tokens.next().is_sign(";"):
            raise ConfigError(f"JAAS file: section {token.text} is not terminated by a semi-colon")
        sections[token.text] = modules
    return sections


def check_module(module: LoginModule) -> None:
    """ConfigError for a class that is not one of Kafka's own: no other is ever loaded."""
    if module.name not in MODULES:
        raise ConfigError(
            f"login module {module.name} is not allowed; accepted: {', '.join(MODULES)}"
        )


def _module(first: _Token, tokens: _Tokens) -> LoginModule:
    if not first.is_value:
        raise ConfigError("Login module not specified in JAAS config")
    flag = tokens.next()
    if not flag.is_value:
        raise ConfigError("Login module control flag not specified in JAAS config")
    if flag.text.upper() not in FLAGS:
        raise ConfigError(f"Invalid login module control flag '{flag.text}' in JAAS config")
    options: dict[str, str] = {}
    while not (name := tokens.next()).is_sign(";"):
        if name is _END:
            raise ConfigError("JAAS config entry not terminated by semi-colon")
        value = tokens.next() if tokens.next().is_sign("=") else _END
        if not value.is_value:
            # The name may be a piece of a secret whose quotes are wrong: only a good one is told.
            shown = f"'{name.text}' " if name.kind is _Kind.WORD and options == {} else ""
            raise ConfigError(f"Value not specified for key {shown}in JAAS config")
        options[name.text] = value.text
    return LoginModule(first.text, options)


class _Tokens:
    """The tokens of a text, one after another, as Java's StreamTokenizer cuts them."""

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_MAX:
            raise ConfigError(f"JAAS config of more than {TEXT_MAX} characters")
        self._text = text
        self._at = 0

    def next(self) -> _Token:
        """The next one; `_END` behind the last."""
        self._skip_blanks()
        text, start = self._text, self._at
        if start >= len(text):
            return _END
        letter = text[start]
        if letter in "\"'":
            return self._quoted(letter)
        if _begins_number(text, start):
            return self._cut(_Kind.NUMBER, "0123456789.-")
        if _is_letter(letter):
            end = start
            while end < len(text) and (_is_letter(text[end]) or text[end] in "0123456789.-"):
                end += 1
            self._at = end
            return _Token(_Kind.WORD, text[start:end])
        self._at += 1
        return _Token(_Kind.OTHER, letter)

    def _cut(self, kind: _Kind, letters: str) -> _Token:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] in letters:
            self._at += 1
        return _Token(kind, self._text[start : self._at])

    def _skip_blanks(self) -> None:
        text = self._text
        while self._at < len(text):
            if text[self._at] <= " ":
                self._at += 1
            elif text.startswith("/*", self._at):
                end = text.find("*/", self._at + 2)
                self._at = len(text) if end < 0 else end + 2
            elif text[self._at] == "/":
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            else:
                return

    def _quoted(self, quote: str) -> _Token:
        """A value in quotes; it ends at the line's end, too."""
        text, at = self._text, self._at + 1
        parts: list[str] = []
        while at < len(text) and text[at] not in (quote, "\n", "\r"):
            if text[at] != "\\" or at + 1 >= len(text):
                parts.append(text[at])
                at += 1
                continue
            escaped = text[at + 1]
            if escaped in _OCTAL:
                digits = 3 if escaped <= "3" else 2
                end = at + 1
                while end < min(len(text), at + 1 + digits) and text[end] in _OCTAL:
                    end += 1
                parts.append(chr(int(text[at + 1 : end], 8)))
                at = end
            else:
                parts.append(_ESCAPES.get(escaped, escaped))
                at += 2
        self._at = at + 1 if at < len(text) and text[at] == quote else at
        return _Token(_Kind.STRING, "".join(parts))


def _is_letter(letter: str) -> bool:
    return (letter.isascii() and letter.isalpha()) or letter in "_$-" or letter >= "\xa0"


def _begins_number(text: str, at: int) -> bool:
    """Java reads a number wherever a digit, a dot or a minus with digits behind begins a word."""
    if text[at].isdigit():
        return text[at].isascii()
    follower = text[at + 1 : at + 2]
    return text[at] in ".-" and ((follower.isascii() and follower.isdigit()) or follower == ".")

r"""RE2/J's dialect of regular expressions, which Kafka's clients write: read, checked, translated.

`translate` reads a pattern as RE2/J 1.8 does and gives two of equal meaning for another engine: one
for texts of ASCII, whose classes are plain ranges, so that `\pL{1000}` stays small, and one for all
texts. What RE2/J refuses raises PatternError with RE2/J's words, the leftmost fault first.
Whether a repetition is greedy and what a group is called make no difference to a match of the whole
text: neither is kept. Measured against RE2/J in Apache Kafka 4.4.

    \C  \Z  \1  \G  \h  look-around        are refused
    {  {,3}  {01}                          are literal where they are no repetition; an operator
                                           behind such a brace is refused, as behind a repetition
    \x, where x is no letter or digit      is x itself, outside of ASCII too
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

MISSING_PARENTHESIS = "missing closing )"
MISSING_BRACKET = "missing closing ]"
MISSING_ARGUMENT = "missing argument to repetition operator"
NESTED_REPETITION = "invalid nested repetition operator"
REPEAT_COUNT = "invalid repeat count"
BAD_ESCAPE = "invalid escape sequence"
BAD_CLASS = "invalid character class range"
BAD_GROUP = "invalid or unsupported Perl syntax"
BAD_NAME = "invalid named capture"
NAME_TWICE = "duplicate capture group name"
TRAILING_BACKSLASH = "trailing backslash at end of expression"
UNOPENED = "regexp/syntax: internal error"
#: RE2/J has no such bound: what it needs for `(a{1000}){1000}` is Kafka's heap.
TOO_LARGE = "pattern too large"

REPEAT_MAX = 1000
#: Positions of a pattern once its repetitions are written out.
SIZE_MAX = 20_000
RUNE_MAX = 0x10FFFF
LONG_S, KELVIN = 0x17F, 0x212A  # fold to s and k
#: Matches nothing in ASCII, in every engine.
NOTHING = r"\x80"

_ASCII = frozenset(range(128))
_LOWER = frozenset(range(ord("a"), ord("z") + 1))
_UPPER = frozenset(range(ord("A"), ord("Z") + 1))
_LETTERS = _LOWER | _UPPER
_DIGITS = frozenset(range(ord("0"), ord("9") + 1))
_WORD = _LETTERS | _DIGITS | {ord("_")}
# RE2/J folds \p{Ll} to those capitals only whose letter has a third form (ſ, the Kelvin sign).
_LL_FOLDED = _LOWER | {ord("K"), ord("S")}
_SPACE = frozenset(map(ord, "\t\n\f\r "))
_GRAPH = frozenset(range(0x21, 0x7F))
_PERL = {"d": _DIGITS, "s": _SPACE, "w": _WORD}
_POSIX = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": _ASCII,
    "blank": frozenset(map(ord, "\t ")),
    "cntrl": frozenset(range(0x20)) | {0x7F},
    "digit": _DIGITS,
    "graph": _GRAPH,
    "lower": _LOWER,
    "print": _GRAPH | {0x20},
    "punct": _GRAPH - _LETTERS - _DIGITS,
    "space": _SPACE | {0x0B},
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _DIGITS | frozenset(map(ord, "abcdefABCDEF")),
}
_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CATEGORY_NAMES = (
    "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So "
    "Z Zl Zp Zs"
)
# The scripts of Unicode 6.0: newer ones are unknown.
_SCRIPT_NAMES = (
    "Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid "
    "Canadian_Aboriginal Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret "
    "Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi "
    "Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi "
    "Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Latin "
    "Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic Meetei_Mayek Mongolian Myanmar "
    "New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian Old_Turkic Oriya "
    "Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala Sundanese "
    "Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai "
    "Tibetan Tifinagh Ugaritic Unknown Vai Yi"
)
_CATEGORIES = frozenset(_CATEGORY_NAMES.split())
_SCRIPTS = frozenset(_SCRIPT_NAMES.split())


class PatternError(ValueError):
    """What RE2/J says of a pattern that it refuses."""


class Piece(NamedTuple):
    """A part of a pattern for both kinds of texts: `ascii` and `full` are patterns that a
    repetition may follow. `size` counts positions, `nesting` the copies that nested repetitions
    make of a position at most."""

    ascii: str
    full: str
    size: int = 1
    nesting: int = 1


@dataclass
class _Group:
    """An open group: finished alternatives, the pieces of the present one, the flags outside."""

    flags: frozenset[str]
    alternatives: list[list[Piece]] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def close(self) -> Piece:
        """The group as one piece."""
        every = [*self.alternatives, self.pieces]
        parts = [piece for pieces in every for piece in pieces]
        return Piece(
            f"(?:{'|'.join(''.join(x.ascii for x in pieces) for pieces in every)})",
            f"(?:{'|'.join(''.join(x.full for x in pieces) for pieces in every)})",
            sum(x.size for x in parts) + 1,
            max((x.nesting for x in parts), default=1),
        )


def translate(pattern: str) -> Piece:
    """The pattern for both kinds of texts; PatternError where RE2/J refuses it, or it is too large.

    The result uses `(?:`, `|`, `*`, `+`, `?`, `{n,m}`, ASCII classes of \\xHH, `\\A`, `\\z`, `\\b`,
    `\\B`, `(?m:^)`, `(?m:$)`; for all texts also classes of RE2 and `(?i:`.
    """
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.flags: frozenset[str] = frozenset()
        self.groups = [_Group(self.flags)]
        self.names: set[str] = set()

    def parse(self) -> Piece:
        operator_at = -1  # of the last token, where it was a repetition
        while self.at < len(self.text):
            start = self.at
            character = self.text[start]
            is_operator = character in "*+?{"
            if character in "*+?":
                self.at += 1
                self.repeat(character, *_COUNTS[character], operator_at)
            elif character == "{":
                self.braces(operator_at)
            elif character == "(":
                self.open_group()
            elif character == "|":
                self.at += 1
                self.groups[-1].alternatives.append(self.groups[-1].pieces)
                self.groups[-1].pieces = []
            elif character == ")":
                self.close_group()
            elif character == "[":
                self.push(self.char_class())
            elif character == "\\":
                self.escape()
            else:
                self.at += 1
                self.single(character)
            operator_at = start if is_operator else -1
        if len(self.groups) > 1:
            raise PatternError(MISSING_PARENTHESIS)
        return self.checked(self.groups[0].close())

    def push(self, piece: Piece) -> None:
        self.groups[-1].pieces.append(piece)

    @staticmethod
    def checked(piece: Piece) -> Piece:
        if piece.size > SIZE_MAX:
            raise PatternError(TOO_LARGE)
        return piece

    # -- single characters -----------------------------------------------------------------------

    def single(self, character: str) -> None:
        if character == "^":
            self.push(_BEGIN_OF_LINE if "m" in self.flags else _BEGIN)
        elif character == "$":
            self.push(_END_OF_LINE if "m" in self.flags else _END)
        elif character == ".":
            self.push(_ANY if "s" in self.flags else _ANY_BUT_NEWLINE)
        else:
            self.literal(ord(character))

    def literal(self, rune: int) -> None:
        folds = "i" in self.flags
        full = _quoted(rune)
        accepted = _folded(_of_range(rune, rune), rune, rune) if folds else _of_range(rune, rune)
        self.push(Piece(_ascii_class(accepted), f"(?i:{full})" if folds else full))

    # -- repetitions -----------------------------------------------------------------------------

    def braces(self, operator_at: int) -> None:
        """`{n}`, `{n,}`, `{n,m}`, or a brace that means itself."""
        counts = self.counts()
        if counts is None:
            self.at += 1
            self.literal(ord("{"))
            return
        low, high, self.at = counts
        if not 0 <= low <= REPEAT_MAX or high > REPEAT_MAX or 0 <= high < low or high == _TOO_MANY:
            raise PatternError(REPEAT_COUNT)
        self.repeat("{", low, high, operator_at)

    def counts(self) -> tuple[int, int, int] | None:
        """(least, most or -1, where it ends) of a repetition in braces at this place."""
        low, at = self.number(self.at + 1)
        if low is None:
            return None
        high: int | None = low
        if self.text[at : at + 1] == ",":
            at += 1
            if self.text[at : at + 1] == "}":
                return low, -1, at + 1
            high, at = self.number(at)
        if high is None or self.text[at : at + 1] != "}":
            return None
        return low, high, at + 1

    def number(self, at: int) -> tuple[int | None, int]:
        """A decimal number without leading zeros, and where it ends; None for none."""
        end = at
        while end < len(self.text) and "0" <= self.text[end] <= "9":
            end += 1
        digits = self.text[at:end]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None, end
        return (_TOO_MANY if len(digits) > 8 else int(digits)), end

    def repeat(self, operator: str, low: int, high: int, operator_at: int) -> None:
        if self.text[self.at : self.at + 1] == "?":
            self.at += 1  # lazy: the same texts
        if operator_at >= 0:
            raise PatternError(NESTED_REPETITION)
        pieces = self.groups[-1].pieces
        if not pieces:
            raise PatternError(MISSING_ARGUMENT)
        piece = pieces[-1]
        if operator != "{":
            pieces[-1] = Piece(
                f"(?:{piece.ascii}{operator})",
                f"(?:{piece.full}{operator})",
                piece.size + 1,
                piece.nesting,
            )
            return
        self.checked(piece._replace(size=piece.size * max(low, high, 1)))
        pieces[-1] = _repeated(piece, low, high)

    # -- groups ----------------------------------------------------------------------------------

    def open_group(self) -> None:
        text, at = self.text, self.at
        outside = self.flags
        if not text.startswith("(?", at):
            self.at += 1
        elif text.startswith(("(?P<", "(?<"), at):
            self.named_group()
        elif not self.flag_group():
            return
        self.groups.append(_Group(outside))

    def named_group(self) -> None:
        start = self.text.index("<", self.at) + 1
        end = self.text.find(">", start)
        name = self.text[start : max(end, start)]
        if not name or any(ord(x) not in _WORD for x in name):
            raise PatternError(BAD_NAME)
        if name in self.names:
            raise PatternError(NAME_TWICE)
        self.names.add(name)
        self.at = end + 1

    def flag_group(self) -> bool:
        """`(?i-s:` opens a group: True; `(?i-s)` changes the flags of the rest of this one."""
        at = self.at + 2
        flags = set(self.flags)
        is_off = saw_flag = False
        while at < len(self.text):
            character = self.text[at]
            at += 1
            if character in "imsU":
                (flags.discard if is_off else flags.add)(character)
                saw_flag = True
            elif character == "-" and not is_off:
                is_off, saw_flag = True, False
            elif character in ":)" and (saw_flag or not is_off):
                self.flags, self.at = frozenset(flags), at
                return character == ":"
            else:
                break
        raise PatternError(BAD_GROUP)

    def close_group(self) -> None:
        if len(self.groups) == 1:
            raise PatternError(UNOPENED)
        self.at += 1
        group = self.groups.pop()
        self.flags = group.flags
        self.push(self.checked(group.close()))

    # -- escapes ---------------------------------------------------------------------------------

    def escape(self) -> None:
        kind = self.text[self.at + 1 : self.at + 2]
        if kind in _ANCHORS:
            self.at += 2
            self.push(_ANCHORS[kind])
        elif kind == "Q":
            end = self.text.find("\\E", self.at + 2)
            for character in self.text[self.at + 2 : end if end >= 0 else None]:
                self.literal(ord(character))
            self.at = end + 2 if end >= 0 else len(self.text)
        else:
            members = self.unicode_class() or self.perl_class()
            if members is None:
                self.literal(self.escaped_rune())
            else:
                self.push(Piece(_ascii_class(members.ascii), self.class_text(members.full)))

    def escaped_rune(self) -> int:
        """The character that an escape stands for."""
        text = self.text
        self.at += 1
        if self.at >= len(text):
            raise PatternError(TRAILING_BACKSLASH)
        kind = text[self.at]
        self.at += 1
        if ord(kind) not in _LETTERS | _DIGITS:
            return ord(kind)
        if kind in _ESCAPES:
            return _ESCAPES[kind]
        if kind == "0" or (kind in "1234567" and text[self.at : self.at + 1] in tuple("01234567")):
            return self.octal(kind)
        if kind == "x":
            return self.hexadecimal()
        raise PatternError(BAD_ESCAPE)

    def octal(self, digits: str) -> int:
        """Up to three octal digits, the first of which is read."""
        while len(digits) < 3 and self.text[self.at : self.at + 1] in tuple("01234567"):
            digits += self.text[self.at]
            self.at += 1
        return int(digits, 8)

    def hexadecimal(self) -> int:
        """`HH` or `{H...}` behind an x."""
        if self.text[self.at : self.at + 1] == "{":
            end = self.text.find("}", self.at)
            digits, self.at = self.text[self.at + 1 : max(end, self.at + 1)], end + 1
        else:
            digits = self.text[self.at : self.at + 2]
            if len(digits) < 2:
                raise PatternError(BAD_ESCAPE)
            self.at += 2
        if not digits or not _HEXADECIMAL.issuperset(digits) or int(digits, 16) > RUNE_MAX:
            raise PatternError(BAD_ESCAPE)
        return int(digits, 16)

    # -- classes ---------------------------------------------------------------------------------

    def char_class(self) -> Piece:
        text = self.text
        self.at += 1
        is_negated = text[self.at : self.at + 1] == "^"
        self.at += is_negated
        accepted: set[int] = set()
        items: list[str] = []
        is_first = True
        while is_first or text[self.at : self.at + 1] != "]":
            is_first = False
            members = self.posix_class() or self.unicode_class() or self.perl_class()
            if members is None:
                members = self.range()
            accepted |= members.ascii
            items.append(members.full)
        self.at += 1
        if is_negated:
            accepted = set(_ASCII - accepted)
        full = self.class_text(("^" if is_negated else "") + "".join(items))
        return Piece(_ascii_class(accepted), full)

    def class_text(self, items: str) -> str:
        return f"(?i:[{items}])" if "i" in self.flags else f"[{items}]"

    def members(
        self, ascii_members: Iterable[int], full: str, *, negated: bool, low: int = 0, high: int = 0
    ) -> _Members:
        accepted = frozenset(ascii_members)
        if "i" in self.flags:
            accepted = _folded(accepted, low, high)
        return _Members(_ASCII - accepted if negated else accepted, full)

    def range(self) -> _Members:
        low = self.class_rune()
        high = low
        if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] != "]":
            self.at += 1
            high = self.class_rune()
            if high < low:
                raise PatternError(BAD_CLASS)
        full = _quoted(low) if low == high else f"{_quoted(low)}-{_quoted(high)}"
        return self.members(_of_range(low, high), full, negated=False, low=low, high=high)

    def class_rune(self) -> int:
        if self.at >= len(self.text):
            raise PatternError(MISSING_BRACKET)
        if self.text[self.at] == "\\":
            return self.escaped_rune()
        self.at += 1
        return ord(self.text[self.at - 1])

    def posix_class(self) -> _Members | None:
        """`[:alpha:]`, `[:^alpha:]`."""
        end = self.text.find(":]", self.at)
        if not self.text.startswith("[:", self.at) or end < 0:
            return None
        name = self.text[self.at + 2 : max(end, self.at + 2)]
        full = self.text[self.at : end + 2]
        is_negated = name.startswith("^")
        known = _POSIX.get(name[is_negated:])
        if known is None:
            raise PatternError(BAD_CLASS)
        self.at = end + 2
        return self.members(known, full, negated=is_negated)

    def perl_class(self) -> _Members | None:
        r"""`\d`, `\D` and their like."""
        kind = self.text[self.at + 1 : self.at + 2]
        if self.text[self.at : self.at + 1] != "\\" or kind.lower() not in _PERL:
            return None
        self.at += 2
        return self.members(_PERL[kind.lower()], f"\\{kind}", negated=kind.isupper())

    def unicode_class(self) -> _Members | None:
        r"""`\pL`, `\p{Greek}`, `\P{^Lu}`."""
        if not self.text.startswith(("\\p", "\\P"), self.at):
            return None
        is_negated = self.text[self.at + 1] == "P"
        name = self.text[self.at + 2 : self.at + 3]
        self.at += 3
        if name == "{":
            end = self.text.find("}", self.at)
            if end < 0:
                raise PatternError(BAD_CLASS)
            name, self.at = self.text[self.at : end], end + 1
        if name.startswith("^"):
            is_negated, name = not is_negated, name[1:]
        if name != "Any" and name not in _CATEGORIES and name not in _SCRIPTS:
            raise PatternError(BAD_CLASS)
        full = f"\\{'P' if is_negated else 'p'}{{{name}}}"
        if name == "Ll" and "i" in self.flags:
            return _Members(_ASCII - _LL_FOLDED if is_negated else _LL_FOLDED, full)
        return self.members(_unicode_members(name), full, negated=is_negated)


class _Members(NamedTuple):
    """What a part of a class accepts of ASCII, and that part for all texts."""

    ascii: frozenset[int]
    full: str


def _unicode_members(name: str) -> frozenset[int]:
    if name == "Any":
        return _ASCII
    if name == "Latin":
        return _LETTERS
    if name == "Common":
        return _ASCII - _LETTERS
    if name in _SCRIPTS:
        return frozenset()
    return frozenset(x for x in _ASCII if unicodedata.category(chr(x)).startswith(name))


def _of_range(low: int, high: int) -> frozenset[int]:
    return frozenset(range(low, min(high, 127) + 1))


def _folded(members: frozenset[int], low: int, high: int) -> frozenset[int]:
    """With the other case of every letter; `low` and `high` bound the range they are from."""
    found = set(members)
    found |= {x ^ 32 for x in members if x in _LETTERS}
    if low <= LONG_S <= high:
        found |= {ord("s"), ord("S")}
    if low <= KELVIN <= high:
        found |= {ord("k"), ord("K")}
    return frozenset(found)


def _quoted(rune: int) -> str:
    """A character that means itself, in a class too."""
    return chr(rune) if rune in _LETTERS or rune in _DIGITS else f"\\x{{{rune:x}}}"


def _ascii_class(members: Iterable[int]) -> str:
    """The characters as a literal or a class of ranges."""
    ordered = sorted(members)
    if not ordered:
        return NOTHING
    ranges: list[tuple[int, int]] = []
    for rune in ordered:
        if ranges and ranges[-1][1] == rune - 1:
            ranges[-1] = (ranges[-1][0], rune)
        else:
            ranges.append((rune, rune))
    texts = [_hex(low) if low == high else f"{_hex(low)}-{_hex(high)}" for low, high in ranges]
    return texts[0] if len(ordered) == 1 else f"[{''.join(texts)}]"


def _hex(rune: int) -> str:
    return chr(rune) if rune in _LETTERS or rune in _DIGITS else f"\\x{rune:02x}"


def _repeated(piece: Piece, low: int, high: int) -> Piece:
    """`piece{low,high}`, written out where an engine would not take so many nested copies."""
    chunk = max(REPEAT_MAX // piece.nesting, 1)

    def written(text: str) -> str:
        parts = [f"{text}{{{min(chunk, low - at)}}}" for at in range(0, low, chunk)]
        if high < 0:
            parts.append(f"{text}*")
        parts += [f"{text}{{0,{min(chunk, high - at)}}}" for at in range(low, high, chunk)]
        return f"(?:{''.join(parts)})"

    return Piece(
        written(piece.ascii),
        written(piece.full),
        piece.size * max(low, high, 1) + 1,
        piece.nesting * max(1, min(chunk, max(low, high - low))),
    )


_TOO_MANY = REPEAT_MAX + 1
_COUNTS = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
# Every engine repeats a group; not every one an anchor.
_BEGIN, _END = Piece(r"(?:\A)", r"(?:\A)"), Piece(r"(?:\z)", r"(?:\z)")
_BEGIN_OF_LINE, _END_OF_LINE = Piece("(?m:^)", "(?m:^)"), Piece("(?m:$)", "(?m:$)")
_BOUNDARY, _NO_BOUNDARY = Piece(r"(?:\b)", r"(?:\b)"), Piece(r"(?:\B)", r"(?:\B)")
_ANY = Piece(r"[\x00-\x7f]", "(?s:.)")
_ANY_BUT_NEWLINE = Piece(r"[\x00-\x09\x0b-\x7f]", "(?-s:.)")
_ANCHORS = {"A": _BEGIN, "z": _END, "b": _BOUNDARY, "B": _NO_BOUNDARY}

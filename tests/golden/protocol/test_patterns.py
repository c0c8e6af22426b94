"""Patterns mean what they mean to RE2/J, which Kafka 4.4 has, and are refused with its words.

`tests/golden/data/patterns.json.gz` holds what RE2/J said of every piece of patterns and of random
ones; made by `python -m tests.golden.protocol.test_patterns`. `tests/differential` asks RE2/J anew.
"""

from __future__ import annotations

import builtins
import gzip
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from kwire.protocol.re2j import SIZE_MAX, TOO_LARGE, translate
from kwire.protocol.regex import PatternRefused, compile_pattern
from tests.support.kafka import kafka_libs
from tests.support.patterns import PIECES, TEXTS, answers_of_re2j, drawn, our_answer

DATA = pathlib.Path(__file__).parent.parent / "data" / "patterns.json.gz"
SEED, COUNT = 11, 6000


def recorded() -> dict[str, str]:
    found: dict[str, str] = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


def test_answers_are_those_of_re2j() -> None:
    expected = recorded()
    assert set(PIECES) <= set(expected)
    wrong = {x: (ours, said) for x, said in expected.items() if (ours := our_answer(x)) != said}
    assert wrong == {}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"\C", "E invalid escape sequence"),
        ("{*", "E invalid nested repetition operator"),
        ("{{2}", "E invalid nested repetition operator"),
        ("topic)", "E regexp/syntax: internal error"),
        ("(?P<a b>x)", "E invalid named capture"),
        (r"\p{Adlam}", "E invalid character class range"),
        ("(?<n>a)(?<n>b)", "E duplicate capture group name"),
        (r"[\p", "E invalid character class range"),
    ],
)
def test_refused_as_by_re2j(pattern: str, said: str) -> None:
    assert our_answer(pattern) == said


def test_taken_as_by_re2j() -> None:
    assert compile_pattern(r"\ü")("ü")
    assert compile_pattern(r"\pL{1000}")("x" * 1000)
    assert not compile_pattern(r"\pL{1000}")("x" * 999)
    assert compile_pattern("(a{100}){100}")("a" * 10_000)
    assert not compile_pattern("(a{100}){100}")("a" * 9_999)
    assert compile_pattern("(a{2,900}){2,3}")("a" * 2700)
    assert not compile_pattern("(a{2,900}){2,3}")("a" * 3)
    assert compile_pattern("(a{600}){2,}")("a" * 1800)
    assert not compile_pattern("(a{600}){2,}")("a" * 600)


def test_lower_case_folds_as_in_re2j() -> None:
    accepted = compile_pattern(r"(?i)\p{Ll}")
    assert "".join(x for x in map(chr, range(128)) if accepted(x)) == "KSabcdefghijklmnopqrstuvwxyz"
    assert compile_pattern(r"(?i)\p{^Ll}")("A")


def test_what_it_takes_to_match_is_bounded() -> None:
    nested = "(" * 50 + "a" + "{2})" * 50
    for pattern in ("((a{100}){100}){10}", "(a{1000}){1000}", nested):
        assert our_answer(pattern) == f"E {TOO_LARGE}"
    for pattern in (rf"(\pL{{{SIZE_MAX // 20 - 1}}}){{19}}", r"(\w{1,900}){2,20}"):
        assert compile_pattern(pattern)("a" * 249) == ("1," in pattern)
        assert len(translate(pattern).ascii) < 2000, "Unicode's tables are not written out"
    deep = "(" * 2000 + "a" + ")" * 2000
    assert our_answer(deep)[:1] in ("0", "E")


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return real(name, *arguments, **options)

    compile_pattern.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    yield
    compile_pattern.cache_clear()


def test_without_google_re2_names_of_topics_match_the_same(without_re2: None) -> None:
    ascii_texts = [at for at, text in enumerate(TEXTS) if text.isascii() and text]
    for pattern, said in recorded().items():
        ours = our_answer(pattern)
        if said.startswith("E "):
            assert ours == said, pattern
        else:
            assert [ours[at] for at in ascii_texts] == [said[at] for at in ascii_texts], pattern


def test_the_reason_is_one_line() -> None:
    with pytest.raises(PatternRefused) as refused:
        compile_pattern("x" * 5000)
    assert "\n" not in str(refused.value)


def main() -> None:
    patterns = sorted(set(drawn(SEED, COUNT)))
    answers = dict(zip(patterns, answers_of_re2j(patterns, kafka_libs(), 600), strict=True))
    with open(DATA, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(answers, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()

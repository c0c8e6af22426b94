"""Patterns put together at random from pieces, what RE2/J says of them, and what ours says."""

from __future__ import annotations

import pathlib
import random
import subprocess

from kwire.protocol.regex import PatternRefused, compile_pattern

ORACLE = pathlib.Path(__file__).parents[1] / "golden" / "protocol" / "PatternOracle.java"

# Apart by blanks: no piece holds one.
PIECES_TEXT = r"""
a topic - _ . .* .+ \d \w \s \D \W [a-c] [^a] [[:alpha:]] [[:^digit:]] [[:word:]] [[:^upper:]]
\. \- \pL \p{L} \PN \p{^Lu} \p{Latin} \p{Han} \p{Lower} \p{Alpha} \p{IsLatin} \p{Any} \p{Greek}
\p{Adlam} \p{Common} ( ) (?: (?i) (?i: (?s) (?m) (?U) (?-i) (?P<n> (?<n> (?'n' (?im-s: (?= (?! (?<=
(?P=n) (?# | * + ? ?? *? ++ {2} {1,3} {,3} {2,} {0} {1001} {1000} {3,1} {01} {999999999} { } ^ $ \A
\z \Z \b \B \Q \E \Qa.b\E \C \x41 \x{61} \x{110000} \x{ \x4 \x{17f} \x{212a} \07 \061 \1 \8 \a \f \t
\n \r \v \h \R \X \e \cA \k<n> \G \N \p \p{ \ [ ] []a] [^]a] [a-] [-a] [a-\d] [\d-a] [\w.] [z-a]
[[:foo:]] [[=a=]] [a&&b] [\Qa\E] [\pL] [^\x00-\x{10FFFF}] [^\n] ü 日 K k s ſ K 1
# \# \ü \日 \_ \/ \% \< / ' & ~
"""
PIECES = PIECES_TEXT.split()
TEXTS = [
    "", "a", "A", "aa", "aaa", "ab", "abc", "a.b", "a-a", "z9", "1", "k", "K", "s", "S", "-", "_",
    "topic", "Topic", "TOPIC", "topic-1", "topic_1", "topic.", "{", "}", "{2}", "a\nb", "\n", "ü",
    "日", "ſ", "\u212a", "é",
]  # fmt: skip


def drawn(seed: int, count: int) -> list[str]:
    """Every piece, then patterns of two to six pieces."""
    chance = random.Random(seed)
    made = [
        "".join(chance.choices(PIECES, k=chance.randint(2, 6))) for _ in range(count - len(PIECES))
    ]
    # Nested, a thousand copies of a thousand cost RE2/J minutes and gigabytes.
    return PIECES + [x if x.count("{1000}") < 2 else x.replace("{1000}", "") for x in made]


def answers_of_re2j(patterns: list[str], libs: pathlib.Path, limit_s: float) -> list[str]:
    """For each pattern a 0 or 1 for each of TEXTS, or "E " and why it is refused."""
    texts = [_units(text) for text in TEXTS]
    asked = "\n".join("\t".join([_units(pattern), *texts]) for pattern in patterns)
    done = subprocess.run(
        ["java", "-Xmx1g", "-cp", f"{libs}/*", ORACLE],
        input=asked.encode() + b"\n",
        capture_output=True,
        check=True,
        timeout=limit_s,
    )
    return done.stdout.decode().split("\n")[:-1]


def _units(text: str) -> str:
    return text.encode("utf-16-be").hex()


def our_answer(pattern: str) -> str:
    """As RE2/J's."""
    try:
        matches = compile_pattern(pattern)
    except PatternRefused as error:
        return f"E {error.reason}"
    return "".join("1" if matches(text) else "0" for text in TEXTS)

"""Names of settings that nobody knows: a slip of the pen, or somebody else's setting.

Kafka ignores what it does not know and starts. A name that is nearly one of Kafka's was meant to
be it, and would be silently without effect: that is an error here. Anything else is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable

EDITS_MAX = 2
SHORT_NAME = 8
"""Names shorter than this are near at one edit only: two turn `port` into many things."""
SHORT_WORD = 5
SHOWN_MAX = 12
SUGGESTIONS_MAX = 3


def near_misses(name: str, known: Iterable[str]) -> list[str]:
    """The known names that `name` was meant to be, the nearest first; mostly none.

    Near is what differs in capitals and separators only (`logSegmentBytes`, `log_segment_bytes`),
    or in one or two letters left out, added, changed or exchanged.
    """
    plain = _plain(name)
    edits_max = 1 if len(name) < SHORT_NAME else EDITS_MAX
    found: list[tuple[int, str]] = []
    for candidate in known:
        if _plain(candidate) == plain:
            found.append((0, candidate))
        elif abs(len(candidate) - len(name)) <= edits_max:
            edits = edit_distance(name, candidate, edits_max)
            if edits <= edits_max and not _has_other_word(name, candidate):
                found.append((edits, candidate))
    found.sort()
    return [candidate for _, candidate in found[:SUGGESTIONS_MAX]]


def _has_other_word(name: str, candidate: str) -> bool:
    """Whether a short word is another one: a client's `fetch.min.bytes` is not
    `fetch.max.bytes` misspelt."""
    words, others = name.split("."), candidate.split(".")
    return len(words) == len(others) and any(
        len(word) < SHORT_WORD and edit_distance(word, other, 1) > 1
        for word, other in zip(words, others)
    )


def edit_distance(left: str, right: str, limit: int) -> int:
    """Letters to insert, delete, change or exchange with the next (Damerau and Levenshtein,
    adjacent exchanges only); `limit` + 1 stands for anything beyond `limit`."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for at, letter in enumerate(left, 1):
        last, before, row = before, row, [at]
        for other_at, other in enumerate(right, 1):
            cost = min(before[other_at] + 1, row[-1] + 1, before[other_at - 1] + (letter != other))
            if last and other_at > 1 and letter == right[other_at - 2] and other == left[at - 2]:
                cost = min(cost, last[other_at - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in "._-")


def listed(names: list[str]) -> str:
    """Names in a line, the first SHOWN_MAX of them."""
    shown = ", ".join(names[:SHOWN_MAX])
    return shown if len(names) <= SHOWN_MAX else f"{shown} and {len(names) - SHOWN_MAX} more"

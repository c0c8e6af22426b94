"""The leader of a classic group shares out as Kafka's assignors of the same names do."""

from __future__ import annotations

import pytest

from kwire.client.assignors import ASSIGNORS, RANGE, ROUND_ROBIN

MEMBERS = {"b": ["t", "u"], "a": ["t", "u"], "c": ["u", "gone"]}
COUNTS = {"t": 3, "u": 4, "gone": 0}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            RANGE,
            {
                "a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)],
                "b": [("t", 2), ("u", 2)],
                "c": [("u", 3)],
            },
        ),
        (
            ROUND_ROBIN,
            {
                "a": [("t", 0), ("t", 2), ("u", 2)],
                "b": [("t", 1), ("u", 0), ("u", 3)],
                "c": [("u", 1)],
            },
        ),
    ],
)
def test_shares(name: str, expected: dict[str, list[tuple[str, int]]]) -> None:
    assert ASSIGNORS[name](MEMBERS, COUNTS) == expected
    assert ASSIGNORS[name]({}, {}) == {}
    assert ASSIGNORS[name]({"a": []}, {}) == {"a": []}

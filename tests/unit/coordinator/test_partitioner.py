"""Which partition a key belongs to; hashes are java.lang.String's."""

from __future__ import annotations

import pytest

from kwire.coordinator.partitioner import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("my-group", -1906497762),
        ("é", 233),
        ("\U0001f600", 1772899),
        ("polygenelubricants", -(2**31)),
        ("x" * 1000, -1715418112),
    ],
)
def test_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_smallest_hash_is_partition_0() -> None:
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("my-group", 50) == 1906497762 % 50

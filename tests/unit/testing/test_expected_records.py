"""`assert_records`: what is missing and what is too many is shown, a line each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kwire.testing import Record, assert_records
from kwire.testing.records import Expected


def record(offset: int, value: bytes | None, key: bytes | None = None, **more: object) -> Record:
    fields = {"timestamp_ms": 0, "headers": (), "partition": 0, **more}
    return Record(topic="t", offset=offset, key=key, value=value, **fields)  # type: ignore[arg-type]


ACTUAL = [record(0, b"a"), record(1, b"b", b"k"), record(2, None, b"k")]


@pytest.mark.parametrize(
    "expected",
    [
        ["a", "b", None],
        [b"a", ("k", "b"), ("k", None)],
        [{"offset": 0}, {"key": "k", "value": "b"}, {"value": None, "partition": 0}],
        ACTUAL,
    ],
)
def test_values_pairs_fields_and_records_can_be_expected(expected: Sequence[Expected]) -> None:
    assert_records(ACTUAL, expected)
    assert_records(list(reversed(ACTUAL)), expected, in_order=False)


def test_what_is_missing_is_shown_where_it_is_missing() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_records(ACTUAL, ["a", "x", "b", None])
    assert str(raised.value).splitlines() == [
        "3 records, expected 4 (- is missing, + is too many):",
        "  t-0@0 key=None value='a'",
        "- value='x'",
        "  t-0@1 key='k' value='b'",
        "  t-0@2 key='k' value=None",
    ]


def test_what_is_too_many_is_shown() -> None:
    with pytest.raises(AssertionError, match=r"\+ t-0@1 key='k' value='b'"):
        assert_records(ACTUAL, ["a", None])


def test_another_order_is_a_difference_only_where_order_counts() -> None:
    assert_records(ACTUAL, [None, "b", "a"], in_order=False)
    with pytest.raises(AssertionError):
        assert_records(ACTUAL, [None, "b", "a"])


def test_a_value_alone_does_not_take_the_record_that_a_pair_needs() -> None:
    twice = [record(0, b"a", b"k"), record(1, b"a")]
    assert_records(twice, ["a", ("k", "a")], in_order=False)


def test_a_long_value_is_cut_off() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_records([record(0, b"x" * 1000)], [])
    assert len(str(raised.value)) < 200


def test_headers_are_compared_as_they_are_written_most_easily() -> None:
    with_headers = [record(0, b"a", headers=(("h", b"1"),))]
    assert_records(with_headers, [{"headers": {"h": "1"}}])
    with pytest.raises(AssertionError, match="headers"):
        assert_records(with_headers, [{"headers": {"h": "2"}}])


@pytest.mark.parametrize("wrong", [{"vlaue": "a"}, {}, 5, ("a", "b", "c")])
def test_what_is_no_expected_record_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="accepted are"):
        assert_records(ACTUAL, [wrong])  # type: ignore[list-item]

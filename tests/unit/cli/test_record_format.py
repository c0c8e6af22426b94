"""Records as text: kcat's format strings and JSON lines, out and in again."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.cli.produce import BATCH_RECORDS, LINE_BYTES_MAX, batches
from kwire.cli.record_format import (
    parse_format,
    read_format,
    read_json,
    read_line,
    show_format,
    show_json,
    unescape,
)
from kwire.cli.records import Consumed, Outgoing
from kwire.client.errors import ClientError
from kwire.protocol.records import Record

RECORD = Consumed("t", 3, Record(7, 1234, b"key", b"value", [("a", b"1"), ("b", None)]))
EMPTY = Consumed("t", 0, Record(0, 0, None, None, []))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("%s\n", b"value\n"),
        ("%s\\n", b"value\n"),
        ("%t [%p] at %o: %k = %s", b"t [3] at 7: key = value"),
        ("%T %K %S", b"1234 3 5"),
        ("%h", b"a=1,b=NULL"),
        ("100%% %s", b"100% value"),
        ("\\x41\\102\\t\\\\%k", b"AB\t\\key"),
        ("", b""),
        ("é %s", "é value".encode()),
        ("\udcff%s", b"\xffvalue"),  # a byte of the command line that is no UTF-8
    ],
)
def test_a_format_string_as_kcats(layout: str, expected: bytes) -> None:
    assert show_format(layout)(RECORD) == expected


def test_a_null_has_the_size_minus_one() -> None:
    assert show_format("%K %S|%k|%s", b"NULL")(EMPTY) == b"-1 -1|NULL|NULL"
    assert show_format("%k|%s")(EMPTY) == b"|"
    assert show_format("%K %S")(Consumed("t", 0, Record(0, 0, b"", b"", []))) == b"0 0"


@pytest.mark.parametrize("layout", ["%z", "%", "%s %", "%é"])
def test_what_is_no_token_is_told(layout: str) -> None:
    with pytest.raises(ClientError, match="is no token of a format"):
        parse_format(layout)


@given(st.binary())
def test_any_bytes_can_be_unescaped(text: bytes) -> None:
    assert len(unescape(text)) <= len(text)


def test_a_line_is_split_at_what_stands_between_the_tokens() -> None:
    read = read_format("%p %T %h %k=%s\n")
    assert read(b"2 99 a=1,b k=v=w") == Outgoing(b"k", b"v=w", (("a", b"1"), ("b", None)), 99, 2)
    assert read_format("%k\\t%s", b"NULL")(b"NULL\tNULL") == Outgoing(None, None)
    assert read_format("%h|%s", b"NULL")(b"a=NULL,b=,c|x") == Outgoing(
        None, b"x", (("a", None), ("b", b""), ("c", None))
    )
    assert read_format("<%s>")(b"<x>") == Outgoing(None, b"x")


@pytest.mark.parametrize(
    ("layout", "line", "told"),
    [
        ("%k:%s", b"no colon", "expected ':' in it"),
        ("<%s>", b"x>", "expected '<' in it"),
        ("<%s>", b"x<y>", "expected '<' in it"),
        ("<%s>", b"<x>y", "more than the format has"),
        ("%T %s", b"soon x", "%T is a number"),
        ("%T %s", b"9223372036854775808 x", "%T is a number"),
        ("%p %s", b"-1 x", "%p is a number"),
        ("%h %s", b"=1 x", "expected NAME=VALUE"),
    ],
)
def test_a_line_of_another_kind_is_told(layout: str, line: bytes, told: str) -> None:
    with pytest.raises(ClientError, match=told):
        read_format(layout)(line)


@pytest.mark.parametrize("layout", ["%k%s", "%o %s", "%s %s", "%K:%s"])
def test_a_format_that_cannot_be_read_is_told(layout: str) -> None:
    with pytest.raises(ClientError):
        read_format(layout)


BYTES = st.one_of(st.none(), st.binary(max_size=20), st.text(max_size=9).map(str.encode))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@given(BYTES, BYTES, st.lists(st.tuples(NAMES, BYTES), max_size=3), st.integers(0, 2**62))
def test_json_comes_back_as_it_was(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], at: int
) -> None:
    line = show_json(Consumed("t", 5, Record(9, at, key, value, headers)))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_json(line) == Outgoing(key, value, tuple(headers), at, 5)
    told = json.loads(line)
    assert (told["topic"], told["offset"]) == ("t", 9)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"{}", Outgoing()),
        (b'{"value": {"a": [1, 2]}}', Outgoing(None, b'{"a":[1,2]}')),
        (b'{"value": 5, "key": true}', Outgoing(b"true", b"5")),
        (b'{"headers": {"a": "1", "b": null}}', Outgoing(headers=(("a", b"1"), ("b", None)))),
        (b'{"value": "\\ud800"}', Outgoing(None, b"\xed\xa0\x80")),
        (b'{"headers": {"\\ud800": "1"}}', Outgoing(headers=((b"\xed\xa0\x80", b"1"),))),
        (b'{"key": {"base64": "/w=="}, "offset": 3, "topic": "x"}', Outgoing(b"\xff")),
    ],
)
def test_json_of_other_programs(line: bytes, expected: Outgoing) -> None:
    assert read_json(line) == expected


@pytest.mark.parametrize(
    "line",
    [b"", b"x", b"[]", b"5", b'{"vlaue": 1}', b'{"timestamp": "x"}', b'{"timestamp": -1}']
    + [b'{"timestamp": true}', b'{"partition": 2147483648}', b'{"headers": 5}', b"[" * 100_000]
    + [b'{"headers": [["a"]]}', b'{"headers": [[null, "a"]]}', b'{"value": {"base64": "*"}}']
    + [b'{"value": {"base64": 5}}', b"\xff\xfe", b'{"timestamp": 1e400}'],
)
def test_what_is_no_record_is_told(line: bytes) -> None:
    with pytest.raises(ClientError) as caught:
        read_json(line)
    assert "\n" not in str(caught.value)


def test_lines_come_in_pieces() -> None:
    read = read_line(b"=")
    got = list(batches(iter([b"a=", b"1\nb=2\r", b"\nno", b" key"]), read, Outgoing()))
    assert got == [
        [Outgoing(b"a", b"1")],
        [Outgoing(b"b", b"2")],
        [Outgoing(None, b"no key")],
    ]
    assert list(batches(iter([b"\n\n"]), read, Outgoing())) == [[Outgoing(None, b"")] * 2]
    many = list(batches(iter([b"x\n" * (BATCH_RECORDS + 1)]), read, Outgoing()))
    assert [len(batch) for batch in many] == [BATCH_RECORDS, 1]


def test_what_the_command_line_says_is_for_records_that_do_not() -> None:
    defaults = Outgoing(b"k", None, (("h", b"1"),), 5, 2)
    (batch,) = batches(
        iter([b'{"value": "a"}\n{"key": "x", "timestamp": 9}\n']), read_json, defaults
    )
    assert batch == [
        Outgoing(b"k", b"a", (("h", b"1"),), 5, 2),
        Outgoing(b"x", None, (("h", b"1"),), 9, 2),
    ]


def test_a_faulty_line_is_named() -> None:
    with pytest.raises(ClientError, match="line 3: no JSON"):
        list(batches(iter([b"{}\n{}\nx\n"]), read_json, Outgoing()))


def test_a_line_without_an_end_is_bounded() -> None:
    def endless() -> object:
        while True:
            yield bytes(1 << 20)

    with pytest.raises(ClientError, match=f"line 1: longer than {LINE_BYTES_MAX}"):
        list(batches(endless(), read_line(None), Outgoing()))  # type: ignore[arg-type]


def test_backslash_and_a_digit_that_is_not_octal() -> None:
    assert unescape(b"\\8\\9\\7") == b"89\x07"


def test_a_format_string_of_any_bytes() -> None:
    assert parse_format(os.fsdecode(b"\xff%s\xfe")) == [b"\xff", "s", b"\xfe"]


@pytest.mark.parametrize("headers", [b'[["\\ud800", "x"]]', b'{"\\ud800": "x"}'])
def test_a_header_that_is_no_unicode_is_kept_as_bytes(headers: bytes) -> None:
    record = read_json(b'{"headers": ' + headers + b"}")
    assert record.headers == ((b"\xed\xa0\x80", b"x"),)

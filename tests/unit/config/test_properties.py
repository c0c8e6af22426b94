"""Java properties files: continuations, escapes, separators, comments, and writing them."""

from __future__ import annotations

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.config import ConfigError
from kwire.config.properties import format_properties, parse_properties, read_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a\t=  b  ", {"a": "b  "}),
        ("# comment\n! other\n\n  a=1", {"a": "1"}),
        ("a=1\\\n   ,2\\\n,3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\u00e9\\t\\n\\x", {"a": "é\t\nx"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x\\\n# not a comment", {"a": "x# not a comment"}),
        ("=b", {"": "b"}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_malformed_unicode_escape_is_one_line() -> None:
    with pytest.raises(ConfigError, match="malformed"):
        parse_properties("a=\\u12")


def test_missing_file_is_one_line(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties: No such file"):
        read_properties(str(tmp_path / "nowhere.properties"))


def test_file_is_latin_1(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"a=\xe9\n")
    assert read_properties(str(path)) == {"a": "é"}


def test_a_byte_order_mark_is_skipped(tmp_path: pathlib.Path) -> None:
    """It was taken for letters of the first name, which nobody knew then."""
    path = tmp_path / "server.properties"
    path.write_bytes(b"\xef\xbb\xbfnode.id=1\nlog.dirs=x\n")
    assert read_properties(str(path)) == {"node.id": "1", "log.dirs": "x"}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told(tmp_path: pathlib.Path, encoding: str) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes("\ufeffnode.id=1\n".encode(encoding))
    with pytest.raises(ConfigError, match="UTF-16"):
        read_properties(str(path))


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.text(st.characters(exclude_categories=["Cs"])),
    )
)
def test_what_is_written_is_read_back(settings: dict[str, str]) -> None:
    assert parse_properties(format_properties(settings, ["a comment"])) == settings

"""Places that are no lake, found before Spark starts."""

from __future__ import annotations

import pathlib

import pytest

from kwire.spark import archive
from kwire.spark.job import parser_of


@pytest.mark.parametrize("name", ["topic.t", "topic.t/_delta_log"])
def test_a_file_where_a_table_should_be_is_found_before_any_work(
    tmp_path: pathlib.Path, name: str
) -> None:
    """Spark found it, with the name of a Java exception."""
    arguments = ["-b", "127.0.0.1:9092", "--topics", "t", "--lake", str(tmp_path)]
    options = parser_of(archive.JOB).parse_args(arguments)
    archive.check(options)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    with pytest.raises(NotADirectoryError) as found:
        archive.check(options)
    assert name in str(found.value)

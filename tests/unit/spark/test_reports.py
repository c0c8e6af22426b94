"""What profile, audit and mirror report."""

from __future__ import annotations

import json
import pathlib
import re

from kwire.spark import mirror
from kwire.spark.lag_history import decode_commit
from kwire.spark.profiles import recommend, step_of
from kwire.spark.report import Report, bars, heat_map, lines, moment_text


def test_recommended_partitions() -> None:
    rows = [{"bytes": 300}, {"bytes": 100}]
    found = recommend(rows, peak_mb=45.0, target_mb=10.0, hottest=0.01)
    assert (found["recommended"], found["skew"]) == (9, 1.5)
    assert recommend(rows, peak_mb=45.0, target_mb=10.0, hottest=0.3)["recommended"] == 3
    assert recommend(rows, peak_mb=0.0, target_mb=10.0, hottest=0.9)["recommended"] == 1
    assert step_of(0, 60_000) == 1
    assert step_of(0, 365 * 86_400_000) == 2 * 86_400


def test_commits_of_the_offsets_topic() -> None:
    from kwire.protocol import messages as m
    from kwire.protocol.coordinator_records import encode_key, encode_value

    key = m.OffsetCommitKey(group="g", topic="t", partition=2)
    value = m.OffsetCommitValue(offset=7, metadata="", commit_timestamp=120_001)
    data = encode_key(key)
    assert decode_commit(data, encode_value(value, 3)) == ("g", "t", 2, 7, 2)
    assert decode_commit(data, None) is None
    assert decode_commit(data, b"\0\x63") is None
    assert decode_commit(b"\0\2\0\1g", b"x") is None
    assert decode_commit(b"", b"") is None


def test_reports_escape_what_they_show() -> None:
    report = Report("<title>")
    report.table(("a<b",), [("<script>",), (None,), (1234567,), (0.5,)])
    report.plot(bars(["<p>"], [("s", [1.0])]))
    report.plot(lines(["x", "y"], [("s", [1.0, None])]))
    report.plot(heat_map(["h"], ["<row>"], {(0, 0): False}))
    text = report.text()
    assert "<script>" not in text
    assert "<p>" not in text
    assert "1,234,567" in text
    assert bars([], [("s", [])]).startswith("<svg")
    assert lines([], []).startswith("<svg")
    # A single point is no line: it would not be seen.
    assert lines(["x"], [("s", [1.0])]).count("<circle") == 1
    assert "<circle" not in lines([str(i) for i in range(99)], [("s", [1.0] * 99)])


def test_moments_of_any_time() -> None:
    """A report of records with times in microseconds ended the job."""
    assert moment_text(1_760_000_000) == "2025-10-09 08:53:20"
    assert moment_text(1_760_000_000, "minutes") == "2025-10-09 08:53"
    assert moment_text(-1) == "1969-12-31 23:59:59"
    for seconds in (1_760_000_000_000, -(10**12), 1 << 62):
        assert moment_text(seconds) == f"{seconds} s"


def test_a_lag_report_is_whole_at_any_time(tmp_path: pathlib.Path) -> None:
    """It was emptied and written anew: an alarm that reads it then saw half of it."""
    path = tmp_path / "lag.json"
    mirror.write_report(str(path), {"lag": 1})
    with path.open() as reader:
        mirror.write_report(str(path), {"lag": 2})
        assert json.load(reader) == {"lag": 1}
    assert json.loads(path.read_text()) == {"lag": 2}
    assert list(tmp_path.iterdir()) == [path]


def test_a_grid_of_many_hours_can_be_seen() -> None:
    """From a month on its cells were narrower than nothing, and a year of them was a file that no
    browser opens."""
    hours = [f"h{at}" for at in range(20_000)]
    good = {(0, at): at != 12_345 for at in range(len(hours))}
    svg = heat_map(hours, ["row", "empty"], good)
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([^"]*)"', svg)]
    assert min(widths) > 1
    assert len(widths) < 400
    colours = re.findall(r'fill="(#[0-9a-f]*)"', svg)
    assert colours.count("#c44e52") == 1
    assert colours.count("#5a9e6f") == colours.count("#eee") - 1
    assert "h0 to h19999" in svg

"""What profile, audit and mirror report."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import types
from typing import Any

import pytest

from kwire.spark import audit, mirror, profiles
from kwire.spark.lag_history import decode_commit
from kwire.spark.profiles import recommend, step_of
from kwire.spark.report import (
    PAGE_PX,
    Report,
    bars,
    heat_map,
    lines,
    moment_text,
    power_text,
    rate_text,
    size_text,
    span_text,
)

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
LONG = "a-very-long-topic-name-of-some-team.orders.v1.compacted-and-replicated"


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


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [(0, "0 bytes"), (999, "999 bytes"), (999.7, "1 KB"), (1000, "1 KB"), (1234, "1.23 KB")]
    + [(12_345_678, "12.3 MB"), (987_654_321, "988 MB"), (999_950_000, "1 GB"), (5e21, "5,000 EB")]
    + [(0.5, "0.5 bytes"), (-2_000, "-2 KB"), (9_876_543_210_123, "9.88 TB")],
)
def test_bytes_have_the_unit_that_fits(size_bytes: float, expected: str) -> None:
    """All were bytes or MB: 9,876,543,210,123 and 0.0000023."""
    assert size_text(size_bytes).replace("\u00a0", " ") == expected


def test_other_figures_have_their_units() -> None:
    assert rate_text(93_123_000).replace("\u00a0", " ") == "93.1 MB/s"
    told = [power_text(power).replace("\u00a0", " ") for power in (0, 9, 10, 24, 40)]
    assert told == ["1 bytes", "512 bytes", "1 KiB", "16 MiB", "1 TiB"]
    assert [span_text(seconds) for seconds in (1, 60, 900, 7200, 2 * 86_400, 90, 0)] == [
        "1 s", "1 min", "15 min", "2 h", "2 d", "90 s", "0 s",
    ]  # fmt: skip


def test_a_label_that_is_too_long_keeps_its_partition() -> None:
    """All partitions of a topic with a long name had the same label, cut off on both sides."""
    plot = bars([f"{LONG}-{partition}" for partition in range(12)], [("s", [1.0] * 12)])
    shown = re.findall(r'text-anchor="end">([^<]+)<', plot)
    assert len(dict.fromkeys(shown)) == 12
    assert shown[11].endswith("-11")


def test_a_legend_takes_the_rows_that_it_needs() -> None:
    """The third name was outside of the picture."""
    names = [f"{LONG}-{at}" for at in range(5)]
    for plot in (
        bars(["x"], [(name, [1.0]) for name in names]),
        lines(["x"], [(name, [1.0]) for name in names]),
    ):
        places = [float(x) for x in re.findall(r'<rect x="([\d.]+)" y="\d+" width="12"', plot)]
        assert len(places) == 5
        assert max(places) < 700


def profile_page(path: pathlib.Path) -> None:
    figures = {"records": 123_456_789, "bytes": 9_876_543_210_123, "partitions": 12, "skew": 1.5}
    topic = {**figures, "recommended": 36, "why": "a reason " * 9, "peak_mb_per_s": 93.1}
    partition = {
        **figures, "topic": LONG, "partition": 11, "largest": 1 << 20, "without_key": 123_456,
        "tombstones": 12_345, "keys": 1_234_567, "sizes": [123, 123_456],
    }  # fmt: skip
    key = {**figures, "topic": LONG, "partition": 11, "key": b"k" * 300, "share": 0.123}
    profile: Any = types.SimpleNamespace(
        options=types.SimpleNamespace(side=types.SimpleNamespace(name=f"topic:{LONG}"), lag=True),
        topics=lambda: {LONG: topic},
        partitions=[partition] * 3,
        keys=[key] * 3,
        sizes=[{"topic": LONG, "power": power, "records": 9} for power in range(5, 20)],
        rates=[{"topic": LONG, "at": at * 60, "bytes": at * 10**9} for at in range(99)],
        step_s=60,
        codecs=[{"codec": "zstd", "ratio": 3.5}],
        lag=[{"group": LONG, "topic": LONG, "minute": at, "lag": at} for at in range(9)],
    )
    profiles.write_report(str(path), profile)


def audit_page(path: pathlib.Path) -> None:
    rows = [
        {"topic": LONG, "partition": 11, "hour": f"2026-01-31 {at:02}:00", "same": False}
        | {f"left_{name}": 1_234_567_890 for name in audit.FIGURES}
        | {f"right_{name}": 1_234_567_891 for name in audit.FIGURES}
        for at in range(24)
    ]
    rows[0].update(dict.fromkeys([f"right_{name}" for name in audit.FIGURES]))
    sides: Any = [types.SimpleNamespace(name=f"{kind}:{LONG}") for kind in ("topic", "archive")]
    sums = {"records": 5, "bytes": 9_876_543_210}
    shown = [{"topic": LONG, "offset": 3, "key": "k" * 300, "left": "v" * 300, "right": None}]
    audit.write_report(str(path), (sides[0], sides[1]), rows, shown, (sums, sums))


def test_reports_tell_sizes_in_fitting_units(tmp_path: pathlib.Path) -> None:
    profile_page(tmp_path / "profile.html")
    audit_page(tmp_path / "audit.html")
    text = (tmp_path / "profile.html").read_text().replace("\u00a0", " ")
    for shown in ("9.88 TB", "1.05 MB", "93.1 MB/s", "below 64 KiB", "by 1 min", "123 bytes"):
        assert shown in text, shown
    assert "9,876,543,210,123" not in text
    text = (tmp_path / "audit.html").read_text().replace("\u00a0", " ")
    assert "9.88 GB" in text
    assert "1,234,567,890 ≠ 1,234,567,891" in text, "bytes that differ beyond the digits shown"
    assert "1.23 GB ≠ nothing" in text


@pytest.mark.skipif(BROWSER is None, reason="no browser here")
@pytest.mark.parametrize("make", [profile_page, audit_page])
def test_a_report_fits_a_window_of_1100_pixels(make: Any, tmp_path: pathlib.Path) -> None:
    """Tables were wider than the page and cut off."""
    page = tmp_path / "report.html"
    make(page)
    measure = (
        "document.title = Math.ceil(Math.max(...[...document.querySelectorAll('*')]"
        ".map(x => x.getBoundingClientRect().right)))"
    )
    page.write_text(page.read_text() + f"<script>{measure}</script>")
    assert BROWSER is not None
    window = (f"--window-size={PAGE_PX},900", "--hide-scrollbars", f"--user-data-dir={tmp_path}/b")
    told = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", *window, "--dump-dom", str(page)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    found = re.search(r"<title>(\d+)</title>", told)
    assert found is not None
    assert int(found[1]) <= PAGE_PX

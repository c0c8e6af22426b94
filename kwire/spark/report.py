"""HTML reports with plots, in one file that needs nothing else: SVG made here."""

from __future__ import annotations

import datetime
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

WIDTH = 1000
"""Of plots; with its margins a page fits a window of PAGE_PX."""
PAGE_PX = 1100
BAR_PX = 18
LABEL_PX = 300
GAP_PX = 8
VALUE_PX = 110
ROWS_MAX = 200
COLUMNS_MAX = 160
NAME_MAX = 48
LETTER_PX = 7
LEGEND_PX = 20
DOTS_MAX = 40
COLUMNS_LARGE = 8
WORD_MAX = 20
SIZE_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")
BINARY_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
NO_BREAK = "\u00a0"
COLOURS = ("#3b6ea5", "#d98032", "#5a9e6f", "#a05195", "#8c8c8c", "#c44e52")
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1020px;color:#222;padding:0 1rem}
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;max-width:100%}table.large{font-size:12px}
td,th{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}
table.large td,table.large th{padding:.2rem .35rem}th{font-weight:600}
td.w{overflow-wrap:anywhere}td.n{white-space:nowrap}td:first-child,th:first-child{text-align:left}
p{overflow-wrap:anywhere}.bad{color:#b3261e;font-weight:600}.good{color:#2e7d32}
svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#333}p.note{color:#666}
"""


def moment_text(seconds: int, until: str = "seconds") -> str:
    """Seconds since 1970 as a date and time (UTC), or as they are where no calendar reaches."""
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"
    return moment.replace(tzinfo=None).isoformat(" ", until)


class Report:
    """A page, section by section."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = [f"<h1>{html.escape(title)}</h1>"]

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def paragraph(self, text: str, kind: str = "") -> None:
        """`kind`: good, bad or note."""
        name = f' class="{kind}"' if kind else ""
        self._parts.append(f"<p{name}>{html.escape(text)}</p>")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table of at most ROWS_MAX rows; says how many it leaves out."""
        found = list(rows)
        head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
        body = "".join(
            "<tr>" + "".join(map(_table_cell, row)) + "</tr>" for row in found[:ROWS_MAX]
        )
        kind = ' class="large"' if len(columns) > COLUMNS_LARGE else ""
        self._parts.append(f"<table{kind}><tr>{head}</tr>{body}</table>")
        if len(found) > ROWS_MAX:
            self.paragraph(f"{len(found) - ROWS_MAX} more rows are not shown.", "note")

    def plot(self, svg: str) -> None:
        self._parts.append(svg)

    def text(self) -> str:
        """The whole page."""
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{html.escape(self._title)}</title><style>{_STYLE}</style></head><body>"
            + "\n".join(self._parts)
            + "</body></html>\n"
        )

    def write(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text())


def size_text(size_bytes: float) -> str:
    """Bytes in the unit that fits, to three digits: `9.88 GB`."""
    return _in_units(size_bytes, SIZE_UNITS, 1000)


def power_text(power: int) -> str:
    """2 to the `power` bytes: `64 KiB`."""
    return _in_units(2**power, BINARY_UNITS, 1024)


def rate_text(bytes_per_s: float) -> str:
    """`9.88 MB/s`."""
    return f"{size_text(bytes_per_s)}/s"


def _in_units(value: float, units: Sequence[str], step: int) -> str:
    at = 0
    # What rounds to a whole next unit is one.
    while abs(value) >= step * 0.9995 and at < len(units) - 1:
        value, at = value / step, at + 1
    shown = f"{value:,.0f}" if abs(value) >= 99.95 or value == int(value) else f"{value:.3g}"
    return f"{shown}{NO_BREAK}{units[at]}"


def span_text(seconds: int) -> str:
    """Seconds in the largest unit that is whole: `15 min`."""
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def _table_cell(value: Any) -> str:
    """Short texts stay in one line, long words are broken wherever it has to be."""
    text = cell(value)
    is_long = any(len(word) > WORD_MAX for word in text.split())
    kind = " class=n" if len(text) <= WORD_MAX else " class=w" if is_long else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def _shortened(text: str, width_px: float) -> str:
    """A label that is too long loses its middle: its end says which partition it is."""
    letters = int(width_px / LETTER_PX)
    if len(text) <= letters:
        return text
    tail = letters // 2
    return text[: letters - tail - 1] + "…" + text[-tail:]


def _label_width(labels: Sequence[str]) -> int:
    return min(LABEL_PX, max((len(label) for label in labels), default=0) * LETTER_PX)


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)


def _svg(height: float, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img">{body}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _legend(names: Sequence[str]) -> tuple[str, int]:
    """The names with their colours, and how high that is: in rows where one is too short."""
    parts, x, y = [], 10, 4
    for at, name in enumerate(names):
        shown = _shortened(name, NAME_MAX * LETTER_PX)
        width = 41 + LETTER_PX * len(shown)
        if x > 10 and x + width > WIDTH:
            x, y = 10, y + LEGEND_PX
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{COLOURS[at % 6]}"/>')
        parts.append(_text(x + 17, y + 11, shown))
        x += width
    return "".join(parts), y + LEGEND_PX


def bars(
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    text: Callable[[float], str] | None = None,
) -> str:
    """Horizontal bars: for each label one of each series (name, values), with `text(value)`."""
    labels = labels[:ROWS_MAX]
    told = text or cell
    top = max((value for _, values in series for value in values), default=0) or 1
    step = BAR_PX * len(series) + 6
    legend, begin = _legend([name for name, _ in series])
    parts = [legend]
    left = _label_width(labels) + GAP_PX
    for at, label in enumerate(labels):
        y = begin + 2 + at * step
        parts.append(_text(left - GAP_PX, y + step / 2, _shortened(label, LABEL_PX), "end"))
        for number, (_, values) in enumerate(series):
            width = (WIDTH - left - VALUE_PX) * values[at] / top
            place = y + number * BAR_PX
            parts.append(
                f'<rect x="{left}" y="{place:.1f}" width="{width:.1f}" height="{BAR_PX - 3}" '
                f'fill="{COLOURS[number % 6]}"/>'
                + _text(left + 6 + width, place + 12, told(values[at]))
            )
    return _svg(begin + 8 + step * len(labels), "".join(parts))


def lines(
    xs: Sequence[str],
    series: Sequence[tuple[str, Sequence[float | None]]],
    height: int = 240,
    text: Callable[[float], str] | None = None,
) -> str:
    """Lines over the same x labels, `text(value)` at the side; None leaves a gap."""
    told = text or cell
    top = max((v for _, values in series for v in values if v is not None), default=0) or 1
    legend, begin = _legend([name for name, _ in series])
    height += begin - LEGEND_PX
    left, right, bottom = 90, WIDTH - 20, height - 30
    high = bottom - begin - 6
    step = (right - left) / max(1, len(xs) - 1)
    parts = [legend]
    for part in range(5):
        y = bottom - high * part / 4
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#ddd" fill="none"/>')
        parts.append(_text(left - 6, y + 4, told(top * part / 4), "end"))
    for number, (_, values) in enumerate(series):
        path, pen = "", "M"
        colour = COLOURS[number % 6]
        for at, value in enumerate(values):
            if value is None:
                pen = "M"
                continue
            x, y = left + at * step, bottom - high * value / top
            path += f"{pen}{x:.1f} {y:.1f}"
            pen = "L"
            if len(values) <= DOTS_MAX:
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
    for at in sorted({0, len(xs) // 2, len(xs) - 1}) if xs else []:
        anchor = "start" if at == 0 else "end" if at == len(xs) - 1 else "middle"
        parts.append(_text(left + at * step, height - 10, xs[at], anchor))
    return _svg(height, "".join(parts))


def heat_map(
    columns: Sequence[str], rows: Sequence[str], good: Mapping[tuple[int, int], bool]
) -> str:
    """A grid of cells, `good[row, column]`: green or red, grey where there is nothing.

    Columns that are too many stand together: one that is red makes them red.
    """
    rows = rows[:ROWS_MAX]
    together = max(1, -(-len(columns) // COLUMNS_MAX))
    count = -(-len(columns) // together)
    shown: dict[tuple[int, int], bool] = {}
    for (y, x), is_good in good.items():
        cell = (y, x // together)
        shown[cell] = shown.get(cell, True) and is_good
    left = _label_width(rows) + GAP_PX
    width = min(24.0, (WIDTH - left - GAP_PX) / max(1, count))
    parts = []
    for y, label in enumerate(rows):
        parts.append(_text(left - GAP_PX, y * BAR_PX + 14, _shortened(label, LABEL_PX), "end"))
        for x in range(count):
            found = shown.get((y, x))
            colour = "#eee" if found is None else "#5a9e6f" if found else "#c44e52"
            parts.append(
                f'<rect x="{left + x * width:.1f}" y="{y * BAR_PX + 1}" width="{width - 1:.1f}" '
                f'height="{BAR_PX - 2}" fill="{colour}"/>'
            )
    if columns:
        span = columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
        parts.append(_text(left, len(rows) * BAR_PX + 16, span))
    return _svg(len(rows) * BAR_PX + 26, "".join(parts))

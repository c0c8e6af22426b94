"""HTML reports with plots, in one file that needs nothing else: SVG made here."""

from __future__ import annotations

import datetime
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

WIDTH = 860
BAR_PX = 18
ROWS_MAX = 200
COLUMNS_MAX = 160
NAME_MAX = 48
LETTER_PX = 7
DOTS_MAX = 40
COLOURS = ("#3b6ea5", "#d98032", "#5a9e6f", "#a05195", "#8c8c8c", "#c44e52")
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:960px;color:#222;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse}
td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:right}th{font-weight:600}
td{white-space:nowrap}td:first-child,th:first-child{text-align:left}div.wide{overflow-x:auto}.bad{color:#b3261e;font-weight:600}.good{color:#2e7d32}
svg text{font:12px system-ui,sans-serif;fill:#333}p.note{color:#666}
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
            "<tr>" + "".join(f"<td>{html.escape(cell(value))}</td>" for value in row) + "</tr>"
            for row in found[:ROWS_MAX]
        )
        table = f"<table><tr>{head}</tr>{body}</table>"
        self._parts.append(f'<div class="wide">{table}</div>')
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


def _legend(names: Sequence[str]) -> str:
    parts, x = [], 10
    for at, name in enumerate(names):
        shown = name if len(name) <= NAME_MAX else name[: NAME_MAX - 1] + "…"
        parts.append(f'<rect x="{x}" y="4" width="12" height="12" fill="{COLOURS[at % 6]}"/>')
        parts.append(_text(x + 17, 15, shown))
        x += 41 + LETTER_PX * len(shown)
    return "".join(parts)


def bars(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Horizontal bars: for each label one of each series (name, values)."""
    labels = labels[:ROWS_MAX]
    top = max((value for _, values in series for value in values), default=0) or 1
    step = BAR_PX * len(series) + 6
    parts = [_legend([name for name, _ in series])]
    for at, label in enumerate(labels):
        y = 26 + at * step
        parts.append(_text(200, y + step / 2, label[:32], "end"))
        for number, (_, values) in enumerate(series):
            width = (WIDTH - 330) * values[at] / top
            place = y + number * BAR_PX
            parts.append(
                f'<rect x="208" y="{place:.1f}" width="{width:.1f}" height="{BAR_PX - 3}" '
                f'fill="{COLOURS[number % 6]}"/>' + _text(214 + width, place + 12, cell(values[at]))
            )
    return _svg(32 + step * len(labels), "".join(parts))


def lines(
    xs: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]], height: int = 240
) -> str:
    """Lines over the same x labels; None leaves a gap."""
    top = max((v for _, values in series for v in values if v is not None), default=0) or 1
    left, right, bottom = 90, WIDTH - 20, height - 30
    step = (right - left) / max(1, len(xs) - 1)
    parts = [_legend([name for name, _ in series])]
    for part in range(5):
        y = bottom - (bottom - 30) * part / 4
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#ddd" fill="none"/>')
        parts.append(_text(left - 6, y + 4, cell(top * part / 4), "end"))
    for number, (_, values) in enumerate(series):
        path, pen = "", "M"
        colour = COLOURS[number % 6]
        for at, value in enumerate(values):
            if value is None:
                pen = "M"
                continue
            x, y = left + at * step, bottom - (bottom - 30) * value / top
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
    width = min(24.0, (WIDTH - 220) / max(1, count))
    parts = []
    for y, label in enumerate(rows):
        parts.append(_text(200, y * BAR_PX + 14, label[:32], "end"))
        for x in range(count):
            found = shown.get((y, x))
            colour = "#eee" if found is None else "#5a9e6f" if found else "#c44e52"
            parts.append(
                f'<rect x="{208 + x * width:.1f}" y="{y * BAR_PX + 1}" width="{width - 1:.1f}" '
                f'height="{BAR_PX - 2}" fill="{colour}"/>'
            )
    if columns:
        span = columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
        parts.append(_text(208, len(rows) * BAR_PX + 16, span))
    return _svg(len(rows) * BAR_PX + 26, "".join(parts))

"""Blocks of samples as OpenMetrics, or as the older text of Prometheus; in the HTTP process.

The lines are written here: prometheus-client takes twenty times as long for the samples of 10,000
partitions (ADR 30). Its parser reads what is written, in the tests.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TypeAlias, cast

from kwire.metrics.blocks import END, Block, Row
from kwire.metrics.families import COUNTER, QUANTILES, Family, families
from kwire.metrics.lag import LagHistory
from kwire.metrics.rates import Rates
from kwire.metrics.request_rows import REQUESTS, blocks_of
from kwire.telemetry.series import CREATED, HISTOGRAM, SUMMARY, SeriesFamily

QUANTILES_SHOWN = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
TOTAL, COUNT = "_total", "_count"
DISTRIBUTIONS = (HISTOGRAM, SUMMARY)
COMMITTED, LAG, LAG_SECONDS = (
    "kafka_consumergroup_committed_offset",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_seconds",
)
DIRECTORY_OFFLINE = "kafka_log_logmanager_logdirectoryoffline"
DIRECTORY_BYTES, DIRECTORY_FREE = "kwire_log_directory_bytes", "kwire_log_directory_free_bytes"

LagRow: TypeAlias = "tuple[str, str, str, int | None, int | None, float | None, int | None]"
"""Group, topic, partition; its offset, how far it is behind, the age of the partition's newest
record, where the partition ends."""
NO_ENDS: Mapping[tuple[str, str], int] = MappingProxyType({})
Lines: TypeAlias = "dict[str, list[str]]"
"""The samples of each metric, by its name."""


class Exposition:
    """Makes the answers to scrapes. It remembers what lag in seconds needs."""

    def __init__(self) -> None:
        self._history = LagHistory()
        self._rates = Rates()

    def text(
        self,
        blocks: Iterable[Block],
        now_s: float,
        *,
        as_openmetrics: bool,
        ends: Mapping[tuple[str, str], int] = NO_ENDS,
    ) -> str:
        """All samples with what they are, in the order of `data/families.tsv`; without the line
        that ends OpenMetrics. `ends` are those that the broker did not tell (`without_end`)."""
        lines: Lines = {}
        for block in _unpacked(blocks):
            if block.names[-1] == END:
                block = self._with_seconds(block, now_s, ends)
            _add(lines, block)
            for rates in self._rates.of(block, now_s):
                _add(lines, rates)
            if DIRECTORY_OFFLINE in block.names:
                _add(lines, _disks(block))
        return "".join(_written(lines, as_openmetrics))

    def _with_seconds(
        self, block: Block, now_s: float, ends: Mapping[tuple[str, str], int]
    ) -> Block:
        """Lag of groups with the lag in seconds in the place of the partitions' ends."""
        rows: list[Row] = []
        for row in block.rows:
            group, topic, partition, offset, lag, age_s, end = cast("LagRow", row)
            seconds = None
            if end is None and offset is not None:
                end = ends.get((topic, partition))
                lag = None if end is None else max(0, end - offset)
            if end is not None and offset is not None:
                self._history.saw(topic, partition, end, now_s)
                seconds = self._history.seconds(topic, partition, offset, now_s, age_s or 0.0)
            rows.append((group, topic, partition, offset, lag, seconds))
        return Block(block.labels, (COMMITTED, LAG, LAG_SECONDS), rows)


def without_end(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    """(topic, partition) where a group has committed and the broker has no replica."""
    for block in blocks:
        if block.names[-1] == END:
            for row in block.rows:
                _, topic, partition, offset, _, _, end = cast("LagRow", row)
                if end is None and offset is not None:
                    yield topic, partition


def _unpacked(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, in the place of what APIs were asked those that are made of all of it."""
    asked: list[Block] = []
    for block in blocks:
        if block.names[0] == REQUESTS:
            asked.append(block)
        else:
            yield block
    yield from blocks_of(asked)


def _written(lines: Lines, as_openmetrics: bool) -> Iterator[str]:
    """Metric by metric."""
    for name, head in _heads(as_openmetrics).items():
        samples = lines.get(name)
        if samples is not None:
            yield head
            yield from samples


@cache
def _heads(as_openmetrics: bool) -> dict[str, str]:
    """What stands above the samples, by the names of metrics in their order. OpenMetrics names a
    counter without its suffix, and has no untyped ones."""
    heads = {}
    for name, family in families().items():
        shown = name.removesuffix(TOTAL) if as_openmetrics else name
        kind = COUNTER if family.kind == COUNTER else "gauge"
        heads[name] = f"# HELP {shown} {family.help}\n# TYPE {shown} {kind}\n"
        if family.kind == QUANTILES:
            count, kind = name + COUNT, "unknown" if as_openmetrics else "untyped"
            heads[count] = f"# HELP {count} How many: {family.help}\n# TYPE {count} {kind}\n"
    return heads


def client_text(families: Iterable[SeriesFamily], *, as_openmetrics: bool) -> Iterator[str]:
    """What clients have pushed. OpenMetrics names a counter without its suffix, and keeps that name
    and one that ends with `_created` for it: where something else has them the counter is told as
    one of no known type."""
    families = list(families)
    taken = {x.name + sample.ending for x in families for sample in x.samples}
    for family in families:
        if family.kind in DISTRIBUTIONS:
            taken |= {family.name, family.name + CREATED}
    for family in families:
        name, kind = family.name, family.kind
        shown = name
        if as_openmetrics and kind == COUNTER:
            shown = name.removesuffix(TOTAL)
            kept = {shown, shown + CREATED}
            if taken.isdisjoint(kept):
                taken |= kept
            else:
                shown, kind = name, "unknown"
        yield f"# HELP {shown} Sent by clients.\n# TYPE {shown} {kind}\n"
        for ending, labels, value in family.samples:
            (told,) = _labels(tuple(dict(labels)), [tuple(dict(labels).values())])
            yield f"{name}{ending}{told} {_number(value)}\n"


def _number(value: int | float) -> str:
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _add(lines: Lines, block: Block) -> None:
    """The samples of a block; metrics that are not known are left out."""
    rows, width, known = block.rows, len(block.labels), families()
    labels = _labels(block.labels, rows)
    for at, name in enumerate(block.names, width):
        family = known.get(name)
        if family is None:
            continue
        if family.kind == QUANTILES:
            _add_quantiles(lines, family, labels, cast("list[list[float]]", [r[at] for r in rows]))
            continue
        lines.setdefault(name, []).extend(
            [f"{name}{x} {row[at]}\n" for x, row in zip(labels, rows) if row[at] is not None]
        )


def _labels(names: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """`{topic="orders",partition="0"}` of each row, empty without labels."""
    width = len(names)
    if not width:
        return [""] * len(rows)
    each = ",".join([f'{name}="%s"' for name in names])
    return [f"{{{each % tuple([_escaped(str(x)) for x in row[:width]])}}}" for row in rows]


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def _add_quantiles(
    lines: Lines, family: Family, labels: list[str], values: list[list[float]]
) -> None:
    name = family.name
    samples, counts = lines.setdefault(name, []), lines.setdefault(name + COUNT, [])
    for of_row, (count, *found) in zip(labels, values):
        counts.append(f"{name}{COUNT}{of_row} {count}\n")
        start = f"{name}{of_row[:-1]},quantile=" if of_row else f"{name}{{quantile="
        for quantile, value in zip(QUANTILES_SHOWN, found):
            samples.append(f'{start}"{quantile}"}} {value}\n')


def _disks(block: Block) -> Block:
    """What the disks of log directories have left."""
    rows = []
    for path in dict.fromkeys(str(row[0]) for row in block.rows):
        try:
            usage = shutil.disk_usage(path)
        except OSError:
            continue  # it is offline
        rows.append((path, usage.total, usage.free))
    return Block(block.labels, (DIRECTORY_BYTES, DIRECTORY_FREE), rows)

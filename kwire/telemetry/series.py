"""What clients have pushed, as time series by client: added up, named and bounded.

A count that a client sends as what was added since its last push is added up here; it begins at 0
with the process that shows it, as Prometheus expects of counters. Names are those that
OpenTelemetry gives to Prometheus: `org.apache.kafka.producer.record.send.total` of a count is
`org_apache_kafka_producer_record_send_total`. One that does not begin with `org_apache_kafka_` gets
`client_` in front: no client can show something as the broker's. Histograms and summaries are
shown by three names, as Prometheus has it: NAME_bucket or NAME, NAME_sum and NAME_count.

A series is shown until its client has not sent it for three of its intervals, five minutes at
least: what a client no longer has (a partition that is another one's now), or is no longer asked
for, is no value of today. A client is shown for as long as it sends anything. Of
more than `CLIENTS_MAX` those that have been silent for longest go; what is beyond the other bounds
is counted and left out.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from kwire.protocol.errors import KafkaError
from kwire.protocol.records.compression import decompress
from kwire.protocol.records.header import Codec
from kwire.telemetry.distributions import Distribution
from kwire.telemetry.kept_pushes import Push
from kwire.telemetry.otlp import Point, read_metrics

CLIENTS_MAX = 1000
SERIES_OF_CLIENT_MAX = 1000
SERIES_MAX = 50_000
NAMES_MAX = 1000
UNPACKED_BYTES_MAX = 8 << 20
OWN = "org_apache_kafka_"
OTHER = "client_"
TOTAL = "_total"
BUCKET, SUM, COUNT, CREATED = "_bucket", "_sum", "_count", "_created"
PARTS = (BUCKET, SUM, COUNT, CREATED)
"""What OpenMetrics takes of the names that begin as a histogram's or a summary's."""
COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"
CLIENT_LABELS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
)
Labels: TypeAlias = "tuple[tuple[str, str], ...]"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


class SeriesKey(NamedTuple):
    """A time series of one client: name and labels beside the client's, in the order of names."""

    name: str
    labels: Labels


class Sample(NamedTuple):
    """One line."""

    ending: str
    labels: Labels
    value: int | float


class SeriesFamily(NamedTuple):
    """All series of one name, with the labels of their clients; a sample of a histogram or a
    summary is one of several parts, whose name ends with `ending`."""

    name: str
    kind: str
    samples: list[Sample]


class ClientSeries:
    """The series of one client."""

    __slots__ = ("labels", "lines", "shown_ms", "until_ms", "values")

    def __init__(self, push: Push) -> None:
        self.labels = tuple(
            zip(
                CLIENT_LABELS,
                (push.instance_id, push.client_id, push.software_name, push.software_version),
                strict=True,
            )
        )
        self.shown_ms = 0
        self.lines = 0
        self.values: dict[SeriesKey, int | float | Distribution] = {}
        self.until_ms: dict[SeriesKey, int] = {}
        """Until when each of them is shown."""


class AllSeries:
    """See the module."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, ClientSeries] = OrderedDict()
        self._kinds: dict[str, str] = {}
        """By name: of what kind it is. The first client that sends it decides."""
        self._taken: set[str] = set()
        """What they are shown by, which nothing else is."""
        self._count = 0
        self.unreadable = 0
        """Pushes that are no metrics."""
        self.left_out = 0
        """Points that cannot be shown, or are beyond the bounds."""

    def __len__(self) -> int:
        return len(self._clients)

    def add(self, push: Push) -> None:
        """Take over what was pushed."""
        try:
            data = decompress(Codec(push.codec), push.payload, UNPACKED_BYTES_MAX)
            metrics = read_metrics(bytes(data))
        except (KafkaError, ValueError):
            self.unreadable += 1
            return
        self.left_out += metrics.left_out
        client = self._clients.get(push.instance_id)
        if client is None:
            client = self._clients[push.instance_id] = ClientSeries(push)
            if len(self._clients) > CLIENTS_MAX:
                self._forget(next(iter(self._clients)))
        self._clients.move_to_end(push.instance_id)
        client.shown_ms = max(client.shown_ms, push.shown_ms)
        for point in metrics.points:
            if not self._add(client, point, push.shown_ms):
                self.left_out += 1

    def _add(self, client: ClientSeries, point: Point, until_ms: int) -> bool:
        """Whether there was room, and the point fits to what is known under its name."""
        key = SeriesKey(_name(point), _labels(point))
        kind = _kind(point)
        if self._kinds.get(key.name, kind) != kind:
            return False
        before, value = client.values.get(key), point.value
        if not isinstance(value, Distribution) and point.only_grows and not 0 <= value < math.inf:
            return False
        room = _lines(value) - _lines(before)
        if room > 0 and (
            client.lines + room > SERIES_OF_CLIENT_MAX or self._count + room > SERIES_MAX
        ):
            return False
        if key.name not in self._kinds:
            shown_by = _shown_by(key.name, kind)
            if len(self._kinds) >= NAMES_MAX or not self._taken.isdisjoint(shown_by):
                return False
            self._kinds[key.name] = kind
            self._taken |= shown_by
        client.lines += room
        self._count += room
        client.values[key] = _added(before, value) if point.is_delta else value
        client.until_ms[key] = max(client.until_ms.get(key, 0), until_ms)
        return True

    def expire(self, now_ms: int) -> None:
        """Forget clients that have been silent for long, and series that they do not send."""
        for instance_id, client in list(self._clients.items()):
            if client.shown_ms <= now_ms:
                self._forget(instance_id)
                continue
            for key in [key for key, until_ms in client.until_ms.items() if until_ms <= now_ms]:
                del client.until_ms[key]
                lines = _lines(client.values.pop(key))
                client.lines -= lines
                self._count -= lines

    def _forget(self, instance_id: str) -> None:
        client = self._clients.pop(instance_id)
        self._count -= client.lines
        if not self._clients:
            self._kinds.clear()
            self._taken.clear()

    def families(self) -> Iterator[SeriesFamily]:
        """What is shown, in the order of the names."""
        found: dict[str, list[Sample]] = {}
        for client in self._clients.values():
            for key, value in client.values.items():
                samples = _samples(client.labels + key.labels, value)
                found.setdefault(key.name, []).extend(samples)
        for name in sorted(found):
            yield SeriesFamily(name, self._kinds[name], found[name])


def _shown_by(name: str, kind: str) -> set[str]:
    """The names that are its own."""
    return {name, *(name + part for part in PARTS)} if kind in (HISTOGRAM, SUMMARY) else {name}


def _kind(point: Point) -> str:
    if isinstance(point.value, Distribution):
        return SUMMARY if point.value.is_summary else HISTOGRAM
    return COUNTER if point.only_grows else GAUGE


def _lines(value: int | float | Distribution | None) -> int:
    """How many lines show it."""
    if isinstance(value, Distribution):
        return len(value.edges) + 2
    return 0 if value is None else 1


def _added(
    before: int | float | Distribution | None, value: int | float | Distribution
) -> int | float | Distribution:
    if isinstance(before, Distribution) and isinstance(value, Distribution):
        return before.plus(value)
    if before is None or isinstance(before, Distribution) or isinstance(value, Distribution):
        return value
    return before + value


def _samples(labels: Labels, value: int | float | Distribution) -> Iterator[Sample]:
    if not isinstance(value, Distribution):
        yield Sample("", labels, value)
        return
    label, ending = ("quantile", "") if value.is_summary else ("le", BUCKET)
    for edge, one in zip(value.edges, value.values, strict=True):
        told = "+Inf" if edge == math.inf else repr(float(edge))
        yield Sample(ending, (*labels, (label, told)), one)
    yield Sample(COUNT, labels, value.number)
    yield Sample(SUM, labels, value.total)


def _name(point: Point) -> str:
    name = _NOT_IN_NAMES.sub("_", point.name)
    if not name.startswith(OWN):
        name = OTHER + name
    return name if not point.only_grows or name.endswith(TOTAL) else name + TOTAL


def _labels(point: Point) -> Labels:
    """Without those that name the client; a name that comes twice has its last value."""
    found = {}
    for key, value in point.attributes:
        name = _NOT_IN_NAMES.sub("_", key)
        if name[0].isdigit() or name.startswith("__"):
            name = f"attribute_{name}"
        if name not in CLIENT_LABELS and name not in ("le", "quantile"):
            found[name] = value
    return tuple(sorted(found.items()))

"""What an API was asked, on its way to the HTTP process: that sorts the times and names the codes.

The broker makes a row of the counts as they are (`row_of`), the process blocks of all rows
(`blocks_of`). A row of a block that is called `REQUESTS`:

    names           those that it counts for, with commas: `FetchConsumer,Fetch`
    versions        how many requests were answered, by version
    errors          code, how often, the next code, how often, ...
    throttled       how often clients were made to wait, for how many ms in all
    throttle_ms     for how many those were made to wait that are among the last `RECENT_MAX`
    recent          `RequestCounts.recent_bytes` in base64

Of an API that is asked a thousand times a second the quantiles alone took the loop 0.6 ms, half of
a whole scrape.
"""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator

from kwire.metrics.blocks import Block, Row, Value
from kwire.metrics.quantiles import quantiles
from kwire.protocol.errors import ErrorCode
from kwire.server.request_counts import OF_EACH, RECENT_MAX, RequestCounts

REQUESTS = "_requests"
PREFIX = "kafka_network_requestmetrics_"
NS_PER_MS = 1e6


def row_of(names: Iterable[str], counts: RequestCounts) -> Row:
    """What is told of the requests of one API."""
    errors: list[float] = []
    for code, count in enumerate(counts.errors):
        if count:
            errors += (code, count)
    return (
        ",".join(names),
        list(counts.by_version),
        errors,
        list(counts.throttled_ms),
        list(counts.recent_throttles_ms()),
        b64encode(counts.recent_bytes).decode(),
    )


class _Asked:
    """The sum of the rows of one name."""

    def __init__(self) -> None:
        self.versions: Counter[int] = Counter()
        self.errors: Counter[int] = Counter()
        self.throttled = self.throttled_ms = 0
        self.throttle_ms: list[float] = []
        self.recent = array("q")

    def add(self, row: Row) -> None:
        versions, errors, throttled, throttle_ms = (x for x in row if isinstance(x, list))
        self.versions.update({at: int(count) for at, count in enumerate(versions) if count})
        pairs = zip(errors[::2], errors[1::2], strict=True)
        self.errors.update({int(code): int(count) for code, count in pairs})
        times, all_ms = map(int, throttled)
        self.throttled += times
        self.throttled_ms += all_ms
        self.throttle_ms += throttle_ms
        self.recent.frombytes(b64decode(str(row[-1])))

    def blocks(self, name: str) -> Iterator[Block]:
        yield Block(
            ("request", "version"),
            (f"{PREFIX}requests_total",),
            [(name, str(version), count) for version, count in sorted(self.versions.items())],
        )
        if not name.startswith("Fetch") or name == "Fetch":  # as Apache Kafka has it
            yield Block(
                ("request", "error"),
                (f"{PREFIX}errors_total",),
                [(name, _error_name(code), count) for code, count in sorted(self.errors.items())],
            )
        total = sum(self.versions.values())
        not_throttled = min(total, RECENT_MAX) - len(self.throttle_ms)
        local_ns, remote_ns, sizes = (self.recent[at::OF_EACH] for at in range(OF_EACH))
        total_ns = [a + b for a, b in zip(local_ns, remote_ns, strict=True)]
        never = quantiles(total, ())
        values: dict[str, Value] = {
            f"{PREFIX}totaltimems": quantiles(total, total_ns, NS_PER_MS),
            f"{PREFIX}localtimems": quantiles(total, local_ns, NS_PER_MS),
            f"{PREFIX}throttletimems": quantiles(total, self.throttle_ms + [0] * not_throttled),
            f"{PREFIX}remotetimems": quantiles(total, remote_ns, NS_PER_MS),
            f"{PREFIX}requestbytes": quantiles(total, sizes),
            f"{PREFIX}requestqueuetimems": never,
            f"{PREFIX}responsequeuetimems": never,
            f"{PREFIX}responsesendtimems": never,
            "kwire_requests_throttled_total": self.throttled,
            "kwire_requests_throttled_ms_total": self.throttled_ms,
        }
        yield Block(("request",), tuple(values), [(name, *values.values())])


def blocks_of(rows: Iterable[Row]) -> Iterator[Block]:
    """By API: requests by version, answers by error code, times and sizes."""
    asked: dict[str, _Asked] = {}
    for row in rows:
        for name in str(row[0]).split(","):
            asked.setdefault(name, _Asked()).add(row)
    for name, found in asked.items():
        yield from found.blocks(name)


def _error_name(code: int) -> str:
    if code > max(ErrorCode):
        code = -1  # it is the last place of the list
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)

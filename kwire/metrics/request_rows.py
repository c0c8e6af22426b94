"""What an API was asked, on its way to the HTTP process: that sorts the times and names the codes.

The broker makes a block of the counts as they are (`block_of`), the process samples of all of them
(`blocks_of`). Such a block is called `REQUESTS` and has one row:

    names           those that it counts for, with commas: `FetchConsumer,Fetch`
    versions        a version, how many requests of it were answered, the next version, ...
    errors          code, how often, the next code, how often, ...
    throttled       how often clients were made to wait, for how many ms in all
    throttle_ms     for how many those were made to wait that are among the last `RECENT_MAX`
    plain           how many requests took a plain road

and `RequestCounts.recent_bytes` behind it, as they are: of an API that is asked a thousand times a
second the quantiles alone took the loop 0.6 ms, and their times in base64 0.1 ms.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import add

from kwire.metrics.blocks import Block, Row, Value, encoded
from kwire.metrics.quantiles import quantiles
from kwire.protocol.errors import ErrorCode
from kwire.server.request_counts import OF_EACH, RECENT_MAX, RequestCounts

REQUESTS = "_requests"
PREFIX = "kafka_network_requestmetrics_"
NS_PER_MS = 1e6


def block_of(names: Iterable[str], counts: RequestCounts) -> bytes:
    """What is told of the requests of one API."""
    row: Row = (
        ",".join(names),
        _pairs(counts.by_version),
        _pairs(counts.errors),
        list(counts.throttled_ms),
        list(counts.recent_throttles_ms()),
        [counts.plain],
    )
    return encoded((), (REQUESTS,), [row], counts.recent_bytes)


def _pairs(counts: Sequence[int]) -> list[float]:
    """The places that are not 0: where, how many, where, ..."""
    found: list[float] = []
    for at in compress(range(len(counts)), counts):
        found += (at, counts[at])
    return found


class _Asked:
    """The sum of rows, as blocks."""

    def __init__(self, told: Iterable[Block]) -> None:
        self._versions: Counter[int] = Counter()
        self._errors: Counter[int] = Counter()
        throttled = throttled_ms = plain = 0
        throttle_ms: list[float] = []
        recent = array("q")
        for block in told:
            lists = (x for x in block.rows[0] if isinstance(x, list))
            versions, errors, waits, waits_ms, (taken,) = lists
            for counter, pairs in ((self._versions, versions), (self._errors, errors)):
                for at, count in zip(pairs[::2], pairs[1::2], strict=True):
                    counter[int(at)] += int(count)
            times, all_ms = map(int, waits)
            throttled += times
            throttled_ms += all_ms
            throttle_ms += waits_ms
            plain += int(taken)
            recent.frombytes(block.data)
        total = sum(self._versions.values())
        throttle_ms += [0] * (min(total, RECENT_MAX) - len(throttle_ms))
        local_ns, remote_ns, sizes = (recent[at::OF_EACH].tolist() for at in range(OF_EACH))
        never, in_handler = quantiles(total, ()), quantiles(total, local_ns, NS_PER_MS)
        in_all = in_handler
        if any(remote_ns):
            in_all = quantiles(total, list(map(add, local_ns, remote_ns)), NS_PER_MS)
        self._values: dict[str, Value] = {
            f"{PREFIX}totaltimems": in_all,
            f"{PREFIX}localtimems": in_handler,
            f"{PREFIX}throttletimems": quantiles(total, throttle_ms),
            f"{PREFIX}remotetimems": quantiles(total, remote_ns, NS_PER_MS),
            f"{PREFIX}requestbytes": quantiles(total, sizes),
            f"{PREFIX}requestqueuetimems": never,
            f"{PREFIX}responsequeuetimems": never,
            f"{PREFIX}responsesendtimems": never,
            "kwire_requests_throttled_total": throttled,
            "kwire_requests_throttled_ms_total": throttled_ms,
            "kwire_requests_plain_total": plain,
        }

    def blocks(self, name: str) -> Iterator[Block]:
        """The samples of this name."""
        yield Block(
            ("request", "version"),
            (f"{PREFIX}requests_total",),
            [(name, str(version), count) for version, count in sorted(self._versions.items())],
        )
        if not name.startswith("Fetch") or name == "Fetch":  # as Apache Kafka has it
            yield Block(
                ("request", "error"),
                (f"{PREFIX}errors_total",),
                [(name, _error_name(code), count) for code, count in sorted(self._errors.items())],
            )
        yield Block(("request",), tuple(self._values), [(name, *self._values.values())])


def blocks_of(told: Sequence[Block]) -> Iterator[Block]:
    """By API: requests by version, answers by error code, times and sizes."""
    rows: dict[str, tuple[int, ...]] = {}
    for at, block in enumerate(told):
        for name in str(block.rows[0][0]).split(","):
            rows[name] = (*rows.get(name, ()), at)
    sums: dict[tuple[int, ...], _Asked] = {}  # several names have the same rows
    for name, places in rows.items():
        found = sums.get(places)
        if found is None:
            found = sums[places] = _Asked([told[at] for at in places])
        yield from found.blocks(name)


LAST_CODE = max(ErrorCode)


def _error_name(code: int) -> str:
    if code > LAST_CODE:
        code = -1  # it is the last place of the list
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)

"""What clients and other nodes have asked, and the connections they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kwire.metrics.blocks import Value, encoded, in_blocks, single
from kwire.protocol.errors import ErrorCode
from kwire.server.listener import Listener
from kwire.server.request_counts import RECENT_MAX, RequestCounts

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
NS_PER_MS = 1e6
PROCESSOR = "0"
"""There is one loop where Apache Kafka has several processors a listener."""
PREFIX = "kafka_network_requestmetrics_"
SOCKETS = "kafka_server_socket_server_metrics_"
PRINCIPALS = (
    "kwire_principal_received_bytes_total",
    "kwire_principal_sent_bytes_total",
    "kwire_principal_stored_bytes_total",
)
CONNECTIONS_A_TURN = 100


AUTHENTICATIONS = {
    "successful_authentication": "successful",
    "failed_authentication": "failed",
    "successful_reauthentication": "successful_again",
    "failed_reauthentication": "failed_again",
}
"""The middle of the metric's name -> attribute of AuthenticationCounts."""


def quantiles(count: int, values: Sequence[float], unit: float = 1) -> list[float]:
    """[count, quantiles of the values]; all 0 without any, as Apache Kafka shows it."""
    if not values:
        return [count, *(0 for _ in QUANTILES)]
    ordered = sorted(values)
    last = len(ordered) - 1
    return [count, *(round(ordered[round(q * last)] / unit, 4) for q in QUANTILES)]


def read_requests(listeners: Iterable[Listener]) -> Iterator[bytes]:
    """By API: requests by version, answers by error code, times and sizes."""
    dispatchers = list(dict.fromkeys(listener.dispatcher for listener in listeners))
    by_name: dict[str, list[RequestCounts]] = {}
    for dispatcher in dispatchers:
        for name, counts in dispatcher.counts():
            followers = [] if counts.followers is None else [counts.followers]
            if name == "Fetch":
                by_name.setdefault("FetchConsumer", []).append(counts)
                by_name.setdefault("FetchFollower", []).extend(followers)
            by_name.setdefault(name, []).extend((counts, *followers))
    for name, several in by_name.items():
        if any(counts.total for counts in several):
            yield from _read_api(name, several)


def _read_api(name: str, several: Sequence[RequestCounts]) -> Iterator[bytes]:
    versions: Counter[int] = Counter()
    errors: Counter[int] = Counter()
    recent: list[tuple[int, int, int]] = []
    throttled = [0, 0]
    for counts in several:
        versions.update({at: count for at, count in enumerate(counts.by_version) if count})
        errors.update({at: count for at, count in enumerate(counts.errors) if count})
        recent += counts.recent
        throttled[0] += counts.throttled_ms[0]
        throttled[1] += counts.throttled_ms[1]
    yield encoded(
        ("request", "version"),
        (f"{PREFIX}requests_total",),
        [(name, str(version), count) for version, count in sorted(versions.items())],
    )
    if not name.startswith("Fetch") or name == "Fetch":  # as Apache Kafka has it
        yield encoded(
            ("request", "error"),
            (f"{PREFIX}errors_total",),
            [(name, _error_name(code), count) for code, count in sorted(errors.items())],
        )
    total = sum(versions.values())
    never = quantiles(total, ())
    values: dict[str, Value] = {
        f"{PREFIX}totaltimems": quantiles(total, [x[0] + x[1] for x in recent], NS_PER_MS),
        f"{PREFIX}localtimems": quantiles(total, [x[0] for x in recent], NS_PER_MS),
    }
    yield encoded(("request",), tuple(values), [(name, *values.values())])
    throttle_ms = [ms for counts in several for ms in counts.recent_throttles_ms()]
    not_throttled = min(total, RECENT_MAX) - len(throttle_ms)
    values = {
        f"{PREFIX}throttletimems": quantiles(total, throttle_ms + [0] * not_throttled),
        f"{PREFIX}remotetimems": quantiles(total, [x[1] for x in recent], NS_PER_MS),
        f"{PREFIX}requestbytes": quantiles(total, [x[2] for x in recent]),
        f"{PREFIX}requestqueuetimems": never,
        f"{PREFIX}responsequeuetimems": never,
        f"{PREFIX}responsesendtimems": never,
        "kwire_requests_throttled_total": throttled[0],
        "kwire_requests_throttled_ms_total": throttled[1],
    }
    yield encoded(("request",), tuple(values), [(name, *values.values())])


def _error_name(code: int) -> str:
    if code > max(ErrorCode):
        code = -1  # it is the last place of the list
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def read_connections(listeners: Iterable[Listener]) -> Iterator[bytes]:
    """Connections by listener, and by what the clients say that they are."""
    listeners = list(listeners)
    yield single(
        {
            "kafka_network_socketserver_expiredconnectionskilledcount": sum(
                listener.idle_closed_total for listener in listeners
            )
        }
    )
    for listener in listeners:
        values: dict[str, Value] = {
            f"{SOCKETS}connection_count": len(listener.connections),
            f"{SOCKETS}connection_creation_total": listener.opened_total,
            f"{SOCKETS}connection_close_total": listener.closed_total,
            f"{SOCKETS}expired_connections_killed_count": listener.idle_closed_total,
        }
        authentications = listener.authentications
        for name, attribute in AUTHENTICATIONS.items():
            values[f"{SOCKETS}{name}_total"] = getattr(authentications, attribute, 0)
        labels = ("listener", "networkProcessor")
        yield encoded(labels, tuple(values), [(listener.name, PROCESSOR, *values.values())])
        yield from _read_software(listener)
        yield from _read_principals(listener)


def _read_software(listener: Listener) -> Iterator[bytes]:
    found: Counter[tuple[str, str]] = Counter()
    for at, connection in enumerate(list(listener.connections)):
        found[connection.client_software_name, connection.client_software_version] += 1
        if at % 500 == 499:
            yield b""  # the loop may do other work
    yield from in_blocks(
        ("clientSoftwareName", "clientSoftwareVersion", "listener", "networkProcessor"),
        (f"{SOCKETS}connections",),
        ((name, version, listener.name, PROCESSOR, n) for (name, version), n in found.items()),
    )


def _read_principals(listener: Listener) -> Iterator[bytes]:
    """Bytes by principal, and over all connections of the listener."""
    sums: dict[str, list[int]] = {}
    for at, found in enumerate(listener.traffic.moved(list(listener.connections))):
        if found is not None:
            sums = found
        elif at % CONNECTIONS_A_TURN == CONNECTIONS_A_TURN - 1:
            yield b""
    received = sum(values[0] for values in sums.values())
    sent = sum(values[1] for values in sums.values())
    yield encoded(
        ("listener", "networkProcessor"),
        (f"{SOCKETS}incoming_byte_total", f"{SOCKETS}outgoing_byte_total"),
        [(listener.name, PROCESSOR, received, sent)],
    )
    yield from in_blocks(
        ("principal", "listener"),
        PRINCIPALS,
        ((principal, listener.name, *values) for principal, values in sums.items()),
    )

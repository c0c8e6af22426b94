"""What clients and other nodes have asked, and the connections they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kwire.metrics.blocks import Value, encoded, in_blocks, label, single
from kwire.metrics.request_rows import block_of
from kwire.server.listener import Listener
from kwire.server.request_counts import RequestCounts

PROCESSOR = "0"
"""There is one loop where Apache Kafka has several processors a listener."""
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


def read_requests(listeners: Iterable[Listener]) -> Iterator[bytes]:
    """By API what it was asked, each a row of its own: they are long."""
    dispatchers = dict.fromkeys(listener.dispatcher for listener in listeners)
    for dispatcher in dispatchers:
        for name, counts in dispatcher.counts():
            names = ("FetchConsumer", name) if name == "Fetch" else (name,)
            yield from _read_api(names, counts)
            if counts.followers is not None:
                yield from _read_api(("FetchFollower", name), counts.followers)


def _read_api(names: Sequence[str], counts: RequestCounts) -> Iterator[bytes]:
    if any(counts.by_version):
        yield block_of(names, counts)


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
        (
            (label(name), label(version), listener.name, PROCESSOR, count)
            for (name, version), count in found.items()
        ),
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
        ((label(principal), listener.name, *values) for principal, values in sums.items()),
    )

"""What clients have pushed of themselves: how much of it came, on its way to be shown."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.metrics.blocks import Block, single
from kwire.telemetry.instances import ClientInstances
from kwire.telemetry.kept_pushes import KeptPushes
from kwire.telemetry.series import AllSeries

PREFIX = "kafka_server_client_metrics_"
OWN = "kwire_client_telemetry_"


def read_client_pushes(
    instances: ClientInstances | None, pushes: KeptPushes | None, now_ms: int
) -> Iterator[bytes]:
    """In the broker; None before the first client has asked."""
    if instances is not None:
        instances.expire(now_ms)
    yield single(
        {
            f"{PREFIX}instance_count": 0 if instances is None else len(instances),
            f"{PREFIX}unknown_subscription_request_count": 0
            if instances is None
            else instances.unknown_subscriptions,
            f"{OWN}throttled_total": 0 if instances is None else instances.throttled,
            f"{OWN}pushes_total": 0 if pushes is None else pushes.total,
            f"{OWN}dropped_total": 0 if pushes is None else pushes.dropped,
        }
    )


def block_of_series(series: AllSeries) -> Block:
    """In the HTTP process."""
    names = (f"{OWN}clients", f"{OWN}unreadable_total", f"{OWN}left_out_total")
    return Block((), names, [(len(series), series.unreadable, series.left_out)])

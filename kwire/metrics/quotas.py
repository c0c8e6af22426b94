"""What clients with a quota move, and how long they were made to wait: by user, client id or both,
as their quota names them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from kwire.metrics.blocks import Row, in_blocks, label
from kwire.quota.client_quotas import (
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
)

RESOURCES = {
    PRODUCER_BYTE_RATE: ("Produce", "kafka_server_quota_byte_rate"),
    CONSUMER_BYTE_RATE: ("Fetch", "kafka_server_quota_byte_rate"),
    REQUEST_PERCENTAGE: ("Request", "kafka_server_quota_request_time"),
}
THROTTLED = ("kwire_quota_throttled_total", "kwire_quota_throttled_ms_total")
SHOWN_MAX = 10_000


def read_quotas(quotas: ClientQuotas, now_ms: int) -> Iterator[bytes]:
    """Rates per second: bytes, and percent of the time of a processor."""
    found: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for at, (kind, sensor) in enumerate(islice(list(quotas.sensors()), SHOWN_MAX)):
        resource, name = RESOURCES[kind]
        user, client_id = sensor.tags
        tags = {"resource": resource}
        if user:
            tags["user"] = label(user)
        if client_id:
            tags["clientId"] = label(client_id)
        values = (round(sensor.measure(now_ms), 3), sensor.throttled_count, sensor.throttled_ms)
        found.setdefault((tuple(tags), name), []).append((*tags.values(), *values))
        if at % 100 == 99:
            yield b""
    for (labels, name), rows in found.items():
        yield from in_blocks(labels, (name, *THROTTLED), rows)

"""Rates of clients that have quotas, by what their quota names."""

from __future__ import annotations

from kwire.metrics.blocks import decoded
from kwire.metrics.quotas import read_quotas
from kwire.quota.client_quotas import PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, ClientQuotas


def test_rates_and_waits_are_shown_by_user_and_client() -> None:
    quotas = ClientQuotas()
    assert quotas.changed((("user", "ann"),), {PRODUCER_BYTE_RATE: 100.0}) == []
    assert quotas.changed((("client-id", "app"),), {REQUEST_PERCENTAGE: 50.0}) == []
    rates = quotas.client("User:ann", "app", 0)
    assert rates is not None
    assert rates.producer is not None
    wait_ms = rates.producer.record_and_wait_ms(5000, 1000)
    rates.producer.throttled(wait_ms)
    blocks = list(decoded(b"".join(read_quotas(quotas, 1000))))
    shown = {block.names[0]: (block.labels, block.rows) for block in blocks}
    labels, rows = shown["kafka_server_quota_byte_rate"]
    assert labels == ["resource", "user"]
    assert rows[0][:2] == ["Produce", "ann"]
    assert rows[0][3:] == [1, wait_ms]
    assert shown["kafka_server_quota_request_time"][0] == ["resource", "clientId"]

"""Client instances are forgotten and bounded; what Kafka answers is in the recorded dialogue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.telemetry import instances
from kwire.telemetry.instances import FORGOTTEN_MS, ClientInstances, Sender
from kwire.telemetry.kept_pushes import KeptPushes

HOUR_MS = 3_600_000


class Connection:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def add_close_callback(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)


def own_id(number: int) -> bytes:
    return b"instance" + number.to_bytes(8, "big")


def made() -> ClientInstances:
    return ClientInstances(lambda: 1000, lambda: own_id(0), KeptPushes())


def get(found: ClientInstances, number: int, now_ms: int, by: Connection | None = None) -> int:
    sender = Sender(by, "client", "software", "1", "127.0.0.1", 1)
    request = m.GetTelemetrySubscriptionsRequest(client_instance_id=own_id(number))
    return found.get(request, sender, now_ms).push_interval_ms


def test_an_instance_goes_with_the_connection_that_made_it_known() -> None:
    found, one, other = made(), Connection(), Connection()
    get(found, 1, 0, one)
    get(found, 2, 0, one)
    get(found, 3, 0, other)
    assert (len(found), len(one.callbacks), len(other.callbacks)) == (3, 1, 1)
    one.callbacks[0]()  # as in Kafka, a connection stands for its last instance
    assert len(found) == 2
    other.callbacks[0]()
    assert len(found) == 1


def test_an_instance_that_is_silent_is_made_anew() -> None:
    found = made()
    found.subscribe({"s": {"interval.ms": "1000", "metrics": "*"}})
    assert get(found, 1, 0) == 1000
    with pytest.raises(KafkaError) as refused:
        get(found, 1, 999)
    assert refused.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    get(found, 2, 999)
    found.expire(999 + FORGOTTEN_MS - 1)
    assert len(found) == 2  # the refused request counts as well
    found.expire(999 + FORGOTTEN_MS)
    assert len(found) == 0
    get(found, 1, 999 + FORGOTTEN_MS)


def test_instances_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "INSTANCES_MAX", 3)
    found = made()
    for number in range(1, 10):
        get(found, number, 0)
    assert len(found) == 3
    get(found, 1, 0)


def test_stored_configs_that_cannot_be_used_ask_nothing_of_nobody() -> None:
    found = made()
    found.subscribe(
        {
            "a": {"interval.ms": "never", "metrics": "m"},
            "b": {"interval.ms": "1000", "match": "client_id=["},
            "c": {"interval.ms": "1000", "match": "client_name=client"},
        }
    )
    assert get(found, 1, 0) == 300_000

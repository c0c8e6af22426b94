"""Partitions that refuse appends, as scrapes show them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.metrics.blocks import decoded
from kwire.metrics.storage import read_refusing
from kwire.protocol.errors import ErrorCode, KafkaError


def test_what_refuses_for_good_is_shown_beside_what_waits_for_room() -> None:
    """Health named both, and the metrics only the latter."""
    lost = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a sync has failed")
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No space left")

    def log(index: int, error: KafkaError | None, *, is_short: bool = False) -> SimpleNamespace:
        return SimpleNamespace(topic="t", partition=index, error=error, is_short=is_short)

    refused = {("t", 1): SimpleNamespace(reason="No space left")}
    logs: Any = SimpleNamespace(
        shortages=SimpleNamespace(refused=refused),
        logs=lambda: [log(0, None), log(1, full, is_short=True), log(2, lost)],
    )
    blocks = list(decoded(b"".join(read_refusing(logs))))
    assert [block.rows for block in blocks] == [
        [["t", "1", "No space left", 1], ["t", "2", "a sync has failed", 1]],
        [[2]],
    ]

"""Pauses between attempts to ask another broker: those of Apache Kafka 4.4 for share groups."""

from __future__ import annotations

ATTEMPTS_MAX = 5
PAUSE_MS = 1_000
PAUSE_MAX_MS = 30_000
JITTER = 0.2


def pause_ms(attempts: int, drawn: float) -> float:
    """How long to wait after so many attempts: 2, 4, 8, ... seconds, a fifth more or less by a
    number from 0 to 1."""
    return min(PAUSE_MS << attempts, PAUSE_MAX_MS) * (1 - JITTER + 2 * JITTER * drawn)

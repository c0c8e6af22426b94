"""Faults put into the code on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def applied(name: str | None) -> Iterator[None]:
    """Run with one mutation."""
    yield

"""Who sent a request to a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Caller(NamedTuple):
    """Who sent a request. `client_host` is in Java's notation, "/127.0.0.1".

    `describes(topic)` says whether it may describe a topic; without it everybody may.
    """

    api_version: int
    client_id: str
    client_host: str
    describes: Callable[[str], bool] | None = None

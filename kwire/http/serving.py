"""What a purpose gets to serve with."""

from __future__ import annotations

from typing import NamedTuple

from kwire.http.local import LocalBroker


class Serving(NamedTuple):
    """`broker` answers what only it knows; `bootstrap` is its address for a client."""

    broker: LocalBroker
    bootstrap: str

"""What a purpose gets to serve with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.http.local import LocalBroker


class Serving(NamedTuple):
    """`broker` answers what only it knows; `anonymous` is its address for a client that does not
    log in, empty where there is none; `schemes` are those that callers have to log in by, none
    where nobody has to; `node_id` is the broker's."""

    broker: LocalBroker
    anonymous: str
    schemes: Sequence[str] = ()
    registry: tuple[str, int] = ("_schemas", 3)
    """The topic of schemas, and how often it is kept where it is made."""
    node_id: int = -1

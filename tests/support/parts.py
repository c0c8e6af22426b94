"""The parts of a node that a test needs, without a node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.server.parts import Parts


def made_parts(**given: Any) -> Parts:
    """`Parts` of what is given; all others are None. `image` and `cluster_id` make metadata."""
    metadata = {name: given.pop(name) for name in ("image", "cluster_id") if name in given}
    if metadata:
        given["metadata"] = SimpleNamespace(**metadata)
    fields: dict[str, Any] = dict.fromkeys(Parts.__slots__)
    return Parts(**fields | {"broker_id": 1, "listener_name": "PLAINTEXT"} | given)

"""Which settings a listener has for itself: `listener.name.LISTENER.` in front of the name.

Those of SASL may also be one mechanism's: `listener.name.LISTENER.MECHANISM.` (KIP-103). Of any
other setting the prefix has no effect, and a warning says so.
"""

from __future__ import annotations

LISTENER_PREFIX = "listener.name."

PER_LISTENER = (
    "connections.max.reauth.ms",
    "max.connection.creation.rate",
    "max.connections",
)
"""And all settings of SASL."""


def is_per_listener(name: str) -> bool:
    """Whether a listener reads `name` for itself."""
    return name in PER_LISTENER or name.startswith("sasl.")


def names_of_listener(listener: str, name: str, mechanism: str = "") -> tuple[str, ...]:
    """Where a listener's own value of `name` stands, the first that is set counts."""
    prefix = f"{LISTENER_PREFIX}{listener.lower()}."
    if mechanism:
        return f"{prefix}{mechanism.lower()}.{name}", f"{prefix}{name}"
    return (f"{prefix}{name}",)

"""The settings of one listener: `listener.name.x.NAME` where that is set, else `NAME`, as they are
now. Source: KIP-103; measured on Apache Kafka 4.4."""

from __future__ import annotations

from typing import Protocol

from kwire.config.values import TypedValue

PREFIX = "listener.name."
READ_PER_LISTENER = (
    "connections.max.reauth.ms",
    "max.connection.creation.rate",
    "max.connections",
)
PREFIXES_READ_PER_LISTENER = ("sasl.", "ssl.")
"""Settings that a listener may have for itself; of any other the one of all listeners counts."""


def is_read_per_listener(name: str) -> bool:
    """Whether a setting may be one listener's own; `name` is without a prefix."""
    return name in READ_PER_LISTENER or name.startswith(PREFIXES_READ_PER_LISTENER)


def prefix_of(listener_name: str) -> str:
    """What stands in front of a listener's own settings."""
    return f"{PREFIX}{listener_name.lower()}."


def names_of_listener(listener_name: str, name: str, mechanism: str = "") -> tuple[str, ...]:
    """Where a listener's own value of `name` may stand, the first that is set counts: those of
    SASL may be one mechanism's."""
    prefix = prefix_of(listener_name)
    if mechanism:
        return f"{prefix}{mechanism.lower()}.{name}", prefix + name
    return (prefix + name,)


class Settings(Protocol):
    """A node's settings, static or dynamic ones."""

    def is_set(self, name: str) -> bool:
        """Whether somebody has set it, so that it can be used."""
        ...

    def __getitem__(self, name: str) -> TypedValue: ...


class ListenerSettings:
    """See the module; call it with a name for the typed value."""

    def __init__(self, settings: Settings, listener_name: str) -> None:
        self._settings = settings
        self.prefix = prefix_of(listener_name)

    def has_own(self, name: str) -> bool:
        """Whether it is set with this listener's prefix."""
        return self._settings.is_set(self.prefix + name)

    def __call__(self, name: str) -> TypedValue:
        own = self.prefix + name
        return self._settings[own if self._settings.is_set(own) else name]

"""How many connections a listener holds: in all, and from one address.

`max.connections`, `max.connections.per.ip` and `max.connections.per.ip.overrides`
(`address:limit,...`) may change while the broker runs; a changed limit counts for connections
that come afterwards, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.checks import address_limits
from kwire.config.dynamic import DynamicConfig
from kwire.config.values import TypedValue

NAMES = ("max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides")
UNLIMITED = 2**31 - 1


class ConnectionLimits:
    """The limits in effect. `changed` is a listener of `DynamicConfig`."""

    def __init__(self, values: DynamicConfig | Mapping[str, TypedValue]) -> None:
        self.total: int = UNLIMITED
        self._per_address: int = UNLIMITED
        self._overrides: dict[str, int] = {}
        self.changed({name: values[name] for name in NAMES})

    def changed(self, values: Mapping[str, TypedValue]) -> None:
        """Take over those of the changed settings that are limits."""
        if "max.connections" in values:
            self.total = values["max.connections"]
        if "max.connections.per.ip" in values:
            self._per_address = values["max.connections.per.ip"]
        if "max.connections.per.ip.overrides" in values:
            name = "max.connections.per.ip.overrides"
            self._overrides = address_limits(name, values[name])

    def of(self, host: str) -> int:
        """The limit for an address (`/127.0.0.1` or `127.0.0.1`)."""
        return self._overrides.get(host.removeprefix("/"), self._per_address)

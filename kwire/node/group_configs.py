"""The configs of groups that groups and share partitions read."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.dynamic import DynamicConfig
from kwire.config.values import TypedValue, Value


class GroupConfigs:
    """The resolved configs of groups, kept until configs change."""

    def __init__(self, config: DynamicConfig) -> None:
        self._config = config
        self._resolved: dict[str, Mapping[str, Value]] = {}
        self.changes = 0
        """How often configs have changed: what was made of them before is old."""

    def owner(self, group_id: str) -> str:
        """Whose configs a group has: its own, or, as the empty string, those of all without."""
        return group_id if self._config.group_overrides(group_id) else ""

    def value(self, group_id: str, name: str) -> TypedValue:
        """A group config, such as consumer.session.timeout.ms, for one group."""
        owner = self.owner(group_id)
        values = self._resolved.get(owner)
        if values is None:
            values = self._resolved[owner] = self._config.group_values(group_id)
        return values[name]

    def changed(self) -> None:
        """Configs of brokers or groups have changed."""
        self._resolved.clear()
        self.changes += 1

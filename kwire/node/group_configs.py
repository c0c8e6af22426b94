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

    def value(self, group_id: str, name: str) -> TypedValue:
        """A group config, such as consumer.session.timeout.ms, for one group."""
        dynamic = self._config
        key = group_id if dynamic.group_overrides(group_id) else ""
        values = self._resolved.get(key)
        if values is None:
            values = self._resolved[key] = dynamic.group_values(group_id)
        return values[name]

    def changed(self) -> None:
        """Configs of brokers or groups have changed."""
        self._resolved.clear()

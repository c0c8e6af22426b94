"""What the rules about settings that have to fit together see of a node's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kwire.config.listeners import Listener
from kwire.config.values import TypedValue


class NodeSettings(Protocol):
    """`kwire.config.broker_config.BrokerConfig`: the settings of one node, as they are or would
    be. `texts` is what was set, `developer` whether the developer table counts."""

    @property
    def texts(self) -> dict[str, str]: ...

    @property
    def developer(self) -> bool: ...

    def __getitem__(self, name: str) -> TypedValue: ...

    @property
    def node_id(self) -> int: ...

    @property
    def log_directories(self) -> list[str]: ...

    @property
    def is_broker(self) -> bool: ...

    @property
    def is_controller(self) -> bool: ...

    def listeners(self) -> list[Listener]: ...

    def controller_listener_names(self) -> list[str]: ...

    def advertised_listeners(self, host_name: Callable[[], str]) -> list[Listener]: ...

    def inter_broker_listener_name(self) -> str: ...

    def of_listener(self, listener: str, name: str, mechanism: str = "", /) -> TypedValue: ...

"""Whether a node is ready for clients, and why not: the words of `/health/ready` and of
`kwire info`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from kwire.config.broker_config import BrokerConfig
from kwire.log.directories.manager import LogManager
from kwire.log.directories.refusals import refusals
from kwire.membership.lifecycle import State

REASONS_MAX = 100


class Lifecycle(Protocol):
    """The broker's registration."""

    state: State

    @property
    def is_caught_up(self) -> bool: ...

    @property
    def silence_ms(self) -> int: ...


class Quorum(Protocol):
    """The metadata quorum as this node sees it."""

    @property
    def waits_for(self) -> str:
        """What the metadata log is short of, empty while it is not."""
        ...


class Health:
    """See the module. `name` is how people call the node. `is_broker`: a controller alone has no
    registration to be fenced by. One whose heartbeats nobody has accepted for `session_timeout_ms`
    is fenced, though it cannot know. Without `is_serving` it is starting, until `serving()`."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        quorum: Quorum,
        logs: LogManager,
        *,
        name: str,
        is_broker: bool,
        session_timeout_ms: int,
        has_controller: Callable[[], bool],
        is_serving: bool = True,
    ) -> None:
        self._lifecycle = lifecycle
        self._quorum = quorum
        self._logs = logs
        self._name = name
        self._is_broker = is_broker
        self._session_timeout_ms = session_timeout_ms
        self._has_controller = has_controller
        self._is_serving = is_serving

    def serving(self) -> None:
        """The start is over."""
        self._is_serving = True

    def reasons(self) -> list[tuple[str, str]]:
        """(what, why) of all that keeps it from being ready; nothing while it is."""
        found: list[tuple[str, str]] = []
        if self._is_broker:
            state = self._lifecycle.state
            if state is not State.RUNNING:
                found.append((self._name, state.value))
            elif not self._lifecycle.is_caught_up:
                found.append((self._name, "it has not caught up with the metadata"))
            elif self._lifecycle.silence_ms > self._session_timeout_ms:
                found.append((self._name, "no controller answers its heartbeats"))
        if not self._is_serving and not found:
            found.append((self._name, "starting"))
        if not self._has_controller():
            found.append((self._name, "no active controller is known"))
        found += refusals(self._logs, self._quorum.waits_for)
        return found

    def answer(self, arguments: Mapping[str, str]) -> Iterator[bytes]:
        """The question `health` of the HTTP process: `{"reasons": [...]}`, at most REASONS_MAX."""
        found = [f"{what}: {why}" for what, why in self.reasons()]
        found += [
            f"{directory.path}: the log directory is offline"
            for directory in self._logs.directories
            if directory.error is not None
        ]
        left_out = len(found) - REASONS_MAX
        shown = [*found[:REASONS_MAX], f"{left_out} more"] if left_out > 0 else found
        yield json.dumps({"reasons": shown}).encode()


class KnownQuorum(Quorum, Protocol):
    """The quorum with its leader; `driver` is None before the node takes part."""

    @property
    def driver(self) -> object | None: ...

    @property
    def leader_id(self) -> int | None: ...

    @property
    def is_led(self) -> bool: ...


def health_of(
    config: BrokerConfig, lifecycle: Lifecycle, quorum: KnownQuorum, logs: LogManager
) -> Health:
    """The health of a node that has these parts."""
    return Health(
        lifecycle,
        quorum,
        logs,
        name=f"node {config.node_id}",
        is_broker=config.is_broker,
        session_timeout_ms=config["broker.session.timeout.ms"],
        # A broker that misses its controller knows by its heartbeats.
        has_controller=lambda: (
            quorum.driver is not None
            and quorum.leader_id is not None
            and (config.is_broker or quorum.is_led)
        ),
        is_serving=False,
    )

"""One node of a cluster: where it is, what it is told, how its process lives."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import NamedTuple

from kwire.python_module import python_module
from kwire.testing.cluster.process import ServeProcess


class Place(NamedTuple):
    """Who a node is and where: chosen by the cluster before any node is made.

    `prefix` are words in front of its command line (`ip netns exec ...`).
    """

    root: Path
    node_id: int
    roles: str
    host: str
    port: int
    controller_port: int
    prefix: tuple[str, ...] = ()

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles


class Node(abc.ABC):
    """What a cluster does with any kind of node. `settings` are read at each start."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.settings: dict[str, str] = {}

    @property
    def node_id(self) -> int:
        return self.place.node_id

    @property
    def host(self) -> str:
        return self.place.host

    @property
    def port(self) -> int:
        """Of the clients' listener."""
        return self.place.port

    @property
    def controller_port(self) -> int:
        return self.place.controller_port

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def controller_address(self) -> str:
        return f"{self.host}:{self.controller_port}"

    @property
    @abc.abstractmethod
    def data(self) -> Path:
        """Its log directory."""

    @property
    @abc.abstractmethod
    def is_running(self) -> bool:
        """Whether its process has been started and has not ended."""

    @abc.abstractmethod
    def start(self) -> None:
        """Start the process; `wait_ready` waits for it."""

    @abc.abstractmethod
    def wait_ready(self) -> None:
        """Until it serves. Raises NodeFailed with the log."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Ask it to stop, and wait; nothing when it does not run."""

    @abc.abstractmethod
    def kill(self) -> None:
        """SIGKILL."""

    @abc.abstractmethod
    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and does nothing."""

    @abc.abstractmethod
    def resume(self) -> None:
        """SIGCONT."""

    @abc.abstractmethod
    def close(self) -> None:
        """End whatever runs."""

    @abc.abstractmethod
    def log_text(self) -> str:
        """Everything logged so far, over all starts."""

    def restart(self) -> None:
        """Stop in order, start again and wait until it serves."""
        self.stop()
        self.start()
        self.wait_ready()


class KwireNode(Node):
    """A node by `kwire serve --config`."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.process = ServeProcess(
            f"node {place.node_id}", log_path=place.root / f"node-{place.node_id}.log"
        )

    @property
    def data(self) -> Path:
        return self.place.root / f"node-{self.node_id}"

    @property
    def is_running(self) -> bool:
        return self.process.is_running

    def start(self) -> None:
        path = self.place.root / f"node-{self.node_id}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))
        command = [*python_module("kwire"), "serve", "--config", str(path)]
        self.process.start([*self.place.prefix, *command])

    def wait_ready(self) -> None:
        self.process.wait_ready()

    def stop(self) -> None:
        if self.is_running:
            self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def close(self) -> None:
        self.process.close()

    def log_text(self) -> str:
        return self.process.log_text()

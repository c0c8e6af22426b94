"""One node in this process: its loop runs in a thread, so that the test may block."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Self, TypeVar

from kwire.config.broker_config import BrokerConfig
from kwire.log.files import Files
from kwire.network.loop import new_event_loop
from kwire.node.node import Node
from kwire.testing.cluster.broker import Setting
from kwire.testing.loop_thread import LoopThread

CALL_TIMEOUT_S = 30.0

T = TypeVar("T")


class NodeInThread:
    """A node, broker and controller, on a port of its own; `node` and `loop` may be looked at.

    `features` are levels to format with, `files` stands for the file system, `new_executor` makes
    the executor of each name.
    """

    def __init__(
        self,
        *directories: str | Path,
        settings: Mapping[str, Setting] | None = None,
        features: Mapping[str, int] | None = None,
        files: Files | None = None,
        new_executor: Callable[[str], Executor] | None = None,
        use_uvloop: bool = True,
    ) -> None:
        config = BrokerConfig.load(
            overrides={
                "log.dirs": ",".join(str(directory) for directory in directories),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                **{name: str(value) for name, value in (settings or {}).items()},
            }
        )
        self._thread = LoopThread("kwire-node", new_event_loop(use_uvloop=use_uvloop), daemon=False)
        self.loop = self._thread.loop
        self.node = Node(
            config, self.loop, features=features, files=files, new_executor=new_executor
        )
        self.bootstrap = ""
        self._stopping: Future[None] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def thread_id(self) -> int | None:
        return self._thread.thread_id

    def start(self) -> Self:
        """Start and wait until it serves; what the start raises is raised here, after its end."""
        self._thread.start()
        try:
            self.run(self.node.start())
        except BaseException:
            self.stop()
            raise
        host, port = self.node.ready_address()
        self.bootstrap = f"{host}:{port}"
        return self

    def run(self, work: Coroutine[None, None, T]) -> T:
        """What a coroutine returns that runs on the node's loop."""
        return self._thread.run(work, CALL_TIMEOUT_S)

    def begin_stop(self) -> Future[None]:
        """Ask the node to stop; `stop` waits for it."""
        if self._stopping is None:
            self._stopping = self._thread.submit(self.node.stop())
        return self._stopping

    def stop(self) -> None:
        """Stop in order; the loop and its thread end. Nothing when they have ended."""
        if self.loop.is_closed():
            return
        try:
            self.begin_stop().result(CALL_TIMEOUT_S)
        finally:
            self._thread.close()

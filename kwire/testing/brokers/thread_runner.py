"""A broker in a thread of this process: started in 30 ms, and still killed and paused."""

from __future__ import annotations

import gc
import itertools
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager

from kwire.clock import SkewedClock
from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.log.directories.directory import METADATA_PARTITION
from kwire.log.recovery.known_logs import known_logs
from kwire.network.loop import new_event_loop
from kwire.node.faults import faults_of
from kwire.node.node import Node, StartError
from kwire.testing.brokers.runner import (
    ANEW,
    BrokerFailed,
    FaultControl,
    GoingOn,
    StartSettings,
    Still,
    T,
)
from kwire.testing.brokers.thread_faults import ThreadFaults
from kwire.testing.brokers.thread_files import ThreadFiles
from kwire.testing.brokers.thread_logs import ThreadLog
from kwire.testing.brokers.unfinished import check_finished
from kwire.testing.loop_thread import TIMEOUT_S, LoopThread
from kwire.testing.owner import Owner
from kwire.testing.unbegun import drop_unbegun

_numbers = itertools.count(1)


@contextmanager
def _no_collections() -> Iterator[None]:
    """What a start makes stays: to search it for garbage takes a tenth of it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class ThreadRunner:
    """See `Runner`. `settings(port)` are the configs of the next start, `port` 0 at the first.

    `is_durable`: its files have to outlive this machine, so that they are synced.
    """

    def __init__(
        self, name: str, settings: StartSettings, *, port: int = 0, is_durable: bool
    ) -> None:
        self.name = name
        self.port = port
        self._settings = settings
        self._is_durable = is_durable
        self._prefix = f"kwire-{next(_numbers)}-{name}/"
        self._log = ThreadLog(self._prefix)
        self._life: _Life | None = None
        self._owner = Owner(name)

    @property
    def is_running(self) -> bool:
        return self._life is not None

    def start(self, going_on: GoingOn = ANEW) -> None:
        self._owner.check()
        if self._life is not None:
            raise BrokerFailed(f"{self.name} is running")
        settings = self._settings(self.port)
        check_finished(settings["log.dirs"])
        self._log.open()
        try:
            with _no_collections():
                life = _Life(self._prefix, settings, is_durable=self._is_durable, going_on=going_on)
                self.port = life.start()
        except (StartError, ConfigError, TimeoutError) as error:
            text = self._log.text()
            self._log.close()
            raise BrokerFailed(f"{self.name} does not start: {error}\n{text}".rstrip()) from None
        self._life = life

    def stop(self) -> None:
        self._owner.check()
        life, self._life = self._life, None
        if life is not None:
            life.stop()

    def kill(self) -> None:
        self._owner.check()
        life, self._life = self._life, None
        if life is not None:
            life.kill()

    def lose_power(self) -> None:
        life, self._life = self._running(), None
        life.kill()
        life.files.lose_power()

    @property
    def faults(self) -> FaultControl:
        return self._running().faults

    def pause(self) -> None:
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    @property
    def links(self) -> bool:
        return True

    def while_still(self, work: Callable[[Still], T]) -> T:
        self._owner.check()
        return work(Still()) if self._life is None else self._life.while_still(work)

    def close(self) -> None:
        if not self._owner.is_here:
            return
        try:
            self.stop()
        finally:
            self._log.close()

    def log_text(self) -> str:
        return self._log.text()

    def _running(self) -> _Life:
        self._owner.check()
        if self._life is None:
            raise BrokerFailed(f"{self.name} is not running")
        return self._life


class _Life:
    """From one start of a broker to its end."""

    def __init__(
        self, prefix: str, settings: Mapping[str, str], *, is_durable: bool, going_on: GoingOn
    ) -> None:
        self._prefix = prefix
        config = BrokerConfig.load(overrides=dict(settings))
        self._executors: list[Executor] = []
        self.files = ThreadFiles(is_synced=is_durable)
        self._thread = LoopThread(f"{prefix}loop", new_event_loop())
        self._loop = self._thread.loop
        clock = SkewedClock()
        self._node = node = Node(
            config,
            self._loop,
            clock=clock,
            files=self.files,
            new_executor=self._new_executor,
            incarnation_id=going_on.incarnation,
        )
        node.log_manager.known_logs = going_on.logs
        # `ThreadRunner.lose_power` does it, from outside.
        made = faults_of(node, self.files, clock, lose_power=lambda: None)
        self.faults = ThreadFaults(self._thread, made, self._is_still)
        self._paused: threading.Event | None = None
        self._is_killed = False
        self._has_ended = False

    def _is_still(self) -> bool:
        return self._has_ended or self._paused is not None

    def _new_executor(self, name: str) -> Executor:
        executor = ThreadPoolExecutor(1, thread_name_prefix=self._prefix + name)
        self._executors.append(executor)
        return executor

    def start(self) -> int:
        """Its port, once it serves."""
        self._thread.start()
        try:
            self._thread.run(self._node.start())
        except BaseException:
            self.stop()
            raise
        return self._node.ready_address()[1]

    def stop(self) -> None:
        """In order."""
        self.resume()
        try:
            self._thread.run(self._node.stop())
        finally:
            self._thread.stop()
            self._close_loop()

    def kill(self) -> None:
        """At once: no reply leaves any more, no file is written, nothing is tidied up."""
        self._is_killed = True
        self._loop.call_soon_threadsafe(self._end_if_killed)
        self.resume()
        self._thread.stop()
        # What stood in the middle of something is dropped there.
        self._loop.set_exception_handler(lambda loop, context: None)
        for executor in self._executors:
            executor.shutdown(cancel_futures=True)
        self._close_sockets()
        with warnings.catch_warnings():  # that it has connections is what is meant
            warnings.simplefilter("ignore", ResourceWarning)
            self._close_loop()
        self.files.abandon()

    def _close_sockets(self) -> None:
        """uvloop closes them with itself; asyncio's own loop leaves them open."""
        for listener in self._node.listeners.bound.values():
            listener.stop_accepting()
        for transport in list(getattr(self._loop, "_transports", {}).values()):
            transport._sock.close()

    def pause(self) -> None:
        if self._paused is None:
            self._paused = threading.Event()
            stands = threading.Event()
            self._loop.call_soon_threadsafe(self._hold, stands, self._paused)
            stands.wait(TIMEOUT_S)

    def _hold(self, stands: threading.Event, paused: threading.Event) -> None:
        stands.set()
        paused.wait()
        self._end_if_killed()

    def _end_if_killed(self) -> None:
        """The loop ends here: `stop` would let it do what it has already been given, and even now
        uvloop looks once more for what has arrived."""
        if self._is_killed:
            for listener in self._node.listeners.bound.values():
                listener.stop_accepting()
                for connection in list(listener.connections):
                    connection.transport.abort()
            raise SystemExit

    def resume(self) -> None:
        if self._paused is not None:
            self._paused.set()
            self._paused = None

    def while_still(self, work: Callable[[Still], T]) -> T:
        """On the loop, once the threads have done what they were given."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                for executor in self._executors:
                    executor.submit(lambda: None).result()
                node = self._node
                is_written_out = node.log_manager.write_out()
                metadata = node.metadata.write_out()
                self.files.links_were_made()
                logs = known_logs(node.log_manager.logs()) if is_written_out else {}
                if is_written_out and metadata is not None:
                    logs[METADATA_PARTITION] = metadata
                still = Still(node.incarnation_id, node.lifecycle.epoch, is_written_out, logs)
                done.set_result(work(still))
            except BaseException as error:
                done.set_exception(error)

        if self._paused is None:
            self._loop.call_soon_threadsafe(run)
        else:
            run()  # the loop stands still already
        return done.result()

    def _close_loop(self) -> None:
        self._has_ended = True
        drop_unbegun(self._loop)
        self._loop.close()

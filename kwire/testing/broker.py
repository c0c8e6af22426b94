"""One broker for tests."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kwire.node.early_topics import SETTING as EARLY_TOPICS
from kwire.testing.arguments import PORT_MAX, data_directory, flag, text, whole
from kwire.testing.blocking import BlockingClient
from kwire.testing.brokers.copies import clear_soon
from kwire.testing.brokers.runner import (
    ANEW,
    HOST,
    BrokerFailed,
    GoingOn,
    Runner,
    Setting,
    setting_texts,
)
from kwire.testing.brokers.thread_runner import ThreadRunner
from kwire.testing.brokers.unfinished import NOTE, unfinished
from kwire.testing.entering import entered
from kwire.testing.faults import Faults
from kwire.testing.groups import Group
from kwire.testing.owner import Owner
from kwire.testing.snapshots import Snapshot
from kwire.testing.topics import Topic, names_of_topics

SMALL_INTERNAL_TOPICS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    EARLY_TOPICS: "__consumer_offsets",
}
"""What Kafka has by default are 50 partitions of each: most of the work of a short test. Without
`__consumer_offsets` a first consumer of librdkafka's waits for a second."""


DIRECTORIES = ("log.dirs", "log.dir", "metadata.log.dir")
"""All of a broker's state is in one directory, which is its own: tests would meet there."""


class Broker:
    """One broker, a context manager of both kinds (`with`, `async with`).

    It runs in a thread of this process, or with `process=True` as a process. `config` are Kafka's
    configs, beside those that `kwire serve` has by default for developers; internal topics have
    one partition. Faults on command are possible in a thread, and in a process with `faults=True`.
    Without `directory` its data is temporary: it outlives `stop` and `kill`, and ends with the
    context. `port=0` picks a port, which it keeps. TypeError and ValueError name what cannot be.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Setting] | None = None,
        directory: str | Path | None = None,
        process: bool = False,
        faults: bool = False,
        host: str = HOST,
        port: int = 0,
    ) -> None:
        self.host = text("host", host)
        whole("port", port, 0, PORT_MAX)
        flag("process", process)
        flag("faults", faults)
        given = None if directory is None else data_directory(directory)
        self._config = setting_texts(config or {}, DIRECTORIES, "accepted is Broker(directory=...)")
        _check_is_broker(self._config)
        self._temporary: Path | None = None
        if given is None:
            given = Path(tempfile.mkdtemp(prefix="kwire-testing-"))
            self._temporary = given
        self.directory = given
        self._runner: Runner
        if process:
            from kwire.testing.brokers.process_runner import ProcessRunner

            self._runner = ProcessRunner("broker", self._settings, port=port, has_faults=faults)
        else:
            is_durable = self._temporary is None
            self._runner = ThreadRunner("broker", self._settings, port=port, is_durable=is_durable)
        self._client = BlockingClient(self._asked)
        self._is_process = process
        self._is_closed = False
        self._owner = Owner("the broker")
        self._snapshots: list[Snapshot] = []

    def _settings(self, port: int) -> Mapping[str, str]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return {
            "log.dirs": str(self.directory),
            "listeners": f"PLAINTEXT://{host}:{port}",
            **SMALL_INTERNAL_TOPICS,
            **self._config,
        }

    def __enter__(self) -> Self:
        return self if self.is_running else self.start()  # a fork runs already

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await entered(self.__enter__, self.close)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    # -- life

    @property
    def bootstrap(self) -> str:
        """host:port, as clients want it; BrokerFailed before the first start."""
        if not self._runner.port:
            raise BrokerFailed("the broker has no address before its first start")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self._runner.port}"

    @property
    def is_running(self) -> bool:
        return self._runner.is_running

    def start(self) -> Self:
        """Start it and wait until it serves; BrokerFailed with its log."""
        return self._start()

    def _start(self, going_on: GoingOn = ANEW) -> Self:
        self._check_open()
        try:
            self._runner.start(going_on)
        except BaseException:
            if not self._runner.port:
                self.close()
            raise
        return self

    def stop(self) -> None:
        """Stop it in order; nothing when it does not run."""
        self._runner.stop()

    def kill(self) -> None:
        """End it as SIGKILL does: connections are cut, what it has written to files stays."""
        self._runner.kill()

    def lose_power(self) -> None:
        """End it as `kill` does, and take back what it had written and not synced."""
        self._runner.lose_power()

    @property
    def faults(self) -> Faults:
        """Faults on command: docs/FAULTS.md."""
        return Faults([self._runner])

    def restart(self) -> Self:
        """Stop it in order and start it again, on the same port with the same data."""
        self._runner.stop()
        return self.start()

    def pause(self) -> None:
        """As SIGSTOP does: it keeps its connections and does nothing until `resume`."""
        self._runner.pause()

    def resume(self) -> None:
        """End a pause."""
        self._runner.resume()

    # -- its state

    def snapshot(self) -> Snapshot:
        """Keep its state as it is now: topics, records, offsets, groups, transactions, configs. It
        goes on meanwhile; what is not acknowledged yet may be in it or not. BrokerFailed."""
        self._check_open()
        if not self._runner.port:
            raise BrokerFailed("a broker has no state to be kept before its first start")
        taken = self._runner.while_still(
            lambda still: Snapshot.of(
                self.directory, self._options(), still, links=self._runner.links
            )
        )
        self._snapshots.append(taken)
        return taken

    def restore(self, snapshot: Snapshot) -> Self:
        """Go back to a state that was kept, on the same port; connections are cut. BrokerFailed,
        and nothing has happened, for one that this broker cannot have."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"restore({snapshot!r}): expected what snapshot() has given")
        self._check_open()
        snapshot.check(self._options())
        self._client.disconnect()
        self._runner.kill()
        snapshot.put(self.directory)
        return self._start(snapshot.going_on)

    def reset(self) -> Self:
        """Begin anew without anything, on the same port; connections are cut. BrokerFailed."""
        self._check_open()
        self._client.disconnect()
        self._runner.kill()
        try:
            with unfinished(self.directory):
                clear_soon(str(self.directory), {NOTE})
        except OSError as error:
            raise BrokerFailed(f"{self.directory} cannot be emptied: {error}") from None
        return self.start()

    def fork(self) -> Broker:
        """Another broker, on a port of its own, that begins with the state of this one; it runs,
        and has to be closed (a context manager). Both go on by themselves."""
        with self.snapshot() as taken:
            made = Broker(config=self._config, process=self._is_process, host=self.host)
            try:
                taken.put(made.directory)
                return made._start(taken.going_on)
            except BaseException:
                made.close()
                raise

    def _asked(self) -> str:
        """Where it is asked; BrokerFailed once it has ended for good."""
        if self._is_closed and not self.is_running:
            raise BrokerFailed("the broker is closed")
        return self.bootstrap

    def _check_open(self) -> None:
        """BrokerFailed after the end of its data, and in a fork."""
        self._owner.check()
        if self._is_closed and self._temporary is not None:
            raise BrokerFailed("the broker is closed, and its data is gone: make another one")

    def _options(self) -> dict[str, str]:
        return dict(self._settings(0))

    def close(self) -> None:
        """End it, its snapshots, and its data if that is temporary: it cannot start again then.
        Nothing when that was said before, and in a fork of the process that made it."""
        if not self._owner.is_here:
            return
        self._is_closed = True
        try:
            for taken in self._snapshots:
                taken.close()
            self._client.close()
            if self._temporary is not None:
                self._runner.kill()  # nobody needs what a stop in order would keep
            self._runner.close()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def log_text(self) -> str:
        """What it has logged over all starts: in a thread the last 100,000 records, else all."""
        return self._runner.log_text()

    # -- what is in it

    def topic(self, name: str) -> Topic:
        """The topic of this name, whether it exists or not."""
        return Topic(name, self._client)

    def group(self, group_id: str) -> Group:
        """The consumer group of this id, whether it exists or not."""
        return Group(group_id, self._client)

    def topics(self) -> list[str]:
        """The names of all topics but internal ones."""
        return self._client.run(names_of_topics)


def _check_is_broker(config: Mapping[str, str]) -> None:
    """A controller alone has no address for clients."""
    roles = config.get("process.roles")
    if roles is not None and "broker" not in [role.strip() for role in roles.split(",")]:
        raise ValueError(
            f"config 'process.roles': {roles!r} has no broker; accepted is 'broker,controller'"
        )

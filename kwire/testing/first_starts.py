"""Where the brokers of short tests begin: at what a first start leaves, which is made once.

A first start formats a directory, elects a controller, registers with it and has it make internal
topics: a third of what a start takes. Where broker after broker begins with the same options, as
those of tests do, one more is started, its state is kept (`Broker.snapshot`), and those to come go
on from there, each as a cluster of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TypeAlias

from kwire.clock import SystemRandom
from kwire.protocol import uuids
from kwire.testing.broker import Broker
from kwire.testing.brokers.runner import BrokerFailed, Setting
from kwire.testing.snapshots import Snapshot

KEPT_MAX = 4
"""Of options: a state is a directory and a few megabytes."""


_Options: TypeAlias = "tuple[tuple[tuple[str, Setting], ...], bool]"


class FirstStarts:
    """Makes brokers. The first with its options starts by itself, those behind it begin with the
    state that a start leaves; `close` ends what is kept, not the brokers."""

    def __init__(self) -> None:
        self._seen: dict[_Options, tuple[Broker, Snapshot] | None] = {}
        self._random = SystemRandom()
        self._lock = threading.Lock()

    def broker(
        self,
        *,
        config: Mapping[str, Setting] | None = None,
        process: bool = False,
        faults: bool = False,
    ) -> Broker:
        """`Broker(...)`, which runs or is to be started. TypeError and ValueError as from there;
        BrokerFailed."""
        broker = Broker(config=config, process=process, faults=faults)
        if process:
            return broker
        with self._lock:
            kept = self._kept((tuple(sorted((config or {}).items())), faults))
            if kept is None:
                return broker
            kept.name_cluster(uuids.to_text(uuids.random_uuid(self._random)))
            try:
                return broker.restore(kept)
            except BaseException:
                broker.close()
                raise

    def _kept(self, options: _Options) -> Snapshot | None:
        """The state to begin at, made when it is asked for the second time."""
        if options not in self._seen:
            if len(self._seen) < KEPT_MAX:
                self._seen[options] = None
            return None
        found = self._seen[options]
        if found is None:
            first = Broker(config=dict(options[0]), faults=options[1])
            try:
                found = self._seen[options] = first, first.start().snapshot()
            except BrokerFailed:
                first.close()
                return None
            first.kill()
        return found[1]

    def close(self) -> None:
        with self._lock:
            for found in self._seen.values():
                if found is not None:
                    found[0].close()
            self._seen.clear()

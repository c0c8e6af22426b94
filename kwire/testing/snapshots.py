"""The state of a broker, kept: its data directory at one moment, to begin from again."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from kwire.log.directories.identity_files import CLEAN_SHUTDOWN, encode_clean_shutdown
from kwire.log.segment.segment import LOG_SUFFIX
from kwire.testing.brokers.addresses import move_addresses
from kwire.testing.brokers.copies import (
    OWN,
    Tree,
    clear_soon,
    copy_tree,
    put_links,
)
from kwire.testing.brokers.runner import ANEW, BrokerFailed, GoingOn, Still
from kwire.testing.brokers.unfinished import NOTE, check_finished, unfinished
from kwire.testing.owner import Owner

PLACE = (
    "log.dirs",
    "log.dir",
    "listeners",
    "advertised.listeners",
    "controller.quorum.bootstrap.servers",
)
"""What belongs to one broker alone, and is no option of its state."""


class ClusterSnapshot:
    """What `Cluster.snapshot` has kept, of all brokers at one moment; a context manager. It ends
    with `close`, with its context or with the cluster. `ports` are those of each broker then."""

    def __init__(
        self, of_brokers: Mapping[int, Snapshot], ports: Mapping[int, Sequence[int]]
    ) -> None:
        self.of_brokers = of_brokers
        self.ports = ports

    def check(self, options: Mapping[int, Mapping[str, str]]) -> None:
        """BrokerFailed, one line: brokers with these options, by their number, cannot have it."""
        if set(self.of_brokers) != set(options):
            raise BrokerFailed(
                f"the snapshot is of {len(self.of_brokers)} brokers, the cluster has {len(options)}"
            )
        for node_id, taken in self.of_brokers.items():
            taken.check(options[node_id])

    def put(self, places: Mapping[int, Path], ports: Mapping[int, Sequence[int]]) -> None:
        """Make the data directories what was kept, for brokers with these ports; BrokerFailed."""
        moved = {
            before: now
            for node_id, own in self.ports.items()
            for before, now in zip(own, ports[node_id], strict=True)
            if before != now
        }
        try:
            with ExitStack() as stack:
                for place in places.values():  # none of them is of use without the others
                    stack.enter_context(unfinished(place))
                for node_id, taken in self.of_brokers.items():
                    taken.put_unfinished(places[node_id])
                    if moved:
                        move_addresses(places[node_id], moved)
        except OSError as error:
            raise BrokerFailed(f"the cluster cannot be restored: {_reason(error)}") from None

    def close(self) -> None:
        """It is not needed any more; nothing when that was said before."""
        for taken in self.of_brokers.values():
            taken.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Snapshot:
    """What `Broker.snapshot` has kept; a context manager. It ends with `close`, with its context or
    with the broker that it was taken of. `directory` holds it."""

    def __init__(
        self, directory: Path, tree: Tree, options: Mapping[str, str], still: Still, *, links: bool
    ) -> None:
        self.directory = directory
        self._owner = Owner("the snapshot")
        self._tree = tree
        self.going_on = GoingOn(still.incarnation, still.logs) if still.is_written_out else ANEW
        """Who goes on from it; `ANEW` where a broker has to start on it as after a kill."""
        self._options = {name: text for name, text in options.items() if name not in PLACE}
        self._links = links
        self._marks = _marks(directory / "data", tree) if links else {}

    @classmethod
    def of(cls, data: Path, options: Mapping[str, str], still: Still, *, links: bool) -> Snapshot:
        """Copy a data directory that nobody changes meanwhile; BrokerFailed."""
        check_finished(data)
        place = ""
        try:
            place = tempfile.mkdtemp(prefix=".kwire-snapshot-", dir=data.parent)
            tree = copy_tree(str(data), os.path.join(place, "data"), links=links)
            if still.is_written_out:
                note = encode_clean_shutdown(still.broker_epoch)
                Path(place, "data", CLEAN_SHUTDOWN).write_bytes(note)
                tree[CLEAN_SHUTDOWN] = OWN
            return cls(Path(place), tree, options, still, links=links)
        except OSError as error:
            shutil.rmtree(place, ignore_errors=True)
            raise BrokerFailed(f"no snapshot of {data}: {_reason(error)}") from None

    def check(self, options: Mapping[str, str]) -> None:
        """BrokerFailed, one line: it is gone, or a broker with these options cannot have it."""
        if not (self.directory / "data").is_dir():
            raise BrokerFailed(f"the snapshot is closed, or its directory {self.directory} removed")
        own = {name: text for name, text in options.items() if name not in PLACE}
        other = sorted(
            name for name in {**own, **self._options} if own.get(name) != self._options.get(name)
        )
        if other:
            shown = ", ".join(
                f"{name} ({self._options.get(name, 'unset')}, here {own.get(name, 'unset')})"
                for name in other[:5]
            )
            raise BrokerFailed(f"the snapshot is of a broker with other options: {shown}")
        if self._links:
            self._check_shared()

    def _check_shared(self) -> None:
        """Brokers part a file from the snapshot's before they change it, others do not."""
        data = self.directory / "data"
        try:
            found = _marks(data, self._tree)
        except OSError as error:
            raise BrokerFailed(f"the snapshot is not whole any more: {_reason(error)}") from None
        for name, mark in self._marks.items():
            if found[name] != mark:
                raise BrokerFailed(
                    f"the snapshot is not what it was: {name}, which it shares with its broker, "
                    "was written to by somebody else; put a file of your own in its place, or take "
                    "the snapshot of a broker with process=True, which shares none"
                )

    def put(self, data: Path) -> None:
        """Make `data` what was kept, whatever it holds. BrokerFailed: no broker starts on what is
        left of it (`unfinished`)."""
        try:
            with unfinished(data):
                self.put_unfinished(data)
        except OSError as error:
            raise BrokerFailed(f"{data} cannot be restored: {_reason(error)}") from None

    def put_unfinished(self, data: Path) -> None:
        """`put` in a directory that is noted as unfinished; OSError."""
        if self._links:
            put_links(str(self.directory / "data"), self._tree, str(data), {NOTE})
            return
        clear_soon(str(data), {NOTE})
        copy_tree(str(self.directory / "data"), str(data), links=False)

    def close(self) -> None:
        """It is not needed any more; nothing when that was said before, and in a fork."""
        if self._owner.is_here:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _marks(data: Path, tree: Tree) -> dict[str, tuple[int, int]]:
    """Size and time of the last change of all segments, by their names below `data`; OSError."""
    found: dict[str, tuple[int, int]] = {}
    for directory, held in tree.items():
        if not isinstance(held, int):
            for name in held:
                if name.endswith(LOG_SUFFIX):
                    status = os.stat(f"{data}/{directory}/{name}")
                    found[f"{directory}/{name}"] = status.st_size, status.st_mtime_ns
    return found


def _reason(error: OSError) -> str:
    return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)

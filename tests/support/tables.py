"""Delta tables of a test's own, in memory: versions, transaction ids, and conflicts as Delta has
them. Data files and commits are empty files on the disk; a frame is a list of (partition,
offset)."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kwire.spark.delta import LOG_FOLDER, ConflictError, TableState
from kwire.spark.delta_actions import AddedFile

Rows = list[tuple[int, int]]
RECORD_BYTES = 10


def key_of(offset: int) -> int:
    """The key of a record."""
    return offset % 4


def is_tombstone(offset: int) -> bool:
    return offset % 7 == 0


def compacted(rows: Rows) -> Rows:
    """What compaction leaves of rows in the order of their offsets."""
    last = {(number, key_of(at)): at for number, at in sorted(rows)}
    return sorted((number, at) for (number, _), at in last.items() if not is_tombstone(at))


class KilledError(BaseException):
    """The process ends here."""


@dataclasses.dataclass
class Commit:
    """A version of a table."""

    applications: Mapping[str, int]
    files: Mapping[str, Rows]
    metadata: Mapping[str, Any] | None


class Tables:
    """The tables of a lake, by path. `steps`: what is done before KilledError, None for ever."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commits: dict[str, list[Commit]] = {}
        self.numbers = itertools.count()
        self.steps: int | None = None

    def open(self, path: str) -> FakeTable:
        return FakeTable(self, path)

    def step(self) -> None:
        """Something that a kill may come before."""
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                raise KilledError

    def rows(self, path: str) -> Rows:
        """All rows of a table, sorted."""
        found = self.commits.get(path, [])
        return sorted(row for commit in found for rows in commit.files.values() for row in rows)


class FakeTable:
    """See `kwire.spark.topic_table.Table`."""

    def __init__(self, tables: Tables, path: str) -> None:
        self.tables = tables
        self.path = path

    @property
    def commits(self) -> list[Commit]:
        return self.tables.commits.setdefault(self.path, [])

    def state(self, version: int | None = None) -> TableState | None:
        if not self.commits:
            return None
        applications: dict[str, int] = {}
        metadata: Mapping[str, Any] = {}
        for commit in self.commits:
            applications |= commit.applications
            metadata = commit.metadata or metadata
        return TableState(
            version=len(self.commits) - 1,
            properties=metadata["configuration"],
            columns={
                field["name"]: field["type"] if isinstance(field["type"], str) else "complex"
                for field in json.loads(metadata["schemaString"])["fields"]
            },
            partitioned_by=tuple(metadata["partitionColumns"]),
            applications=applications,
            metadata=metadata,
        )

    def check_log(self) -> None:
        pass

    def begin(self, *, by_checksum: bool = False) -> FakeTransaction:
        return FakeTransaction(self)

    def reaches(self, version: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for partition, offset in self.tables.rows(self.path):
            found[partition] = max(offset, found.get(partition, -1))
        return found

    def record_bytes(self, files: Iterable[AddedFile]) -> int:
        return sum(file.records * RECORD_BYTES for file in files)

    def sync(self, files: Iterable[AddedFile], version: int | None = None) -> None:
        for file in files:
            if not (Path(self.path) / file.path).exists():
                raise FileNotFoundError(file.path)

    def remove_unnamed(self, start: str, check: Callable[[TableState], None]) -> int:
        state = self.state()
        assert state is not None
        check(state)
        named = {path for commit in self.commits for path in commit.files}
        found = [path for path in Path(self.path).glob("*.parquet") if path.name.startswith(start)]
        left = [path for path in found if path.name not in named]
        for path in left:
            path.unlink()
        return len(left)


class FakeTransaction:
    """See `kwire.spark.topic_table.Transaction`."""

    def __init__(self, table: FakeTable) -> None:
        self.table = table
        self.state = table.state()
        self._begun = len(table.commits)
        self._read: set[str] = set()
        self._files: dict[str, Rows] = {}
        self._cut: Mapping[int, int] | None = None
        self._replaced: set[tuple[int, int]] = set()

    def read(self, names: Iterable[str]) -> dict[str, int]:
        wanted = list(names)
        self._read |= set(wanted)
        applications = self.state.applications if self.state else {}
        return {name: applications.get(name, -1) for name in wanted}

    def write(self, frame: Rows, prefix: str, codec: str) -> list[AddedFile]:
        self.table.tables.step()
        if not frame:
            return []
        name = f"{prefix}part-{next(self.table.tables.numbers)}.parquet"
        folder = Path(self.table.path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        self._files[name] = frame
        return [AddedFile(name, len(frame), 1)]

    def cut(self, limits: Mapping[int, int], prefix: str, codec: str) -> bool:
        self._cut = limits
        rows = self.table.tables.rows(self.table.path)
        return any(offset >= limits.get(number, 0) for number, offset in rows)

    def replace(self, changed: Rows, prefix: str, codec: str) -> list[AddedFile]:
        self._replaced = {(number, key_of(at)) for number, at in changed}
        return self.write([row for row in changed if not is_tombstone(row[1])], prefix, codec)

    def commit(
        self,
        applications: Mapping[str, int],
        *,
        time_ms: int,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        self.table.tables.step()
        for other in self.table.commits[self._begun :]:
            if self._read & set(other.applications) or other.metadata is not None:
                raise ConflictError("another commit came first")
        for commit in self.table.commits if self._cut is not None else ():
            limits = self._cut or {}
            commit.files = {
                path: [(n, at) for n, at in rows if at < limits.get(n, 0)]
                for path, rows in commit.files.items()
            }
        for commit in self.table.commits if self._replaced else ():
            commit.files = {
                path: [(n, at) for n, at in rows if (n, key_of(at)) not in self._replaced]
                for path, rows in commit.files.items()
            }
        log = Path(self.table.path, LOG_FOLDER)
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{len(self.table.commits):020}.json").touch()
        self.table.commits.append(Commit(dict(applications), dict(self._files), metadata))
        self.table.tables.step()
        return len(self.table.commits) - 1

"""The commit log of a mirror's state, and of lakes of the older form: which files it consists of,
and up to which offsets.

    _kwire/commits/NNNNNNNNNNNNNNNNNNNN.json     a commit: files added and removed, new offsets
    _kwire/states/NNNNNNNNNNNNNNNNNNNN.json.gz   the state after that commit, every STATE_EVERY

A commit is one file that is created only if its number is free: files and offsets become visible
together or not at all, and of two writers that want the same number one loses. The loser reads
what was committed meanwhile and tries the next number, unless that was a newer session under its
own name: then it has been replaced and must end. `LakeState.apply` is the only thing that changes
a state, so that a state is a function of its commits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kwire.spark.lake_files import LakeFiles
from kwire.spark.usage import FinalError

COMMITS = "_kwire/commits"
STATES = "_kwire/states"
FORMAT = 1
STATE_EVERY = 20
RECORDS = "records"
DEAD_LETTERS = "dead_letter"
_COMMIT = re.compile(r"(\d{20})\.json\Z")
_STATE = re.compile(r"(\d{20})\.json\.gz\Z")

Partition = tuple[str, int]


class DataFile(NamedTuple):
    """A data file. Path relative to the lake; timestamps in ms; offsets include both ends."""

    path: str
    table: str
    topic: str
    date: str
    partition: int
    records: int
    size_bytes: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int


@dataclasses.dataclass
class Commit:
    """One step of a lake. `offsets`: the next offset of each partition that moved."""

    action: str
    writer: str
    session: str
    time_ms: int
    add: list[DataFile] = dataclasses.field(default_factory=list)
    remove: list[str] = dataclasses.field(default_factory=list)
    purged: list[str] = dataclasses.field(default_factory=list)
    offsets: dict[Partition, int] = dataclasses.field(default_factory=dict)
    topics: dict[str, str] = dataclasses.field(default_factory=dict)
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)

    def encode(self) -> bytes:
        fields = dataclasses.asdict(self)
        fields["add"] = [list(file) for file in self.add]
        fields["offsets"] = [[*key, offset] for key, offset in sorted(self.offsets.items())]
        return json.dumps({"format": FORMAT, **fields}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Commit:
        """Raises FinalError for another format, ValueError for a file that is no commit."""
        fields = _fields(data)
        try:
            fields["add"] = [DataFile(*file) for file in fields["add"]]
            fields["offsets"] = {(topic, n): offset for topic, n, offset in fields["offsets"]}
            return cls(**fields)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None


def _fields(data: bytes) -> dict[str, Any]:
    """The object that a file of the log holds, without its format."""
    try:
        fields = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(fields, dict) or "format" not in fields:
        raise ValueError("no object with a format")
    if fields.pop("format") != FORMAT:
        raise FinalError("the lake was written by a version of kwire with another format")
    return fields


class LakeState:
    """What a lake is after commit `version` (-1: there is no lake yet)."""

    def __init__(self) -> None:
        self.version = -1
        self.files: dict[str, DataFile] = {}
        self.offsets: dict[Partition, int] = {}
        self.topics: dict[str, str] = {}
        self.sessions: dict[str, str] = {}
        self.removed: dict[str, int] = {}
        self.extra: dict[str, Any] = {}

    def apply(self, commit: Commit) -> None:
        """The state after one more commit."""
        for path in commit.remove:
            if self.files.pop(path, None) is not None:
                self.removed[path] = commit.time_ms
        for file in commit.add:
            self.files[file.path] = file
        for path in commit.purged:
            self.removed.pop(path, None)
        self.offsets |= commit.offsets
        self.topics |= commit.topics
        self.extra |= commit.extra
        self.sessions[commit.writer] = commit.session
        self.version += 1

    def encode(self) -> bytes:
        fields = {
            "format": FORMAT,
            "version": self.version,
            "files": [list(file) for file in self.files.values()],
            "offsets": [[*key, offset] for key, offset in sorted(self.offsets.items())],
            "topics": self.topics,
            "sessions": self.sessions,
            "removed": self.removed,
            "extra": self.extra,
        }
        return gzip.compress(json.dumps(fields).encode(), mtime=0)

    @classmethod
    def decode(cls, data: bytes) -> LakeState:
        """Raises FinalError for another format, another exception for a file that is no state."""
        fields = _fields(gzip.decompress(data))
        state = cls()
        state.version = fields["version"]
        state.files = {file[0]: DataFile(*file) for file in fields["files"]}
        state.offsets = {(topic, n): offset for topic, n, offset in fields["offsets"]}
        state.topics = fields["topics"]
        state.sessions = fields["sessions"]
        state.removed = fields["removed"]
        state.extra = fields["extra"]
        return state

    def select(
        self, table: str | None = None, topics: Iterable[str] | None = None
    ) -> list[DataFile]:
        """The files of a table (None: both) and topics (None: all)."""
        wanted = None if topics is None else frozenset(topics)
        return [
            file
            for file in self.files.values()
            if (table is None or file.table == table) and (wanted is None or file.topic in wanted)
        ]


class LakeLog:
    """A lake's log as one writer or reader sees it."""

    def __init__(self, files: LakeFiles, writer: str = "", session: str = "") -> None:
        self.files = files
        self.writer = writer
        self.session = session
        self.state = LakeState()

    def load(self) -> LakeState:
        """Bring the state up to date: the newest state file, then the commits behind it.

        Raises FinalError where the log is damaged: what is behind that is not known then.
        """
        is_first = self.state.version < 0
        if is_first:
            self._load_state()
        self._apply_commits()
        if is_first and self._newest() > self.state.version:
            self._apply_commits()  # of another writer, meanwhile
            if self._newest() > self.state.version:
                path = f"{self.files.root}/{_commit_path(self.state.version + 1)}"
                raise FinalError(f"{path} is missing, and commits behind it are there")
        return self.state

    def _apply_commits(self) -> None:
        while (data := self.files.read(path := _commit_path(self.state.version + 1))) is not None:
            try:
                commit = Commit.decode(data)
            except ValueError as error:
                where = f"{self.files.root}/{path}"
                raise FinalError(f"{where} is damaged, no commit: {error}") from None
            self.state.apply(commit)

    def _newest(self) -> int:
        """The number of the newest commit; -1 without any."""
        found = [int(m[1]) for name in self.files.names(COMMITS) if (m := _COMMIT.match(name))]
        return max(found, default=-1)

    def _load_state(self) -> None:
        numbers = [m[1] for name in self.files.names(STATES) if (m := _STATE.match(name))]
        for number in reversed(numbers):
            data = self.files.read(f"{STATES}/{number}.json.gz")
            try:
                if data is not None:
                    self.state = LakeState.decode(data)
                    return
            except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zlib.error):
                continue  # a state can be made again from the commits

    def exists(self) -> bool:
        """Whether there is a lake at all."""
        return any(_COMMIT.match(name) for name in self.files.names(COMMITS))

    def commit(self, commit: Commit, check: Callable[[LakeState], None] | None = None) -> int:
        """Append a commit; its number. `check` sees what others committed before and may refuse.

        Raises FinalError when a newer session under the same name has taken over.
        """
        while True:
            if commit.action != "open" and self.state.sessions.get(self.writer) != self.session:
                raise FinalError(f"another {self.writer!r} has taken over this lake")
            if check is not None:
                check(self.state)
            number = self.state.version + 1
            path, data = _commit_path(number), commit.encode()
            # A store may say that the name is taken when it was this very upload that took it.
            if self.files.create(path, data) or self.files.read(path) == data:
                self.state.apply(commit)
                self._keep_state(number)
                return number
            self.load()

    def _keep_state(self, number: int) -> None:
        """Now and then write the state, so that a start reads few commits. It can be made again
        from them: where it cannot be written the commit counts all the same."""
        if number % STATE_EVERY == STATE_EVERY - 1:
            with contextlib.suppress(Exception):
                self.files.create(f"{STATES}/{number:020d}.json.gz", self.state.encode())

    def open(self, time_ms: int) -> LakeState:
        """Become the only session of this writer's name: what an older one commits now fails."""
        self.load()
        self.commit(Commit("open", self.writer, self.session, time_ms))
        return self.state

    def confirm(self) -> LakeState:
        """The newest state; raises FinalError when another session has taken over."""
        self.load()
        if self.state.sessions.get(self.writer) != self.session:
            raise FinalError(f"another {self.writer!r} has taken over this lake")
        return self.state

    def new_commit(self, action: str, time_ms: int, **fields: Any) -> Commit:
        """A commit of this session."""
        return Commit(action, self.writer, self.session, time_ms, **fields)


def _commit_path(number: int) -> str:
    return f"{COMMITS}/{number:020d}.json"

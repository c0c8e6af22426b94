"""A topic's tables as an archive writes them: who may commit, and from which offsets on.

The next offset of partition N is the version of the transaction id `kwire:offset/N` in the topic's
table; a commit holds it together with the rows before it, and a checkpoint of the table keeps it,
whatever becomes of rows and older commits. A commit reads the ids that it sets, so that of two
commits of one partition the later one fails, whoever makes it.

A writer has a session: opening sets `kwire:session/WRITER` to the next number, and each commit
reads it. What an older session still wants to commit fails from then on, whatever it has written.

Dead letters have a table of their own and are committed first. What that table holds from the
records' next offset on was left by an attempt that did not end, and is removed at the next opening;
readers pass over it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from kwire.clock import SystemClock, SystemRandom
from kwire.spark import lake
from kwire.spark.cluster import Partition
from kwire.spark.column_types import Type
from kwire.spark.delta import ConflictError, TableState, damaged
from kwire.spark.delta_actions import AddedFile
from kwire.spark.topic_source import replaced
from kwire.spark.usage import FinalError, JobError, UsageError

ATTEMPTS = 20


class Writer(NamedTuple):
    """Who archives: the name that sessions share, and this session's own token."""

    name: str
    token: str

    @property
    def prefix(self) -> str:
        """What the names of this session's files begin with."""
        return f"{self.name}.{self.token}."


class Transaction(Protocol):
    """See `delta.DeltaTransaction`."""

    @property
    def state(self) -> TableState | None: ...
    def read(self, names: Iterable[str]) -> dict[str, int]: ...
    def write(self, frame: Any, prefix: str, codec: str) -> list[AddedFile]: ...
    def cut(self, limits: Mapping[int, int], prefix: str, codec: str) -> bool: ...
    def replace(self, changed: Any, prefix: str, codec: str) -> list[AddedFile]: ...
    def commit(
        self,
        applications: Mapping[str, int],
        *,
        time_ms: int,
        metadata: Mapping[str, Any] | None = None,
    ) -> int: ...


class Table(Protocol):
    """See `delta.DeltaTable`."""

    path: str

    def state(self, version: int | None = None) -> TableState | None: ...
    def begin(self, *, by_checksum: bool = False) -> Transaction: ...
    def check_log(self) -> None: ...
    def reaches(self, version: int) -> dict[int, int]: ...
    def record_bytes(self, files: Iterable[AddedFile]) -> int: ...
    def sync(self, files: Iterable[AddedFile], version: int | None = None) -> None: ...
    def remove_unnamed(self, start: str, check: Callable[[TableState], None]) -> int: ...


Write = Callable[[Any], list[AddedFile]]


class Added(NamedTuple):
    """What a batch has added to a topic."""

    records: list[AddedFile]
    dead_letters: list[AddedFile]


class SessionTables:
    """What the tables of one topic have in common under one session of a writer."""

    def __init__(self, topic: str, writer: Writer, form: lake.Form | None = None) -> None:
        self.topic = topic
        self.writer = writer
        self.offsets: dict[int, int] = {}
        self._form = form
        self._session_id = lake.SESSION_ID + writer.name
        self._sessions: dict[str, int] = {}
        self._clock = SystemClock()

    def _refuse(self, table: Table, kind: str, topic_id: str) -> TableState | None:
        """The state of a table, None where there is none; raises what an opening would, before
        anything is committed."""
        table.check_log()
        state = _begun(table).state
        if state is not None:
            self._check(table, state, kind, topic_id)
        return state

    def _take(self, table: Table, kind: str, topic_id: str) -> bool:
        """Begin a session; whether that has made the table."""
        for _ in range(ATTEMPTS):
            transaction = _begun(table)
            state, metadata, time_ms = transaction.state, None, self._clock.wall_ms()
            if state is None:
                metadata = lake.metadata_of(
                    kind, self.topic, topic_id, self._form, new_table_id(), time_ms
                )
            else:
                self._check(table, state, kind, topic_id)
                if self._form is not None:
                    metadata = lake.with_form(state.metadata, kind, self._form)
            number = transaction.read([self._session_id])[self._session_id] + 1
            try:
                version = transaction.commit(
                    {self._session_id: max(1, number)}, time_ms=time_ms, metadata=metadata
                )
            except ConflictError:
                continue
            table.sync((), version)
            self._sessions[table.path] = max(1, number)
            return state is None
        raise FinalError(f"{table.path}: other commits come first again and again")

    def _check(self, table: Table, state: TableState, kind: str, topic_id: str) -> None:
        """Whether a table is the archive of this topic, and will not forget what was archived."""
        own = state.properties
        lake.check_own(table.path, state, kind, self.topic)
        if own.get(lake.TOPIC_ID_PROPERTY) != topic_id:
            raise replaced(self.topic)
        if lake.FORGETTING_PROPERTY in own:
            raise UsageError(
                f"--lake: {table.path} has {lake.FORGETTING_PROPERTY}: it would forget what was "
                "archived; unset it"
            )
        if kind != lake.RECORDS and own.get(lake.APPEND_ONLY_PROPERTY) == "true":
            raise UsageError(
                f"--lake: {table.path} has {lake.APPEND_ONLY_PROPERTY}: rows are taken out of it; "
                "unset it"
            )
        lake.check_columns(table.path, state)
        if state.partitioned_by != lake.partitioned_by(kind):
            raise UsageError(f"--lake: {table.path} is partitioned by {state.partitioned_by}")
        if self._form is not None and kind == lake.RECORDS:
            lake.check_form(table.path, state, self._form)

    def _confirm(self, table: Table, state: TableState) -> None:
        if state.applications.get(self._session_id) != self._sessions[table.path]:
            raise FinalError(f"another {self.writer.name!r} has taken over this lake")

    def _begin(self, table: Table, ranges: Mapping[int, tuple[int, int]] | None) -> Transaction:
        # The log was read at the opening; what is committed since is in the checksums.
        transaction = table.begin(by_checksum=True)
        if transaction.state is None:
            raise FinalError(f"{table.path} is gone")
        self._confirm(table, transaction.state)
        names = {lake.OFFSET_ID + str(n): start for n, (start, _) in (ranges or {}).items()}
        found = transaction.read([self._session_id, *names])
        for number, (start, _) in (ranges or {}).items():
            if found[lake.OFFSET_ID + str(number)] > start:
                raise self._by_another((self.topic, number))
        return transaction

    def _commit(self, table: Table, transaction: Transaction, offsets: Mapping[int, int]) -> None:
        named = {lake.OFFSET_ID + str(number): offset for number, offset in offsets.items()}
        assert transaction.state is not None
        before = transaction.state.applications
        try:
            version = transaction.commit(named, time_ms=self._clock.wall_ms())
        except ConflictError:
            state = lake.read_state(table)
            self._confirm(table, state)
            for name in named:
                if state.applications.get(name) != before.get(name):
                    number = int(name.removeprefix(lake.OFFSET_ID))
                    raise self._by_another((self.topic, number)) from None
            raise
        table.sync((), version)

    def _by_another(self, key: Partition) -> FinalError:
        return FinalError(f"{key[0]}-{key[1]} is archived by another writer of this lake")


class TopicTable(SessionTables):
    """The tables of one topic, opened by one session."""

    def __init__(
        self,
        root: str,
        topic: str,
        writer: Writer,
        open_table: Callable[[str], Table],
        *,
        form: lake.Form | None,
    ) -> None:
        super().__init__(topic, writer, form)
        self.columns: Mapping[str, Type] = {}
        self.records = open_table(lake.table_path(root, lake.RECORDS, topic))
        self.dead_letters = open_table(lake.table_path(root, lake.DEAD_LETTERS, topic))
        self._has_dead = form is not None

    def check(self, topic_id: str) -> None:
        """UsageError for tables that are not this topic's archive or hold rows of another program,
        FinalError for a topic that was made anew. Commits nothing."""
        state = self._refuse(self.records, lake.RECORDS, topic_id)
        if state is not None:
            self._check_reach(state)
        self._refuse(self.dead_letters, lake.DEAD_LETTERS, topic_id)

    def open(self, topic_id: str) -> int:
        """Become the only session of this writer's name; make the table where there is none.

        Returns how many files of attempts that did not end were removed. Raises as `check`, which
        comes first: for all topics, so that of none a table is made where one is refused.
        """
        is_new = self._take(self.records, lake.RECORDS, topic_id)
        # Also without decoding: what was begun with it may have left dead letters behind.
        self._has_dead = self._form is not None or self.dead_letters.state() is not None
        dead_is_new = self._has_dead and self._take(self.dead_letters, lake.DEAD_LETTERS, topic_id)
        # A table that this session has made holds nothing: Spark need not read its log.
        if not is_new:
            self.load()
        if not dead_is_new:
            self._remove_unfinished()
        # Those of older sessions: nothing of them can be committed any more.
        return self.remove_left_overs(everything=True)

    def _check_reach(self, state: TableState) -> None:
        """UsageError where rows lie that no archive has accounted for."""
        offsets = lake.offsets_of(state)
        for number, last in sorted(self.records.reaches(state.version).items()):
            behind = offsets.get(number)
            if behind is None or last >= behind:
                where = "nothing was archived" if behind is None else f"{behind} comes next"
                raise UsageError(
                    f"--lake: {self.records.path} holds offset {last} of partition {number} "
                    f"where {where}: another program wrote it"
                )

    def _remove_unfinished(self) -> None:
        """Take out dead letters of attempts whose records were not committed.

        The commit reads this session's id: where a newer one is at work they are that one's."""
        if not self._has_dead:
            return
        transaction = self._begin(self.dead_letters, None)
        if transaction.cut(self.offsets, self.writer.prefix, "zstd"):
            self._commit(self.dead_letters, transaction, {})

    def load(self) -> None:
        """Bring the offsets up to date; FinalError where a newer session has taken over."""
        state = lake.read_state(self.records)
        self._confirm(self.records, state)
        self.offsets = lake.offsets_of(state)

    def recover(self) -> int:
        """Go on behind a batch that failed, whatever became of it; how many files were removed.

        Raises FinalError where a newer session has taken over."""
        self.load()
        # Of those that were committed the answer may have been lost.
        self._remove_unfinished()
        return self.remove_left_overs()

    def begin_at(self, offsets: Mapping[int, int]) -> None:
        """Commit where partitions begin of which there is nothing yet."""
        transaction = self._begin(self.records, {n: (at, at) for n, at in offsets.items()})
        self._commit(self.records, transaction, offsets)
        self.load()

    def append(
        self,
        ranges: Mapping[int, tuple[int, int]],
        write: Callable[[Write, Write], Added],
        confirm: Callable[[], None],
        codec: str,
    ) -> Added:
        """Write rows of ranges of offsets and commit them with what comes next.

        `write(records, dead_letters)` hands frames to these two; `confirm()` may refuse by raising,
        behind it. Nothing counts before the records' commit.
        """
        records = self._begin(self.records, ranges)
        if records.state is not None:
            self.columns = lake.columns_of(records.state)
        dead = self._begin(self.dead_letters, None) if self._has_dead else None

        def write_records(frame: Any) -> list[AddedFile]:
            return records.write(frame, self.writer.prefix, codec)

        def write_dead(frame: Any) -> list[AddedFile]:
            assert dead is not None
            return dead.write(frame, self.writer.prefix, codec)

        added = write(write_records, write_dead)
        confirm()
        ends = {number: end for number, (_, end) in ranges.items()}
        self.records.sync(added.records)
        if dead is not None and added.dead_letters:
            self.dead_letters.sync(added.dead_letters)
            dead.read(lake.OFFSET_ID + str(number) for number in ends)
            self._commit(self.dead_letters, dead, ends)
        self._commit(self.records, records, ends)
        self.offsets |= ends
        return added

    def record_bytes(self, added: Added) -> int:
        """The bytes of the records that a batch has added."""
        dead = self.dead_letters.record_bytes(added.dead_letters) if added.dead_letters else 0
        return self.records.record_bytes(added.records) + dead

    def remove_left_overs(self, *, everything: bool = False) -> int:
        """Remove files that this session wrote and no commit names (`everything`: older sessions of
        the writer too); how many. Raises FinalError for `everything` where a newer session has
        taken over: they can be that one's."""
        start = f"{self.writer.name}." if everything else self.writer.prefix
        tables = [self.records, self.dead_letters] if self._has_dead else [self.records]

        def check(table: Table, state: TableState) -> None:
            if everything:
                self._confirm(table, state)

        return sum(table.remove_unnamed(start, partial(check, table)) for table in tables)


def _begun(table: Table) -> Transaction:
    """A transaction; FinalError where the table's log is damaged."""
    try:
        return table.begin()
    except (JobError, UsageError):
        raise
    except Exception as error:
        raise damaged(table.path, error) from error


def new_table_id() -> str:
    """A random UUID (RFC 9562, version 4) as text."""
    return str(uuid.UUID(bytes=SystemRandom().random_bytes(16), version=4))

"""Delta tables through delta-spark's own transactions.

A commit of an archive holds data files and the next offset of several partitions, each an
application's transaction (`txn` of the Delta protocol: an id and a version). Spark's DataFrame
writer takes one such pair a commit, so that the transaction is driven here, by Py4J. What goes into
it is the protocol's own JSON, which delta-spark parses; what comes out is JSON as well.

    log = DeltaLog.forTable(...)          one a table and process, kept by delta-spark
    transaction = log.startTransaction()  reads a version of the table
    transaction.readTxn()                 ids it has read; a commit of one that is first conflicts
    transaction.writeFiles(FRAME)         data files, not yet of the table
    transaction.commit(ACTIONS, ...)      the next version, or an exception

Source: Delta transaction log protocol (https://github.com/delta-io/delta/blob/master/PROTOCOL.md),
"Transaction Identifiers"; measured on delta-spark 4.4.0 (docs/adr/0048-lakes-are-delta-tables.md).
"""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kwire.log.files import SystemFiles
from kwire.spark.column_types import MisfitError, evolved, from_json
from kwire.spark.delta_actions import (
    AddedFile,
    KnownIds,
    added_file,
    metadata_action,
    newer_protocol,
    remove_action,
    transaction_action,
    transaction_ids,
)
from kwire.spark.footers import record_bytes
from kwire.spark.java_errors import java_class, java_message
from kwire.spark.lake_files import is_local, open_lake_files
from kwire.spark.shaping import shaped
from kwire.spark.usage import FinalError, JobError, UsageError

LOG_FOLDER = "_delta_log"
LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
# For each core.
LISTING_TASKS = 4
PREFIX_SETTING = "spark.databricks.delta.testOnly.dataFileNamePrefix"
# Folders that a task writes to at a time. Rows of one more make the writer sort what is left, by
# folder: else it sorts all rows, which mostly are of one or two days and a partition.
OPEN_FOLDERS_SETTING = "spark.sql.maxConcurrentOutputFileWriters"
OPEN_FOLDERS = 2
# Names of committed files that a session keeps in memory.
NAMES_MAX = 100_000
# How many `DeltaOperations.Write` has beside the mode.
WRITE_OPTIONS = 8
_CONFLICTS = ("Concurrent", "MetadataChanged", "ProtocolChanged")
# The condition that Spark names where a file is not there.
_FILE_GONE = "FILE_NOT_EXIST"
_TOO_NEW = ("InvalidProtocolVersion", "UnsupportedTableFeature", "UNSUPPORTED_FEATURES")
# A table's own rules: rows that break one break it again.
_RULES = r"VIOLATE_CONSTRAINT|NOT_NULL_CONSTRAINT|CANNOT_MODIFY_APPEND_ONLY"
_BROKEN_RULE = re.compile(rf"\[DELTA_(?:{_RULES})\w*\] ([^\n]*)")
_LOG_FILE = re.compile(rf"{LOG_FOLDER}/[^\s/]+\.(?:json|parquet)")
# What of a file's statistics is used; times are text with milliseconds.
STATISTICS = (
    "numRecords bigint, minValues struct<offset: bigint, timestamp: string>, "
    "maxValues struct<offset: bigint, timestamp: string>"
)


class ConflictError(JobError):
    """Another commit came first, and what it did concerns this one."""


class TableState(NamedTuple):
    """What a table is at a version. `applications`: the version of each transaction id."""

    version: int
    properties: Mapping[str, str]
    columns: Mapping[str, str]
    partitioned_by: tuple[str, ...]
    applications: Mapping[str, int]
    metadata: Mapping[str, Any]


class DeltaTable:
    """A folder that is a Delta table, or becomes one by its first commit."""

    def __init__(self, spark: Any, path: str) -> None:
        self.spark = spark
        self.path = path
        self._jvm = spark._jvm
        self._delta = self._jvm.org.apache.spark.sql.delta
        self._none = self._jvm.scala.Option.empty()
        self._log: Any = None
        self._committed: set[str] = set()
        self._known: KnownIds | None = None

    def log(self) -> Any:
        """delta-spark's log of the table, up to date."""
        if self._log is None or not self._log.tableExists():
            # What it has kept of a folder that was no table then says nothing.
            place = self._jvm.org.apache.hadoop.fs.Path(self.path)
            self._log = self._read(
                lambda: self._delta.DeltaLog.forTable(self.spark._jsparkSession, place)
            )
        return self._log

    def snapshot(self, version: int | None = None) -> Any:
        """delta-spark's snapshot: the newest, or that of a version."""
        log = self.log()
        newest = self._read(lambda: log.update(False, self._none, self._none))
        if version is None or version == int(newest.version()):
            return newest
        return self._read(lambda: log.getSnapshotAt(version, self._none, self._none, False))

    def state(self, version: int | None = None) -> TableState | None:
        """The newest state, or that of a version; None where there is no table."""
        snapshot = self.snapshot(version)
        return self._state_of(snapshot) if snapshot.version() >= 0 else None

    def _state_of(self, snapshot: Any, *, by_checksum: bool = False) -> TableState:
        metadata = json.loads(self._read(lambda: snapshot.metadata().json()))["metaData"]
        schema = json.loads(metadata["schemaString"])
        version = int(snapshot.version())
        return TableState(
            version=version,
            properties=metadata.get("configuration") or {},
            columns={
                field["name"]: field["type"] if isinstance(field["type"], str) else "complex"
                for field in schema["fields"]
            },
            partitioned_by=tuple(metadata["partitionColumns"]),
            applications=self._applications(snapshot, (metadata["id"], version), by_checksum),
            metadata=metadata,
        )

    def _applications(
        self, snapshot: Any, place: tuple[str, int], by_checksum: bool
    ) -> dict[str, int]:
        """The version of each transaction id; see `begin`."""
        if by_checksum:
            if self._known is not None and self._known.place == place:
                return dict(self._known.applications)
            checksum = self._call(snapshot.checksumOpt)
            if checksum.isDefined() and (known := checksum.get().setTransactions()).isDefined():
                return transaction_ids(known.get().mkString("\n"))
        text = self._call(lambda: snapshot.transactions().mkString("\n"))
        pairs = (line.rpartition(" -> ") for line in text.split("\n") if line)
        return {name: int(number) for name, _, number in pairs}

    def check_log(self) -> None:
        """FinalError where a commit is an empty file: delta-spark takes it for one of nothing."""
        for info in open_lake_files(self.path, self.spark).walk(LOG_FOLDER):
            if info.path.endswith(".json") and info.size_bytes == 0:
                raise FinalError(f"{self.path}/{info.path} is damaged, no commit: it is empty")

    def check_writable(self) -> None:
        """UsageError where a table that is there may be read only, by its protocol."""
        snapshot = self.snapshot()
        self._call(lambda: self.log().protocolWrite(snapshot.protocol()))

    def begin(self, *, by_checksum: bool = False) -> DeltaTransaction:
        """A transaction on the newest version.

        Its transaction ids come from the whole log, of which delta-spark reads every file's entry;
        `by_checksum`: from the version's checksum file, where delta-spark has put them in, or, of a
        version that this object has committed, from memory: neither is a look at the log.
        """
        log = self.log()
        transaction = self._read(lambda: log.startTransaction(self._none, self._none))
        snapshot = transaction.snapshot()
        known = snapshot.version() >= 0
        if known:
            self._call(lambda: log.protocolWrite(snapshot.protocol()))
        state = self._state_of(snapshot, by_checksum=by_checksum) if known else None
        return DeltaTransaction(self, transaction, state)

    def files(self, version: int | None = None) -> Any:
        """A frame of the data files of a version: path, size, partitionValues, records,
        first_offset, last_offset, last_time (timestamp), partition and date (text), dataChange."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as f

        snapshot = self.snapshot(version)
        found = DataFrame(snapshot.allFiles().toDF(), self.spark)
        stats = f.from_json("stats", STATISTICS)
        return found.withColumn("read", stats).select(
            "path",
            "size",
            "partitionValues",
            f.col("partitionValues")["partition"].cast("int").alias("partition"),
            f.col("partitionValues")["date"].alias("date"),
            f.col("read.numRecords").alias("records"),
            f.col("read.minValues.offset").alias("first_offset"),
            f.col("read.maxValues.offset").alias("last_offset"),
            f.col("read.minValues.timestamp").try_cast("timestamp").alias("first_time"),
            f.col("read.maxValues.timestamp").try_cast("timestamp").alias("last_time"),
        )

    def removed_files(self) -> list[tuple[str, int]]:
        """(relative path, ms when it was removed) of files that older versions still name."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as f

        found = DataFrame(self.snapshot().tombstones().toDF(), self.spark)
        rows = found.select("path", f.coalesce("deletionTimestamp", f.lit(0)).alias("at")).collect()
        return [(urllib.parse.unquote(row.path), row.at) for row in rows]

    def version_at(self, time_ms: int) -> int:
        """The version that was the newest at a time; UsageError where that is not known."""
        moment = self._jvm.java.sql.Timestamp(time_ms)
        history = self.log().history()
        found = self._asked(
            lambda: history.getActiveCommitAtTime(moment, self._none, True, True, False)
        )
        return int(found.version())

    def check_version(self, version: int) -> None:
        """UsageError where a version cannot be read any more, or is none."""
        history = self.log().history()
        self._asked(lambda: history.checkVersionExists(version, self._none, True, False))

    def check_files(self, version: int) -> None:
        """UsageError where files of an older version are deleted by now: readers would meet that
        in the middle of their work, or not at all where they leave such files out."""
        newest = self.snapshot().version()
        if version == newest:
            return
        old, new = (self.files(number).select("path") for number in (version, newest))
        named = [urllib.parse.unquote(row.path) for row in old.subtract(new).collect()]
        if not named:
            return
        there = {info.path for info in open_lake_files(self.path, self.spark).walk("")}
        # Files of another place, as a clone of a table has them, are not looked for.
        if any(path not in there for path in named if ":/" not in path and path[0] != "/"):
            raise UsageError(
                f"{self.path}: version {version} is gone: files that it needs were deleted"
            )

    def timestamp_ms(self, version: int) -> int:
        """When a version was committed."""
        return int(self._call(lambda: self.snapshot(version).timestamp()))

    def reaches(self, version: int) -> dict[int, int]:
        """{partition: the last offset in it} of a version, by the files' statistics."""
        from pyspark.sql import functions as f

        found = (
            self.files(version)
            .groupBy("partition")
            .agg(f.max("last_offset").alias("last"))
            .collect()
        )
        return {
            row.partition: row.last
            for row in found
            if row.partition is not None and row.last is not None
        }

    def remove(self, paths: Sequence[str], time_ms: int) -> int:
        """A commit that takes files out of the table; ConflictError where one is gone already."""
        from pyspark.sql import functions as f

        transaction = self.begin()
        chosen = self.files().where(f.col("path").isin(list(paths))).collect()
        if len(chosen) != len(paths):
            raise ConflictError(f"{self.path}: another commit has removed some of the files")
        actions = [remove_action(row, time_ms) for row in chosen]
        return transaction.commit({}, time_ms=time_ms, actions=actions)

    def remove_unnamed(self, start: str, check: Callable[[TableState], None]) -> int:
        """Delete data files whose names begin with `start` and that no version names; how many.

        Listed first, then the log is read: what is committed between is named by it, and `check`
        may refuse by raising where files of the list can be another's."""
        files = open_lake_files(self.path, self.spark)
        found = [
            info.path
            for info in files.walk("")
            if not info.path.startswith(LOG_FOLDER)
            and info.path.rpartition("/")[2].startswith(start)
            and info.path not in self._committed
        ]
        state = self.state() if found else None
        if state is None:
            return 0
        check(state)
        named = {urllib.parse.unquote(row.path) for row in self.files().select("path").collect()}
        named.update(path for path, _ in self.removed_files())
        left = [path for path in found if path not in named]
        files.delete(left)
        return len(left)

    def record_bytes(self, files: Iterable[AddedFile]) -> int:
        """The bytes of keys and values in data files, before any encoding, by their footers."""
        return record_bytes(self.spark, self.path, [file.path for file in files])

    def note_committed(self, files: Iterable[AddedFile]) -> None:
        """Files that a version names: of these `remove_unnamed` need not ask the log, which costs
        Spark several CPU-seconds the first time. Some of them are forgotten where they are many."""
        self._committed.update(file.path for file in files)
        while len(self._committed) > NAMES_MAX:
            self._committed.pop()

    def note_applications(
        self, table_id: str, version: int, read: int, applications: Mapping[str, int]
    ) -> None:
        """The transaction ids of a version that was committed on the version `read` (-1: on no
        table). Where commits of others lie between, these may have set some too."""
        is_next = version == read + 1
        self._known = KnownIds((table_id, version), applications) if is_next else None

    def optimize(self, condition: str, settings: Mapping[str, str]) -> int:
        """OPTIMIZE ... WHERE a condition on partition columns; how many files were replaced.

        ConflictError where another commit came first, also where files of before it are deleted
        while they are read."""
        from pyspark.sql import DataFrame

        before = int(self.snapshot().version())
        conf = self.spark._jsparkSession.sessionState().conf()
        for name, value in settings.items():
            conf.setConfString(name, value)
        table = self._public()
        try:
            rows = self._call(
                lambda: DataFrame(table.optimize().where(condition).executeCompaction(), self.spark)
            ).collect()
        except Exception as error:
            if _FILE_GONE in str(error) and int(self.snapshot().version()) != before:
                raise ConflictError(f"{self.path}: another commit came first") from error
            raise
        return int(sum(row.metrics.numFilesRemoved for row in rows))

    def vacuum(self, hours: float) -> None:
        """Remove what no version of the last hours names, also what others left."""
        # delta-spark lists folders in so many tasks, by default ten thousand, however few they are.
        tasks = LISTING_TASKS * self.spark.sparkContext.defaultParallelism
        self.spark._jsparkSession.sessionState().conf().setConfString(LISTING, str(tasks))
        table = self._public()
        # It prints what it has done, where a job's summary goes.
        console = getattr(getattr(self._jvm, "scala.Console$"), "MODULE$")
        told = console.out()
        nowhere = self._jvm.java.io.OutputStream.nullOutputStream()
        console.setOutDirect(self._jvm.java.io.PrintStream(nowhere))
        try:
            self._call(lambda: table.vacuum(float(hours)))
        finally:
            console.setOutDirect(told)

    def _public(self) -> Any:
        return self._call(
            lambda: self._jvm.io.delta.tables.DeltaTable.forPath(
                self.spark._jsparkSession, self.path
            )
        )

    def sync(self, files: Iterable[AddedFile], version: int | None = None) -> None:
        """Bring data files, or what a commit has left in the log, to a local disk.

        Raises OSError where a file is not there."""
        if not is_local(self.path):
            return
        root = open_lake_files(self.path).root
        names = [file.path for file in files]
        if version is not None:
            start = f"{version:020d}."
            found = os.listdir(f"{root}/{LOG_FOLDER}")
            names += [f"{LOG_FOLDER}/{name}" for name in found if name.startswith(start)]
        system = SystemFiles()
        for name in names:
            handle = system.open(f"{root}/{name}", writable=False)
            try:
                system.fdatasync(handle)
            finally:
                system.close(handle)
        if version is not None:
            system.sync_directory(f"{root}/{LOG_FOLDER}")

    def _read(self, what: Callable[[], Any]) -> Any:
        """As `_call`, of what reads the log: of a protocol that is too new it may say no more than
        that it cannot make sense of an action."""
        try:
            return self._call(what)
        except (JobError, UsageError):
            raise
        except Exception:
            files = open_lake_files(self.path, self.spark)
            for name in reversed(files.names(LOG_FOLDER)):
                data = files.read(f"{LOG_FOLDER}/{name}") if name.endswith(".json") else None
                if (newer := newer_protocol(data or b"")) is not None:
                    raise UsageError(
                        f"{self.path}: needs a newer Delta: {LOG_FOLDER}/{name} asks for {newer}"
                    ) from None
            raise

    def _call(self, what: Callable[[], Any]) -> Any:
        """What delta-spark answers; its exceptions as the jobs' own, where there is one."""
        try:
            return what()
        except Exception as error:
            text = f"{java_class(error)} {str(error)[:300]}"
            if (broken := _BROKEN_RULE.search(str(error))) is not None:
                rule = broken[1].removesuffix(" by row with values:")
                raise FinalError(f"{self.path}: {rule}"[:400]) from None
            if any(word in java_class(error) for word in _CONFLICTS):
                raise ConflictError(f"{self.path}: another commit came first") from error
            if any(word in text for word in _TOO_NEW):
                first = java_message(error)
                raise UsageError(f"{self.path}: needs a newer Delta: {first}") from None
            raise

    def _asked(self, what: Callable[[], Any]) -> Any:
        """As `_call`; what the table has not is a wrong option."""
        try:
            return what()
        except Exception as error:
            raise UsageError(f"{self.path}: {java_message(error)}") from None


class DeltaTransaction:
    """One attempt at a commit. `state`: the table that it has read, None without any."""

    def __init__(self, table: DeltaTable, transaction: Any, state: TableState | None) -> None:
        self.table = table
        self.state = state
        self._transaction = transaction
        self._added: Any = None
        self._files: list[AddedFile] = []
        self._removed: list[Any] = []
        self._is_evolved = False

    def read(self, names: Iterable[str]) -> dict[str, int]:
        """The versions of transaction ids, -1 for one that is none yet. A commit of any of them
        that comes before this one makes it fail.

        As `txnVersion` of delta-spark, which asks the whole log."""
        known = self.state.applications if self.state is not None else {}
        noted = self._transaction.readTxn()
        found = {}
        for name in names:
            self.table._call(partial(noted.addOne, name))
            found[name] = known.get(name, -1)
        return found

    def write(self, frame: Any, prefix: str, codec: str) -> list[AddedFile]:
        """Write rows; the files, which are the table's with the commit. Their names begin with
        `prefix`: those of an attempt that came to nothing can be told. Columns and fields that the
        table has not become its own, with the commit."""
        self._evolve(frame)
        spark = self.table.spark
        conf = spark._jsparkSession.sessionState().conf()
        conf.setConfString(PREFIX_SETTING, prefix)
        conf.setConfString(OPEN_FOLDERS_SETTING, str(OPEN_FOLDERS))
        conf.setConfString("spark.sql.parquet.compression.codec", codec)
        self._added = self.table._call(lambda: self._transaction.writeFiles(frame._jdf))
        found = self.table._jvm.scala.jdk.javaapi.CollectionConverters.asJava(self._added)
        self._files = [added_file(json.loads(action.json())["add"]) for action in found]
        return self._files

    def _evolve(self, frame: Any) -> None:
        """Delta's schema evolution: what a frame has more is part of the table from the commit."""
        if self.state is None:
            return
        schema = json.loads(self.state.metadata["schemaString"])
        try:
            grown = evolved(schema, frame.schema.jsonValue())
        except MisfitError as error:
            raise FinalError(f"{self.table.path}: the column {error}") from None
        if grown is None or self._is_evolved:
            return
        metadata = {**self.state.metadata, "schemaString": json.dumps(grown)}
        action = metadata_action(self.table._jvm, metadata)
        self.table._call(lambda: self._transaction.updateMetadata(action, False))
        self._is_evolved = True

    def cut(self, limits: Mapping[int, int], prefix: str, codec: str) -> bool:
        """Take out the rows of each partition from an offset on (0 for one without a limit), as
        part of the commit; whether there are any."""
        from pyspark.sql import functions as f

        assert self.state is not None
        version, spark = self.state.version, self.table.spark
        limit = f.lit(0).cast("bigint")
        for number, offset in limits.items():
            limit = f.when(f.col("partition") == number, f.lit(offset)).otherwise(limit)
        found = self.table.files(version).withColumn("limit", limit)
        self._removed = found.where(f.col("last_offset") >= f.col("limit")).collect()
        # A compaction has joined them with others.
        mixed = [row.path for row in self._removed if row.first_offset < row.limit]
        if mixed:
            names = [urllib.parse.unquote(path).rpartition("/")[2] for path in mixed]
            rows = spark.read.format("delta").option("versionAsOf", version).load(self.table.path)
            inside = rows.where(f.col("_metadata.file_name").isin(names))
            self.write(inside.where(f.col("offset") < limit), prefix, codec)
        return bool(self._removed)

    def replace(self, changed: Any, prefix: str, codec: str) -> list[AddedFile]:
        """What MERGE does, as part of the commit: rows take the place of those with the same
        partition and key, and those without a value take them out. `changed` has one row a key.

        Files that hold such a key are written again; which these are is looked up by a join."""
        from pyspark import StorageLevel

        kept = changed.persist(StorageLevel.DISK_ONLY)
        try:
            return self._replace(kept, prefix, codec)
        finally:
            kept.unpersist()

    def _replace(self, changed: Any, prefix: str, codec: str) -> list[AddedFile]:
        from pyspark.sql import functions as f

        assert self.state is not None
        version, spark = self.state.version, self.table.spark
        place, name = ["partition", "key"], f.col("_metadata.file_name").alias("file")
        rows = spark.read.format("delta").option("versionAsOf", version).load(self.table.path)
        keys = changed.select(*place)
        held = rows.select(*place, name).join(keys, place, "left_semi").select("file").distinct()
        names = {row.file for row in held.collect()}
        found = self.table.files(version).collect() if names else []
        self._removed = [
            row for row in found if urllib.parse.unquote(row.path).rpartition("/")[2] in names
        ]
        new = changed.where("value is not null")
        if names:
            wanted = {field.name: from_json(field.dataType.jsonValue()) for field in changed.schema}
            others = rows.where(f.col("_metadata.file_name").isin(sorted(names)))
            others = others.join(keys, place, "left_anti")
            new = shaped(others, wanted).unionByName(new)
        return self.write(new, prefix, codec)

    def commit(
        self,
        applications: Mapping[str, int],
        *,
        time_ms: int,
        actions: Sequence[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Commit what was written with transaction ids and further actions of the protocol.

        Returns the version. Raises ConflictError where a commit between concerns this one.
        `metadata`: a new `metaData` of the table, or its first.
        """
        jvm, table = self.table._jvm, self.table
        if metadata is not None:
            action = metadata_action(jvm, metadata)
            if self.state is None:
                self._transaction.updateMetadataForNewTable(action)
            else:
                self._transaction.updateMetadata(action, False)
        found = jvm.java.util.ArrayList()
        converters = jvm.scala.jdk.javaapi.CollectionConverters
        if self._added is not None:
            found.addAll(converters.asJava(self._added))
        for name, number in applications.items():
            found.add(transaction_action(jvm, name, number, time_ms))
        for content in (*actions, *(remove_action(row, time_ms) for row in self._removed)):
            found.add(table._delta.actions.Action.fromJson(json.dumps(content)))
        adds_only = not actions and not self._removed
        operation = self._append() if adds_only else self._manual()
        rows = converters.asScala(found).toSeq()
        version = int(table._call(lambda: self._transaction.commit(rows, operation)))
        table.note_committed(self._files)
        of = self.state.metadata if self.state is not None else metadata
        known = self.state.applications if self.state is not None else {}
        if of is not None:
            read = self.state.version if self.state is not None else -1
            table.note_applications(of["id"], version, read, {**known, **applications})
        return version

    def _append(self) -> Any:
        """What Spark's own appends say of themselves. Behind any other word for it delta-spark
        would read the whole log again, instead of adding the commit to what it knows."""
        jvm, none = self.table._jvm, self.table._none
        mode = jvm.org.apache.spark.sql.SaveMode.Append
        write = getattr(jvm, "org.apache.spark.sql.delta.DeltaOperations$Write")
        return write(mode, *[none] * WRITE_OPTIONS)

    def _manual(self) -> Any:
        name = "org.apache.spark.sql.delta.DeltaOperations$ManualUpdate$"
        return getattr(getattr(self.table._jvm, name), "MODULE$")


def damaged(path: str, error: BaseException) -> FinalError:
    """What stops a job at a table whose log cannot be read."""
    message = java_message(error)
    named = _LOG_FILE.findall(str(error))
    where = f"{path}/{named[-1]}" if named and LOG_FOLDER not in message else path
    return FinalError(f"{where}: its log cannot be read: {message}")

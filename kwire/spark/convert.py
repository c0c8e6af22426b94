"""lake convert: a lake of an older kwire, with a log of its own, becomes Delta tables where it is.

No record is copied: files are moved to the folder of their table, then a commit names them, with
their statistics, and the next offset of each partition. What was done stays done: a table that is
there is complete. At the end the old log is removed, the newest commit first, so that what is left
of it is an older log of the same lake whenever that is cut off.
"""

from __future__ import annotations

import argparse
import datetime
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from kwire.clock import SystemClock, SystemRandom
from kwire.spark import lake
from kwire.spark.delta import DeltaTable
from kwire.spark.job import EXIT_DONE, EXIT_INTERRUPTED, Job, Progress, require, run_job
from kwire.spark.lake_files import LakeFiles, check_folder, is_local, open_lake_files
from kwire.spark.lake_log import (
    COMMITS,
    DEAD_LETTERS,
    RECORDS,
    STATES,
    DataFile,
    LakeLog,
    LakeState,
)
from kwire.spark.session import open_session
from kwire.spark.topic_table import new_table_id
from kwire.spark.usage import UsageError

OLD_DEAD_LETTERS = "_dead_letter"
KINDS = {RECORDS: lake.RECORDS, DEAD_LETTERS: lake.DEAD_LETTERS}
# A year that the text of a file's statistics has four digits for.
TEXT_MS_MAX = 253_402_300_799_999
TEXT_MS_MIN = -62_135_596_800_000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("convert",), help="what to do")
    parser.add_argument("--lake", metavar="FOLDER", help="a lake of an older kwire")


def check(options: argparse.Namespace) -> None:
    require(options, "lake")
    check_folder(options.lake, "--lake")
    if is_local(options.lake):
        _check_old(open_lake_files(options.lake), options.lake)


def _check_old(files: LakeFiles, location: str) -> None:
    if lake.is_old(files):
        return
    if lake.table_folders(files) or lake.has_log(files, ""):
        raise UsageError(f"--lake {location}: is a lake of Delta tables already")
    raise UsageError(f"--lake {location}: no lake there")


class Conversion:
    """One run over a lake."""

    def __init__(self, spark: Any, files: LakeFiles, progress: Progress) -> None:
        self.spark = spark
        self.files = files
        self.progress = progress
        self.log = LakeLog(files, "convert", SystemRandom().random_bytes(6).hex())
        self.clock = SystemClock()
        self.converted: list[str] = []

    def run(self) -> bool:
        """Convert what is left; whether that was all of it."""
        state = self.log.load()
        self._check(state)
        # A job of the old kind that is still at work cannot commit any more.
        for writer in sorted(state.sessions):
            LakeLog(self.files, writer, self.log.session).open(self.clock.wall_ms())
        state = self.log.load()
        self.files.delete(state.removed)
        for topic in topics_of(state):
            offsets = {n: at for (name, n), at in state.offsets.items() if name == topic}
            topic_id = state.topics[topic]
            # The records' table last: it says that the topic is done.
            for table in (DEAD_LETTERS, RECORDS):
                if self.progress.stopping:
                    return False
                found = state.select(table, [topic])
                if found or table == RECORDS:
                    self._convert(KINDS[table], topic, topic_id, found, offsets)
        self._remove_log()
        return True

    def _check(self, state: LakeState) -> None:
        """UsageError, before anything is done, where a table is in the way or a data file is gone:
        what was converted before that would be half of a lake."""
        done: set[str] = set()
        for topic in topics_of(state):
            if topic not in state.topics:
                raise UsageError(f"--lake: has files of topic {topic}, and no id of it")
            for kind in KINDS.values():
                folder = lake.folder_of(kind, topic)
                if lake.has_log(self.files, folder):
                    table = DeltaTable(self.spark, lake.table_path(self.files.root, kind, topic))
                    table.check_log()
                    check_converted(table, kind, topic, state.topics[topic])
                    done.add(folder)
        there = {info.path: info.size_bytes for info in self.files.walk("")}
        for file in state.files.values():
            folder = lake.folder_of(KINDS[file.table], file.topic)
            size_bytes = there.get(file.path, there.get(f"{folder}/{inner_path(file)}"))
            # Of a table that is there another job may have replaced files.
            if folder not in done and size_bytes != file.size_bytes:
                what = "is missing" if size_bytes is None else f"has {size_bytes} bytes"
                raise UsageError(
                    f"--lake: {self.files.root}/{file.path} {what}, the lake's log says "
                    f"{file.size_bytes}"
                )

    def _convert(
        self,
        kind: str,
        topic: str,
        topic_id: str,
        files: Sequence[DataFile],
        offsets: Mapping[int, int],
    ) -> None:
        table = DeltaTable(self.spark, lake.table_path(self.files.root, kind, topic))
        folder = lake.folder_of(kind, topic)
        if lake.has_log(self.files, folder):
            check_converted(table, kind, topic, topic_id)
            return
        for file in files:
            self.files.move(file.path, f"{folder}/{inner_path(file)}")
        transaction = table.begin()
        time_ms = self.clock.wall_ms()
        metadata = lake.metadata_of(kind, topic, topic_id, lake.JSON_TEXT, new_table_id(), time_ms)
        applications = {lake.OFFSET_ID + str(number): at for number, at in offsets.items()}
        actions = [add_action(file, time_ms) for file in files]
        version = transaction.commit(
            applications, time_ms=time_ms, metadata=metadata, actions=actions
        )
        table.sync((), version)
        records = sum(file.records for file in files)
        size_bytes = sum(file.size_bytes for file in files)
        self.converted.append(folder)
        self.progress.add(records, size_bytes, what=f"{folder}: {len(files)} files")

    def _remove_log(self) -> None:
        for folder in (STATES, COMMITS):
            names = sorted(self.files.names(folder), reverse=True)
            self.files.delete(f"{folder}/{name}" for name in names)


def topics_of(state: LakeState) -> list[str]:
    """The topics of an old lake."""
    return sorted(set(state.topics) | {file.topic for file in state.files.values()})


def check_converted(table: lake.Stateful, kind: str, topic: str, topic_id: str) -> None:
    """UsageError where a table that is there is none of a conversion: with the old log the records
    would be gone."""
    own = lake.read_state(table).properties
    wanted = {
        lake.FORMAT_PROPERTY: lake.FORMAT,
        lake.KIND_PROPERTY: kind,
        lake.TOPIC_PROPERTY: topic,
        lake.TOPIC_ID_PROPERTY: topic_id,
    }
    if any(own.get(name) != value for name, value in wanted.items()):
        raise UsageError(f"--lake: {table.path} is another table, in the way of {topic}'s; move it")


def inner_path(file: DataFile) -> str:
    """The path of a data file below the folder of its topic."""
    return file.path.partition("topic=")[2].partition("/")[2]


def add_action(file: DataFile, time_ms: int) -> dict[str, Any]:
    """The `add` of a file of an old lake, with the statistics that its log has."""
    least: dict[str, Any] = {"offset": file.first_offset}
    most: dict[str, Any] = {"offset": file.last_offset}
    if file.first_ms >= TEXT_MS_MIN and file.last_ms <= TEXT_MS_MAX:
        least["timestamp"], most["timestamp"] = time_text(file.first_ms), time_text(file.last_ms)
    statistics = {"numRecords": file.records, "minValues": least, "maxValues": most}
    return {
        "add": {
            "path": urllib.parse.quote(inner_path(file), safe="/=+,"),
            "partitionValues": {"date": file.date, "partition": str(file.partition)},
            "size": file.size_bytes,
            "modificationTime": time_ms,
            "dataChange": True,
            "stats": json.dumps(statistics),
        }
    }


def time_text(time_ms: int) -> str:
    """A time as Delta's statistics have it.

    >>> time_text(1_760_000_000_123)
    '2025-10-09T08:53:20.123Z'
    """
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=time_ms)
    return moment.isoformat(timespec="milliseconds") + "Z"


def run(options: argparse.Namespace, progress: Progress) -> tuple[int, dict[str, Any]]:
    spark = open_session(options, "lake", needs_kafka=False, needs_delta=True)
    files = open_lake_files(options.lake, spark)
    _check_old(files, options.lake)
    files.check_commits(of_delta=True)
    progress.has_batches, progress.size_of = True, "in files"
    conversion = Conversion(spark, files, progress)
    is_complete = conversion.run()
    summary = {"lake": options.lake, "tables": conversion.converted}
    return EXIT_DONE if is_complete else EXIT_INTERRUPTED, summary


JOB = Job(
    name="lake",
    summary="convert a lake of an older kwire into Delta tables",
    description="Convert a lake of an older kwire into Delta tables where it is: no record is\n"
    "copied. Killed at any point and run again it goes on where it was.",
    example="kwire spark lake convert --lake /data/lake",
    add_options=add_options,
    check=check,
    run=run,
    needs_kafka=False,
)


def main(arguments: list[str] | None = None) -> int:
    """`kwire spark lake`, or this file under spark-submit."""
    return run_job(JOB, arguments)


if __name__ == "__main__":
    raise SystemExit(main())

"""Sessions of archive and mirror without Spark: who may remove and commit what, and from where."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from kwire.spark import archive, batching, mirror, mirror_offsets
from kwire.spark.archive import Archiver
from kwire.spark.cluster import EARLIEST, LATEST, Partition, TopicInfo
from kwire.spark.job import Job, Progress, parser_of
from kwire.spark.lake import (
    DATA_SCHEMA,
    DEAD_LETTERS,
    JSON_TEXT,
    PLACE_SCHEMA,
    RECORDS,
    Form,
    fields_of,
    form_of,
    table_path,
)
from kwire.spark.lake import LATEST as LATEST_TABLE
from kwire.spark.latest import LatestTable
from kwire.spark.mirror import Mirror
from kwire.spark.mirror_offsets import entry
from kwire.spark.topic_source import Ranges
from kwire.spark.topic_table import Added, TopicTable, Write, Writer
from kwire.spark.usage import FinalError, UsageError
from tests.support.tables import (
    Commit,
    FakeTransaction,
    KilledError,
    Tables,
    compacted,
    key_of,
)

pytest.importorskip("pyspark")
pytest.importorskip("confluent_kafka")


class FakeCluster:
    """Topics of one partition each: (id, first offset, end)."""

    def __init__(self, **topics: tuple[str, int, int]) -> None:
        self.at = topics

    def matching(self, topics: Iterable[str], pattern: str | None) -> list[str]:
        return sorted(self.at if pattern else topics)

    def describe(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        return {n: TopicInfo(n, self.at[n][0], (0,)) for n in names if n in self.at}

    def offsets(
        self, partitions: Iterable[Partition], at: str | int, *, committed: bool = False
    ) -> dict[Partition, int]:
        return {key: self.at[key[0]][1 if at == EARLIEST else 2] for key in partitions}

    def topic_configs(self, name: str) -> dict[str, str]:
        return {}

    def create_topic(self, name: str, partitions: int, configs: Any = None) -> None:
        self.at[name] = ("copy", 0, 0)


class FakeArchiver(Archiver):
    """Its frames are lists of (partition, offset); `on_write` happens while a batch is written."""

    on_write: Callable[[], None] = staticmethod(lambda: None)
    tables_of_lake: Tables

    def new_table(self, topic: str) -> TopicTable:
        return TopicTable(self.root, topic, self.writer, self.tables_of_lake.open, form=JSON_TEXT)

    def new_latest(self, topic: str) -> LatestTable:
        return LatestTable(self.root, topic, self.writer, self.tables_of_lake.open)

    def changes(self, topic: str) -> Callable[[Any], Any]:
        """The last row of each key, tombstones among them."""

        def found(ranges: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
            rows = rows_of(Path(self.root), topic)
            inside = [row for row in rows if ranges[row[0]][0] <= row[1] < ranges[row[0]][1]]
            last = {(number, key_of(at)): (number, at) for number, at in inside}
            return sorted(last.values())

        return found

    def _write(self, ranges: Ranges, records: Write, dead_letters: Write) -> Added:
        rows = [(n, at) for (_, n), (start, end) in ranges.items() for at in range(start, end)]
        good = records([row for row in rows if row[1] % 5])
        added = Added(good, dead_letters([row for row in rows if row[1] % 5 == 0]))
        self.on_write()
        return added


LAKES: dict[Path, Tables] = {}


def rows_of(lake: Path, topic: str = "t") -> list[tuple[int, int]]:
    """What the tables of a topic hold."""
    tables = LAKES[lake]
    kinds = (RECORDS, DEAD_LETTERS)
    return sorted(row for kind in kinds for row in tables.rows(table_path(str(lake), kind, topic)))


def named_files(lake: Path) -> set[str]:
    """The data files that a commit has named."""
    return {path for found in LAKES[lake].commits.values() for one in found for path in one.files}


def options_of(job: Job, *arguments: str) -> argparse.Namespace:
    options = parser_of(job).parse_args(list(arguments))
    job.check(options)
    return options


def archiver(lake: Path, cluster: FakeCluster, *arguments: str) -> FakeArchiver:
    options = options_of(
        *(archive.JOB, "-b", "127.0.0.1:1", "--topics", ",".join(cluster.at)),
        *("--lake", str(lake), "--once", *arguments),
    )
    made = FakeArchiver(options, Progress("archive", quiet=True), MagicMock())
    made.cluster = cluster  # type: ignore[assignment]
    made.tables_of_lake = LAKES.setdefault(lake, Tables(lake))
    return made


def data_files(lake: Path) -> list[Path]:
    return sorted(lake.rglob("*.parquet"))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "RETRY_PAUSE_S", 0)
    monkeypatch.setattr(mirror, "RETRY_PAUSE_S", 0)


def test_a_replaced_session_removes_nothing_of_the_newer_one(tmp_path: Path) -> None:
    """Its batch failed because the newer one was there, and it took the newer one's files for
    those of an attempt that did not end: committed records were gone."""
    cluster = FakeCluster(t=("id", 0, 10))
    old, new = archiver(tmp_path, cluster), archiver(tmp_path, cluster)

    def replaced() -> None:
        new.open()
        new.run()
        raise FileNotFoundError("what the newer session has removed")

    old.open()
    old.on_write = replaced  # type: ignore[method-assign]
    with pytest.raises(FinalError, match="taken over"):
        old.run()
    assert len(data_files(tmp_path)) == 2
    assert rows_of(tmp_path) == [(0, at) for at in range(10)]
    assert new.offsets() == {("t", 0): 10}


@pytest.mark.parametrize("number", [0, 1])
def test_a_commit_whose_answer_was_lost_counts_and_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The retry read the state before it, and removed what it had just committed. That of dead
    letters, the first of the two, was made again."""
    cluster = FakeCluster(t=("id", 0, 10))
    one = archiver(tmp_path, cluster)
    one.open()
    commit = FakeTransaction.commit
    left = [number]

    def lost(self: FakeTransaction, applications: Any, **more: Any) -> int:
        version = commit(self, applications, **more)
        left[0] -= 1
        if left[0] == -1:
            raise OSError("no answer")
        return version

    monkeypatch.setattr(FakeTransaction, "commit", lost)
    one.run()
    assert one.offsets() == {("t", 0): 10}
    assert rows_of(tmp_path) == [(0, at) for at in range(10)]
    assert {path.name for path in data_files(tmp_path)} == named_files(tmp_path)


def test_a_replaced_session_takes_nothing_out_of_the_newer_ones_hands(tmp_path: Path) -> None:
    """What it lists at its end can be what the newer one is writing, in files and dead letters."""
    cluster = FakeCluster(t=("id", 0, 10))
    old, new = archiver(tmp_path, cluster), archiver(tmp_path, cluster)
    old.open()
    new.open()
    seen: list[int] = []

    def ended() -> None:
        for step in (old.remove_left_overs, old.tables["t"].recover):
            with pytest.raises(FinalError, match="taken over"):
                step()
        table = old.tables["t"]
        table.offsets = {}
        with pytest.raises(FinalError, match="taken over"):
            table._remove_unfinished()
        seen.append(len(data_files(tmp_path)))

    new.on_write = ended  # type: ignore[method-assign]
    new.run()
    assert seen == [2]
    assert rows_of(tmp_path) == [(0, at) for at in range(10)]


def test_a_data_file_that_is_gone_before_the_commit_is_written_again(tmp_path: Path) -> None:
    """What a batch has written is looked at before it counts."""
    one = archiver(tmp_path, FakeCluster(t=("id", 0, 10)))
    one.open()

    def emptied() -> None:
        one.on_write = lambda: None  # type: ignore[method-assign]
        for path in data_files(tmp_path):
            path.unlink()

    one.on_write = emptied  # type: ignore[method-assign]
    one.run()
    assert len(data_files(tmp_path)) == 2
    assert rows_of(tmp_path) == [(0, at) for at in range(10)]


def test_killed_anywhere_nothing_is_twice_and_nothing_missing(tmp_path: Path) -> None:
    """Records and dead letters are two commits: what is between them counts for neither."""
    cluster = FakeCluster(t=("id", 0, 23))
    for steps in range(60):
        lake = tmp_path / str(steps)
        for allowed in (steps, steps // 2, None):
            one = archiver(lake, cluster, "--batch-records", "7")
            one.tables_of_lake.steps = allowed
            try:
                one.open()
                one.run()
            except KilledError:
                continue
        assert rows_of(lake) == [(0, at) for at in range(23)], steps
        assert {path.name for path in data_files(lake)} == named_files(lake), steps


def latest_of(lake: Path) -> list[tuple[int, int]]:
    return LAKES[lake].rows(table_path(str(lake), LATEST_TABLE, "t"))


def test_killed_anywhere_the_newest_records_are_those_of_some_offsets(tmp_path: Path) -> None:
    """They follow the archive, also where it is ahead by more than a batch."""
    cluster = FakeCluster(t=("id", 0, 23))
    whole = [(0, at) for at in range(23)]
    states = [compacted(whole[:end]) for end in range(24)]
    for steps in range(60):
        lake = tmp_path / str(steps)
        # The first run archives something without such a table.
        for allowed, more in ((steps, ()), (steps, ("x",)), (steps // 2, ("x",)), (None, ("x",))):
            given = ("--batch-records", "7", *("--latest-by-key" for _ in more))
            one = archiver(lake, cluster, *given)
            one.tables_of_lake.steps = allowed
            try:
                one.open()
                one.run()
            except KilledError:
                assert latest_of(lake) in states
                continue
        assert rows_of(lake) == whole, steps
        assert latest_of(lake) == states[23], steps
        assert {path.name for path in data_files(lake)} == named_files(lake), steps


def test_an_older_session_changes_no_newest_record(tmp_path: Path) -> None:
    cluster = FakeCluster(t=("id", 0, 10))
    old, new = (archiver(tmp_path, cluster, "--latest-by-key") for _ in range(2))
    old.open()
    new.open()
    latest = old.latest["t"]
    for step in (latest.recover, lambda: latest.follow({0: 5}, lambda _: [(0, 1)], "zstd")):
        with pytest.raises(FinalError, match="taken over"):
            step()
    new.run()
    assert latest_of(tmp_path) == compacted([(0, at) for at in range(10)])


def test_what_is_no_archive_of_the_topic_is_refused(tmp_path: Path) -> None:
    """A table of another topic or program, one that forgets, rows that nobody accounts for."""
    cluster = FakeCluster(t=("id", 0, 10))
    archiver(tmp_path, cluster).open()
    tables = LAKES[tmp_path]
    path = table_path(str(tmp_path), RECORDS, "t")
    (first,) = tables.commits[path]
    assert first.metadata is not None
    known = first.metadata["configuration"]
    for changed, words in (
        ({"kwire.topic": "other"}, "is the table of topic other"),
        ({"kwire.format": "7"}, "is a table of another program"),
        ({"delta.setTransactionRetentionDuration": "interval 1 day"}, "would forget"),
    ):
        tables.commits[path] = [
            Commit(first.applications, {}, {**first.metadata, "configuration": known | changed})
        ]
        with pytest.raises(UsageError, match=words):
            archiver(tmp_path, cluster).open()
    tables.commits[path] = [Commit(first.applications, {"theirs": [(0, 3)]}, first.metadata)]
    with pytest.raises(UsageError, match="offset 3 of partition 0 where nothing was archived"):
        archiver(tmp_path, cluster).open()


@pytest.mark.parametrize("kind", [RECORDS, DEAD_LETTERS, LATEST_TABLE])
def test_a_table_that_is_refused_leaves_all_others_as_they_were(tmp_path: Path, kind: str) -> None:
    """A session had been committed to the tables before it, and tables of other topics made."""
    one = archiver(tmp_path, FakeCluster(b=("id", 0, 10)), "--latest-by-key")
    one.open()
    one.run()
    tables = LAKES[tmp_path]
    (first, *later) = tables.commits[table_path(str(tmp_path), kind, "b")]
    assert first.metadata is not None
    cluster = FakeCluster(a=("id", 0, 10), b=("id", 0, 10))
    known = first.metadata["configuration"]
    for wrong, words in (
        ({"configuration": known | {"kwire.topic": "other"}}, "is the table of topic other"),
        ({"configuration": {}}, "is a table of another program"),
        ({"partitionColumns": []}, "is partitioned by"),
        ({"schemaString": first.metadata["schemaString"].replace("headers", "h")}, "no column h"),
        ({"schemaString": first.metadata["schemaString"].replace('"long"', '"byte"')}, "another"),
        *[
            ({"configuration": known | {"delta.appendOnly": "true"}}, "rows are taken out of it")
            for _ in range(kind != RECORDS)
        ],
    ):
        changed = Commit(first.applications, first.files, {**first.metadata, **wrong})
        tables.commits[table_path(str(tmp_path), kind, "b")] = [changed, *later]
        before = {path: len(found) for path, found in tables.commits.items() if found}
        with pytest.raises(UsageError, match=words):
            archiver(tmp_path, cluster, "--latest-by-key").open()
        assert {path: len(found) for path, found in tables.commits.items() if found} == before


def test_tables_of_another_form_are_refused_before_any_commit(tmp_path: Path) -> None:
    """Another decoder, columns of another program or type: a line, and the table is as it was."""
    cluster = FakeCluster(t=("id", 0, 10))
    tables = LAKES.setdefault(tmp_path, Tables(tmp_path))
    avro = form_of({"value": "avro"}, flatten=False)

    def open_as(form: Form) -> None:
        writer = Writer("w", "token")
        TopicTable(str(tmp_path), "t", writer, tables.open, form=form).open(cluster.at["t"][0])

    open_as(avro)
    path = table_path(str(tmp_path), RECORDS, "t")
    (first,) = tables.commits[path]
    assert first.metadata is not None
    none = {**first.metadata, "configuration": dict(first.metadata["configuration"])}
    for name in ("value", "flatten"):
        del none["configuration"][f"kwire.decode.{name}"]

    def with_column(name: str, kind: str) -> dict[str, Any]:
        fields = fields_of(f"{DATA_SCHEMA}, {PLACE_SCHEMA}, {name} {kind}")
        return {**none, "schemaString": json.dumps({"type": "struct", "fields": fields})}

    for metadata, form, words in (
        (first.metadata, JSON_TEXT, "--decode json: .* as avro, by schemas"),
        (first.metadata, form_of({"value": "json"}, False), "--decode json: .* values as avro"),
        (first.metadata, form_of({"value": "avro"}, True), "--flatten: .* was archived without"),
        (with_column("valueSchemaId", "string"), avro, "column valueSchemaId that is no integer"),
        (with_column("valueJson", "int"), JSON_TEXT, "column valueJson that is no string"),
        (with_column("valueDecoded", "string"), avro, "valueDecoded of another program"),
        (with_column("value_x", "string"), avro, "value_x of another program"),
    ):
        tables.commits[path] = [Commit(first.applications, {}, metadata)]
        with pytest.raises(UsageError, match=words):
            open_as(form)
        assert len(tables.commits[path]) == 1
    # A table that was archived without decoding takes on a form, and keeps it.
    tables.commits[path] = [Commit(first.applications, {}, none)]
    open_as(form_of({"value": "json", "key": "avro"}, flatten=True))
    with pytest.raises(UsageError, match=r"--decode-key json: .* keys as avro"):
        open_as(form_of({"value": "json", "key": "json"}, flatten=True))


def test_a_session_that_fails_leaves_no_files(tmp_path: Path) -> None:
    """Plain readers would see them until the same writer is started again."""
    cluster = FakeCluster(t=("id", 0, 10))
    first, second = archiver(tmp_path, cluster), archiver(tmp_path, cluster, "--name", "other")
    first.open()
    second.open()

    def overtaken() -> None:
        second.run()

    first.on_write = overtaken  # type: ignore[method-assign]
    with pytest.raises(FinalError, match="archived by another writer"):
        first.run()
    assert {path.name.split(".")[0] for path in data_files(tmp_path)} == {"other"}
    assert rows_of(tmp_path) == [(0, at) for at in range(10)]


def test_from_latest_archives_what_comes_behind_the_first_look(tmp_path: Path) -> None:
    """Where it begins was looked up anew each time: it never archived anything."""
    cluster = FakeCluster(t=("id", 3, 10))
    first = archiver(tmp_path, cluster, "--from", LATEST)
    first.open()
    first.run()
    assert data_files(tmp_path) == []
    cluster.at["t"] = ("id", 3, 14)
    again = archiver(tmp_path, cluster, "--from", LATEST)
    again.open()
    again.run()
    assert rows_of(tmp_path) == [(0, at) for at in range(10, 14)]


def test_a_topic_made_anew_while_a_batch_is_read_is_not_archived_as_the_old_one(
    tmp_path: Path,
) -> None:
    cluster = FakeCluster(t=("id", 0, 10))
    one = archiver(tmp_path, cluster)

    def recreated() -> None:
        cluster.at["t"] = ("another", 0, 12)

    one.open()
    one.on_write = recreated  # type: ignore[method-assign]
    with pytest.raises(FinalError, match="deleted and created again"):
        one.run()
    assert data_files(tmp_path) == []
    assert one.offsets() == {}


def test_a_topic_that_is_gone_behind_its_last_batch_is_archived(tmp_path: Path) -> None:
    cluster = FakeCluster(t=("id", 0, 10))
    one = archiver(tmp_path, cluster)
    one.open()
    one.on_write = lambda: cluster.at.pop("t") and None  # type: ignore[method-assign]
    one.run()
    assert one.offsets() == {("t", 0): 10}


def test_a_log_that_was_truncated_is_told(tmp_path: Path) -> None:
    """Offsets are given again: with committed records only, too, it went on without a word."""
    cluster = FakeCluster(t=("id", 0, 10))
    one = archiver(tmp_path, cluster)
    one.open()
    one.run()
    cluster.at["t"] = ("id", 0, 8)
    again = archiver(tmp_path, cluster)
    again.open()
    with pytest.raises(FinalError, match="t-0 ends at 8, before 10"):
        again.run()


def test_without_a_jvm_nothing_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took --retry-seconds to say that Spark had ended."""
    one = archiver(tmp_path, FakeCluster(t=("id", 0, 10)))
    one.open()
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        raise ConnectionRefusedError

    one.on_write = fail  # type: ignore[method-assign]
    monkeypatch.setattr(batching, "lost_jvm", lambda: "gone")
    with pytest.raises(ConnectionRefusedError):
        one.run()
    assert len(tries) == 1


def test_stopped_between_batches_once_is_not_complete(tmp_path: Path) -> None:
    one = archiver(tmp_path, FakeCluster(t=("id", 0, 10)), "--batch-records", "5")

    def stop() -> None:
        one.progress.stopping = True

    one.open()
    one.on_write = stop  # type: ignore[method-assign]
    one.run()
    assert not one.is_complete
    assert one.offsets() == {("t", 0): 5}
    rest = archiver(tmp_path, FakeCluster(t=("id", 0, 10)))
    rest.open()
    rest.run()
    assert rest.is_complete


def a_mirror(state: Path, source: FakeCluster, target: FakeCluster, *arguments: str) -> Mirror:
    options = options_of(
        *(mirror.JOB, "-b", "127.0.0.1:1", "--to", "127.0.0.1:2", "--alias", "a"),
        *("--to-alias", "b", "--pattern", ".*", "--state", str(state), "--once", *arguments),
    )
    made = Mirror(options, Progress("mirror", quiet=True), MagicMock())
    made.source, made.target = source, target  # type: ignore[assignment]
    return made


def test_a_mirror_from_latest_mirrors_what_comes_behind_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Ranges] = []
    monkeypatch.setattr(Mirror, "send", lambda self, ranges, folder: sent.append(ranges))
    monkeypatch.setattr(Mirror, "recover", lambda self, partitions: None)
    monkeypatch.setattr(mirror_offsets, "count", lambda *_: (1, 1, []))
    source, target = FakeCluster(t=("id", 0, 10)), FakeCluster()
    a_mirror(tmp_path, source, target, "--from", LATEST).run()
    assert sent == []
    source.at["t"] = ("id", 0, 12)
    a_mirror(tmp_path, source, target, "--from", LATEST).run()
    assert sent == [{("t", 0): (10, 12)}]


def test_two_mirrors_with_prefixes_make_no_copies_of_copies(tmp_path: Path) -> None:
    """Each made a topic for what the other had made, until no name was long enough."""
    a, b = FakeCluster(orders=("id", 0, 0)), FakeCluster(clicks=("id", 0, 0))
    for _ in range(3):
        a_mirror(tmp_path / "ab", a, b, "--prefix", "a.").topics()
        back = a_mirror(tmp_path / "ba", b, a, "--prefix", "b.")
        back.options.to_alias = "a"
        back.topics()
    assert sorted(a.at) == ["b.clicks", "orders"]
    assert sorted(b.at) == ["a.orders", "clicks"]


def test_three_mirrors_in_a_ring_with_prefixes_make_no_copies_of_copies(tmp_path: Path) -> None:
    """Only copies that came from the target directly were left out."""
    clusters = {
        name: FakeCluster(**{f"{name}-t": (f"id {name}", 0, 0)}) for name in ("a", "b", "c")
    }
    ring = (("a", "b"), ("b", "c"), ("c", "a"))
    for _ in range(5):
        for source, target in ring:
            one = a_mirror(
                tmp_path / source, clusters[source], clusters[target], "--prefix", f"{source}."
            )
            one.options.to_alias = target
            one.topics()
    assert sorted(clusters["a"].at) == ["a-t", "c.b.b-t", "c.c-t"]
    assert sorted(clusters["c"].at) == ["b.a.a-t", "b.b-t", "c-t"]


@pytest.fixture
def sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of mirrors leave a folder of runs and send no record."""

    def send(one: Mirror, ranges: Ranges, folder: str) -> None:
        path = Path(one.log.files.root) / folder / "part"
        path.parent.mkdir(parents=True)
        path.touch()

    monkeypatch.setattr(Mirror, "send", send)
    monkeypatch.setattr(Mirror, "recover", lambda self, partitions: None)
    monkeypatch.setattr(
        mirror_offsets, "count", lambda spark, log, folder: (1, 1, [entry(folder, 1, 1)])
    )


@pytest.mark.usefixtures("sends_nothing")
@pytest.mark.parametrize("anew", [False, True])
def test_a_copy_that_is_gone_or_made_anew_ends_a_mirror(tmp_path: Path, anew: bool) -> None:
    """It was made again, without what had been mirrored before, and nothing was said."""
    source, target = FakeCluster(t=("id", 0, 10)), FakeCluster()
    a_mirror(tmp_path, source, target).run()
    a_mirror(tmp_path, source, target).run()
    source.at["t"] = ("id", 0, 12)
    del target.at["t"]
    if anew:
        target.at["t"] = ("another", 0, 0)
    words = "t was made anew in the target" if anew else "t is gone from the target"
    with pytest.raises(FinalError, match=words):
        a_mirror(tmp_path, source, target).run()
    assert target.at.keys() == ({"t"} if anew else set())


@pytest.mark.usefixtures("sends_nothing")
def test_a_copy_that_is_made_anew_while_a_batch_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was sent before is gone: the batch counts only once all of it is in one topic."""
    source, target = FakeCluster(t=("id", 0, 10)), FakeCluster()
    one = a_mirror(tmp_path, source, target)
    send, sent = Mirror.send, []

    def anew(self: Mirror, ranges: Ranges, folder: str) -> None:
        send(self, ranges, folder)
        if not sent:
            target.at["t"] = ("another", 0, 0)
        sent.append(ranges)

    monkeypatch.setattr(Mirror, "send", anew)
    one.run()
    assert sent == [{("t", 0): (0, 10)}] * 2
    # Nor is left what the first attempt wrote.
    folders = [path.name for path in (tmp_path / "offsets").iterdir()]
    assert [f"offsets/{name}" for name in folders] == list(one.log.state.files)


def test_topics_that_go_are_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic of a pattern that was deleted was passed over without a word."""
    options = options_of(
        *(archive.JOB, "-b", "127.0.0.1:1", "--pattern", ".*", "--lake", str(tmp_path / "lake"))
    )
    one = FakeArchiver(options, Progress("archive"), MagicMock())
    source = FakeCluster(t=("id", 0, 10), u=("u", 0, 0))
    one.cluster = source  # type: ignore[assignment]
    one.tables_of_lake = Tables(tmp_path)
    one.open()
    other = a_mirror(tmp_path / "state", source, FakeCluster())
    other.progress = Progress("mirror")
    for look in (one.batch, other.topics, source.at.clear, *(one.batch, other.topics) * 2):
        look()
    told = capsys.readouterr().err
    for line in (
        "archive: topic t is gone; what was archived of it stays\n",
        "mirror: topic u is gone from the source; its copy stays\n",
    ):
        assert told.count(line) == 1


@pytest.mark.usefixtures("sends_nothing")
def test_a_lag_report_that_cannot_be_written_stops_no_mirror(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gave up after minutes, though everything was mirrored."""
    one = a_mirror(tmp_path, FakeCluster(t=("id", 0, 10)), FakeCluster())
    one.options.lag_report = str(tmp_path / "no folder" / "lag")
    one.progress = Progress("mirror")
    one.run()
    assert one.is_complete
    told = capsys.readouterr().err
    assert "lag: No such file or directory\n" in told
    assert "trying again" not in told

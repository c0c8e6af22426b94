"""A lake: a Delta table a topic, and the tables are the only accounting there is.

    topic.T/              the records of topic T, by date and partition
    dead_letter.T/        values of it that could not be decoded, with a reason
    latest.T/             the newest record of each key, as compaction would leave it
    _kwire/replays/       where replays of the lake began in their targets

A `=` in the name of a folder would be a partition for some readers. A table is named after its
topic in its properties too, with the topic's id; its records have no column for it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

from kwire.spark.column_types import Type, from_json
from kwire.spark.delta import LOG_FOLDER, DeltaTable, TableState, damaged
from kwire.spark.lake_files import LakeFiles, is_local, open_lake_files
from kwire.spark.usage import JobError, UsageError, check_address

RECORDS = "topic"
DEAD_LETTERS = "dead_letter"
LATEST = "latest"
REPLAYS = "_kwire/replays"
# Where the lakes of kwire 1 keep their log (lake_log.py).
OLD_LOG = "_kwire/commits"
FORMAT_PROPERTY = "kwire.format"
FORMAT = "1"
KIND_PROPERTY = "kwire.kind"
TOPIC_PROPERTY = "kwire.topic"
TOPIC_ID_PROPERTY = "kwire.topic.id"
DECODE_PROPERTY = "kwire.decode."
APPEND_ONLY_PROPERTY = "delta.appendOnly"
FORGETTING_PROPERTY = "delta.setTransactionRetentionDuration"
OFFSET_ID = "kwire:offset/"
SESSION_ID = "kwire:session/"
HEADERS = "array<struct<key: string, value: binary>>"
DATA_SCHEMA = (
    "offset bigint, timestamp timestamp, timestampType int, key binary, value binary, "
    f"headers {HEADERS}, leaderEpoch int"
)
DECODED_SCHEMA = "valueSchemaId int, valueJson string"
ID_SCHEMA = "valueSchemaId int"
REASON_SCHEMA = "reason string"
PLACE_SCHEMA = "date string, partition int"
PARTITION_COLUMNS = ("date", "partition")
RECORD_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "leaderEpoch",
)
# Spark takes a path for a pattern otherwise, and a lake may lie in a folder of any name.
PLAIN_PATHS = ("__globPaths__", "false")
LAKE_COLUMNS = (*RECORD_COLUMNS, "date", "valueSchemaId", "valueJson", "reason")
ALL_SCHEMA = f"topic string, {DATA_SCHEMA}, {PLACE_SCHEMA}, {DECODED_SCHEMA}, {REASON_SCHEMA}"
# Without these another program's table is no archive of a topic.
NEEDED_COLUMNS = ("partition", "offset", "timestamp", "key", "value")
# Spark's names of types in JSON, by those of its DDL.
_HEADER_FIELDS = [
    {"name": "key", "type": "string", "nullable": True, "metadata": {}},
    {"name": "value", "type": "binary", "nullable": True, "metadata": {}},
]
_TYPES: dict[str, Any] = {
    "bigint": "long",
    "int": "integer",
    HEADERS: {
        "type": "array",
        "elementType": {"type": "struct", "fields": _HEADER_FIELDS},
        "containsNull": True,
    },
}
_TABLE = re.compile(rf"({RECORDS}|{DEAD_LETTERS}|{LATEST})\.([A-Za-z0-9._-]+)\Z")


class Form(NamedTuple):
    """What a table has for decoded records: columns of the records' table and of the dead letters'
    as DDL, and properties that say so."""

    records: str = DECODED_SCHEMA
    dead_letters: str = ID_SCHEMA
    properties: tuple[tuple[str, str], ...] = ()

    def columns(self, kind: str) -> str:
        return self.records if kind == RECORDS else self.dead_letters


JSON_TEXT = Form()


def form_of(sides: Mapping[str, str], flatten: bool) -> Form:
    """Of records that become columns; `sides` has the format of `value` and of `key`. The columns
    themselves come with the first values."""
    ids = ", ".join(f"{side}SchemaId int" for side in ("value", "key") if side in sides)
    properties = [(DECODE_PROPERTY + side, form) for side, form in sorted(sides.items())]
    return Form(ids, ids, (*properties, (DECODE_PROPERTY + "flatten", str(flatten).lower())))


def check_form(path: str, state: TableState, form: Form) -> None:
    """UsageError where a table has decoded columns of another form, or of another program."""
    own, wanted = state.properties, dict(form.properties)
    if form == JSON_TEXT and (known := own.get(DECODE_PROPERTY + "value")) is not None:
        raise UsageError(
            f"--decode json: {path} has decoded its values as {known}, by schemas; "
            "give --registry or --schemas"
        )
    for name, value in wanted.items():
        if (known := own.get(name, value)) != value:
            what = name.removeprefix(DECODE_PROPERTY)
            if what == "flatten":
                done = "with" if known == "true" else "without"
                raise UsageError(f"--flatten: {path} was archived {done} it")
            option = "--decode" if what == "value" else "--decode-key"
            raise UsageError(f"{option} {value}: {path} has decoded its {what}s as {known}")
    columns = columns_of(state)
    for field in fields_of(form.columns(RECORDS)):
        found = columns.get(field["name"], field["type"])
        if found != field["type"]:
            raise UsageError(
                f"--lake: {path} has a column {field['name']} that is no {field['type']}"
            )
    for side in ("value", "key"):
        if DECODE_PROPERTY + side in wanted and DECODE_PROPERTY + side not in own:
            for name in columns:
                if name == f"{side}Decoded" or name.startswith(f"{side}_"):
                    raise UsageError(f"--lake: {path} has a column {name} of another program")


def columns_of(state: TableState) -> dict[str, Type]:
    """The columns of a table with their types."""
    fields = json.loads(state.metadata["schemaString"])["fields"]
    return {field["name"]: from_json(field["type"]) for field in fields}


def partitioned_by(kind: str) -> tuple[str, ...]:
    """The partition columns of a table: a key keeps its partition, and not its date."""
    return ("partition",) if kind == LATEST else PARTITION_COLUMNS


def folder_of(kind: str, topic: str) -> str:
    """The folder of a topic's table, in the lake."""
    return f"{kind}.{topic}"


def table_path(root: str, kind: str, topic: str) -> str:
    """The folder of a topic's table."""
    return f"{root}/{folder_of(kind, topic)}"


def has_log(files: LakeFiles, folder: str) -> bool:
    """Whether a folder of the lake is a Delta table."""
    path = f"{folder}/{LOG_FOLDER}" if folder else LOG_FOLDER
    return any(name.endswith((".json", ".parquet")) for name in files.names(path))


def table_folders(files: LakeFiles) -> list[tuple[str, str]]:
    """(kind, topic) of the tables that a lake has."""
    found = [match for name in files.names("") if (match := _TABLE.match(name))]
    return [(match[1], match[2]) for match in found if has_log(files, match[0])]


def is_old(files: LakeFiles) -> bool:
    """Whether a folder is a lake of kwire 1, or was one and is half converted."""
    return any(name.endswith(".json") for name in files.names(OLD_LOG))


def refuse_old(files: LakeFiles, location: str, option: str) -> None:
    """UsageError for a lake of kwire 1."""
    if not is_old(files):
        return
    what = "a lake of an older kwire"
    if table_folders(files):
        what = "half converted"
    todo = f"kwire spark lake convert --lake {location}"
    raise UsageError(f"{option} {location}: {what}; run: {todo}")


def refuse_without_log(files: LakeFiles, topics: Collection[str]) -> None:
    """UsageError where a folder of one of the topics holds files and is no table: a new table there
    would hide what was in it. (A table's log is begun before its files.)"""
    for name in files.names(""):
        match = _TABLE.match(name)
        if match is None or match[2] not in topics or has_log(files, name):
            continue
        for file in files.walk(name):
            inner = file.path.removeprefix(f"{name}/")
            if not inner.startswith("_") and not inner.rsplit("/", 1)[-1].startswith("."):
                raise UsageError(
                    f"--lake: {files.root}/{name} holds {inner} and no log of a table; bring its "
                    f"{LOG_FOLDER} back, or move the files away"
                )


def check_archive(location: str, option: str) -> None:
    """UsageError where no archive is at a place of this machine, or an address has credentials in
    it; other places are looked at later."""
    if not is_local(location):
        check_address(location, option)
        return
    files = open_lake_files(location)
    try:
        refuse_old(files, location, option)
        if not has_log(files, "") and not table_folders(files):
            raise UsageError(f"{option} {location}: no archive there")
    except OSError as error:
        raise UsageError(f"{option} {location}: {error.strerror or error}") from None


class Archive:
    """The tables of a lake, or a table of another program, as readers see them: each at the version
    that it has when it is asked for first.

    `as_of`: a version of the (one) topic's table, or a time in ms.
    """

    def __init__(
        self, location: str, spark: Any, option: str, as_of: tuple[str, int] | None = None
    ) -> None:
        self.files = open_lake_files(location, spark)
        self.root = self.files.root
        self.spark = spark
        self.option = option
        self.as_of = as_of
        refuse_old(self.files, location, option)
        self.tables: dict[str, ReadTable] = {}
        self.latest: list[str] = []
        # The table, where the place is one itself.
        self.alone: ReadTable | None = None
        if has_log(self.files, ""):
            self.alone = ReadTable(self, self.root, None)
            self.topics = self.alone.topics
            return
        found = table_folders(self.files)
        if not found:
            raise UsageError(f"{option} {location}: no archive there")
        self._dead = {topic for kind, topic in found if kind == DEAD_LETTERS}
        self.topics = [topic for kind, topic in found if kind == RECORDS]
        self.latest = [topic for kind, topic in found if kind == LATEST]

    def select(self, topics: Collection[str] | None) -> list[ReadTable]:
        """The tables of some topics (None: all), as of the moment that was asked for."""
        if self.alone is not None:
            is_wanted = topics is None or not set(topics).isdisjoint(self.alone.names)
            return [self.alone] if is_wanted else []
        wanted = [name for name in self.topics if topics is None or name in topics]
        if self.as_of is not None and self.as_of[0] == "version" and len(wanted) > 1:
            raise UsageError("--as-of: a version is one table's; choose a topic with --topics")
        for name in wanted:
            if name not in self.tables:
                path = table_path(self.root, RECORDS, name)
                self.tables[name] = ReadTable(self, path, name, name in self._dead)
        return [self.tables[name] for name in wanted]

    def newest(self, topic: str) -> ReadTable:
        """The table of the newest record of each key."""
        table = ReadTable(self, table_path(self.root, LATEST, topic), topic)
        check_own(table.table.path, table.state, LATEST, topic)
        return table


class ReadTable:
    """A topic's table at one version, with its dead letters."""

    def __init__(self, archive: Archive, path: str, topic: str | None, has_dead: bool = False):
        self._spark = archive.spark
        self.table = DeltaTable(archive.spark, path)
        self.table.check_log()
        self.state = read_state(self.table, self._version(archive.as_of))
        own = self.state.properties.get(TOPIC_PROPERTY)
        if topic is not None and own is not None and own != topic:
            raise UsageError(f"{archive.option} {path}: is the table of topic {own}")
        self.topic = topic or own or path.rstrip("/").rsplit("/", 1)[-1]
        self._check_columns(archive.option)
        self.topics = [self.topic]
        # Spark's own stream of a topic to a table has a column for it.
        if topic is None and "topic" in self.state.columns:
            self.topics = self._topics()
        if archive.as_of is not None:
            self.table.check_files(self.state.version)
        self._dead = archive.root if has_dead else None
        self._as_of = archive.as_of

    def _version(self, as_of: tuple[str, int] | None) -> int | None:
        if as_of is None:
            return None
        kind, number = as_of
        if kind == "version":
            self.table.check_version(number)
            return number
        return self.table.version_at(number)

    @property
    def names(self) -> list[str]:
        """What the table, or a part of it, may be called."""
        return list(dict.fromkeys((self.topic, *self.topics)))

    def _topics(self) -> list[str]:
        """The topics of a table that has a column for them."""
        found = self._load(self.table.path, self.state.version)
        rows = found.selectExpr("cast(topic as string) topic").distinct().collect()
        return sorted(row.topic for row in rows if row.topic is not None)

    def _check_columns(self, option: str) -> None:
        for name in NEEDED_COLUMNS:
            if name not in self.state.columns:
                raise UsageError(f"{option} {self.table.path}: no column {name}, no archive")

    def places(self, options: argparse.Namespace) -> dict[tuple[str, int], int]:
        """{partition: the newest time in ms, 0 where it is not known} of what options choose, by
        the files' statistics, or by the rows of another program's table."""
        from pyspark.sql import functions as f

        if TOPIC_PROPERTY in self.state.properties:
            files = self.table.files(self.state.version)
            if (dead := self._dead_table()) is not None:
                files = files.unionByName(dead[0].files(dead[1]))
            files = files.withColumn("topic", f.lit(self.topic))
        else:
            at, time = f.col("offset"), f.col("timestamp")
            parts = (at.alias("first_offset"), at.alias("last_offset"))
            times = (time.alias("first_time"), time.alias("last_time"))
            files = self.frame().select("topic", "partition", *parts, *times)
            if options.topic_list is not None:
                files = files.where(f.col("topic").isin(options.topic_list))
        newest = f.coalesce(f.max(f.unix_millis("last_time")), f.lit(0)).alias("newest")
        rows = in_files(files, options).groupBy("topic", "partition").agg(newest).collect()
        return {
            (row.topic, row.partition): row.newest
            for row in rows
            if row.topic is not None and row.partition is not None
        }

    def frame(self, *, whole: bool = False) -> Any:
        """The records with ALL_SCHEMA, or the `whole` table with decoded columns behind that; those
        that could not be decoded among them, with a reason.

        Dead letters are committed first: what lies behind the records' next offsets is not yet
        archived, or left by a killed job.
        """
        frame = _fitted(self._load(self.table.path, self.state.version), self.topic, whole=whole)
        if (dead := self._dead_table()) is None:
            return frame
        found = _fitted(self._load(dead[0].path, dead[1]), self.topic)
        offsets = offsets_of(self.state)
        if not offsets:
            return frame  # nothing is archived: what lies there is of a killed job
        ends = self._spark.createDataFrame(sorted(offsets.items()), "partition int, behind bigint")
        known = found.join(ends.hint("broadcast"), "partition").where("offset < behind")
        return frame.unionByName(known.drop("behind"), allowMissingColumns=True)

    def _dead_table(self) -> tuple[DeltaTable, int] | None:
        """The table of dead letters and its version; None without any."""
        if self._dead is None:
            return None
        table = DeltaTable(self._spark, table_path(self._dead, DEAD_LETTERS, self.topic))
        state = read_state(table)
        check_own(table.path, state, DEAD_LETTERS, self.topic)
        if self._as_of is None:
            return table, state.version
        try:
            version = table.version_at(self.table.timestamp_ms(self.state.version))
        except UsageError:  # there were none yet
            return None
        table.check_files(version)
        return table, version

    def _load(self, path: str, version: int) -> Any:
        return self._spark.read.format("delta").option("versionAsOf", version).load(path)


def _fitted(frame: Any, topic: str, *, whole: bool = False) -> Any:
    """A table's rows with ALL_SCHEMA: columns that it has not are null, its topic is told. `whole`:
    what else it has comes behind that."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    wanted: Any = StructType.fromDDL(ALL_SCHEMA)
    columns = []
    for field in wanted.fields:
        if field.name == "valueJson":
            found = _decoded_json(frame)
        elif field.name in frame.columns:
            found = f.col(field.name).cast(field.dataType)
        else:
            found = f.lit(topic if field.name == "topic" else None).cast(field.dataType)
        columns.append(found.alias(field.name))
    more = [name for name in frame.columns if whole and name not in wanted.fieldNames()]
    return frame.select(*columns, *[f.col(f"`{name}`") for name in more])


def _decoded_json(frame: Any) -> Any:
    """What a value was decoded to, as JSON, whatever columns it has for that."""
    from pyspark.sql import functions as f

    options = {"ignoreNullFields": "false"}
    found = [f.col("valueJson")] if "valueJson" in frame.columns else []
    if "valueDecoded" in frame.columns:
        kind = frame.schema["valueDecoded"].dataType.typeName()
        decoded = f.col("valueDecoded")
        whole = kind in ("struct", "array", "map")
        found.append(f.to_json(decoded, options) if whole else decoded.cast("string"))
    elif "valueSchemaId" not in frame.columns:
        pass  # another program's table
    elif names := [name for name in frame.columns if name.startswith("value_")]:
        parts = f.struct(*[f.col(name).alias(name.removeprefix("value_")) for name in names])
        decoded = f.to_json(parts, options)
        is_decoded = f.col("valueSchemaId").isNotNull() & f.col("value").isNotNull()
        found.append(f.when(is_decoded, decoded))
    return f.coalesce(*found) if found else f.lit(None).cast("string")


class Stateful(Protocol):
    """What has a state: a `delta.DeltaTable`."""

    path: str

    def state(self, version: int | None = None) -> TableState | None: ...


def read_state(table: Stateful, version: int | None = None) -> TableState:
    """The state of a table that is there; FinalError where its log is damaged."""
    try:
        state = table.state(version)
    except (JobError, UsageError):
        raise
    except Exception as error:
        raise damaged(table.path, error) from error
    if state is None:
        raise UsageError(f"{table.path}: no Delta table there")
    return state


def check_own(path: str, state: TableState, kind: str, topic: str) -> None:
    """UsageError where a table is not the one that its folder's name says."""
    own = state.properties
    if own.get(FORMAT_PROPERTY) != FORMAT:
        raise UsageError(f"--lake: {path} is a table of another program")
    if own.get(TOPIC_PROPERTY) != topic:
        raise UsageError(f"--lake: {path} is the table of topic {own.get(TOPIC_PROPERTY)}")
    if own.get(KIND_PROPERTY) != kind:
        raise UsageError(f"--lake: {path} is another table of topic {topic}")


def check_columns(path: str, state: TableState) -> None:
    """UsageError where a table lacks a column of its records, or has another type for one."""
    for field in fields_of(f"{DATA_SCHEMA}, {PLACE_SCHEMA}"):
        name, known = field["name"], state.columns.get(field["name"])
        if known is None:
            raise UsageError(f"--lake: {path} has no column {name}: another program took it away")
        if known != (field["type"] if isinstance(field["type"], str) else "complex"):
            raise UsageError(f"--lake: {path} has another type for its column {name}: {known}")


def offsets_of(state: TableState) -> dict[int, int]:
    """The next offset of each partition."""
    return {
        int(name.removeprefix(OFFSET_ID)): number
        for name, number in state.applications.items()
        if name.startswith(OFFSET_ID) and name.removeprefix(OFFSET_ID).isdigit()
    }


def schema_of(kind: str, form: Form | None) -> list[dict[str, Any]]:
    """The columns of a table, as Delta's `schemaString` has its fields."""
    texts = [DATA_SCHEMA, (form or JSON_TEXT).dead_letters, REASON_SCHEMA, PLACE_SCHEMA]
    if kind != DEAD_LETTERS:
        texts = [DATA_SCHEMA, *([form.records] if form is not None else []), PLACE_SCHEMA]
    return [field for text in texts for field in fields_of(text)]


def fields_of(ddl: str) -> list[dict[str, Any]]:
    """Fields by one of the schemas above: PySpark would need a session to read it."""
    fields = []
    for name, kind in (text.split(" ", 1) for text in re.split(r", (?![^<]*>)", ddl)):
        found: Any = _TYPES.get(kind, kind)
        fields.append({"name": name, "type": found, "nullable": True, "metadata": {}})
    return fields


def metadata_of(
    kind: str, topic: str, topic_id: str, form: Form | None, table_id: str, time_ms: int
) -> dict[str, Any]:
    """The `metaData` of a new table."""
    return {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": schema_of(kind, form)}),
        "partitionColumns": list(partitioned_by(kind)),
        "configuration": {
            FORMAT_PROPERTY: FORMAT,
            KIND_PROPERTY: kind,
            TOPIC_PROPERTY: topic,
            TOPIC_ID_PROPERTY: topic_id,
            # Times and offsets choose files; of keys and values there is nothing to keep.
            "delta.dataSkippingStatsColumns": "offset,timestamp",
            **dict(form.properties if form is not None else ()),
        },
        "createdTime": time_ms,
    }


def with_form(metadata: Mapping[str, Any], kind: str, form: Form) -> dict[str, Any] | None:
    """A table's `metaData` with what a form asks for; None where it has that."""
    schema = json.loads(metadata["schemaString"])
    there = {field["name"] for field in schema["fields"]}
    missing = [field for field in fields_of(form.columns(kind)) if field["name"] not in there]
    known = metadata.get("configuration") or {}
    properties = {**known, **dict(form.properties)}
    if not missing and properties == known:
        return None
    schema["fields"] += missing
    return {**metadata, "schemaString": json.dumps(schema), "configuration": properties}


def in_files(frame: Any, options: argparse.Namespace) -> Any:
    """Rows of `DeltaTable.files` whose files may hold what the options choose."""
    from pyspark.sql import functions as f

    def may(column: str, holds: Any) -> Any:
        return f.col(column).isNull() | holds

    if options.partition_list is not None:
        frame = frame.where(f.col("partition").isin(options.partition_list))
    if options.from_offset is not None:
        frame = frame.where(may("last_offset", f.col("last_offset") >= options.from_offset))
    if options.to_offset is not None:
        frame = frame.where(may("first_offset", f.col("first_offset") < options.to_offset))
    if options.from_ms is not None:
        begin = f.timestamp_millis(f.lit(options.from_ms))
        frame = frame.where(may("last_time", f.col("last_time") >= begin))
    if options.to_ms is not None:
        end = f.timestamp_millis(f.lit(options.to_ms))
        frame = frame.where(may("first_time", f.col("first_time") < end))
    return frame

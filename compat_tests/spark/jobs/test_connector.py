"""`format("kafka")` against kwire: what conformance.py does not ask, and what needs a broker of its
own that can be restarted. Groups, forms of offsets, partitions of writes, recreated topics,
continuous processing, checkpoints across restarts."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support.kafka_client import Sent

WAIT_S = 120
BASE_MS = 1_760_000_000_000


@pytest.fixture(scope="module")
def durable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path_factory.mktemp("data")) as running:
        yield running


def reader(source: Any, bootstrap: str, **options: object) -> Any:
    """`read` or `readStream` with options; `__` stands for a dot."""
    found = source.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    for name, value in options.items():
        found = found.option(name.replace("__", "."), value)
    return found


def values(frame: Any) -> list[str]:
    rows = frame.selectExpr("cast(value as string) v", "partition", "offset")
    return [row.v for row in rows.orderBy("partition", "offset").collect()]


def set_config(bootstrap: str, topic: str, name: str, value: str) -> None:
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def wait_until(what: Callable[[], bool], query: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not what():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)


def fill(bootstrap: str, partitions: int = 2, count: int = 10) -> str:
    topic = client.create(bootstrap, partitions=partitions)
    client.send(
        bootstrap,
        topic,
        [
            Sent(n, b"k", b"%d-%d" % (n, i), (), BASE_MS + i * 1000)
            for n in range(partitions)
            for i in range(count)
        ],
    )
    return topic


def both(first: range, second: range) -> list[str]:
    return [f"0-{i}" for i in first] + [f"1-{i}" for i in second]


@pytest.mark.parametrize(
    ("options", "first", "second"),
    [
        ({}, range(10), range(10)),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, range(10), range(10)),
        ({"startingOffsets": {"0": 4, "1": -2}}, range(4, 10), range(10)),
        ({"endingOffsets": {"0": 4, "1": -1}}, range(4), range(10)),
        (
            {"startingOffsets": {"0": 2, "1": 9}, "endingOffsets": {"0": 3, "1": 10}},
            range(2, 3),
            range(9, 10),
        ),
        ({"startingTimestamp": str(BASE_MS + 7500)}, range(8, 10), range(8, 10)),
        (
            {"startingTimestamp": str(BASE_MS + 2000), "endingTimestamp": str(BASE_MS + 5000)},
            range(2, 5),
            range(2, 5),
        ),
        (
            {"startingOffsetsByTimestamp": {"0": BASE_MS + 3000, "1": BASE_MS + 8000}},
            range(3, 10),
            range(8, 10),
        ),
        (
            {"endingOffsetsByTimestamp": {"0": BASE_MS + 1000, "1": BASE_MS + 99_000}},
            range(1),
            range(10),
        ),
    ],
)
def test_every_form_of_offsets_in_a_batch(
    broker: Broker, spark: Any, options: dict[str, Any], first: range, second: range
) -> None:
    topic = fill(broker.bootstrap)
    texts = {
        name: json.dumps({topic: value}) if isinstance(value, dict) else value
        for name, value in options.items()
    }
    frame = reader(spark.read, broker.bootstrap, subscribe=topic, **texts).load()
    assert values(frame) == both(first, second)


@pytest.mark.parametrize("form", ["earliest", "latest", "json", "timestamp", "by partition"])
def test_every_form_of_offsets_in_a_stream(
    broker: Broker, spark: Any, form: str, tmp_path: pathlib.Path
) -> None:
    topic = fill(broker.bootstrap)
    options: dict[str, Any] = {
        "earliest": {"startingOffsets": "earliest"},
        "latest": {"startingOffsets": "latest"},
        "json": {"startingOffsets": json.dumps({topic: {"0": 5, "1": -1}})},
        "timestamp": {"startingTimestamp": str(BASE_MS + 8000)},
        # No record is as young in partition 1: it begins at its end.
        "by partition": {
            "startingOffsetsByTimestamp": json.dumps(
                {topic: {"0": BASE_MS + 6500, "1": BASE_MS + 99_000}}
            ),
            "startingOffsetsByTimestampStrategy": "latest",
        },
    }[form]
    found: list[str] = []
    query = (
        reader(spark.readStream, broker.bootstrap, subscribe=topic, **options)
        .load()
        .writeStream.foreachBatch(lambda frame, _: found.extend(values(frame)))
        .option("checkpointLocation", str(tmp_path / "check"))
        .start()
    )
    try:
        # The first batch, empty or not, has fixed where the stream began.
        wait_until(lambda: (tmp_path / "check" / "sources" / "0" / "0").exists(), query)
        client.send(broker.bootstrap, topic, [Sent(n, None, b"%d-new" % n) for n in (0, 1)])
        wait_until(lambda: {"0-new", "1-new"} <= set(found), query)
    finally:
        query.stop()
    old = {
        "earliest": both(range(10), range(10)),
        "latest": [],
        "json": [f"0-{i}" for i in range(5, 10)],
        "timestamp": both(range(8, 10), range(8, 10)),
        "by partition": [f"0-{i}" for i in range(7, 10)],
    }[form]
    assert sorted(found) == sorted([*old, "0-new", "1-new"])


def test_groups_of_the_connector(broker: Broker, spark: Any) -> None:
    """Its consumers join a group only where it asks them, not an admin client, for offsets."""
    from kwire.spark.cluster import Cluster

    topic = fill(broker.bootstrap)
    name = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    for deprecated in ("false", "true"):
        spark.conf.set(name, deprecated)
        try:
            for options in (
                {"kafka.group.id": f"own-group-{deprecated}"},
                {"groupIdPrefix": f"own-prefix-{deprecated}"},
            ):
                frame = reader(spark.read, broker.bootstrap, subscribe=topic, **options).load()
                assert values(frame) == both(range(10), range(10))
        finally:
            spark.conf.set(name, "false")
    groups = list(Cluster(broker.bootstrap).groups("own-.*"))
    assert "own-group-true" in groups
    assert any(group.startswith("own-prefix-true-") for group in groups)


def test_pattern_and_assignment_in_a_stream(
    broker: Broker, spark: Any, tmp_path: pathlib.Path
) -> None:
    """A topic that is made while the stream runs belongs to it; an assignment stays as it is."""
    at = broker.bootstrap
    first = fill(at)
    found: dict[str, list[str]] = {"pattern": [], "assign": []}
    options = {
        "pattern": {"subscribePattern": f"{first}.*"},
        "assign": {"assign": json.dumps({first: [1]})},
    }
    queries = {
        name: reader(
            spark.readStream,
            at,
            startingOffsets="earliest",
            kafka__metadata__max__age__ms=500,
            **options[name],
        )
        .load()
        .writeStream.foreachBatch(lambda frame, _, name=name: found[name].extend(values(frame)))
        .option("checkpointLocation", str(tmp_path / name))
        .start()
        for name in found
    }
    try:
        for name, query in queries.items():
            wait_until(lambda name=name: bool(found[name]), query)
        second = client.create(at, f"{first}-later")
        client.send(at, second, [Sent(0, None, b"2-%d" % i) for i in range(5)])
        client.send(at, first, [Sent(n, None, b"%d-10" % n) for n in (0, 1)])
        wait_until(lambda: len(found["pattern"]) >= 27, queries["pattern"])
        wait_until(lambda: len(found["assign"]) >= 11, queries["assign"])
    finally:
        for query in queries.values():
            query.stop()
    wanted = [*both(range(11), range(11)), *(f"2-{i}" for i in range(5))]
    assert sorted(found["pattern"]) == sorted(wanted)
    assert found["assign"] == [f"1-{i}" for i in range(11)]


def test_tasks_by_partitions(broker: Broker, spark: Any) -> None:
    topic = fill(broker.bootstrap, partitions=2, count=100)
    for options, tasks in (
        ({}, 2),
        ({"minPartitions": 1}, 2),
        ({"minPartitions": 7}, 7),
    ):
        frame = reader(spark.read, broker.bootstrap, subscribe=topic, **options).load()
        count = frame.rdd.getNumPartitions()
        assert abs(count - tasks) <= (1 if tasks == 7 else 0), (options, count)
        assert values(frame) == both(range(100), range(100))


def test_headers_are_there_when_they_are_asked_for(broker: Broker, spark: Any) -> None:
    topic = client.create(broker.bootstrap)
    headers = (("a", b"1"), ("a", None), ("é", b""))
    client.send(broker.bootstrap, topic, [Sent(0, b"k", b"v", headers), Sent(0, None, None)])
    without = reader(spark.read, broker.bootstrap, subscribe=topic).load()
    assert "headers" not in without.columns
    frame = reader(spark.read, broker.bootstrap, subscribe=topic, includeHeaders="true").load()
    rows = frame.orderBy("offset").collect()
    assert [(h.key, h["value"]) for h in rows[0].headers] == [("a", b"1"), ("a", None), ("é", b"")]
    assert (rows[1].key, rows[1]["value"], rows[1].headers) == (None, None, None)


def test_records_that_retention_deleted_meanwhile(spark: Any, tmp_path: pathlib.Path) -> None:
    """failOnDataLoss: the stream comes back when what it had not read is gone."""
    from kwire.spark.cluster import EARLIEST, Cluster

    found: list[str] = []
    options = {"log.retention.check.interval.ms": 100, "log.initial.task.delay.ms": 100}
    with Broker(options=options) as broker:
        at = broker.bootstrap
        topic = fill(at, partitions=1)
        cluster = Cluster(at)

        def once(**more: object) -> None:
            query = (
                reader(spark.readStream, at, subscribe=topic, startingOffsets="earliest", **more)
                .load()
                .writeStream.foreachBatch(lambda frame, _: found.extend(values(frame)))
                .option("checkpointLocation", str(tmp_path / "check"))
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(WAIT_S)
            if query.exception():
                raise query.exception()

        once()
        assert found == [f"0-{i}" for i in range(10)]
        client.send(at, topic, [Sent(0, None, b"lost %d" % i, (), BASE_MS) for i in range(10)])
        set_config(at, topic, "retention.ms", "60000")
        deadline = time.monotonic() + WAIT_S
        while cluster.offsets([(topic, 0)], EARLIEST)[topic, 0] < 20:
            assert time.monotonic() < deadline, "retention deleted nothing"
        client.send(at, topic, [Sent(0, None, b"kept %d" % i) for i in range(3)])
        with pytest.raises(Exception, match=r"(?i)data loss|offset|lost"):
            once()
        assert len(found) == 10
        once(failOnDataLoss="false")
        assert found[10:] == ["kept 0", "kept 1", "kept 2"]
        # A batch that names offsets which are gone: the same choice.
        start = json.dumps({topic: {"0": 5}})
        batch = {"subscribe": topic, "startingOffsets": start}
        with pytest.raises(Exception, match=r"(?i)data loss|offset|lost"):
            values(reader(spark.read, at, **batch).load())
        assert len(values(reader(spark.read, at, failOnDataLoss="false", **batch).load())) == 3


def test_writes_choose_topic_partition_and_headers(broker: Broker, spark: Any) -> None:
    first = client.create(broker.bootstrap, partitions=3)
    second = client.create(broker.bootstrap, partitions=3)
    frame = spark.range(30).selectExpr(
        f"if(id < 20, '{first}', '{second}') topic",
        "cast(id % 3 as int) partition",
        "cast(null as binary) key",
        "cast(cast(id as string) as binary) value",
        "array(struct('h' as key, cast('1' as binary) as value), "
        "struct('h' as key, cast(null as binary) as value)) headers",
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option(
        "includeHeaders", "true"
    ).save()
    for topic, ids in ((first, range(20)), (second, range(20, 30))):
        for number, records in client.consume(broker.bootstrap, topic).items():
            found = sorted(int(r.value or b"") for r in records)
            assert found == [i for i in ids if i % 3 == number]
            assert all(r.headers == (("h", b"1"), ("h", None)) for r in records)


def test_a_write_to_a_partition_that_is_not_there_fails(broker: Broker, spark: Any) -> None:
    topic = client.create(broker.bootstrap)
    frame = spark.range(1).selectExpr("5 partition", "cast(id as string) value")
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    with pytest.raises(Exception, match=r"(?i)partition"):
        writer.option("topic", topic).option("kafka.max.block.ms", "3000").save()


def test_a_topic_that_is_deleted_and_created_again(
    broker: Broker, spark: Any, tmp_path: pathlib.Path
) -> None:
    from confluent_kafka.admin import AdminClient

    topic = fill(broker.bootstrap, partitions=1)
    found: list[str] = []

    def once(**options: object) -> None:
        query = (
            reader(
                spark.readStream,
                broker.bootstrap,
                subscribe=topic,
                startingOffsets="earliest",
                **options,
            )
            .load()
            .writeStream.foreachBatch(lambda frame, _: found.extend(values(frame)))
            .option("checkpointLocation", str(tmp_path / "check"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(WAIT_S)
        if query.exception():
            raise query.exception()

    once()
    assert found == [f"0-{i}" for i in range(10)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.delete_topics([topic])[topic].result(30)
    client.create(broker.bootstrap, topic)
    client.send(broker.bootstrap, topic, [Sent(0, None, b"again %d" % i) for i in range(3)])
    with pytest.raises(Exception, match=r"(?i)data loss|offset|lost"):
        once()
    found.clear()
    once(failOnDataLoss="false")
    client.send(broker.bootstrap, topic, [Sent(0, None, b"later")])
    once(failOnDataLoss="false")
    assert found[-1] == "later"


def test_a_topic_that_is_created_again_under_a_running_stream(
    broker: Broker, spark: Any, tmp_path: pathlib.Path
) -> None:
    """With failOnDataLoss the stream ends, without it it goes on with what the new topic gets."""
    from confluent_kafka.admin import AdminClient

    at = broker.bootstrap
    topic = fill(at, partitions=1)
    found: dict[str, list[str]] = {"true": [], "false": []}
    queries = {
        fail: reader(
            spark.readStream,
            at,
            subscribe=topic,
            startingOffsets="earliest",
            failOnDataLoss=fail,
            kafka__metadata__max__age__ms=500,
        )
        .load()
        .writeStream.foreachBatch(lambda frame, _, fail=fail: found[fail].extend(values(frame)))
        .option("checkpointLocation", str(tmp_path / fail))
        .start()
        for fail in found
    }
    try:
        for fail, query in queries.items():
            wait_until(lambda fail=fail: len(found[fail]) == 10, query)
        admin = AdminClient({"bootstrap.servers": at, "log_level": 0})
        admin.delete_topics([topic])[topic].result(30)
        client.create(at, topic)
        # Fewer than before: more of them would look like the old topic going on.
        client.send(at, topic, [Sent(0, None, b"again %d" % i) for i in range(3)])
        with pytest.raises(Exception, match="offset was changed from 10 to 3"):
            assert not queries["true"].awaitTermination(WAIT_S)
        assert len(found["true"]) == 10
        sent = 3

        def goes_on() -> bool:
            nonlocal sent
            client.send(at, topic, [Sent(0, None, b"again %d" % sent)])
            sent += 1
            return any(value.startswith("again") for value in found["false"])

        wait_until(goes_on, queries["false"])
        client.send(at, topic, [Sent(0, None, b"again, the last")])
        wait_until(lambda: "again, the last" in found["false"], queries["false"])
        again = [value for value in found["false"] if value.startswith("again")]
        assert len(again) == len(set(again))
    finally:
        for query in queries.values():
            query.stop()


def test_a_checkpoint_goes_on_across_broker_restarts(
    durable: Broker, spark: Any, tmp_path: pathlib.Path
) -> None:
    topic = fill(durable.bootstrap, partitions=1)
    out = tmp_path / "out"
    query = (
        reader(
            spark.readStream,
            durable.bootstrap,
            subscribe=topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=5,
        )
        .load()
        .selectExpr("cast(value as string) v")
        .writeStream.format("json")
        .option("path", str(out))
        .option("checkpointLocation", str(tmp_path / "check"))
        .start()
    )

    def written() -> list[str]:
        if not (out / "_spark_metadata").exists():
            return []
        return sorted(row.v for row in spark.read.schema("v string").json(str(out)).collect())

    try:
        wait_until(lambda: len(written()) >= 5, query)
        durable.kill()
        durable.start()
        client.send(durable.bootstrap, topic, [Sent(0, None, b"after %d" % i) for i in range(10)])
        durable.restart()
        wait_until(lambda: len(written()) >= 20, query)
    finally:
        query.stop()
    wanted = [f"0-{i}" for i in range(10)] + [f"after {i}" for i in range(10)]
    assert written() == sorted(wanted)


def test_continuous_processing(broker: Broker, spark: Any, tmp_path: pathlib.Path) -> None:
    topic = fill(broker.bootstrap, partitions=1)
    target = client.create(broker.bootstrap)
    query = (
        reader(spark.readStream, broker.bootstrap, subscribe=topic, startingOffsets="earliest")
        .load()
        .selectExpr("value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "check"))
        .trigger(continuous="1 second")
        .start()
    )
    try:
        client.send(broker.bootstrap, topic, [Sent(0, None, b"live %d" % i) for i in range(5)])
        wait_until(lambda: len(client.consume(broker.bootstrap, target)[0]) >= 15, query)
    finally:
        query.stop()
    found = [r.value for r in client.consume(broker.bootstrap, target)[0]]
    assert found == [b"0-%d" % i for i in range(10)] + [b"live %d" % i for i in range(5)]


def test_available_now_takes_what_is_there_in_steps(
    broker: Broker, spark: Any, tmp_path: pathlib.Path
) -> None:
    topic = fill(broker.bootstrap)
    sizes: list[int] = []
    query = (
        reader(
            spark.readStream,
            broker.bootstrap,
            subscribe=topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=8,
            minPartitions=4,
        )
        .load()
        .writeStream.foreachBatch(lambda frame, _: sizes.append(frame.count()))
        .option("checkpointLocation", str(tmp_path / "check"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S)
    assert query.exception() is None
    assert sum(sizes) == 20
    assert len(sizes) >= 3


def test_segments_by_name_with_and_without_pushdown(durable: Broker, spark: Any) -> None:
    """The segments source in Spark itself: found by its name, equal to the connector's reading."""
    topic = fill(durable.bootstrap)
    durable.restart()
    folder = str(durable.data_dir)
    wanted = values(reader(spark.read, durable.bootstrap, subscribe=topic).load())
    frame = spark.read.format("kwire-segments").option("topic", topic).load(folder)
    assert values(frame) == wanted
    assert frame.where("offset >= 7 and partition = 1").count() == 3
    assert values(frame) == wanted
    chosen = spark.read.format("kwire-segments").schema("offset long").load(folder)
    assert chosen.columns == ["offset"]
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition, count in (
            (f"topic = '{topic}' and offset >= 7", 6),
            (f"topic in ('{topic}', 'none') and partition = 1 and offset < 4", 4),
            (f"topic = '{topic}' and timestamp >= timestamp_millis({BASE_MS + 8000})", 4),
            (f"topic = '{topic}' and timestamp < timestamp_millis({BASE_MS + 8000})", 16),
            (f"topic = '{topic}' and timestamp = timestamp_millis({BASE_MS + 3000})", 2),
            ("topic = 'none'", 0),
        ):
            loaded = spark.read.format("kwire-segments").load(folder)
            assert loaded.where(condition).count() == count, condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    located = spark.read.format("kwire-segments").option("topic", topic).load(f"file://{folder}")
    assert values(located) == wanted
    with pytest.raises(Exception, match="unknown option nosuch"):
        spark.read.format("kwire-segments").option("nosuch", "1").load(folder).count()
    with pytest.raises(Exception, match="no such data directory"):
        spark.read.format("kwire-segments").load("/nowhere").count()


def test_options_and_filters_leave_segments_out(durable: Broker, spark: Any) -> None:
    """What the indexes exclude gets no task: by options always, by filters where Spark pushes."""
    at = durable.bootstrap
    topic = client.create(at, partitions=2, segment_bytes=1_048_576, index_interval_bytes=4096)
    records = [Sent(i % 2, None, b"x" * 1000, (), BASE_MS + i * 1000) for i in range(6000)]
    client.send(at, topic, records, **{"batch.size": "65536"})
    folder = str(durable.data_dir)

    def tasks(condition: str | None = None, **options: object) -> tuple[int, int]:
        loaded = spark.read.format("kwire-segments").option("topic", topic)
        for name, value in options.items():
            loaded = loaded.option(name, str(value))
        frame = loaded.load(folder)
        frame = frame if condition is None else frame.where(condition)
        return frame.rdd.getNumPartitions(), frame.count()

    everything, count = tasks()
    assert (everything, count) == (6, 6000)
    chosen = {
        (2, 2): {"startingOffset": 2999},
        (2, 20): {"endingOffset": 10},
        (3, 3000): {"partitions": "1"},
        (2, 10): {"startingTimestamp": BASE_MS + 5990 * 1000},
        (1, 5): {"startingTimestamp": BASE_MS + 5990 * 1000, "partitions": "0"},
        (1, 0): {"topic": "none"},  # Spark makes a task of no tasks
    }
    assert {wanted: tasks(**options) for wanted, options in chosen.items()} == {
        wanted: wanted for wanted in chosen
    }
    moment = f"timestamp_millis({BASE_MS + 5990 * 1000})"
    filters = {
        (2, 2): "offset >= 2999",
        (2, 20): "offset < 10",
        (3, 3000): "partition = 1",
        (2, 10): f"timestamp >= {moment}",
        (1, 5): f"timestamp >= {moment} and partition in (0, 7)",
        (1, 0): "topic = 'none'",
    }
    assert tasks("offset >= 2999") == (6, 2)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert {wanted: tasks(condition) for wanted, condition in filters.items()} == {
            wanted: wanted for wanted in filters
        }
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")

"""What a broker must do for Spark's Kafka connector (PySpark): batch and structured streaming, both directions.

conformance.py BOOTSTRAP JARS_FOLDER [OUT.tsv] [word that case names must hold]
"""

import glob
import json
import os
import sys
import tempfile
import time
import traceback
import uuid

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

BOOTSTRAP, JARS = sys.argv[1:3]
OUT = sys.argv[3] if len(sys.argv) > 3 else ""
WORD = sys.argv[4] if len(sys.argv) > 4 else ""
jars = [
    jar
    for jar in glob.glob(JARS + "/*.jar")
    if not os.path.basename(jar).startswith(("scala-", "hadoop-", "slf4j-"))
]  # Spark has its own
spark = (
    SparkSession.builder.master("local[2]")
    .appName("kwire")
    .config("spark.jars", ",".join(jars))
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.memory", "1g")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
folder = tempfile.mkdtemp(prefix="kwire-spark-")
cases = []


def case(function):
    cases.append(function)
    return function


def make(partitions=1):
    topic = f"spark-{uuid.uuid4().hex[:10]}"
    # Some records are of 2023: a retention check in between may not delete them.
    settings = {"retention.ms": "-1"}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)
    return topic


def send(topic, values, partition=0, timestamps=None, **config):
    producer = Producer({"bootstrap.servers": BOOTSTRAP, **config})
    if "transactional.id" in config:
        producer.init_transactions(30)
    for i, value in enumerate(values):
        producer.produce(
            topic, value, partition=partition, timestamp=timestamps[i] if timestamps else 0
        )
    producer.flush(30)


def kafka(reader, topic, **options):
    reader = (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", topic)
    )
    for key, value in options.items():
        reader = reader.option(key.replace("__", "."), value)
    return reader.load()


def batch(topic, **options):
    return kafka(spark.read, topic, **options)


def values(frame):
    return [
        row.v
        for row in frame.select(F.col("value").cast("string").alias("v"), "partition", "offset")
        .orderBy("partition", "offset")
        .collect()
    ]


def equal(got, wanted, what="value"):
    assert got == wanted, f"{what}: got {str(got)[:300]}, wanted {str(wanted)[:300]}"


def write(frame, topic, **options):
    writer = (
        frame.write.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("topic", topic)
    )
    for key, value in options.items():
        writer = writer.option(key.replace("__", "."), value)
    writer.save()


def stream_once(topic, checkpoint, sink, **options):
    """Reads what is there now, into a folder of JSON, and stops."""
    frame = kafka(spark.readStream, topic, startingOffsets="earliest", **options)
    query = (
        frame.select(F.col("value").cast("string").alias("v"), "partition", "offset")
        .writeStream.format("json")
        .option("path", sink)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120), "the query did not end"
    if query.exception():
        raise query.exception()
    return query


def in_sink(sink):
    return sorted(row.v for row in spark.read.schema("v string").json(sink).collect())


@case
def batch_write_and_read():
    topic = make(3)
    write(
        spark.range(1000).select(
            F.col("id").cast("string").alias("key"), F.concat(F.lit("v"), "id").alias("value")
        ),
        topic,
    )
    frame = batch(topic)
    equal(sorted(values(frame)), sorted(f"v{i}" for i in range(1000)))
    equal(
        {row.partition for row in frame.select("partition").distinct().collect()},
        {0, 1, 2},
        "partitions",
    )
    equal(
        frame.filter(
            F.concat(F.lit("v"), F.col("key").cast("string")) != F.col("value").cast("string")
        ).count(),
        0,
        "keys that are not their value's",
    )


@case
def headers_come_back():
    topic = make()
    headers = F.array(
        F.struct(
            F.lit("h").alias("key"), F.encode(F.col("id").cast("string"), "utf-8").alias("value")
        )
    )
    write(
        spark.range(5)
        .coalesce(1)
        .select(
            F.lit("k").alias("key"),
            F.col("id").cast("string").alias("value"),
            headers.alias("headers"),
        ),
        topic,
    )
    rows = (
        batch(topic, includeHeaders="true")
        .selectExpr(
            "cast(value as string) v", "headers[0].key k", "cast(headers[0].value as string) h"
        )
        .collect()
    )
    equal(sorted((r.v, r.k, r.h) for r in rows), [(str(i), "h", str(i)) for i in range(5)])


@case
def every_codec_is_written_and_read():
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = make()
        write(
            spark.range(100).coalesce(1).select(F.col("id").cast("string").alias("value")),
            topic,
            kafka__compression__type=codec,
        )
        equal(len(values(batch(topic))), 100, codec)


@case
def offsets_bound_a_batch():
    topic = make(2)
    send(topic, [str(i) for i in range(10)], 0)
    send(topic, [str(i) for i in range(10)], 1)
    frame = batch(
        topic,
        startingOffsets=json.dumps({topic: {"0": 3, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": 6, "1": -1}}),
    )
    equal(values(frame), ["3", "4", "5"] + [str(i) for i in range(10)])


@case
def time_bounds_a_batch():
    topic = make()
    send(
        topic,
        [str(i) for i in range(10)],
        timestamps=[1_700_000_000_000 + 1000 * i for i in range(10)],
    )
    frame = batch(
        topic,
        startingOffsetsByTimestamp=json.dumps({topic: {"0": 1_700_000_004_500}}),
        endingOffsetsByTimestamp=json.dumps({topic: {"0": 1_700_000_008_000}}),
    )
    equal(values(frame), ["5", "6", "7"])
    equal(values(batch(topic, startingTimestamp="1700000007000")), ["7", "8", "9"])
    row = batch(topic).orderBy("offset").first()
    equal((int(row.timestamp.timestamp() * 1000), row.timestampType), (1_700_000_000_000, 0))


@case
def one_partition_is_split_into_many_tasks():
    topic = make()
    send(topic, [str(i) for i in range(100)])
    frame = batch(topic, minPartitions="4")
    equal(frame.rdd.getNumPartitions(), 4, "tasks")
    equal(values(frame), [str(i) for i in range(100)])


@case
def pattern_and_assignment_find_topics():
    topic = make(2)
    send(topic, ["a"], 0)
    send(topic, ["b"], 1)
    load = lambda key, value: (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option(key, value)
        .load()
    )
    equal(values(load("subscribePattern", topic[:-1] + ".")), ["a", "b"])
    equal(values(load("assign", json.dumps({topic: [1]}))), ["b"])


@case
def read_committed_leaves_out_what_was_aborted():
    topic = make()
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": topic})
    producer.init_transactions(30)
    for word, end in (
        ("kept", producer.commit_transaction),
        ("lost", producer.abort_transaction),
        ("kept", producer.commit_transaction),
    ):
        producer.begin_transaction()
        for i in range(5):
            producer.produce(topic, f"{word}{i}", partition=0)
        producer.flush(20)
        end(30)
    kept = [f"kept{i}" for i in range(5)] * 2
    equal(values(batch(topic, kafka__isolation__level="read_committed")), kept)
    equal(len(values(batch(topic))), 15)
    sink, checkpoint = f"{folder}/{topic}-out", f"{folder}/{topic}-check"
    stream_once(topic, checkpoint, sink, kafka__isolation__level="read_committed")
    equal(in_sink(sink), sorted(kept), "streamed")


@case
def stream_goes_on_from_its_checkpoint():
    topic = make(2)
    sink, checkpoint = f"{folder}/{topic}-out", f"{folder}/{topic}-check"
    send(topic, [f"a{i}" for i in range(50)], 0)
    stream_once(topic, checkpoint, sink)
    equal(in_sink(sink), sorted(f"a{i}" for i in range(50)))
    send(topic, [f"b{i}" for i in range(50)], 1)
    stream_once(topic, checkpoint, sink, maxOffsetsPerTrigger="20")
    equal(in_sink(sink), sorted(f"{w}{i}" for w in "ab" for i in range(50)))
    stream_once(topic, checkpoint, sink)
    equal(len(in_sink(sink)), 100, "after a run with nothing new")


@case
def stream_from_topic_to_topic_while_records_come():
    source, target = make(2), make(2)
    frame = kafka(spark.readStream, source, startingOffsets="earliest", maxOffsetsPerTrigger="100")
    query = (
        frame.select("key", F.upper(F.col("value").cast("string")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("topic", target)
        .option("checkpointLocation", f"{folder}/{target}-check")
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    for turn in range(3):
        send(source, [f"x{turn}-{i}" for i in range(100)], turn % 2)
        time.sleep(1)
    end = time.monotonic() + 90
    while time.monotonic() < end and batch(target).count() < 300:
        time.sleep(1)
    query.stop()
    equal(sorted(values(batch(target))), sorted(f"X{t}-{i}" for t in range(3) for i in range(100)))


@case
def stream_counts_by_window_and_sees_new_partitions():
    topic = make(1)
    send(topic, ["a"] * 30)
    frame = kafka(
        spark.readStream, topic, startingOffsets="earliest", kafka__metadata__max__age__ms="1000"
    )
    name = "counts" + uuid.uuid4().hex[:6]
    query = (
        frame.groupBy(F.col("value").cast("string").alias("v"))
        .count()
        .writeStream.format("memory")
        .queryName(name)
        .outputMode("complete")
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    from confluent_kafka.admin import NewPartitions

    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(20)
    time.sleep(2)
    send(topic, ["b"] * 20, 1)
    wanted, got, end = {"a": 30, "b": 20}, None, time.monotonic() + 60
    while time.monotonic() < end and got != wanted:
        time.sleep(1)
        got = {row.v: row["count"] for row in spark.table(name).collect()}
    query.stop()
    equal(got, wanted)


@case
def lost_records_fail_the_query_unless_told_otherwise():
    from confluent_kafka import TopicPartition

    topic = make()
    sink, checkpoint = f"{folder}/{topic}-out", f"{folder}/{topic}-check"
    send(topic, [str(i) for i in range(10)])
    stream_once(topic, checkpoint, sink)
    send(topic, [str(i) for i in range(10, 20)])
    for future in admin.delete_records([TopicPartition(topic, 0, 15)]).values():
        future.result(20)
    failed = ""
    try:
        stream_once(topic, checkpoint, sink)
    except Exception as error:
        failed = str(error)
    assert (
        "failOnDataLoss" in failed or "may have been lost" in failed or "offset" in failed.lower()
    ), f"no complaint: {failed!r}"
    stream_once(topic, checkpoint, sink, failOnDataLoss="false")
    equal(in_sink(sink), sorted(str(i) for i in list(range(10)) + list(range(15, 20))))


counts, rows = {"pass": 0, "fail": 0}, []
for function in cases:
    if WORD not in function.__name__:
        continue
    start, why = time.monotonic(), ""
    try:
        function()
        outcome = "pass"
    except Exception as error:
        outcome, why = "fail", " ".join(f"{type(error).__name__}: {error}".split())[:400]
        if os.environ.get("TRACE"):
            traceback.print_exc()
    counts[outcome] += 1
    rows.append(f"{function.__name__}\t{outcome}\t{time.monotonic() - start:.2f}\n")
    print(
        f"{outcome.upper()} {function.__name__} {time.monotonic() - start:.1f}s {why}", flush=True
    )
if OUT:
    with open(OUT, "w") as file:
        file.writelines(rows)
print(f"spark: passed {counts['pass']} failed {counts['fail']} skipped 0", flush=True)
spark.stop()
sys.exit(1 if counts["fail"] else 0)

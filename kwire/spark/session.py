"""The Spark session of a job: the same code on `local[*]`, on a cluster and under spark-submit."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kwire.spark.java_errors import has_class
from kwire.spark.usage import UsageError, pairs

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
# The release of Delta that is built for the minor version of Spark.
DELTA = "io.delta:delta-spark_{minor}_2.13:4.4.0"


# PySpark brings these itself; a second copy on the class path only makes trouble.
_PROVIDED = re.compile(
    r"(spark-core|spark-sql_|spark-catalyst|spark-sql-api|spark-tags|scala-library|hadoop-client"
    r"|slf4j-api|jcl-over|log4j|snappy-java|lz4-java|zstd-jni|jspecify|jsr305)"
)
AVRO = "org.apache.spark:spark-avro_2.13"
KAFKA_JAR = "spark-sql-kafka-0-10"
DELTA_JAR = "delta-spark"
AVRO_JAR = "spark-avro"
EXTENSIONS = "spark.sql.extensions"
DELTA_SETTINGS = {
    EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # So many partitions' offsets go into a version's checksum file; by default a hundred.
    "spark.databricks.delta.setTransactionsInCrc.maxAllowed": "1000",
    # The names of all files would go into it as well, and be compared with the whole log at each
    # commit where the machine's time zone is another than UTC.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
}
LOCAL_SHUFFLE_PARTITIONS = 8
# The second compiler takes what ran ten times as often as by default: of a job of a minute it is
# else the dearest part, for code that hardly runs again (docs/adr/0048).
COMPILING = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=50000 "
    "-XX:Tier4MinInvocationThreshold=20000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000 "
    # The first compiler's code stays longer, then, and takes more room.
    "-XX:ReservedCodeCacheSize=512m"
)
# An Arrow batch of large records: whichever of records and bytes is reached first ends it.
ARROW_BATCH_BYTES = 16 << 20
HEARD_BYTES_MAX = 1 << 20
SAID_BYTES_MAX = 1 << 16
# What stands in a pipe behind what was written to it before the session was there.
READY = b"\0ready\0"
# What Java says is on the way out once its process has ended.
JVM_END_S = 5.0
CANCEL_S = 3.0
OUT_OF_MEMORY_STATUS = 52
# The last of what Spark's JVM has written to stderr since a session was there.
_said = bytearray()
# The session beside one that was begun without Delta (`_with_delta`).
_beside: Any = None
QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def connector_version(spark_version: str) -> str:
    """The connector for a Spark: that of the minor version's first release, which works with all
    of them and is to be had everywhere.

    >>> connector_version("4.2.1")
    '4.2.0'
    """
    major, minor = spark_version.split(".")[:2]
    return f"{major}.{minor}.0"


def kafka_package(spark_version: str) -> str:
    """The connector's package for a Spark.

    >>> kafka_package("4.2.1")
    'org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0'
    """
    return f"{CONNECTOR}:{connector_version(spark_version)}"


def delta_package(spark_version: str) -> str:
    """Delta's package for a Spark.

    >>> delta_package("4.2.1")
    'io.delta:delta-spark_4.2_2.13:4.4.0'
    """
    return DELTA.format(minor=".".join(spark_version.split(".")[:2]))


def avro_package(spark_version: str) -> str:
    """spark-avro's package for a Spark.

    >>> avro_package("4.2.1")
    'org.apache.spark:spark-avro_2.13:4.2.0'
    """
    return f"{AVRO}:{connector_version(spark_version)}"


def jars_in(folder: str, needed: Sequence[str] = (KAFKA_JAR,)) -> list[str]:
    """The jars in a folder, or in `libs` below it; UsageError where one that is needed is not."""
    missing = needed[0]
    for place in (pathlib.Path(folder), pathlib.Path(folder) / "libs"):
        found = sorted(str(path) for path in place.glob("*.jar") if not _PROVIDED.match(path.name))
        lacking = [name for name in needed if not any(f"/{name}_" in path for path in found)]
        if not lacking:
            return found
        if found:
            missing = lacking[0]
    raise UsageError(f"--jars {folder}: no {missing} jar there")


def open_session(
    options: Any,
    name: str,
    *,
    needs_kafka: bool,
    needs_delta: bool = False,
    needs_avro: bool = False,
    sends: bool = False,
) -> Any:
    """A SparkSession for this job. `sends`: its tasks send records and must not be repeated.

    Raises UsageError where the connector, Delta or spark-avro is needed and a session of others is
    without it, and where that one would repeat tasks that must not be.
    """
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BATCH_BYTES),
        # A topic's partition is named after a number, a date is text: nothing is guessed.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "false",
        # Others' readers have statistics of these, not of the older form.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Else so many records at a time are held, however large, in vectors of twice their size.
        "spark.sql.parquet.enableVectorizedReader": "false",
        # Java's object streams hold what went through them until they are reset, by default
        # after a hundred objects: of a frame that is kept on disk these are batches of 4 MB.
        "spark.serializer.objectStreamReset": "1",
        # The size of a page and of a row group is looked at from the first record on, by default
        # from the hundredth: so many large ones are more than a task has memory for.
        "spark.hadoop.parquet.page.size.row.check.min": "1",
        "spark.hadoop.parquet.block.size.row.check.min": "1",
    }
    if needs_delta:
        settings |= DELTA_SETTINGS
    if sends:
        settings |= {"spark.task.maxFailures": "1", "spark.speculation": "false"}
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        settings |= _own_settings(options, needs_kafka, needs_delta, needs_avro)
    own = pairs(options.spark_conf, "--spark-conf")
    settings |= own
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    if settings.get("spark.log.level", "OFF") == "OFF":
        # PySpark writes what is wrong with a query to stderr, with the whole of Java's stack.
        for logger in QUERY_LOGGERS:
            PySparkLogger.getLogger(logger).disabled = True
    builder = SparkSession.builder.appName(f"kwire {name}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    is_heard = submitted or "spark.log.level" in own
    typed = getattr(options, "packages", None) or ""
    heard = contextlib.nullcontext() if is_heard else quiet_start(typed)
    with _own_signals(), heard:
        spark = builder.getOrCreate()
    _say_nothing_of_accumulators(spark.sparkContext)
    if sends:
        _check_tasks_run_once(spark.sparkContext)
    _check_classes(spark, needs_kafka, needs_delta, needs_avro)
    if needs_delta:
        spark = _with_delta(spark, settings)
    if "spark.log.level" not in settings:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextlib.contextmanager
def quiet_start(packages: str = "") -> Iterator[None]:
    """What is written to stderr within, by a JVM that starts there above all, is told only where
    that ends with an error. What the JVM writes later is passed on as it comes. `packages`: those
    that a user has typed, which Maven may not have (UsageError).

    It inherits stderr, so that descriptor 2 is a pipe meanwhile, which a thread reads.
    """
    own = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    heard = bytearray()

    def listen() -> None:
        is_ready = False
        while data := os.read(reading, 1 << 16):
            if not is_ready:
                heard.extend(data)
                _, mark, data = bytes(heard).partition(READY)
                is_ready = bool(mark)
                del heard[: -HEARD_BYTES_MAX if not is_ready else len(heard)]
            if is_ready and data:
                _said.extend(data)
                del _said[:-SAID_BYTES_MAX]
                with contextlib.suppress(OSError):
                    os.write(own, data)

    listener = threading.Thread(target=listen, name="stderr of Spark", daemon=True)
    listener.start()
    try:
        yield
        os.write(2, READY)
        os.dup2(own, 2)
    except BaseException:
        os.dup2(own, 2)
        listener.join(JVM_END_S)  # ends with the last process that has the pipe
        if missing := unresolved(bytes(heard).decode(errors="replace")):
            is_typed = missing in [one.strip() for one in packages.split(",")]
            what = (
                f"--packages {missing}: not found"
                if is_typed
                else (f"{missing}: not found (needed by what --packages or the job names)")
            )
            raise UsageError(
                f"{what}, or Maven's repositories do not answer; "
                "--jars FOLDER takes jars that are there"
            ) from None
        with contextlib.suppress(OSError):
            os.write(own, bytes(heard))
        raise


def unresolved(text: str) -> str | None:
    """The package that Spark has not found, by what it writes where it does not start.

    >>> unresolved("RuntimeException: [unresolved dependency: a.b#c;1: not found, ...]")
    'a.b:c:1'
    >>> unresolved("RuntimeException: [download failed: a.b#c;1!c.jar]")
    'a.b:c:1'
    """
    pattern = r"\[(?:unresolved dependency|download failed): ([^\s#]+)#([^\s;]+);([^\s:!\]]+)"
    found = re.search(pattern, text)
    return ":".join(found.groups()) if found is not None else None


def _say_nothing_of_accumulators(context: Any) -> None:
    """PySpark has a server that the JVM reports to. Where the JVM ends it writes a traceback to
    stderr; why nothing works any more is told by `lost_jvm`."""
    if (server := getattr(context, "_accumulatorServer", None)) is not None:
        server.handle_error = lambda *_: None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """A new SparkContext takes SIGINT: it would cancel the batch that a job wants to end. And what
    comes while the JVM starts counts once it has: it would be left behind, waiting for a process
    that is no more."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for which, handler in handlers.items():
            signal.signal(which, handler)
    if came:
        signal.raise_signal(came[0])


def cancel_queries() -> None:
    """Cancel all queries of this process, from a thread with a connection of its own: this one's
    waits for a query's end."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        thread = threading.Thread(target=_cancel, args=(context,), daemon=True)
        thread.start()
        thread.join(CANCEL_S)


def _cancel(context: Any) -> None:
    with contextlib.suppress(Exception):
        context.cancelAllJobs()


def lost_jvm() -> str | None:
    """Why nothing works any more: Spark's JVM has ended, or ends. None while it runs (or never
    did)."""
    from pyspark import SparkContext

    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    if gateway is None or context is None:
        return None
    try:
        if not context._jsc.sc().isStopped():
            return None
    except Exception:  # whatever py4j makes of a JVM that does not answer
        pass
    process = getattr(gateway, "proc", None)
    if process is None:  # spark-submit's
        return "Spark's context has ended"
    try:
        status = process.wait(JVM_END_S)
    except subprocess.TimeoutExpired:
        return "Spark's context has ended"
    if status == OUT_OF_MEMORY_STATUS:
        return "Spark's JVM had too little memory: --spark-conf spark.driver.memory=4g gives more"
    if status < 0:
        how = f"was ended by signal {-status}"
        return f"Spark's JVM {how}{', as a system short of memory does' if status == -9 else ''}"
    why = uncaught(bytes(_said).decode(errors="replace"))
    return f"Spark's JVM ended with status {status}{f': {why}' if why else ''}"


def uncaught(text: str) -> str | None:
    """The error that has ended a JVM, by what it writes.

    >>> uncaught("ERROR X: Uncaught exception in thread T\\njava.lang.InternalError: a fault\\n")
    'java.lang.InternalError: a fault'
    """
    found = re.findall(r"Uncaught exception in thread [^\n]*\n([^\n]+)", text)
    return found[-1].strip() if found else None


def _check_classes(spark: Any, needs_kafka: bool, needs_delta: bool, needs_avro: bool) -> None:
    sql = "org.apache.spark.sql"
    if needs_kafka:
        source = f"{sql}.kafka010.KafkaSourceProvider"
        _check_class(spark, "the Kafka connector", source, kafka_package)
    if needs_delta:
        _check_class(spark, "Delta", f"{sql}.delta.DeltaLog", delta_package)
    if needs_avro:
        _check_class(spark, "spark-avro", f"{sql}.avro.AvroDataToCatalyst", avro_package)


def _check_class(spark: Any, what: str, name: str, package: Callable[[str], str]) -> None:
    """UsageError where Spark lacks a class or cannot load it: under spark-submit packages are its
    own matter."""
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if not has_class(spark._jvm, loader, name):
        from pyspark import __version__

        raise UsageError(f"{what} is not there: --packages {package(__version__)}")


def _check_tasks_run_once(context: Any) -> None:
    """UsageError where a context that others have begun repeats tasks; a local one's runs each
    once, whatever it is told."""
    if context.master.startswith("local"):
        return
    conf = context.getConf()
    for name, wanted, default in (
        ("spark.task.maxFailures", "1", "4"),
        ("spark.speculation", "false", "false"),
    ):
        if conf.get(name, default) != wanted:
            raise UsageError(
                f"{name} is not {wanted} here: this job's tasks must not run twice; "
                "begin the session with it"
            )


def _with_delta(spark: Any, settings: Mapping[str, str]) -> Any:
    """The session, where it has Delta's extension; else one beside it that has.

    A session gets its extensions when it begins. One that another job of this process has begun, or
    a notebook, may be without: OPTIMIZE and VACUUM fail there, and of a table that has deletion
    vectors deleted rows are read."""
    global _beside
    known = [name for name in (spark.conf.get(EXTENSIONS, "") or "").split(",") if name]
    if DELTA_SETTINGS[EXTENSIONS] in known:
        return spark
    context = spark.sparkContext
    if _beside is None or _beside.sparkContext is not context:
        java = context._jsc.sc()
        java.conf().set(EXTENSIONS, ",".join([*known, DELTA_SETTINGS[EXTENSIONS]]))
        made = type(spark)._get_j_spark_session_class(spark._jvm)(java, {})
        _beside = type(spark)(context, made, dict(settings))
    else:
        type(spark)(context, _beside._jsparkSession, dict(settings))
    # Delta asks which session is at work.
    sessions = type(spark)._get_j_spark_session_class(spark._jvm)
    sessions.setActiveSession(_beside._jsparkSession)
    return _beside


def _own_settings(
    options: Any, needs_kafka: bool, needs_delta: bool, needs_avro: bool
) -> dict[str, str]:
    """What spark-submit decides where it starts the job."""
    master = options.master or os.environ.get("MASTER") or "local[*]"
    settings = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",  # what fails is told in one line
        "spark.driver.memory": "2g",
        # A sort that went to disk many times is read from all of its files at once; each reader
        # would have two more buffers of 1 MB, for which Java's heap takes twice as much.
        "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
        # Progress is told by what tasks report with it.
        "spark.executor.heartbeatInterval": "2s",
    }
    if master.startswith("local"):
        settings["spark.sql.shuffle.partitions"] = str(LOCAL_SHUFFLE_PARTITIONS)
        # Of the log of a table; Delta's own default are 50, a task each.
        settings["spark.databricks.delta.snapshotPartitions"] = "2"
        settings["spark.driver.extraJavaOptions"] = COMPILING
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        # Else Spark warns of a host whose own name means the loopback address.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Workers are this interpreter and find this very package.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        root = str(pathlib.Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    wanted = ((KAFKA_JAR, needs_kafka), (DELTA_JAR, needs_delta), (AVRO_JAR, needs_avro))
    needed = [name for name, is_wanted in wanted if is_wanted]
    packages: list[str] = []
    if needed and options.jars:
        settings["spark.jars"] = ",".join(jars_in(options.jars, needed))
    elif needed:
        from pyspark import __version__

        known = {
            KAFKA_JAR: kafka_package(__version__),
            DELTA_JAR: delta_package(__version__),
            AVRO_JAR: avro_package(__version__),
        }
        packages = [known[name] for name in needed]
    if more := getattr(options, "packages", None):
        packages += more.split(",")
    if packages:
        settings["spark.jars.packages"] = ",".join(dict.fromkeys(packages))
    return settings

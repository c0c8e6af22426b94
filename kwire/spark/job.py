"""What every job has: options, one line for what is wrong, progress, a summary, an exit status.

    0    done
    1    the job found what it looks for (audit: the two sides differ)
    2    a wrong option, or something that has to be installed
    3    it failed; nothing that was committed is lost, run it again
    130  interrupted

What a person reads goes to stderr, the summary (one line of JSON) to stdout and `--summary FILE`,
also of a job that failed or was interrupted once it had begun.
In jobs that work in batches SIGTERM and the first SIGINT let the batch at hand end, a second SIGINT
does not wait; other jobs, and all of them before there is a batch, end at once.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import logging
import math
import os
import pathlib
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from kwire.spark.report import NO_BREAK, rate_text, size_text
from kwire.spark.usage import JobError, UsageError, pairs
from kwire.urls import without_userinfo

EXIT_DONE = 0
EXIT_FOUND = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_INTERRUPTED = 130
PY4J = "py4j"
# What both librdkafka and Spark's own client take for a broker; the one takes other things for
# something else, or asks for half a minute.
BROKER = re.compile(
    r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?"
    r"(?:[^\s:/\[\],]+|\[[0-9A-Fa-f:.%a-z]+\]):([0-9]{1,5})\Z"
)
PORT_MAX = 65_535
CLUSTER_OPTIONS = ("bootstrap", "to", "right_bootstrap")
PACKAGE = re.compile(r"[A-Za-z0-9._-]+:[A-Za-z0-9._-]+:[A-Za-z0-9._-]+\Z")
TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}\Z")
INT64_MAX = (1 << 63) - 1
# librdkafka counts it in milliseconds of 31 bits.
PATIENCE_MAX_S = 2_000_000.0
# Spark counts microseconds, and its connector says so of milliseconds that are too many for that.
TIME_OVERFLOW = "java.lang.ArithmeticException: long overflow"

_UNREADABLE = re.compile(
    r"Encountered error while reading file (?:file:(?://)?)?([^\n]+?\.parquet)"
)
# Errors of tasks (`SendError` of sending.py) whose text is one line for the user.
TOLD_ALONE = ("SendError",)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help that tells the default of every option that has one worth telling."""

    def _get_help_string(self, action: argparse.Action) -> str:
        default, text = action.default, action.help or ""
        if not default or isinstance(default, bool | list) or default == argparse.SUPPRESS:
            return text
        told = f"{default:g}" if isinstance(default, float) else default
        return f"{text}{' ' if text else ''}(default: {told})"


@dataclasses.dataclass(frozen=True)
class Job:
    """A job by name. `add_options` declares, `check` refuses what cannot work (before Spark
    starts), `run` does it and returns (exit status, summary). One that works in batches says so
    (`Progress.has_batches`) and looks at `Progress.stopping` between them; another one is
    interrupted where it is."""

    name: str
    summary: str
    description: str
    example: str
    add_options: Callable[[argparse.ArgumentParser], None]
    check: Callable[[argparse.Namespace], None]
    run: Callable[[argparse.Namespace, Progress], tuple[int, dict[str, Any]]]
    needs_kafka: bool = True


class Progress:
    """Lines about what was done so far, and the wish to stop."""

    def __init__(self, name: str, quiet: bool = False) -> None:
        self.name = name
        self.quiet = quiet
        self.records = 0
        self.size_bytes = 0
        # What the bytes are of, where that is not records.
        self.size_of = ""
        self.stopping = False
        self.has_batches = False
        self.interrupted = False
        self.ended = False
        self._started_s = time.monotonic()
        self._last_s = self._started_s
        self._last_bytes = 0

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def say(self, text: str) -> None:
        """A line on stderr; who reads it may have gone, that is no matter of the job."""
        if not self.quiet:
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{self.name}: {text}\n")
                sys.stderr.flush()

    def add(self, records: int, size_bytes: int, lag: int | None = None, what: str = "") -> None:
        """Count a step and tell: records, bytes, rate since the last step, lag in records."""
        now_s = time.monotonic()
        self.records += records
        self.size_bytes += size_bytes
        rate = (self.size_bytes - self._last_bytes) / max(now_s - self._last_s, 1e-3)
        self._last_s, self._last_bytes = now_s, self.size_bytes
        size, speed = (
            text.replace(NO_BREAK, " ") for text in (size_text(self.size_bytes), rate_text(rate))
        )
        parts = [f"{self.records:,} records", f"{size} {self.size_of}".rstrip(), speed]
        if lag is not None:
            parts.append(f"lag {lag:,}")
        if what:
            parts.append(what)
        self.say(", ".join(parts))

    def totals(self) -> dict[str, Any]:
        """What every summary holds."""
        seconds = self.elapsed_s
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "seconds": round(seconds, 3),
            "mb_per_s": round(self.size_bytes / 1e6 / max(seconds, 1e-3), 3),
        }

    def wait(self, seconds: float) -> None:
        """Sleep, but not when it is time to stop."""
        deadline_s = time.monotonic() + seconds
        while not self.stopping and (left_s := deadline_s - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.2))

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT ask to stop; the second SIGINT interrupts, the first of either does
        where there is no batch that could end (`has_batches`)."""

        def ask(number: int, _: Any) -> None:
            if self.ended:
                return
            if not self.has_batches or (self.stopping and number == signal.SIGINT):
                self.interrupted = True
                _cancel_queries()
                raise KeyboardInterrupt
            self.stopping = True
            self.say("stopping after the batch at hand")

        # Py4J tells the root logger of it, with a traceback; the job has a line of its own.
        logging.getLogger().addFilter(_is_news)
        # And its own ones of what comes of that.
        logging.getLogger(PY4J).setLevel(logging.CRITICAL)
        signal.signal(signal.SIGTERM, ask)
        signal.signal(signal.SIGINT, ask)


def _is_news(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not (kind is KeyboardInterrupt or kind.__module__.startswith(PY4J))


def _say_nothing(text: str) -> None:
    """Where options are checked without a job that could tell of it."""


def parser_of(job: Job) -> argparse.ArgumentParser:
    """The command line of a job, with the options that all jobs have."""
    parser = _Parser(
        prog=f"kwire spark {job.name}",
        description=job.description,
        epilog=f"Example:\n  {job.example}\n\nExit status: 0 done, 1 differences (audit), "
        "2 wrong options, 3 failed (run it again), 130 interrupted.",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    job.add_options(parser)
    spark = parser.add_argument_group("Spark and output")
    spark.add_argument("--master", help="Spark's master (default: local[*], or spark-submit's)")
    spark.add_argument("--jars", metavar="FOLDER", help="connector jars; default: Maven packages")
    spark.add_argument(
        "--packages",
        metavar="A:B:1,...",
        help="Maven packages beside those, such as a store's connector",
    )
    spark.add_argument(
        "--spark-conf", metavar="NAME=VALUE", action="append", default=[], help="a Spark setting"
    )
    spark.add_argument("--summary", metavar="FILE", help="write the JSON summary here too")
    spark.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(say=_say_nothing)
    return parser


def add_kafka_options(parser: argparse.ArgumentParser) -> None:
    """Where a cluster is and how to talk to it."""
    parser.add_argument("--bootstrap", "-b", metavar="HOST:PORT", help="the cluster")
    parser.add_argument(
        "--kafka-option",
        "-o",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a client setting by Kafka's name (security.protocol=SASL_SSL, ...)",
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help="a file of client settings; -o goes before it"
    )


def add_isolation_option(parser: argparse.ArgumentParser) -> None:
    """Whether records of open and aborted transactions count."""
    parser.add_argument(
        "--isolation",
        default="read_committed",
        choices=("read_committed", "read_uncommitted"),
        help="of transactions",
    )


def add_patience_option(parser: argparse.ArgumentParser) -> None:
    """How long a job goes on asking; see `check_patience`."""
    parser.add_argument(
        "--retry-seconds", type=float, default=300.0, metavar="S", help="patience with a cluster"
    )


def check_topic(name: str, option: str = "--topic") -> str:
    """The name, when it can be a topic's."""
    if not TOPIC_NAME.match(name) or name in (".", ".."):
        raise UsageError(f"{option} {name}: not a topic name")
    return name


def check_pattern(text: str, option: str) -> str:
    """The text, when it is a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text}: {error}") from None
    return text


def check_topics(text: str | None, option: str = "--topics") -> list[str]:
    """The names of a list with commas, each once; [] without the option."""
    if text is None:
        return []
    names = list(dict.fromkeys(name for name in text.split(",") if name))
    if not names:
        raise UsageError(f"{option} {text}: names no topic")
    return [check_topic(name, option) for name in names]


def check_output(path: str | None, option: str) -> None:
    """UsageError when a file that is written at the end of a job cannot be written at all."""
    if not path:
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{option} {path}: no folder {folder}")
    if os.path.isdir(path):
        raise UsageError(f"{option} {path}: is a folder")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise UsageError(f"{option} {path}: may not be written")


def check_patience(seconds: float) -> None:
    """UsageError when `--retry-seconds` is no time that a client can wait."""
    if not 0 <= seconds <= PATIENCE_MAX_S:
        raise UsageError(f"--retry-seconds {seconds:g}: expected 0 to {PATIENCE_MAX_S:,.0f}")


def _check_numbers(options: argparse.Namespace) -> None:
    """Numbers are finite and fit into 64 bits, whatever they mean."""
    for name, value in vars(options).items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{option} {value}: not a finite number")
        if isinstance(value, int) and not -INT64_MAX <= value <= INT64_MAX:
            raise UsageError(f"{option} {value}: more than 64 bits")


def _check_clusters(options: argparse.Namespace) -> None:
    """UsageError for an address of a cluster that is no list of HOST:PORT."""
    for name in CLUSTER_OPTIONS:
        text = getattr(options, name, None)
        if not text:
            continue
        option = "--" + name.replace("_", "-")
        brokers = [broker.strip() for broker in text.split(",") if broker.strip()]
        for broker in brokers or [text]:
            found = BROKER.match(broker)
            if found is None or not 1 <= int(found[1]) <= PORT_MAX:
                raise UsageError(f"{option} {broker}: expected HOST:PORT[,HOST:PORT]")


def _check_packages(text: str | None) -> None:
    """UsageError for a list that is none of Maven packages, and where spark-submit has its own."""
    if text is None:
        return
    for name in text.split(","):
        if not PACKAGE.match(name):
            raise UsageError(f"--packages {name}: expected GROUP:ARTIFACT:VERSION")
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        raise UsageError("--packages: under spark-submit give them to spark-submit")


def require(options: argparse.Namespace, name: str) -> None:
    """UsageError when the option is not given."""
    if not getattr(options, name.replace("-", "_")):
        raise UsageError(f"--{name} is needed")


def run_job(job: Job, arguments: Sequence[str] | None = None) -> int:
    """Run a job; returns the exit status. What goes wrong is one line on stderr."""
    # Under spark-submit the script's own folder comes first and would lend its names to others.
    here = str(pathlib.Path(__file__).parent)
    sys.path[:] = [path for path in sys.path if path != here]
    parser = parser_of(job)
    progress: Progress | None = None
    ending: _Ending | None = None
    try:
        options = parser.parse_args(sys.argv[1:] if arguments is None else list(arguments))
        pairs(options.spark_conf, "--spark-conf")
        _check_packages(options.packages)
        _check_numbers(options)
        _check_clusters(options)
        check_output(options.summary, "--summary")
        _require_installed(job, options)
        progress = Progress(job.name, options.quiet)
        progress.stop_on_signals()
        options.say = progress.say
        _check(job, options)
        ending = _Ending(job, options.summary, progress)
        ending.forget()
        status, summary = job.run(options, progress)
        ending.write(status, summary)
        return status
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
    except UsageError as error:
        status, line = EXIT_USAGE, str(error)
    except KeyboardInterrupt:
        status, line = EXIT_INTERRUPTED, "interrupted"
    except Exception as error:
        status, line = EXIT_FAILED, _lost_jvm() or one_line(error)
        if progress is not None and progress.interrupted:
            # What fails then fails of that: Py4J does not reach the JVM again, for one.
            status, line = EXIT_INTERRUPTED, "interrupted"
    line = without_userinfo(line)
    with contextlib.suppress(OSError):
        sys.stderr.write(f"kwire spark {job.name}: {line}\n")
        if ending is not None:
            ending.write(status, {"error": line})
    return status


def _check(job: Job, options: argparse.Namespace) -> None:
    """The job's own check. What it cannot look at, as a file where a folder should be, is a wrong
    option: trying again does not help."""
    try:
        job.check(options)
    except OSError as error:
        if error.filename is None:
            raise
        raise UsageError(f"{error.filename}: {error.strerror}") from None


def _cancel_queries() -> None:
    """Let Spark end what it is at, where it runs: it would go on while the JVM ends."""
    if "pyspark" in sys.modules:
        from kwire.spark.session import cancel_queries

        cancel_queries()


def _lost_jvm() -> str | None:
    """What to say where Spark's JVM has ended under a job: what failed then tells nothing."""
    if "pyspark" not in sys.modules:
        return None
    from kwire.spark.session import lost_jvm

    return lost_jvm()


@dataclasses.dataclass
class _Ending:
    """The summary of a job that has begun."""

    job: Job
    path: str | None
    progress: Progress

    def forget(self) -> None:
        """Remove what an earlier run left: it would stand for one that was killed."""
        if self.path and os.path.isfile(self.path) and not os.path.islink(self.path):
            os.unlink(self.path)

    def write(self, status: int, summary: Mapping[str, Any]) -> None:
        """To the file, then to stdout: raises OSError where the former has no room for it."""
        self.progress.ended = True
        text = json.dumps(
            {"job": self.job.name, "status": status, **self.progress.totals(), **summary}
        )
        path, self.path = self.path, None
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def one_line(error: BaseException) -> str:
    """What went wrong, without a stack: Spark's and Java's messages are long."""
    text = str(error).strip()
    if not isinstance(error, JobError) and (found := _python_error(text)):
        return found[:500]
    if TIME_OVERFLOW in text:
        return "a record has a time that Spark cannot hold"
    causes = re.findall(r"Caused by: ([^\n]+)", text)
    if (path := _UNREADABLE.search(text)) is not None:
        # What Spark says of the innermost cause names no file, as a rule.
        why = causes[-1].partition(": ")[2] if causes else "it is not there, or damaged"
        return f"{path[1]} cannot be read: {why}"[:500]
    java = getattr(error, "java_exception", None)
    if not causes and java is not None:
        text = str(java)
    line = causes[-1] if causes else (text.splitlines() or [""])[0]
    return line[:500] if isinstance(error, JobError) else f"{type(error).__name__}: {line[:500]}"


def _python_error(text: str) -> str | None:
    """Of a Python worker's stack in the text: the line behind it, without the module's name, and
    without the error's where the line is written for people."""
    _, stack, behind = text.rpartition("Traceback (most recent call last):")
    if not stack:
        return None
    for line in behind.splitlines():
        if line and not line[0].isspace():
            name, colon, message = line.partition(":")
            kind = name.rsplit(".", 1)[-1]
            return message.strip() if kind in TOLD_ALONE else kind + colon + message
    return None


def _require_installed(job: Job, options: argparse.Namespace) -> None:
    import importlib.util
    import shutil

    needed = ["pyspark", "pyarrow", "pandas"]
    if job.needs_kafka or getattr(options, "bootstrap", None):
        needed.append("confluent_kafka")
    for module in needed:
        if importlib.util.find_spec(module) is None:
            raise UsageError(f'{module} is not installed: pip install "kwire[spark]"')
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise UsageError("Spark needs Java 17 or newer: no java on the PATH and no JAVA_HOME")

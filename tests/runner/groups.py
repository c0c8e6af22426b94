"""The groups of tests by name: what each needs, how long it may take, how it runs.

`TEST` are the groups of `make test` in order, `GATE` those of `make compat-gate`: those first that
keep all cores busy, then the longest. A group whose tool chain the machine lacks is skipped by
name.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import pathlib
import shutil
import xml.etree.ElementTree
from collections.abc import Callable, Mapping

from tests.runner.model import ROOT, Paths, Result, judge, read_allowed, run_program
from tests.runner.served import SECURE, SPECIAL, ServedBrokers

#: What the run.sh of a smoke program prints before it starts the program.
BUILT = "built"

#: More failures than this in one group are no chance: they are not tried again.
AGAIN_MAX = 3


@dataclasses.dataclass(frozen=True)
class Context:
    """What a group runs with. `again`: it is the second run, of what failed in the first."""

    name: str
    limit_s: float
    paths: Paths
    brokers: ServedBrokers
    again: bool = False

    @property
    def slug(self) -> str:
        """The name for files, and for the broker that serves this group alone."""
        return self.name.replace(" ", "-")

    def log(self, suffix: str = ".log") -> pathlib.Path:
        again = ".again" if self.again else ""
        return self.paths.logs / f"{self.slug}{again}{suffix}"


@dataclasses.dataclass(frozen=True)
class Group:
    """One line of the summary. `tools` are commands and `modules` Python modules it needs; `cores`
    is how many it keeps busy: none if it mostly waits.

    `real`: real clients and processes in real time, on a machine that others may load. Where
    at most `AGAIN_MAX` of them fail they are run once more, and both runs are told. So it is where
    no test of a group failed, and its program crashed behind the last one.
    """

    name: str
    run: Callable[[Context], Result]
    limit_s: float
    tools: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    real: bool = False
    cores: int = 1

    def missing(self) -> str | None:
        """What this machine lacks for the group, or None."""
        lacking = [tool for tool in self.tools if shutil.which(tool) is None]
        lacking += [name for name in self.modules if importlib.util.find_spec(name) is None]
        return f"{self.name} needs {', '.join(lacking)}" if lacking else None

    def judged(self, context: Context) -> Result:
        """Run it; a second time, told by name, what failed of real clients and processes."""
        first = self.run(context)
        only_the_end = first.failed == first.crashes
        if not (self.real or only_the_end) or not 0 < first.failed <= AGAIN_MAX:
            return first
        second = self.run(dataclasses.replace(context, again=True))
        return second_verdict(first, second)


def second_verdict(first: Result, second: Result) -> Result:
    """What two runs come to: the second decides of what failed in the first, and tells it.

    >>> second_verdict(Result(5, 1, 0, ["a: slow"]), Result(6, 0, 0)).notes
    ['again: a: slow']
    """
    if second.passed + second.failed == 0:
        return first
    told = [f"again: {note}" for note in first.notes if not note.startswith("skipped")]
    kept = [note for note in first.notes if note.startswith("skipped")]
    notes = [note for note in second.notes if not note.startswith("skipped")]
    return Result(
        passed=first.passed + (first.failed - first.crashes) - (second.failed - second.crashes),
        failed=second.failed,
        skipped=first.skipped,
        notes=[*notes, *told, *kept],
    )


def _module(context: Context, *arguments: str) -> Result:
    """A Python tool whose exit status is its verdict."""
    outcome = run_program(
        [context.paths.python, "-m", *arguments],
        log=context.log(),
        environment=context.paths.environment(),
        limit_s=context.limit_s,
    )
    if outcome.status == 0:
        return Result(passed=1)
    return Result.failure(f"{' '.join(arguments)}: {_tail(outcome.output)}")


def _tail(output: str, lines: int = 15) -> str:
    return "\n    ".join(output.strip().splitlines()[-lines:])


def lint(context: Context) -> Result:
    result = _module(context, "ruff", "check", ".")
    result.add(_module(context, "ruff", "format", "--check", "."))
    return result


def types(context: Context) -> Result:
    return _module(context, "mypy", "--strict", "kwire/", "tests/support/")


def pytest_group(
    *paths: str, workers: int = 0, extra: tuple[str, ...] = ()
) -> Callable[[Context], Result]:
    """A group that pytest runs; a path that does not exist fails it."""

    def run(context: Context) -> Result:
        missing = [path for path in paths if not (ROOT / path.split("::")[0]).exists()]
        if missing:
            return Result.failure(f"{context.name}: there is no {', '.join(missing)}")
        arguments = [*paths, *extra]
        if workers:
            # Each worker has a run of files, so that what they share is set up once; who is done
            # takes of the other's.
            arguments += ["-n", str(workers), "--dist", "worksteal"]
        return _pytest(context, arguments, {})

    return run


def _pytest(context: Context, arguments: list[str], environment: Mapping[str, str]) -> Result:
    report = context.log(".xml")
    report.unlink(missing_ok=True)
    arguments = [*arguments, "-o", f"cache_dir={context.paths.logs / context.name}.cache"]
    if context.again:
        # Where no test failed it was the end that did, and all of them have to come to it again.
        arguments += ["--last-failed", "--last-failed-no-failures=all"]
    outcome = run_program(
        [context.paths.python, "-m", "pytest", "-q", f"--junitxml={report}", *arguments],
        log=context.log(),
        environment=context.paths.environment(PYTHONFAULTHANDLER="1", **environment),
        limit_s=context.limit_s,
    )
    if not report.exists():
        why = "over its time limit" if outcome.status is None else f"status {outcome.status}"
        return Result.failure(f"{context.name}: {why}: {_tail(outcome.output)}")
    result = _read_junit(report)
    if outcome.status not in (0, 1, 5) or (outcome.status == 1 and not result.failed):
        # All tests had ended: it crashed on its way out, or somebody kept it from ending.
        result.failed += 1
        result.crashes += 1
        end = "did not end" if outcome.status is None else f"ended with {outcome.status}"
        result.notes.append(f"{context.name}: pytest {end}: {_tail(outcome.output)}")
    return result


def _read_junit(report: pathlib.Path) -> Result:
    result = Result()
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        problems = case.findall("failure") + case.findall("error")
        skip = case.find("skipped")
        if problems:
            result.failed += 1
            result.notes.append(f"{name}: {_reason(problems[0])}")
        elif skip is not None:
            result.skipped += 1
            result.notes.append(f"skipped: {name}: {skip.get('message')}")
        else:
            result.passed += 1
    return result


def _reason(problem: xml.etree.ElementTree.Element, lines_max: int = 12) -> str:
    """What a failure says: its message, and what pytest shows of the comparison (lines of E)."""
    shown = [line for line in (problem.text or "").splitlines() if line.startswith("E ")]
    message = (problem.get("message") or "").splitlines()[:1]
    return "\n    ".join(shown[:lines_max] or message)


def cases(context: Context) -> Result:
    """tests/cases against the shared broker, and against brokers with special settings."""
    arguments = ["tests/cases", "--bootstrap", context.brokers.bootstrap()]
    for name in SPECIAL:
        arguments += ["--special", f"{name}={context.brokers.bootstrap(name)}"]
    arguments += ["--sasl-bootstrap", context.brokers.sasl_bootstrap()]
    arguments += ["--tls-bootstrap", context.brokers.tls_bootstrap()]
    arguments += ["--acl-bootstrap", context.brokers.sasl_bootstrap("acl")]
    arguments += ["--admin-restart", context.brokers.restart_command()]
    environment = {"CHECKS_BROKER_STATE": str(context.brokers.state_file("main"))}
    libs = context.paths.cache / "kafka" / "libs"
    if libs.is_dir():
        environment["CHECKS_KAFKA_LIBS"] = str(libs)
    return _pytest(context, arguments, environment)


def program(
    folder: str,
    program_name: str,
    *arguments: str,
    out: str,
    only: str = "",
    secure: bool = False,
) -> Callable[[Context], Result]:
    """A conformance program of compat_tests that writes name, outcome and seconds as TSV.

    `secure`: one that logs in over TLS. It has failed where it could not be built.
    """

    def run(context: Context) -> Result:
        here = ROOT / "compat_tests" / folder
        results = context.paths.logs / out
        results.unlink(missing_ok=True)
        command: list[str | os.PathLike[str]] = [
            here / "run.sh",
            context.brokers.bootstrap(SECURE if secure else context.slug),
            *(str(results) if part == "OUT" else part for part in arguments),
        ]
        outcome = run_program(
            command,
            log=context.log(),
            environment=context.paths.environment(
                OUT=str(context.paths.logs),
                LIMIT=str(int(context.limit_s) - 10),
                ONLY=only or os.environ.get("ONLY", ""),
                **_secure_environment(context, secure),
            ),
            limit_s=context.limit_s,
        )
        if outcome.status == 3 and not secure:
            return Result.skip(f"{context.name}: could not be set up: {_tail(outcome.output, 3)}")
        rows = results.read_text().splitlines() if results.exists() else []
        outcomes = dict(line.split("\t")[:2] for line in rows)
        if not outcomes:
            why = "over its time limit" if outcome.status is None else f"status {outcome.status}"
            return Result.failure(f"{context.name}: {why}: {_tail(outcome.output)}")
        result = judge(program_name, outcomes, read_allowed(here / "allowed.tsv"))
        if result.failed:
            failures = [line for line in outcome.output.splitlines() if line.startswith("FAIL")]
            result.notes += failures
        return result

    return run


def _secure_environment(context: Context, secure: bool) -> dict[str, str]:
    """What tells a program of compat_tests how to log in."""
    return {"SECURE": str(context.brokers.client_settings())} if secure else {}


def smoke(folder: str, secure: bool = False) -> Callable[[Context], Result]:
    """A smoke program that prints `ok STEP` a step and stops at the first that does not hold.

    Its run.sh prints `built` before it starts the program. What was not built is skipped; a program
    that was and reports no step has failed. `secure`: it logs in over TLS instead; then what was
    not built has failed, too.
    """

    def run(context: Context) -> Result:
        here = ROOT / "compat_tests" / folder
        allowed = read_allowed(here / "allowed.tsv")
        result, crashed = _smoke_once(context, here, folder, allowed, secure)
        if crashed:
            # A crash of the client's own native code is run again once, and told.
            again, _ = _smoke_once(context, here, folder, allowed, secure)
            again.notes.append(f"{folder}: the client itself crashed once and was run again")
            return again
        return result

    return run


def _smoke_once(
    context: Context, here: pathlib.Path, folder: str, allowed: Mapping[str, str], secure: bool
) -> tuple[Result, bool]:
    bootstrap = context.brokers.bootstrap(SECURE if secure else context.slug)
    outcome = run_program(
        [here / "run.sh", bootstrap, *(("secure",) if secure else ())],
        log=context.log(),
        environment=context.paths.environment(
            LIMIT=str(int(context.limit_s) - 10), **_secure_environment(context, secure)
        ),
        limit_s=context.limit_s,
    )
    steps: dict[str, str] = {}
    for line in outcome.output.splitlines():
        if line.startswith("ok "):
            steps[line[3:].rsplit(maxsplit=2)[0].strip()] = "pass"
        elif line.startswith(("FAIL ", "FAIL:")):
            step, _, reason = line[4:].partition(":")
            steps[step.strip() or reason.strip()] = "fail"
    if not steps:
        if BUILT not in outcome.output.splitlines() and not secure:
            return Result.skip(f"{folder}: could not be built: {_tail(outcome.output, 3)}"), False
        end = "ran over its time limit" if outcome.status is None else f"ended: {outcome.status}"
        note = f"{folder}: {end}, and reported no step: {_tail(outcome.output, 4)}"
        return Result.failure(note), False
    if outcome.status != 0 and "fail" not in steps.values():
        steps[f"ends in order (status {outcome.status})"] = "fail"
    crashed = outcome.status is not None and outcome.status in (2, 134, 139)
    result = judge(folder, steps, allowed)
    if result.failed:
        result.notes.append(f"{folder}: {_tail(outcome.output, 4)}")
    return result, crashed


DEMO_SAYS = ("== The archive read by DuckDB", "\nthe newest: ")
"""What an installation for tests shows: with what reads the lake without Spark."""


def demo(context: Context) -> Result:
    """`make demo` at a small size."""
    jars = context.paths.cache / "spark-jars"
    outcome = run_program(
        [ROOT / "compat_tests" / "peers" / "fetch-spark-jars.sh", jars],
        log=context.log(".jars.log"),
        environment=context.paths.environment(),
        limit_s=300,
    )
    if outcome.status != 0:
        return Result.skip(f"demo: no connector jars: {_tail(outcome.output, 3)}")
    out = context.paths.logs / "demo"
    outcome = run_program(
        [
            *(context.paths.python, ROOT / "tools" / "demo.py", "--records", "20000"),
            *("--out", out, "--jars", jars),
        ],
        log=context.log(),
        environment=context.paths.environment(),
        limit_s=context.limit_s - 300,
    )
    reports = sorted(path.name for path in out.glob("*.html"))
    lacking = [words for words in DEMO_SAYS if words not in outcome.output]
    if outcome.status == 0 and len(reports) == 3 and not lacking:
        return Result(passed=1)
    told = f"status {outcome.status}, {reports}, not told: {lacking}"
    return Result.failure(f"demo: {told}: {_tail(outcome.output)}")


FAULTS = tuple(f"tests/system/testing/test_fault_{name}.py" for name in ("clients", "recipes"))
"""What clients do about faults: minutes of their timeouts."""
LONG_FAULTS = tuple(f"--ignore={path}" for path in FAULTS)
REST_DOCUMENT = "tests/system/test_rest_document.py"
"""Requests made of the OpenAPI document: a quarter of a minute of a core."""

LONG_DIFFERENCES = (
    "--ignore=tests/differential/rates",
    *(f"--ignore=tests/differential/test_{name}_outcomes_live.py" for name in ("fault", "pair")),
)
"""What a busy machine answers otherwise: rates, and what clients make of a Kafka that is slow."""

SPARK_JOBS = {
    "archives": ("pipeline", "frames", "oddities"),
    "lakes": ("tables", "trouble", "beside", "decoded", "reading_few_files"),
    "mirrors": ("mirror", "on_kafka", "kills"),
    "connector": ("connector", "transactions", "secure", "latest", "stores", "log_store"),
}
"""Tests of Spark's jobs that share a session: each costs half a minute of a core before it is as
quick as it gets."""

TEST: tuple[Group, ...] = (
    # Sessions that end, times that must pass: four minutes of little work, beside the others.
    Group("cases", cases, 600, modules=("kio",), real=True, cores=0),
    Group("lint", lint, 120, modules=("ruff",)),
    Group("types", types, 300, modules=("mypy",)),
    Group("import rules", pytest_group("tests/unit/test_architecture.py"), 240),
    Group(
        "unit",
        pytest_group(
            "tests/unit",
            "tests/bugs",
            workers=2,
            # A group of its own; to collect it is to read all of kwire.
            extra=("--ignore", "tests/unit/test_architecture.py"),
        ),
        900,
        cores=2,
    ),
    Group("golden", pytest_group("tests/golden", workers=2), 600, cores=2),
    Group("hostile", pytest_group("tests/hostile", workers=2), 480, cores=2),
    Group("sim", pytest_group("tests/sim", workers=2), 1200, cores=2),
    Group(
        "system",
        pytest_group(
            "tests/system",
            extra=("--ignore=tests/system/cluster", f"--ignore={REST_DOCUMENT}", *LONG_FAULTS),
        ),
        1200,
        real=True,
    ),
    Group(
        "cluster",
        pytest_group("tests/system/cluster"),
        720,
        modules=("confluent_kafka",),
        real=True,
    ),
    Group(
        "java clients",
        program("java", "clients", "clients", out="java-clients.tsv"),
        600,
        tools=("java", "javac", "mvn"),
        real=True,
    ),
    Group(
        "spark jobs smoke",
        pytest_group(
            "compat_tests/spark/jobs/test_pipeline.py::test_random_records_survive",
            "compat_tests/spark/jobs/test_pipeline.py::test_wrong_options_are_one_line",
        ),
        480,
        tools=("java", "mvn"),
        modules=("pyspark", "pandas"),
        real=True,
    ),
    Group(
        "spark smoke",
        program("spark", "spark", out="spark.tsv", only="batch_write_and_read"),
        300,
        tools=("java", "mvn"),
        modules=("pyspark",),
        real=True,
    ),
    Group(
        "kafka tools",
        pytest_group("compat_tests/tools"),
        600,
        tools=("java", "javac", "mvn"),
        real=True,
    ),
    Group(
        "kafka-python",
        program("python", "kafka-python", "kafka-python", out="python-kafka-python.tsv"),
        240,
        modules=("kafka",),
        real=True,
    ),
    Group(
        "confluent-kafka",
        program("python", "confluent", "confluent", out="python-confluent.tsv"),
        240,
        modules=("confluent_kafka",),
        real=True,
    ),
    Group(
        "aiokafka",
        program("python", "aiokafka", "aiokafka", out="python-aiokafka.tsv"),
        180,
        modules=("aiokafka",),
        real=True,
    ),
    Group("kcat", program("kcat", "kcat", "OUT", out="kcat.tsv"), 180, tools=("kcat",), real=True),
)

GATE: tuple[Group, ...] = (
    Group(
        "registry clients",
        pytest_group("compat_tests/registry"),
        600,
        modules=("avro", "starlette"),
        real=True,
    ),
    Group("faults", pytest_group(*FAULTS), 600, modules=("confluent_kafka",), real=True),
    Group("rest document", pytest_group(REST_DOCUMENT), 300, modules=("starlette",), real=True),
    Group(
        "differential",
        # Rates, and three nodes of Kafka, are compared where nothing else runs (`make stress`).
        pytest_group("tests/differential", extra=LONG_DIFFERENCES),
        3300,
        tools=("java", "mvn"),
        real=True,
    ),
    *(
        Group(
            f"spark {name}",
            pytest_group(*(f"compat_tests/spark/jobs/test_{file}.py" for file in files)),
            1800,
            tools=("java", "mvn"),
            modules=("pyspark", "pandas"),
            real=True,
        )
        for name, files in SPARK_JOBS.items()
    ),
    Group(
        "spark",
        program("spark", "spark", out="spark.tsv"),
        900,
        ("java", "mvn"),
        ("pyspark",),
        real=True,
    ),
    Group("demo", demo, 900, tools=("java", "mvn"), modules=("pyspark", "pandas"), real=True),
    Group(
        "java streams",
        program("java", "streams", "streams", out="java-streams.tsv"),
        400,
        tools=("java", "javac", "mvn"),
        real=True,
    ),
    Group(
        "java connect",
        program("java", "connect", "connect", out="java-connect.tsv"),
        900,
        tools=("java", "javac", "mvn"),
        real=True,
    ),
    Group(
        "java share",
        program("java", "share", "share", out="java-share.tsv"),
        400,
        tools=("java", "javac", "mvn"),
        real=True,
    ),
    Group(
        "mixed cluster",
        pytest_group("tests/mixed"),
        900,
        tools=("java", "mvn"),
        modules=("confluent_kafka",),
        real=True,
    ),
    # Clients that log in over TLS: few seconds each.
    Group(
        "java clients over TLS",
        program("java", "java-secure", "secure", out="java-secure.tsv", secure=True),
        300,
        tools=("java", "javac", "mvn"),
        real=True,
    ),
    Group(
        "python clients over TLS",
        program("python", "python-secure", "secure", out="python-secure.tsv", secure=True),
        240,
        modules=("kafka", "confluent_kafka", "aiokafka", "cryptography"),
        real=True,
    ),
    Group(
        "kcat over TLS",
        program("kcat", "kcat-secure", "OUT", "secure", out="kcat-secure.tsv", secure=True),
        120,
        tools=("kcat",),
        modules=("cryptography",),
        real=True,
    ),
    *(
        Group(
            f"{folder.partition('/')[2]} over TLS",
            smoke(folder, secure=True),
            400,
            tools=tools,
            modules=("cryptography",),
            real=True,
        )
        for folder, tools in (
            ("go/franz-go", ("go",)),
            ("go/sarama", ("go",)),
            ("node/kafkajs", ("node", "npm")),
            ("node/platformatic-kafka", ("node", "npm")),
        )
    ),
    Group("chaos", pytest_group("tests/chaos"), 700, modules=("confluent_kafka",), real=True),
    Group("rdkafka (rust)", smoke("rust/rdkafka"), 900, tools=("cargo", "gcc"), real=True),
    Group(
        "confluent-kafka-javascript",
        smoke("node/confluent-kafka-javascript"),
        900,
        tools=("node", "npm"),
        real=True,
    ),
    Group("kafkajs", smoke("node/kafkajs"), 300, tools=("node", "npm"), real=True),
    Group(
        "platformatic-kafka",
        smoke("node/platformatic-kafka"),
        400,
        tools=("node", "npm"),
        real=True,
    ),
    Group("franz-go", smoke("go/franz-go"), 400, tools=("go",), real=True),
    Group("sarama", smoke("go/sarama"), 400, tools=("go",), real=True),
    Group("kafka-go", smoke("go/kafka-go"), 400, tools=("go",), real=True),
    Group(
        "confluent-kafka-go", smoke("go/confluent-kafka-go"), 500, tools=("go", "gcc"), real=True
    ),
)

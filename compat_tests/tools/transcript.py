"""Kafka's command-line tools against a broker: runs `script.txt`, gives what every step wrote.

    transcript.py HOST:PORT LIBS [SECTION]     prints the transcript; LIBS is the folder of Kafka's jars
    transcript.py HOST:PORT LIBS acls HOST:PORT     that of `script-acls.txt`; the second is the controller's address
    transcript.py HOST:PORT LIBS quotas             that of `script-quotas.txt`
    transcript.py HOST:PORT LIBS sasl FILE          that of `script-sasl.txt`; FILE are client properties
    transcript.py HOST:PORT LIBS client-metrics     that of `script-client-metrics.txt`

What differs from run to run (ids, ports, times, rates) is replaced by a name in angle brackets.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
#: How long a change has to reach a Kafka on a busy machine when it is recorded.
RECORDING_SETTLE_MS = 2000
#: The section of tools that print figures.
MEASURING = "measuring"
#: Lines of a stack trace, and what a tool says of the exception that stands for its end.
# What ReplicaVerificationTool goes on telling, by threads that outlive it in Tools.java.
BELATED = r"<time>: max lag is \d+ for partition "
TRACE = r"at [\w.$/]+\(.*\)$|\.\.\. \d+ more$|(Tools\$Ended: )?ended$"
PASSED_OVER = re.compile(f"{TRACE}|{BELATED}")
#: After one of these the metadata are given time to reach the broker.
CHANGES = re.compile(r"--(alter|create|delete|execute|verify|cancel|add|remove)\b|grade ")
#: Pattern -> what stands for it. In this order.
REPLACED = [
    (re.compile(r"(INFO|WARN|ERROR) .*? \((org|kafka)\.[\w.]+(:\d+)?\)$"), r"<log>"),
    (re.compile(r"\b(127\.0\.0\.1|localhost)[: ]\d+"), "<address>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.:,]\d{3}(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d\b"), "<minute>"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "<ms>"),
    (re.compile(r"(?<![\w+/])[\w+/]{86}=="), "<hmac>"),
    # An id: 128 bits, so the last of its 22 signs carries two. One in forty has no digit.
    (re.compile(r"(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{21}[AQgw](?![\w-])"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"(/[\w.-]+){2,}"), "<path>"),
    (re.compile(r"\b(Epoch:|HighWatermark:|MaxFollowerLagTimeMs:) \d+"), r"\1 <n>"),
    (re.compile(r"<id> \d+ 0 (?=<ms>|\d+ ms ago)"), "<id> <n> 0 "),
    (re.compile(r"^\d+ (?=\d+ -1 \d+ <ms>)"), "<producer> "),
    (re.compile(r"\b\d+ ms ago"), "<ms> ago"),
    # A batch is longer by two bytes where its records were sent 64 ms apart.
    (re.compile(r'"size":[1-9]\d*'), '"size":<n>'),
    (re.compile(r"\b\d+\.\d+( ms\b| MB/sec| records/sec)"), r"<number>\1"),
]


@dataclasses.dataclass(frozen=True)
class Step:
    """One call of a tool: `text` is its line in the script without the `$`."""

    section: str
    number: int
    text: str
    stdin: tuple[str, ...]
    files: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return f"{self.section} {self.number}: {self.text}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a step wrote, replaced and without empty lines, and its exit status."""

    lines: tuple[str, ...]
    status: str


def read_script(path: pathlib.Path = HERE / "script.txt") -> list[Step]:
    """The steps in their order."""
    steps: list[Step] = []
    section = ""
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip("[]")
        elif line.startswith("$ "):
            steps.append(Step(section, len(steps) + 1, line[2:], (), ()))
        elif line.startswith("< "):
            last = steps[-1]
            steps[-1] = dataclasses.replace(last, stdin=(*last.stdin, line[2:]))
        else:
            name, _, text = line.partition(": ")
            steps[-1] = dataclasses.replace(steps[-1], files=((name, text),))
    return steps


def replaced(text: str, measures: bool = False) -> str:
    """The line without what a run makes of it; of a tool that measures, without any number."""
    text = re.sub(r"[ \t]+", " ", text).strip()
    for pattern, by in REPLACED:
        text = pattern.sub(by, text)
    if text.startswith("SCRAM credential configs"):  # Kafka's come in no order
        head, _, credentials = text.partition(" are ")
        text = f"{head} are {', '.join(sorted(credentials.split(', ')))}"
    if measures:
        text = re.sub(r"\d+(\.\d+)?", "<n>", text)
    return text


def compile_runner(libs: pathlib.Path, directory: pathlib.Path, settle_ms: int) -> list[str]:
    """The command that runs Tools.java."""
    classpath = f"{libs}/*"
    subprocess.run(
        [
            "javac",
            "-nowarn",
            "--release",
            "17",
            "-d",
            directory,
            "-cp",
            classpath,
            HERE / "Tools.java",
        ],
        check=True,
    )
    return [
        *(
            "java",
            "-Xmx384m",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        ),
        *(
            "-Dlog4j2.level=OFF",
            f"-DsettleMs={settle_ms}",
            "-cp",
            f"{directory}:{classpath}",
            "Tools",
        ),
    ]


def run(
    bootstrap: str,
    libs: pathlib.Path,
    steps: list[Step],
    controller: str = "",
    login: str = "",
    settle_ms: int = 200,
) -> Iterator[tuple[Step, Outcome]]:
    """Run the steps in one JVM. Ends early when a tool hangs: its status is `timeout`."""
    with tempfile.TemporaryDirectory(prefix="kwire-tools-") as directory:
        here = pathlib.Path(directory)
        fed = "".join(_fed(step, bootstrap, here, controller, login) for step in steps)
        done = subprocess.run(
            compile_runner(libs, here, settle_ms),
            input=fed,
            capture_output=True,
            text=True,
            timeout=900,
        )
    lines: list[str] = []
    status = ""
    rest = iter(steps)
    step = next(rest)
    for line in done.stdout.splitlines():
        if line == ".":
            if step.section == MEASURING:  # several threads write
                lines.sort()
            yield step, Outcome(tuple(lines), status)
            lines, step = [], next(rest, step)
        elif line.startswith("= "):
            status = line[2:]
        elif (text := replaced(line[2:], step.section == MEASURING)) and not PASSED_OVER.match(
            text
        ):
            lines.append(text)
    for step in steps[done.stdout.count("\n.\n") :]:
        yield step, Outcome((done.stderr[-500:],), "not reached")


def _fed(step: Step, bootstrap: str, directory: pathlib.Path, controller: str, login: str) -> str:
    """What Tools.java reads for one step."""
    # What a step before it has written: Tools.java knows.
    named = {"bootstrap": bootstrap, "controller": controller, "login": login, "hmac": "@hmac"}
    for name, text in step.files:
        path = directory / f"{step.number}-{name}"
        path.write_text(text + "\n")
        named[name] = str(path)
    tool, *words = shlex.split(step.text)
    if not {"{bootstrap}", "{controller}"} & set(words):
        words = ["--bootstrap-server", "{bootstrap}", *words]
    words = [re.sub(r"\{(\w+)\}", lambda found: named[found[1]], word) for word in words]
    settle = ["w"] if CHANGES.search(step.text) else []
    parts = [
        f"$ {tool}",
        *(f"a {word}" for word in words),
        *(f"i {text}" for text in step.stdin),
        *settle,
        ".",
    ]
    return "\n".join(parts) + "\n"


def written(outcomes: Iterator[tuple[Step, Outcome]]) -> Iterator[str]:
    """The lines of a transcript file."""
    for step, outcome in outcomes:
        yield f"$ {step.name}"
        yield from (f"  {line}" for line in outcome.lines)
        yield f"= {outcome.status}"


def read_transcript(path: pathlib.Path) -> dict[str, Outcome]:
    """A transcript file by step names."""
    found: dict[str, Outcome] = {}
    name = ""
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("$ "):
            name, lines = line[2:], []
        elif line.startswith("= "):
            found[name] = Outcome(tuple(lines), line[2:])
        elif line.startswith("  "):
            lines.append(line[2:])
    return found


def main(bootstrap: str, libs: str, section: str = "", controller: str = "") -> None:
    login = ""
    if section == "sasl":
        login, controller = controller, ""
        steps = read_script(HERE / "script-sasl.txt")
    elif section == "quotas":
        steps = read_script(HERE / "script-quotas.txt")
    elif section == "client-metrics":
        steps = read_script(HERE / "script-client-metrics.txt")
    elif controller:
        steps = read_script(HERE / "script-acls.txt")
    else:
        steps = [step for step in read_script() if section in ("", step.section)]
    for line in written(
        run(bootstrap, pathlib.Path(libs), steps, controller, login, RECORDING_SETTLE_MS)
    ):
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])

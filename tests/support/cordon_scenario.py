"""One history of cordoned log directories, played against any broker (KIP-1066).

`play(bootstrap, base)` goes through it with a broker, node 1 and alone, whose log directories are
`base/d1`, `base/d2` and `base/d3`, and returns what was answered, as JSON, with `@` for `base`.
Played against Apache Kafka 4.4 it gave `tests/golden/data/cordon_answers.json.gz`.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from kwire.cli.client import Client
from kwire.protocol import messages as m
from kwire.testing.cluster import wait_for
from tests.support.config_scenario import APPEND, BROKER, DATA, DELETE, SET, SUBTRACT
from tests.support.config_scenario import _change as change
from tests.support.config_scenario import _describe as describe

RECORDED = DATA / "cordon_answers.json.gz"
CONFIG = "cordoned.log.dirs"
TIMEOUT_MS = 10_000
NAMES = ("d1", "d2", "d3")
LOG_DIRS = ",".join(f"@NODE@/{name}" for name in NAMES)

# (what is set, by name of the broker) that is refused, or changes nothing that is cordoned.
REFUSED: list[tuple[str, int, str | None]] = [
    ("1", SET, "*,@/d1"),
    ("1", SET, "@/d1,*"),
    ("1", SET, "/nope"),
    ("1", SET, "/nope,@/d1,/nix"),
    ("1", SET, "@/d1/"),
    ("1", SET, "@/./d1"),
    ("1", SET, "@/d1,@/d1"),
    ("1", SET, "@/d1,,"),
    ("1", SET, ","),
    ("1", SET, "*,*"),
    ("1", APPEND, "/nope"),
    ("", SET, "*"),
    ("2", SET, "@/d1"),
]


class Play:
    """The broker and what it answered."""

    def __init__(self, client: Client, base: str) -> None:
        self.client = client
        self.base = base
        self.answers: dict[str, Any] = {}

    def note(self, step: str, answer: Any) -> None:
        text = json.dumps(answer).replace(self.base, "@")
        self.answers[f"{len(self.answers)} {step}"] = json.loads(text)

    # -- asking

    def directories(self, version: int = 5) -> dict[str, Any]:
        request = m.DescribeLogDirsRequest(topics=None)
        results = self.client.call(request, version_max=version).results
        return {result.log_dir.removeprefix(self.base + "/"): result for result in results}

    def described(self) -> Any:
        return describe(self.client, BROKER, "1", [CONFIG])

    def cordoned(self) -> list[str]:
        return sorted(name for name, one in self.directories().items() if one.is_cordoned)

    def homes(self, topic: str) -> dict[str, int]:
        """Directory -> how many partitions of the topic are there."""
        counts = Counter(
            {
                name: sum(len(t.partitions) for t in one.topics if t.name == topic)
                for name, one in self.directories().items()
            }
        )
        return {name: counts[name] for name in NAMES}

    def set(self, operation: int, value: str | None, expected: list[str]) -> None:
        """Change the config and wait until it shows."""
        given = None if value is None else value.replace("@", self.base)
        answer = change(self.client, BROKER, "1", [(CONFIG, operation, given)])
        wait_for(lambda: self.cordoned() == expected, f"{expected} cordoned")
        if operation == SET:  # what was cordoned before may be the same
            wait_for(lambda: self.described()[2][CONFIG][5][0][1] == given, f"{given} described")
        # Controllers hear of it by the next heartbeat.
        is_full = len(expected) == len(NAMES)
        wait_for(
            lambda: bool(self.create("probe", 1, validate_only=True)[0]) is is_full,
            f"full: {is_full}",
        )
        self.note(f"set {operation} {value}", [*answer, self.cordoned()])
        self.note("described", self.described())

    def create(
        self,
        name: str,
        partitions: int,
        assignments: list[list[int]] | None = None,
        validate_only: bool = False,
    ) -> list[Any]:
        shape = m.CreateTopicsRequest
        topic = shape.CreatableTopic(
            name=name,
            num_partitions=-1 if assignments else partitions,
            replication_factor=-1 if assignments else 1,
            assignments=[
                shape.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                for index, brokers in enumerate(assignments or [])
            ],
            configs=[],
        )
        request = shape(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only)
        result = self.client.call(request).topics[0]
        return [result.error_code, result.error_message]

    def place(self, name: str, partitions: int) -> None:
        """Create a topic and note how many of its partitions are in which directory."""
        answer = self.create(name, partitions)
        wait_for(lambda: sum(self.homes(name).values()) == partitions, f"{name} has its replicas")
        self.note(f"create {name}", [*answer, self.homes(name)])

    def grow(self, name: str, count: int, assignments: list[list[int]] | None = None) -> None:
        shape = m.CreatePartitionsRequest
        topic = shape.CreatePartitionsTopic(name=name, count=count, assignments=None)
        if assignments is not None:
            topic.assignments = [
                shape.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments
            ]
        request = shape(topics=[topic], timeout_ms=TIMEOUT_MS)
        result = self.client.call(request).results[0]
        self.note(f"grow {name} {assignments}", [result.error_code, result.error_message])

    def reassign(self, name: str) -> None:
        shape = m.AlterPartitionReassignmentsRequest
        partition = shape.ReassignablePartition(partition_index=0, replicas=[1])
        topic = shape.ReassignableTopic(name=name, partitions=[partition])
        response = self.client.call(shape(topics=[topic], timeout_ms=TIMEOUT_MS))
        results = [
            [one.error_code, one.error_message]
            for answered in response.responses
            for one in answered.partitions
        ]
        self.note(f"reassign {name}", [response.error_code, response.error_message, results])

    def move(self, path: str, topic: str) -> None:
        shape = m.AlterReplicaLogDirsRequest
        wanted = shape.AlterReplicaLogDirTopic(name=topic, partitions=[0])
        directory = shape.AlterReplicaLogDir(path=path.replace("@", self.base), topics=[wanted])
        response = self.client.call(shape(dirs=[directory]))
        codes = [one.error_code for result in response.results for one in result.partitions]
        self.note(f"move {topic} to {path}", codes)


def play(bootstrap: str, base: str) -> dict[str, Any]:
    """Every answer by a name for its step."""
    with Client(bootstrap) as client:
        one = Play(client, base)
        one.note("described", one.described())
        one.place("a", 6)
        one.set(SET, "@/d1", ["d1"])
        one.note("older version", [r.is_cordoned for r in one.directories(4).values()])
        one.place("b", 4)
        one.set(SET, "@/d1,@/d2", ["d1", "d2"])
        one.place("c", 3)
        for path in ("@/d1", "@/d2", "@/d3", "/x"):
            one.move(path, "c")
        one.move("@/d1", "none")
        one.move("@/d3", "none")
        one.set(APPEND, "@/d3", ["d1", "d2", "d3"])
        _with_none_left(one)
        one.set(SET, "*", ["d1", "d2", "d3"])
        _with_none_left(one)
        for name, operation, value in REFUSED:
            given = None if value is None else value.replace("@", base)
            answer = change(client, BROKER, name, [(CONFIG, operation, given)])
            one.note(f"refused {name} {operation} {value}", answer)
        one.set(SET, " @/d1 , @/d2 ", ["d1", "d2"])
        one.set(SUBTRACT, "@/d1", ["d1", "d2"])  # the entry has blanks around it
        one.set(SET, "@/d1,@/d2", ["d1", "d2"])
        one.set(SUBTRACT, "@/d1", ["d2"])
        one.set(SET, "", [])
        one.set(APPEND, "*", ["d1", "d2", "d3"])
        one.set(DELETE, None, [])
        one.place("d", 1)
        return one.answers


def _with_none_left(one: Play) -> None:
    one.note("create", one.create("none-left", 2))
    one.note("create as told", one.create("none-left", 1, [[1]]))
    one.grow("a", 8)
    one.grow("a", 8, [[1], [1]])
    one.reassign("a")

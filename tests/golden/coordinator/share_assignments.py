"""Groups for the simple assignor of share groups, and what Apache Kafka 4.4 assigns to them:
`python -m tests.golden.coordinator.share_assignments` asks it (Java) and writes
tests/golden/data/share_assignments.json.gz: [[question, answer], ...] in the form of
ShareAssignorOracle.java. A group lives for some steps, each with the targets of the one before.
"""

from __future__ import annotations

import base64
import gzip
import json
import pathlib
import random
import subprocess
from collections.abc import Sequence

from kwire.coordinator.group.assignors.simple import ShareGroupSpec, ShareMemberSpec, assign_simple
from tests.support.kafka import kafka_libs

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "share_assignments.json.gz"
ORACLE = pathlib.Path(__file__).with_name("ShareAssignorOracle.java")
GROUPS, STEPS = 50, 5

Topics = dict[str, tuple[int, list[int]]]
Target = dict[str, list[int]]


def topic_id(chance: random.Random) -> str:
    return base64.urlsafe_b64encode(chance.randbytes(16)).decode()[:22]


def question(
    same: bool, topics: Topics, subscriptions: dict[str, list[str]], targets: dict[str, Target]
) -> str:
    """A line for the oracle."""
    described = " ".join(
        f"{topic}={count}/{_numbers(assignable)}" for topic, (count, assignable) in topics.items()
    )
    members = " ".join(
        "/".join(
            [f"{member}={','.join(subscribed)}"]
            + [f"{topic}:{_numbers(x)}" for topic, x in targets.get(member, {}).items()]
        )
        for member, subscribed in subscriptions.items()
    )
    return "\t".join(["same" if same else "different", described, members])


def ours(line: str) -> str:
    """What kwire answers to a question."""
    kind, described, members_text = line.split("\t")
    assignable: dict[bytes, list[int]] = {}
    for topic in described.split():
        name, _, rest = topic.partition("=")
        assignable[_bytes(name)] = _integers(rest.partition("/")[2])
    members: dict[str, ShareMemberSpec] = {}
    for member in members_text.split():
        name, _, rest = member.partition("=")
        subscribed, *owned = rest.split("/")
        target = {_bytes(x.partition(":")[0]): tuple(_integers(x.partition(":")[2])) for x in owned}
        members[name] = ShareMemberSpec(
            tuple(_bytes(x) for x in subscribed.split(",") if x), target
        )
    steps = assign_simple(ShareGroupSpec(members, kind == "same", assignable))
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            found = finished.value
            break
    return " ".join(
        f"{member}="
        + "/".join(sorted(f"{_text(topic)}:{_numbers(x)}" for topic, x in found[member].items()))
        for member in sorted(members)
    )


def questions(seed: int) -> list[str]:
    """Random groups: members come and go, topics grow, subscriptions change. Each question takes
    up what was answered to the one before."""
    chance = random.Random(seed)
    asked: list[str] = []
    for _ in range(GROUPS):
        same = chance.random() < 0.5
        topics: Topics = {}
        for _ in range(chance.choice([1, 1, 2, 3, 6])):
            count = chance.choice([1, 2, 3, 5, 12, 40])
            initialized = [x for x in range(count) if chance.random() < 0.9]
            topics[topic_id(chance)] = (count, initialized)
        names = list(topics)
        subscribed = chance.sample(
            names, chance.randint(0 if chance.random() < 0.1 else 1, len(names))
        )
        subscriptions: dict[str, list[str]] = {}
        targets: dict[str, Target] = {}
        for _ in range(STEPS):
            for _ in range(chance.choice([1, 2, 5, 30])):
                member = topic_id(chance)
                subscriptions[member] = (
                    list(subscribed)
                    if same
                    else chance.sample(names, chance.randint(1, len(names)))
                )
            for member in list(subscriptions):
                if len(subscriptions) > 1 and chance.random() < 0.2:
                    del subscriptions[member]
            if chance.random() < 0.3:
                name = chance.choice(names)
                count = topics[name][0] + chance.randint(0, 4)
                topics[name] = (count, list(range(count)))
            if same and chance.random() < 0.2:
                subscribed = chance.sample(names, chance.randint(1, len(names)))
                subscriptions = {member: list(subscribed) for member in subscriptions}
            asked.append(question(same, topics, subscriptions, targets))
            targets = _targets(ours(asked[-1]))
    return asked


def _targets(answer: str) -> dict[str, Target]:
    found: dict[str, Target] = {}
    for member in answer.split():
        name, _, rest = member.partition("=")
        found[name] = {
            x.partition(":")[0]: _integers(x.partition(":")[2]) for x in rest.split("/") if x
        }
    return found


def ask_kafka(asked: Sequence[str], libs: pathlib.Path) -> list[str]:
    """The answers of Apache Kafka's assignor (Java)."""
    done = subprocess.run(
        ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", str(ORACLE)],
        input="\n".join(asked) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.splitlines()


def load() -> list[list[str]]:
    found: list[list[str]] = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


def _numbers(values: Sequence[int]) -> str:
    return ",".join(str(x) for x in values)


def _integers(text: str) -> list[int]:
    return [int(x) for x in text.split(",") if x]


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def _text(topic: bytes) -> str:
    return base64.urlsafe_b64encode(topic).decode()[:22]


def main() -> None:
    asked = questions(4)
    answers = ask_kafka(asked, kafka_libs())
    assert len(answers) == len(asked)
    text = json.dumps([list(pair) for pair in zip(asked, answers, strict=True)], indent=0)
    DATA.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()

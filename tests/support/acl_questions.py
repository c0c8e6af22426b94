"""ACLs and questions about them at random: what Kafka's StandardAuthorizer decides, and ours.

`python -m tests.support.acl_questions` records Kafka's answers (needs a JVM and Kafka's jars).
"""

from __future__ import annotations

import gzip
import json
import pathlib
import random
import subprocess
from typing import NamedTuple

from kwire.security.acl import Operation
from kwire.security.acls.binding import AclBinding
from kwire.security.acls.explanation import explain
from kwire.security.acls.standard_authorizer import StandardAuthorizer
from tests.support.acls import Client

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
ORACLE = GOLDEN / "acls" / "AclOracle.java"
DATA = GOLDEN / "data" / "acl_decisions.json.gz"
SEED, SETS = 7, 100
QUESTIONS = 30

PRINCIPALS = ["User:a", "User:b", "User:a:b", "Group:a", "User:CN=x,O=y", "User:", "User:ANONYMOUS"]
NAMES = [
    "*", "*a", "a", "aa", "ab", "abc", "abd", "ab.", "b", "ba", "+a", "hardcode", "hard", "h",
    "kafka-cluster", "é", "日", "\U0001f600", "\U0001f601", "z" * 249,
]  # fmt: skip
# No name below `*`: Kafka searches for ever for `!a` where an ACL is about `!b`.
PREFIXES = [*NAMES, "har", "ab", "z" * 100, "日"]
ADDRESSES = [
    "10.0.0.1", "10.0.1.2", "10.255.255.255", "192.168.7.9", "127.0.0.1", "0.0.0.1", "::1",
    "fd00::1", "fd00::2:1", "::ffff:10.0.0.1", "2001:db8::", "255.255.255.255",
]  # fmt: skip
HOSTS = [
    "*", "*", "*", "10.0.0.1", "127.0.0.1", "0:0:0:0:0:0:0:1", "::1", "fd00:0:0:0:0:0:0:1",
    "10.0.0.0/24", "10.0.0.7/8", "0.0.0.0/0", "192.168.7.9/32", "192.168.7.8/31", "10.0.0.0/30",
    "::/0", "fd00::/8", "fd00::/112", "::1/128", "fd00::9/112", "255.255.255.255/1",
]  # fmt: skip
ODD_HOSTS = ["10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "/8", "10.0.0.0/8/8", "::1/129", "a/b"]
"""Ranges that are none; an ACL with one does not fit anybody."""
KINDS = [2, 3, 4, 5, 6, 7]


class AclSet(NamedTuple):
    """One configuration with its ACLs, and what is asked of it."""

    super_users: list[str]
    allow_everyone: bool
    acls: list[AclBinding]
    questions: list[tuple[str, str, int, int, str | None]]
    """(principal, address, operation, type, name); without a name any of the type will do."""


def drawn(seed: int, count: int) -> list[AclSet]:
    """Sets in which the same few names, principals and hosts meet again and again."""
    return [_drawn_set(random.Random(f"{seed}-{number}")) for number in range(count)]


def _drawn_set(chance: random.Random) -> AclSet:
    kinds = chance.sample(KINDS, k=chance.choice((1, 1, 2)))
    principals = chance.sample(PRINCIPALS, k=2)
    names = chance.sample(NAMES, k=5)
    operations = chance.sample(range(2, 16), k=chance.choice((2, 3)))
    acls = [
        AclBinding(
            chance.choice(kinds),
            chance.choice(chance.choice((names, PREFIXES, ["*"]))),
            chance.choice((3, 4)),
            chance.choice(("User:*", *principals)),
            chance.choice(
                ["*"] if chance.random() < 0.5 else HOSTS + chance.sample(ODD_HOSTS, k=2)
            ),
            chance.choice(operations),
            chance.choice((2, 3, 3, 3)),
        )
        for _ in range(chance.randint(0, 40))
    ]
    # What denies by a host that cannot be used: kwire closes more than Kafka does.
    acls = [acl for acl in acls if acl.host not in ODD_HOSTS or acl.permission_type == 3]
    questions = [
        (
            chance.choice(principals),
            chance.choice(ADDRESSES),
            chance.choice((*operations, 8, 10)),
            chance.choice(kinds),
            chance.choice(names) if chance.random() < 0.8 else None,
        )
        for _ in range(QUESTIONS)
    ]
    questions = [each for each in questions if each[2] > 2]
    return AclSet(
        chance.sample(principals, k=1) if chance.random() < 0.1 else [],
        chance.random() < 0.3,
        list(dict.fromkeys(acls)),
        questions,
    )


def answers_of_kafka(sets: list[AclSet], libs: pathlib.Path, limit_s: float) -> list[list[str]]:
    """For each set the answers to its questions, as `AclOracle.java` gives them."""
    lines = []
    for each in sets:
        lines.append(["S", ";".join(each.super_users), str(each.allow_everyone).lower()])
        lines += [["A", *map(str, acl)] for acl in each.acls]
        for *asked, name in each.questions:
            lines.append(["R", *map(str, asked)] if name is None else ["Q", *map(str, asked), name])
    done = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{libs}/*", ORACLE],
        input="\n".join("\t".join(line) for line in lines).encode() + b"\n",
        capture_output=True,
        check=True,
        timeout=limit_s,
    )
    said = done.stdout.decode().split("\n")[:-1]
    answers = []
    for each in sets:
        count = len(each.questions)
        answers.append(said[:count])
        said = said[count:]
    assert not said
    return answers


def our_answers(given: AclSet) -> list[str]:
    """As Kafka's."""
    authorizer = StandardAuthorizer(given.super_users, given.allow_everyone)
    authorizer.apply({at.to_bytes(16, "big"): (None, acl) for at, acl in enumerate(given.acls)})
    authorizer.loaded()
    return [_our_answer(authorizer, given, *question) for question in given.questions]


def _our_answer(
    authorizer: StandardAuthorizer,
    given: AclSet,
    principal: str,
    address: str,
    operation: int,
    kind: int,
    name: str | None,
) -> str:
    client = Client(principal, f"/{address}")
    if name is None:
        return str(int(authorizer.authorize_by_resource_type(client, operation, kind)))
    allowed = authorizer.authorize(client, operation, kind, name)
    decision = explain(
        given.acls,
        principal,
        f"/{address}",
        operation,
        kind,
        name,
        allow_everyone=given.allow_everyone,
    )
    is_super_user = principal in given.super_users
    assert is_super_user or decision.is_allowed == allowed, (
        principal,
        address,
        Operation(operation),
        name,
    )
    rule = "-" if decision.rule is None else "\t".join(map(str, decision.rule))
    return f"{int(allowed)}\t{rule}"


def main() -> None:
    """Record what Kafka answers."""
    from tests.support.kafka import kafka_libs

    answers = answers_of_kafka(drawn(SEED, SETS), kafka_libs(), 300)
    DATA.write_bytes(gzip.compress(json.dumps(answers).encode(), mtime=0))
    print(f"wrote {sum(map(len, answers))} answers to {DATA.name}")


if __name__ == "__main__":
    main()

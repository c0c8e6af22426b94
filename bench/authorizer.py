"""What decisions by ACLs cost, with 10,000 ACLs over 2,000 principals: us each.

    bench/authorizer.py [--acls N] [--principals N] [--rounds N]

`warm` is a decision that was taken before; `first` the first one of a client about a topic behind a
change of an ACL; `change` the change itself; `any topic` the first question whether a principal may
write to any topic. `longest hold`, in ms, is the longest time that the loop is held while all ACLs
change at once, which goes slice by slice; `longest collection` the longest pause of the garbage
collector in it, as `kwire serve` sets it. Processor time; the least of the rounds is told, of the
last two the longest piece of the best round.
"""

from __future__ import annotations

import argparse
import gc
import pathlib
import sys
import time
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kwire.node.acls import goes_on
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import AclBinding, PatternType, PermissionType
from kwire.security.acls.index import Changes
from kwire.security.acls.standard_authorizer import StandardAuthorizer
from kwire.server.context import RequestContext
from tests.support.parts import made_parts

TOPIC = ResourceType.TOPIC
ASKED = 2000


class Client:
    """A connection, as far as it is asked who it is."""

    principal = "User:app-7"
    client_host = "/10.1.2.3"


def acls(count: int, principals: int) -> Iterator[AclBinding]:
    """Each principal has a literal topic, a prefix, a group, ranges of addresses, a denial."""
    for at in range(count):
        of = at // principals
        principal = f"User:app-{at % principals}"
        kind = ResourceType.GROUP if of % 5 == 2 else TOPIC
        name = f"orders-{at % principals}-{of}"
        yield AclBinding(
            kind,
            name[:9] if of % 5 == 1 else name,
            PatternType.PREFIXED if of % 5 == 1 else PatternType.LITERAL,
            principal,
            "10.0.0.0/8" if of % 5 == 3 else "*",
            Operation.READ if at % 2 else Operation.WRITE,
            PermissionType.DENY if of % 5 == 4 else PermissionType.ALLOW,
        )


def changes_of(rules: Iterator[AclBinding]) -> Changes:
    return {at.to_bytes(16, "big"): (None, rule) for at, rule in enumerate(rules)}


def timed(work: Callable[[], None], count: int) -> float:
    """us of one of `count`."""
    begin = time.process_time()
    work()
    return (time.process_time() - begin) / count * 1e6


def measure(count: int, principals: int) -> dict[str, float]:
    """The figures of one round."""
    authorizer = StandardAuthorizer()
    authorizer.apply(changes_of(acls(count, principals)))
    authorizer.loaded()
    context = RequestContext(made_parts(authorizer=authorizer), Client(), 0, 9, 1, "c")  # type: ignore[arg-type]
    one = {b"one" * 5 + b"!": (None, AclBinding(TOPIC, "t", 3, "User:app-7", "*", 3, 3))}
    none = {b"one" * 5 + b"!": (None, None)}
    names = [f"orders-{at % principals}-{at % 5}" for at in range(ASKED)]

    def warm() -> None:
        read, topic = Operation.READ, TOPIC
        for _ in range(100_000):
            context.authorize(read, topic, "orders-7-0")

    def first() -> None:
        for name in names:
            authorizer._forget()
            context.authorize(Operation.READ, TOPIC, name)

    def change() -> None:
        for _ in range(ASKED // 2):
            authorizer.apply(one)
            authorizer.apply(none)

    def any_topic() -> None:
        for _ in range(ASKED):
            authorizer._forget()
            authorizer.authorize_by_resource_type(context, Operation.WRITE, TOPIC)

    found = {
        "warm": timed(warm, 100_000),
        "first": timed(first, ASKED),
        "change": timed(change, ASKED),
        "any topic": timed(any_topic, ASKED),
    }
    return found | longest(count, principals)


def longest(count: int, principals: int) -> dict[str, float]:
    """ms of the longest piece while all ACLs are new at once."""
    authorizer = StandardAuthorizer()
    old = changes_of(acls(count, principals))
    authorizer.apply(old)
    authorizer.loaded()
    new = changes_of(acl._replace(host="127.0.0.1") for acl in acls(count, principals))
    gc.collect()
    collections = [0.0]
    begun = 0.0

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.process_time()
        else:
            collections.append(time.process_time() - begun)

    gc.callbacks.append(collected)
    begin = time.process_time()
    work = authorizer.rebuild(authorizer.news(new))
    pieces = [time.process_time() - begin]
    is_done = False
    while not is_done:
        begin = time.process_time()
        is_done = not goes_on(work)
        pieces.append(time.process_time() - begin)
    gc.callbacks.remove(collected)
    return {"longest hold": max(pieces) * 1e3, "longest collection": max(collections) * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--acls", type=int, default=10_000)
    parser.add_argument("--principals", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    rounds = [measure(given.acls, given.principals) for _ in range(given.rounds)]
    for name in rounds[0]:
        unit = "ms" if name.startswith("longest") else "us"
        print(f"{name:20}{min(each[name] for each in rounds):8.2f} {unit}")


if __name__ == "__main__":
    main()

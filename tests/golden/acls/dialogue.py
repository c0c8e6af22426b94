"""CreateAcls, DescribeAcls and DeleteAcls as they should not be, and what Kafka answers.

`run(bootstrap)` gives label -> answer. `tests/golden/data/acl_answers.json.gz` holds what one node
of Apache Kafka 4.4 gave with `PROPERTIES`, on the listener of its broker and on that of its
controller, and with a metadata version that has no CIDR:
`python -m tests.golden.acls.dialogue OUT BROKER CONTROLLER OLDER`, three addresses.
"""

from __future__ import annotations

import gzip
import itertools
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from kwire.client.acl_requests import described
from kwire.protocol import messages as m
from kwire.security.acls.binding import AclBinding
from tests.support.acls import STANDARD_AUTHORIZER
from tests.support.wire import WireClient

PROPERTIES = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
}
OLDER, OLDER_LEVEL = "4.3-IV0", 30
"""A metadata version without CIDR."""
WAIT_S = 30.0
EVERY: dict[str, Any] = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip
FIELDS = ("resource_type", "resource_name", "resource_pattern_type", "principal", "host",
          "operation", "permission_type")  # fmt: skip
ONE = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:u",
    "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip
NAMES = ["", "*", "kafka-cluster", "a b", "t" * 250, "é", ".", "t\n"]
HOSTS = [
    "", "*", "localhost", "127.0.0.1", "::1", "10.0.0.0/8", "10.0.0.7/8", "10.0.0.0/33", "/8",
    "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/x", "10.0.0/8", "1.2.3.4/08", "1.2.3.4/008", "1.2.3.4/+8",
    "01.2.3.4/8", "1.2.3.4/8 ", " 1.2.3.4/8", "1.2.3.4/8/9", "1.2.3.256/8", "a/b", "::1/128",
    "::1/129", "::/0", "0.0.0.0/0", "fe80::1%eth0/64", "::ffff:1.2.3.4/96", "::1/x", ":/8",
    "1.2.3.4/",
    "FD00::/8", "1:2/3", "::1/64/2", "10.0.0.0/99999999999", "::1/99999999999", "::1/", "::1/-1",
    "1.2.3.4/0", "::1/+8", "::1/08", "[::1]/128", "[::1/128", "[1.2.3.4]/8", "[]/8",
]  # fmt: skip
PRINCIPALS = ["", "u", "User:", ":u", ":", "User:*", "User:a:b", "user:u", "*", "U ser:u", "Ünit:u"]


def create(*changes: dict[str, Any]) -> m.CreateAclsRequest:
    """ACLs like `ONE`, each with some fields changed."""
    return m.CreateAclsRequest(
        creations=[m.CreateAclsRequest.AclCreation(**ONE | change) for change in changes]
    )


def delete(*changes: dict[str, Any]) -> m.DeleteAclsRequest:
    """Filters like `EVERY`, each with some fields changed."""
    return m.DeleteAclsRequest(
        filters=[m.DeleteAclsRequest.DeleteAclsFilter(**EVERY | change) for change in changes]
    )


def describe(**change: Any) -> m.DescribeAclsRequest:
    return m.DescribeAclsRequest(**EVERY | change)


def hosts() -> Iterator[tuple[str, int, Any]]:
    """What an address can be."""
    for host in HOSTS:
        yield f"host {host!r}", 3, create({"host": host})
    yield "hosts described", 3, describe()
    yield "hosts deleted", 3, delete({})


def creations() -> Iterator[tuple[str, int, Any]]:
    """One field at a time, then fields together."""
    codes = (-1, *range(18), 127)
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        for code in codes:
            yield f"{field} {code}", 3, create({field: code})
    for kind, name, pattern in itertools.product(range(2, 8), NAMES, (3, 4)):
        change = {"resource_type": kind, "resource_name": name, "resource_pattern_type": pattern}
        yield f"type {kind} name {name[:9]!r} pattern {pattern}", 3, create(change)
    for kind in range(2, 8):
        name = "kafka-cluster" if kind == 4 else "t"
        every = [
            {"resource_type": kind, "resource_name": name, "operation": x} for x in range(2, 16)
        ]
        yield f"type {kind} every operation", 3, create(*every)
    for principal in PRINCIPALS:
        yield f"principal {principal!r}", 3, create({"principal": principal})
    yield "described after creations", 3, describe()
    good, bad = {}, {"principal": "u", "host": "", "operation": 99}
    cluster = {"resource_type": 4, "resource_name": "", "operation": 99}
    unknown = {"resource_type": 9, "resource_name": "", "resource_pattern_type": 9}
    for version in (1, 2, 3):
        yield f"none {version}", version, create()
        yield f"twice and again {version}", version, create(good, good, {"host": "10.0.0.1"}, good)
        yield f"good and bad {version}", version, create(good, bad, cluster, unknown)
    yield "too many", 3, create(*({"resource_name": f"t{n}"} for n in range(10_001)))
    yield "deleted after creations", 3, delete({})


def made() -> m.CreateAclsRequest:
    """Some ACLs for filters."""
    changes: list[dict[str, Any]] = [
        {"resource_name": name, "resource_pattern_type": pattern, "permission_type": permission}
        for name, pattern, permission in itertools.product(("*", "t", "te", "test"), (3, 4), (2, 3))
    ]
    changes += [
        {"resource_type": 3, "principal": "User:*"},
        {"resource_type": 4, "resource_name": "kafka-cluster", "operation": 9},
        {"resource_type": 7, "resource_name": "User:x", "operation": 13, "host": "10.0.0.1"},
        {"resource_type": 7, "operation": 2},
    ]
    return create(*changes)


def filters() -> Iterator[tuple[str, dict[str, Any]]]:
    """Filters by label."""
    yield "all", {}
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        for code in (-1, *range(18), 127):
            yield f"{field} {code}", {field: code}
    for name, pattern in itertools.product(
        ("", "*", "t", "te", "tes", "testing", "x"), (1, 2, 3, 4)
    ):
        change = {"resource_name_filter": name, "pattern_type_filter": pattern}
        yield f"name {name!r} pattern {pattern}", change
    for principal in ("", "u", "User:u", "User:*", "user:u"):
        yield f"principal {principal!r}", {"principal_filter": principal}
    for host in ("", "*", "10.0.0.1", "10.0.0.0/8", "a/b"):
        yield f"host {host!r}", {"host_filter": host}
    yield "cluster by another name", {"resource_type_filter": 4, "resource_name_filter": "t"}
    yield "two unknown", {"resource_type_filter": 9, "operation": 99}
    yield "nothing fits", {"resource_type_filter": 6, "principal_filter": "User:none"}


def removals() -> Iterator[tuple[str, int, Any]]:
    """Described and deleted by filters."""
    yield "made", 3, made()
    for label, change in filters():
        yield f"describe {label}", 3, describe(**change)
    yield "describe 1", 1, describe()
    yield "describe 2", 2, describe()
    for label, change in filters():
        yield f"delete {label}", 3, delete(change)
        yield f"made again for {label}", 3, made()
    topic, literal = {"resource_type_filter": 2}, {"pattern_type_filter": 3}
    for version in (1, 2, 3):
        yield f"overlapping {version}", version, delete(topic, literal, topic)
        yield f"made for {version}", version, made()
    yield "delete with a bad one", 3, delete(topic, {"operation": 99}, literal)
    yield "left", 3, describe()
    yield "delete nothing", 3, delete()
    yield "delete the rest", 3, delete({})


def run(bootstrap: str, *, only_hosts: bool = False) -> dict[str, Any]:
    """The answers of the node at an address."""
    known: set[AclBinding] = set()
    answers = {}
    steps = hosts() if only_hosts else itertools.chain(hosts(), creations(), removals())
    client = WireClient(bootstrap)
    try:
        for label, version, request in steps:
            try:
                answer = _plain(client.call(request, version), request, known)
            except (ConnectionError, EOFError, AssertionError):
                client.close()
                client = WireClient(bootstrap)
                answer = "closed"
            assert label not in answers, label
            answers[label] = answer
            if not isinstance(request, m.DescribeAclsRequest):
                _wait(client, len(known))
    finally:
        client.close()
    return json.loads(json.dumps(answers))  # type: ignore[no-any-return]


def _wait(client: WireClient, count: int) -> None:
    """Until the node has published what was changed."""
    deadline = time.monotonic() + WAIT_S
    while True:
        answer = client.call(describe(), 3)
        found = sum(len(resource.acls) for resource in answer.resources)
        if found == count:
            return
        assert time.monotonic() < deadline, f"{found} ACLs for {WAIT_S} s, not {count}"


def _plain(response: Any, request: Any, known: set[AclBinding]) -> Any:
    """What is compared; `known` becomes what there is now."""
    if isinstance(request, m.CreateAclsRequest):
        results = [[result.error_code, result.error_message] for result in response.results]
        for creation, (code, _) in zip(request.creations, results):
            if not code:
                known.add(AclBinding(*(getattr(creation, field) for field in FIELDS)))
        if len(results) > 100:
            return [len(results), [list(each) for each in sorted({(c, t) for c, t in results})]]
        return [response.throttle_time_ms, results]
    if isinstance(request, m.DeleteAclsRequest):
        found = []
        for result in response.filter_results:
            acls = [_of_match(match) for match in result.matching_acls]
            codes = sorted(
                {(match.error_code, match.error_message) for match in result.matching_acls}
            )
            found.append([result.error_code, result.error_message, codes, _shown(acls)])
            if not result.error_code:
                known.difference_update(acls)
        return found
    return [response.error_code, response.error_message, _shown(described(response))]


def _of_match(match: Any) -> AclBinding:
    return AclBinding(*(getattr(match, field) for field in AclBinding._fields))


def _shown(acls: list[AclBinding]) -> Any:
    if len(acls) > 400:
        return len(acls)
    return [[x[:9] if isinstance(x, str) else x for x in acl] for acl in sorted(acls)]


def main() -> None:
    out, broker, controller, older = sys.argv[1:]
    answers = {
        "broker": run(broker),
        "controller": run(controller),
        "older": run(older, only_hosts=True),
    }
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(answers, separators=(",", ":")).encode())
    print({part: len(of_part) for part, of_part in answers.items()})


if __name__ == "__main__":
    main()

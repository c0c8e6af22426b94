"""AlterClientQuotas and DescribeClientQuotas with what contradicts itself, and what Kafka answers.

`run(bootstrap)` returns label -> answer; `tests/golden/data/quota_dialogues.json.gz` holds what
Apache Kafka 4.4 gave, made by `python -m tests.golden.broker.quota_dialogues OUT` (needs a JVM).
"""

from __future__ import annotations

import gzip
import json
import math
import pathlib
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from kwire.protocol import messages as m
from tests.support.kafka import running_kafka
from tests.support.wire import WireClient

WAIT_S = 30.0
Entity = Sequence[tuple[str, str | None]]
Op = tuple[str, float | None]
ALTER, DESCRIBE = m.AlterClientQuotasRequest, m.DescribeClientQuotasRequest
BYTES, TIME, MUTATIONS = "producer_byte_rate", "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"

VALUES = (
    0.0, -0.0, -1.0, 1.0, 0.5, 1e-9, 1.0000001, 1e18, 9.3e18, 1e300, math.nan, math.inf, -math.inf,
    2147483647.0, 2147483648.0, 5e-324, 2.0**63, 2147483647.5, 1.0000005, 1.000002,
)  # fmt: skip
SPELLINGS = (
    "localhost", "127.1", "1", "2130706433", "4294967296", "1.2.3", "1.2.3.", "1..2.3", "010.1.2.3",
    "0x7f.1", "10.1.2.3 ", "[::1]", "[10.1.2.3]", "[", "[]", "::1]", "::ffff:127.0.0.1",
    "fe80::1%1", "::1%nosuch", "10.1.2.3%1", "::1/128", "10.0.0.0/8", "-1", "\u0661.2.3.4",
    "a" * 300, "%",
)  # fmt: skip
"""Of addresses; also such as systems know and Java does not."""
ENTITIES: tuple[Entity, ...] = (
    (),
    [("user", "u")],
    [("user", None)],
    [("user", "")],
    [("client-id", "")],
    [("client-id", None)],
    [("user", "u"), ("client-id", "c")],
    [("client-id", "c"), ("user", "u")],
    [("user", "u"), ("client-id", None)],
    [("user", None), ("client-id", "c")],
    [("user", "u"), ("user", "v")],
    [("user", "u"), ("user", None)],
    [("ip", "10.1.2.3")],
    [("ip", None)],
    [("ip", "")],
    [("ip", "::1")],
    [("ip", "10.1.2.300")],
    [("ip", "no such host")],
    *[[("ip", name)] for name in SPELLINGS],
    [("ip", "10.1.2.3"), ("ip", "10.1.2.4")],
    [("ip", "10.1.2.3"), ("user", "u")],
    [("ip", None), ("client-id", None)],
    [("ip", "10.1.2.3"), ("client-id", "c"), ("user", "u")],
    [("zone", "z")],
    [("", "z")],
    [("user", "u"), ("zone", "z")],
    [("user", "a b/ü*%,=")],
    [("user", "u" * 300)],
)
KEYS = (
    BYTES,
    "consumer_byte_rate",
    TIME,
    MUTATIONS,
    CONNECTIONS,
    "no_such_rate",
    "",
    "SCRAM-SHA-256",
)
FILTERS: tuple[Entity, ...] = (
    (),
    [("user", "u")],
    [("user", None)],
    [("client-id", "c")],
    [("client-id", None)],
    [("user", "u"), ("client-id", "c")],
    [("user", None), ("client-id", "c")],
    [("ip", "10.1.2.3")],
    [("ip", None)],
    [("ip", "10.1.2.3"), ("user", "u")],
    [("user", "")],
)  # fmt: skip


def _entry(entity: Entity, ops: Sequence[Op]) -> m.AlterClientQuotasRequest.EntryData:
    return ALTER.EntryData(
        entity=[ALTER.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            ALTER.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in ops
        ],
    )


def _changes() -> list[tuple[str, Any]]:
    """(label, request): each is validated only, but for the last."""
    found: list[tuple[str, Any]] = []

    def ask(label: str, *entries: tuple[Entity, Sequence[Op]], act: bool = False) -> None:
        request = ALTER(entries=[_entry(*entry) for entry in entries], validate_only=not act)
        found.append((label, request))

    for entity in ENTITIES:
        for key in (BYTES, CONNECTIONS):
            ask(f"{key} of {entity}", (entity, [(key, 5.0)]))
        ask(f"nothing of {entity}", (entity, []))
    for key in KEYS:
        for kind in ("user", "client-id", "ip"):
            name = "10.1.2.3" if kind == "ip" else "n"
            ask(f"{key!r} of a {kind}", ([(kind, name)], [(key, 5.0)]))
            ask(f"{key!r} taken from a {kind}", ([(kind, name)], [(key, None)]))
    for key in (BYTES, TIME, MUTATIONS, CONNECTIONS):
        for value in VALUES:
            entity = [("ip", None)] if key == CONNECTIONS else [("user", None)]
            ask(f"{key} {value!r}", (entity, [(key, value)]))
    user, client = [("user", "u")], [("client-id", "c")]
    ask("a key twice", (user, [(BYTES, 5.0), (BYTES, 6.0)]))
    ask("set and removed", (user, [(BYTES, 5.0), (BYTES, None)]))
    ask("an entity twice", (user, [(BYTES, 5.0)]), (user, [(TIME, 6.0)]))
    ask("an entity twice, of it once wrong", (user, [(BYTES, -5.0)]), (user, [(TIME, 6.0)]))
    both: Entity = [*user, *client]
    ask("an entity in two orders", (both, [(BYTES, 5.0)]), (both[::-1], [(TIME, 6.0)]))
    ask("one wrong, one right", (user, [(BYTES, 5.0)]), (client, [("nosuch", 1.0)]))
    ask("half of an entry is wrong", (user, [(BYTES, 5.0), ("nosuch", 1.0)]))
    ask("no entries")
    stay = [entity for entity in ENTITIES[1:10] if "" not in [name for _, name in entity]]
    acting: list[tuple[Entity, Sequence[Op]]] = [
        (entity, [(BYTES, 5.0 + at), (TIME, 2500.25)]) for at, entity in enumerate(stay) if at != 4
    ]
    acting += [([("ip", "10.1.2.3")], [(CONNECTIONS, 7.0)]), ([("ip", None)], [(CONNECTIONS, 8.0)])]
    acting += [([("user", "half")], [(BYTES, 5.0), ("nosuch", 1.0)])]
    ask("what stays", *acting, act=True)
    return found


def _questions() -> list[tuple[str, Any]]:
    found = []
    for strict in (False, True):
        for version in (0, 1):
            for chosen in FILTERS:
                for how in (0, 1, 2):
                    components = [
                        DESCRIBE.ComponentData(
                            entity_type=kind, match_type=how, match=name if how == 0 else None
                        )
                        for kind, name in chosen
                    ]
                    label = f"{chosen} {how} strict={strict} v{version}"
                    request = DESCRIBE(components=components, strict=strict)
                    found.append((label, (version, request)))
    return found


def _shown(response: Any) -> Any:
    """An answer without its order: entries of a description stand in that of a hash."""
    if isinstance(response, m.AlterClientQuotasResponse):
        return sorted(
            repr(
                (
                    sorted((x.entity_type, str(x.entity_name)) for x in entry.entity),
                    entry.error_code,
                    entry.error_message,
                )
            )
            for entry in response.entries
        )
    entries = response.entries
    return [
        response.error_code,
        response.error_message,
        None
        if entries is None
        else sorted(
            repr(
                (
                    sorted((x.entity_type, str(x.entity_name)) for x in entry.entity),
                    sorted((x.key, x.value) for x in entry.values),
                )
            )
            for entry in entries
        ),
    ]


def run(bootstrap: str) -> dict[str, Any]:
    """Ask everything, once."""
    answers = {}
    with WireClient(bootstrap, 60) as client:
        for label, request in _changes():
            answers[label] = _shown(client.call(request, 1))
        component = DESCRIBE.ComponentData(entity_type="ip", match_type=1, match=None)
        strict = DESCRIBE(components=[component], strict=True)
        deadline = time.monotonic() + WAIT_S
        while not client.call(strict, 1).entries:
            assert time.monotonic() < deadline, "what stays is not told"
        for label, (version, request) in _questions():
            answers[label] = _shown(client.call(request, version))
    return answers


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_kafka(pathlib.Path(folder)) as bootstrap:
        answers = run(bootstrap)
    with open(sys.argv[1], "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(answers, indent=1, ensure_ascii=False).encode())
    print(len(answers), "answers")


if __name__ == "__main__":
    main()

"""Request scripts of groups and offsets (see tests/support/group_scripts.py for their notation)."""

from __future__ import annotations

from typing import Any

META, OTHER = "hex:6d657461", "hex:6f74686572"
# A consumer subscription (version 0) without topics and user data.
EMPTY_SUBSCRIPTION = "hex:000000000000ffffffff"


def join(connection: str, version: int = 5, saves: Any = None, **fields: Any) -> list[Any]:
    return ["send", connection, "JoinGroup", version, join_fields(**fields), saves or {}]


def join_fields(**fields: Any) -> dict[str, Any]:
    return {
        "group_id": "@g",
        "session_timeout_ms": 10000,
        "rebalance_timeout_ms": 10000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": META}],
        **fields,
    }


def post_join(connection: str, version: int = 5, **fields: Any) -> list[Any]:
    return ["post", connection, "JoinGroup", version, join_fields(**fields)]


def sync(
    connection: str, member: str, generation: int, version: int = 3, **fields: Any
) -> list[Any]:
    return ["send", connection, "SyncGroup", version, sync_fields(member, generation, **fields)]


def post_sync(
    connection: str, member: str, generation: int, version: int = 3, **f: Any
) -> list[Any]:
    return ["post", connection, "SyncGroup", version, sync_fields(member, generation, **f)]


def sync_fields(member: str, generation: int, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"group_id": "@g", "generation_id": generation, "member_id": member}
    made.update({"protocol_type": "consumer", "protocol_name": "range", "assignments": []})
    return {**made, **fields}


def plan(**by_member: str) -> list[dict[str, str]]:
    return [{"member_id": f"${k}", "assignment": v} for k, v in by_member.items()]


def heartbeat(
    connection: str, member: str, generation: int, version: int = 3, **f: Any
) -> list[Any]:
    fields = {"group_id": "@g", "generation_id": generation, "member_id": member, **f}
    return ["send", connection, "Heartbeat", version, fields]


def leave(connection: str, *members: Any, version: int = 3, group: str = "@g") -> list[Any]:
    if version < 3:
        return [
            "send",
            connection,
            "LeaveGroup",
            version,
            {"group_id": group, "member_id": members[0]},
        ]
    identities = [
        {"member_id": x[0], "group_instance_id": x[1]} if isinstance(x, tuple) else {"member_id": x}
        for x in members
    ]
    return ["send", connection, "LeaveGroup", version, {"group_id": group, "members": identities}]


def commit(
    connection: str,
    offset: int,
    version: int = 7,
    topic: str = "@t",
    partition: int = 0,
    metadata: Any = "",
    **fields: Any,
) -> list[Any]:
    named = {"topic_id": topic} if version >= 10 else {"name": topic}
    partitions = [
        {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_leader_epoch": 5 if version >= 6 else -1,
            "committed_metadata": metadata,
        }
    ]
    made = {"group_id": "@g", "topics": [{**named, "partitions": partitions}], **fields}
    return ["send", connection, "OffsetCommit", version, made]


def fetch(connection: str, version: int = 7, topics: Any = None, **fields: Any) -> list[Any]:
    """`topics`: {name or #topic: [partitions]}, None for all."""
    asked = None
    if topics is not None:
        key = "topic_id" if version >= 10 else "name"
        asked = [{key: name, "partition_indexes": indexes} for name, indexes in topics.items()]
    if version < 8:
        made = {"group_id": "@g", "topics": asked, **fields}
        return ["send", connection, "OffsetFetch", version, made]
    group = {"group_id": "@g", "topics": asked, **fields}
    return ["send", connection, "OffsetFetch", version, {"groups": [group]}]


def describe(connection: str, *groups: str, version: int = 6, **fields: Any) -> list[Any]:
    made = {"groups": list(groups) or ["@g"], **fields}
    return ["send", connection, "DescribeGroups", version, made]


def list_groups(connection: str, version: int = 5, **filters: Any) -> list[Any]:
    return ["send", connection, "ListGroups", version, filters]


def delete(connection: str, *groups: str, version: int = 3) -> list[Any]:
    return ["send", connection, "DeleteGroups", version, {"groups_names": list(groups)}]


def offset_delete(connection: str, group: str, **topics: list[int]) -> list[Any]:
    made = [
        {"name": f"@{name}", "partitions": [{"partition_index": i} for i in indexes]}
        for name, indexes in topics.items()
    ]
    return ["send", connection, "OffsetDelete", 0, {"group_id": group, "topics": made}]


# Steps that bring members into a Stable generation.
ONE_STABLE = [
    join("a", saves={"a": "member_id"}),
    join("a", member_id="$a"),
    sync("a", "$a", 1, assignments=plan(a="hex:aa")),
]
TWO_JOINED = [
    *ONE_STABLE,
    join("b", saves={"b": "member_id"}),
    post_join("b", member_id="$b"),
    heartbeat("a", "$a", 1),
    post_join("a", member_id="$a"),
    ["recv", "a"],
    ["recv", "b"],
]
TWO_STABLE = [
    *TWO_JOINED,
    post_sync("b", "$b", 2),
    sync("a", "$a", 2, assignments=plan(a="hex:aa", b="hex:bb")),
    ["recv", "b"],
]
STATIC_STABLE = [
    join("a", group_instance_id="@i", saves={"a": "member_id"}),
    sync("a", "$a", 1, assignments=plan(a="hex:aa"), group_instance_id="@i"),
]

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


# ---------------------------------------------------------------------------------- JoinGroup

for _version in range(10):
    script(
        f"join-v{_version}",
        join("a", _version, saves={"a": "member_id"}),
        join("a", _version, member_id="$a"),
        heartbeat("a", "$a", 1),
    )
script(
    "join-refused",
    join("a", group_id=""),
    join("a", 9, group_id=""),
    join("a", session_timeout_ms=5999),
    join("a", session_timeout_ms=1800001, member_id="m"),
    join("a", member_id="nobody"),
    join("a", 9, member_id="nobody"),
    describe("a"),
    *[join("a", v, member_id="nobody", group_instance_id="@i") for v in (5, 9)],
)
script(
    "join-without-protocols",
    join("a", protocols=[]),
    describe("a"),
    list_groups("a"),
    join("a", protocol_type=""),
    join("a", saves={"a": "member_id"}),
    join("a", member_id="$a", protocols=[]),
    join("a", member_id="$a", protocol_type=""),
)
script(
    "join-of-another-kind",
    *ONE_STABLE,
    join("b", protocol_type="connect"),
    join("b", 9, protocol_type="connect"),
    join("b", protocols=[{"name": "sticky", "metadata": META}]),
    join("a", member_id="$a", protocols=[{"name": "sticky", "metadata": META}]),
    join("a", member_id="$a", protocol_type="connect"),
    join("b", member_id="nobody"),
    join("b", 9, member_id="nobody"),
    describe("a"),
)
script(
    "join-again",
    *TWO_JOINED,
    join("b", member_id="$b"),
    join("a", member_id="$a"),
    join("b", 9, member_id="$b"),
    post_sync("b", "$b", 2),
    sync("a", "$a", 2, assignments=plan(a="hex:aa", b="hex:bb")),
    ["recv", "b"],
    join("b", member_id="$b"),
    join("b", 9, member_id="$b"),
    heartbeat("b", "$b", 2),
    describe("a"),
)
script(
    "leader-joins-again",
    *TWO_STABLE,
    post_join("a", member_id="$a"),
    ["quiet", "a"],
    heartbeat("b", "$b", 2),
    sync("b", "$b", 2),
    commit("b", 1, member_id="$b", generation_id_or_member_epoch=2, topic="@none"),
    post_join("b", member_id="$b"),
    ["recv", "a"],
    ["recv", "b"],
    heartbeat("a", "$a", 3),
    heartbeat("a", "$a", 2),
)
script(
    "metadata-changes",
    *TWO_STABLE,
    post_join("b", member_id="$b", protocols=[{"name": "range", "metadata": OTHER}]),
    heartbeat("a", "$a", 2),
    post_join("a", member_id="$a"),
    ["recv", "a"],
    ["recv", "b"],
)
script(
    "protocol-vote",
    [
        "send",
        "a",
        "JoinGroup",
        3,
        join_fields(protocols=[{"name": "x", "metadata": META}, {"name": "y", "metadata": META}]),
        {"a": "member_id"},
    ],
    ["send", "a", "SyncGroup", 3, sync_fields("$a", 1)],
    [
        "post",
        "b",
        "JoinGroup",
        3,
        join_fields(protocols=[{"name": "y", "metadata": META}, {"name": "x", "metadata": META}]),
    ],
    heartbeat("a", "$a", 1),
    [
        "post",
        "a",
        "JoinGroup",
        3,
        join_fields(
            member_id="$a",
            protocols=[{"name": "x", "metadata": META}, {"name": "y", "metadata": META}],
        ),
    ],
    ["recv", "b", {"b": "member_id"}],
    ["recv", "a"],
    sync("a", "$a", 2, 5),
    sync("a", "$a", 2, 5, protocol_name="x"),
)
script(
    "protocol-tie-range-roundrobin",
    [
        "send",
        "a",
        "JoinGroup",
        3,
        join_fields(
            protocols=[
                {"name": "range", "metadata": META},
                {"name": "roundrobin", "metadata": META},
            ]
        ),
        {"a": "member_id"},
    ],
    ["send", "a", "SyncGroup", 3, sync_fields("$a", 1)],
    [
        "post",
        "b",
        "JoinGroup",
        3,
        join_fields(
            protocols=[
                {"name": "roundrobin", "metadata": META},
                {"name": "range", "metadata": META},
            ]
        ),
    ],
    heartbeat("a", "$a", 1),
    [
        "post",
        "a",
        "JoinGroup",
        3,
        join_fields(
            member_id="$a",
            protocols=[
                {"name": "range", "metadata": META},
                {"name": "roundrobin", "metadata": META},
            ],
        ),
    ],
    ["recv", "b", {"b": "member_id"}],
    ["recv", "a"],
)
script(
    "pending-member",
    *ONE_STABLE,
    join("b", saves={"b": "member_id"}),
    describe("a"),
    heartbeat("b", "$b", 1),
    sync("b", "$b", 1),
    commit("b", 1, member_id="$b", generation_id_or_member_epoch=1, topic="@none"),
    leave("b", "$b", version=1),
    leave("b", "$b", version=1),
    join("b", member_id="$b"),
)

# ---------------------------------------------------------------------------------- SyncGroup

script(
    "sync",
    *TWO_JOINED,
    sync("b", "$b", 1),
    sync("b", "$b", 3),
    sync("b", "nobody", 2),
    sync("b", "$b", 2, 5, protocol_name="other"),
    sync("b", "$b", 2, 5, protocol_type="connect"),
    sync("b", "$b", 2, 5, protocol_type=None),
    sync("b", "$b", 2, 5, protocol_name=None),
    sync("b", "$b", 2, group_id=""),
    sync("b", "$b", 2, group_id="@none"),
    sync("b", "$b", 2, group_instance_id="@i"),
    describe("a"),
    post_sync("b", "$b", 2, 5),
    ["quiet", "b"],
    sync("a", "$a", 2, 5, assignments=plan(a="hex:aa")),
    ["recv", "b"],
    sync("b", "$b", 2, 0),
    sync("a", "$a", 2, 5, assignments=plan(a="hex:ff")),
    describe("a"),
)
script(
    "sync-while-rebalancing",
    *TWO_JOINED,
    post_sync("b", "$b", 2),
    join("c", saves={"c": "member_id"}),
    post_join("c", member_id="$c"),
    ["recv", "b"],
    sync("a", "$a", 2),
    heartbeat("a", "$a", 2),
    heartbeat("b", "$b", 1),
    describe("a"),
)

# ---------------------------------------------------------------------------------- Heartbeat

script(
    "heartbeat",
    heartbeat("a", "m", 1),
    ["send", "a", "Heartbeat", 3, {"group_id": "", "generation_id": 1, "member_id": "m"}],
    *ONE_STABLE,
    heartbeat("a", "$a", 1),
    heartbeat("a", "$a", 1, 0),
    heartbeat("a", "$a", 2),
    heartbeat("a", "$a", -1),
    heartbeat("a", "nobody", 1),
    heartbeat("a", "", 1),
    heartbeat("a", "$a", 1, group_instance_id="@i"),
    leave("a", "$a"),
    heartbeat("a", "$a", 1),
)

# ---------------------------------------------------------------------------------- LeaveGroup

script(
    "leave",
    leave("a", "m", version=0),
    leave("a", "m"),
    leave("a", "m", version=1, group=""),
    leave("a", "m", group=""),
    *TWO_STABLE,
    leave("a", "nobody", ("", None), ("", "@i"), ("$b", "@i")),
    leave("a", "nobody", version=2),
    leave("b", "$b", "$b", version=5),
    heartbeat("a", "$a", 2),
    describe("a"),
    leave("a", "$a", version=0),
    describe("a"),
    list_groups("a"),
    join("a", 3, saves={"c": "member_id"}),
)
script(
    "leave-static",
    join("a", group_instance_id="@i", saves={"a": "member_id"}),
    sync("a", "$a", 1, assignments=plan(a="hex:aa"), group_instance_id="@i"),
    leave("a", ("wrong", "@i")),
    leave("a", ("wrong", "@other")),
    leave("a", ("", "@other"), ("", "@i")),
    describe("a"),
)

# ---------------------------------------------------------------------------------- static members

for _version in (5, 8, 9):
    script(
        f"static-comes-back-v{_version}",
        *STATIC_STABLE,
        join("b", _version, group_instance_id="@i", saves={"b": "member_id"}),
        heartbeat("a", "$a", 1, group_instance_id="@i"),
        heartbeat("a", "$a", 1),
        sync("a", "$a", 1, group_instance_id="@i"),
        join("a", _version, member_id="$a", group_instance_id="@i"),
        leave("a", ("$a", "@i")),
        ["topic", "@t", 1],
        commit("a", 1, member_id="$a", generation_id_or_member_epoch=1, group_instance_id="@i"),
        commit("b", 1, member_id="$b", generation_id_or_member_epoch=1, group_instance_id="@i"),
        commit("b", 1, member_id="$b", generation_id_or_member_epoch=1, group_instance_id="@x"),
        heartbeat("b", "$b", 1, group_instance_id="@i"),
        heartbeat("b", "$b", 1, group_instance_id="@x"),
        sync("b", "$b", 1, group_instance_id="@i"),
        join("b", _version, member_id="$b", group_instance_id="@x"),
        describe("b"),
    )
script(
    "static-with-other-protocol",
    *STATIC_STABLE,
    join(
        "b",
        group_instance_id="@i",
        protocols=[{"name": "sticky", "metadata": META}],
        saves={"b": "member_id"},
    ),
    describe("b"),
)
script(
    "static-changes-metadata",
    *STATIC_STABLE,
    join(
        "b",
        group_instance_id="@i",
        protocols=[{"name": "range", "metadata": OTHER}],
        saves={"b": "member_id"},
    ),
    describe("b"),
    heartbeat("b", "$b", 1, group_instance_id="@i"),
)
script(
    "static-comes-back-while-completing",
    join("a", group_instance_id="@i", saves={"a": "member_id"}),
    join("b", group_instance_id="@i", saves={"b": "member_id"}),
    sync("a", "$a", 1, group_instance_id="@i"),
    sync("b", "$b", 2, assignments=plan(b="hex:bb"), group_instance_id="@i"),
)

# ---------------------------------------------------------------------------------- offsets

for _version in range(2, 11):
    _topic = "#@t" if _version >= 10 else "@t"
    script(
        f"commit-v{_version}",
        ["topic", "@t", 2],
        commit("a", 11, _version, _topic, metadata="text"),
        commit("a", 12, _version, _topic, 1, metadata=None),
        commit("a", 13, _version, _topic, 2),
        commit("a", 13, _version, "#none" if _version >= 10 else "@none"),
        commit("a", 14, _version, _topic, metadata="x" * 4096),
        commit("a", 15, _version, _topic, metadata="x" * 4097),
        commit("a", 15, _version, _topic, member_id="nobody"),
        commit("a", 15, _version, _topic, generation_id_or_member_epoch=3),
        commit("a", 15, _version, _topic, group_id="@none", generation_id_or_member_epoch=3),
        commit("a", 15, _version, _topic, group_id="@none", member_id="m"),
        commit("a", -5, _version, _topic, group_id=""),
        fetch("a"),
        describe("a", "@g", "@none"),
        list_groups("a"),
    )
script(
    "commit-several",
    ["topic", "@t", 2],
    ["topic", "@u", 1],
    [
        "send",
        "a",
        "OffsetCommit",
        8,
        {
            "group_id": "@g",
            "topics": [
                {"name": "@none", "partitions": [{"partition_index": 0, "committed_offset": 1}]},
                {
                    "name": "@t",
                    "partitions": [
                        {"partition_index": i, "committed_offset": i, "committed_metadata": "x" * n}
                        for i, n in ((5, 1), (0, 1), (1, 5000))
                    ],
                },
                {"name": "@u", "partitions": [{"partition_index": 0, "committed_offset": 3}]},
            ],
        },
    ],
    ["send", "a", "OffsetCommit", 8, {"group_id": "@g", "topics": []}],
    fetch("a", 8),
)
script(
    "commit-by-state",
    ["topic", "@t", 1],
    *ONE_STABLE,
    commit("a", 1, member_id="$a", generation_id_or_member_epoch=1),
    commit("a", 2, member_id="$a", generation_id_or_member_epoch=0),
    commit("a", 2, member_id="nobody", generation_id_or_member_epoch=1),
    commit("a", 2, member_id="$a"),
    commit("a", 2),
    commit("a", 2, 9, generation_id_or_member_epoch=1),
    commit("a", 2, group_instance_id="@i"),
    join("b", saves={"b": "member_id"}),
    post_join("b", member_id="$b"),
    commit("a", 3, member_id="$a", generation_id_or_member_epoch=1),
    post_join("a", member_id="$a"),
    ["recv", "a"],
    ["recv", "b"],
    commit("a", 4, member_id="$a", generation_id_or_member_epoch=2),
    commit("a", 4, member_id="$a", generation_id_or_member_epoch=1),
    fetch("a"),
    leave("a", "$a", "$b"),
    commit("a", 5, member_id="$a", generation_id_or_member_epoch=2),
    commit("a", 6),
    fetch("a"),
)
for _version in range(1, 11):
    _keys = {"#@t": [0, 1, 9], "#none": [0]} if _version >= 10 else {"@t": [0, 1, 9], "@none": [0]}
    _all = [] if _version < 2 else [fetch("a", _version), fetch("a", _version, group_id="@none")]
    script(
        f"fetch-v{_version}",
        ["topic", "@t", 2],
        commit("a", 21, metadata="text"),
        fetch("a", _version, _keys),
        fetch("a", _version, {}),
        fetch("a", _version, _keys, group_id="@none"),
        fetch("a", _version, _keys, group_id=""),
        *_all,
    )
script(
    "fetch-as-member",
    ["topic", "@t", 1],
    commit("a", 21),
    fetch("a", 9, member_id="nobody", member_epoch=3),
    fetch("a", 9, member_id="", member_epoch=-1),
    fetch("a", 9, member_epoch=0),
    ["send", "a", "OffsetFetch", 9, {"groups": [], "require_stable": True}],
    [
        "send",
        "a",
        "OffsetFetch",
        9,
        {
            "require_stable": True,
            "groups": [
                {"group_id": "@none", "topics": None},
                {"group_id": "@g", "topics": None},
                {"group_id": "@g", "topics": [{"name": "@t", "partition_indexes": [0, 0]}]},
            ],
        },
    ],
)
script(
    "offset-delete",
    ["topic", "@t", 2],
    ["topic", "@u", 1],
    offset_delete("a", "@g", t=[0]),
    offset_delete("a", "", t=[0]),
    commit("a", 1),
    commit("a", 2, partition=1),
    commit("a", 3, topic="@u"),
    offset_delete("a", "@g", t=[0, 0, 7], none=[0]),
    offset_delete("a", "@g"),
    fetch("a"),
    join(
        "a",
        3,
        protocols=[{"name": "range", "metadata": EMPTY_SUBSCRIPTION}],
        saves={"a": "member_id"},
    ),
    sync("a", "$a", 1),
    offset_delete("a", "@g", t=[1]),
    fetch("a"),
    offset_delete("a", "@g", u=[0], t=[1]),
    leave("a", "$a"),
    describe("a"),
    list_groups("a"),
)
script(
    "offset-delete-unreadable-subscription",
    ["topic", "@t", 1],
    commit("a", 1),
    *ONE_STABLE,
    offset_delete("a", "@g", t=[0]),
)
script(
    "offset-delete-other-kind",
    ["topic", "@t", 1],
    join("a", 3, protocol_type="connect", saves={"a": "member_id"}),
    offset_delete("a", "@g", t=[0]),
    sync("a", "$a", 1),
    offset_delete("a", "@g", t=[0]),
    offset_delete("a", "@g", none=[0]),
    leave("a", "$a"),
    offset_delete("a", "@g", t=[0]),
)

# ---------------------------------------------------------------------------------- administration

script(
    "describe",
    *[describe("a", "@none", "@g", version=v) for v in range(7)],
    *ONE_STABLE,
    *[describe("a", "@g", version=v) for v in range(7)],
    describe("a", "@g", "@none", version=4, include_authorized_operations=True),
    describe("a", "@g", "@none", version=6, include_authorized_operations=True),
    describe("a", "@g", "@g"),
    post_join("a", member_id="$a"),
    ["recv", "a"],
    describe("a"),
)
script(
    "list",
    ["topic", "@t", 1],
    commit("a", 1, group_id="@simple"),
    join("b", group_id="@pending", saves={"p": "member_id"}),
    *ONE_STABLE,
    *[list_groups("a", v) for v in range(6)],
    *[list_groups("a", 4, states_filter=[s]) for s in ("Stable", "eMPTY", "Bogus", "Dead", "")],
    list_groups("a", 4, states_filter=["Stable", "Empty"]),
    *[list_groups("a", 5, types_filter=[t]) for t in ("classic", "CLASSIC", "consumer", "bogus")],
    list_groups("a", 5, types_filter=["classic", "share"], states_filter=["empty"]),
)
script(
    "delete",
    ["topic", "@t", 1],
    *ONE_STABLE,
    commit("a", 1, group_id="@simple"),
    join("b", 3, group_id="@left", saves={"l": "member_id"}),
    leave("b", "$l", group="@left"),
    join("c", group_id="@pending", saves={"p": "member_id"}),
    delete("a", "@g", "@none", version=0),
    delete("a", "@g", "@none", version=3),
    delete("a", "@simple", "@simple", "@left", "@pending", version=3),
    list_groups("a"),
    join("c", group_id="@pending", member_id="$p"),
    fetch("a", group_id="@simple"),
    delete("a", "@left", version=2),
    delete("a", version=2),
)

# ---------------------------------------------------------------------------------- with time

script(
    "session-ends",
    join("a", session_timeout_ms=6000, saves={"a": "member_id"}),
    join("a", session_timeout_ms=6000, member_id="$a"),
    sync("a", "$a", 1),
    ["wait", 4000],
    heartbeat("a", "$a", 1),
    ["wait", 4000],
    heartbeat("a", "$a", 1),
    ["wait", 7500],
    heartbeat("a", "$a", 1),
    describe("a"),
)
script(
    "member-that-does-not-rejoin",
    join("a", rebalance_timeout_ms=2000, saves={"a": "member_id"}),
    join("a", rebalance_timeout_ms=2000, member_id="$a"),
    sync("a", "$a", 1),
    join("b", rebalance_timeout_ms=1000, saves={"b": "member_id"}),
    post_join("b", rebalance_timeout_ms=1000, member_id="$b"),
    ["quiet", "b"],
    ["recv", "b"],
    heartbeat("a", "$a", 1),
    heartbeat("a", "$a", 2),
)
script(
    "member-that-never-syncs",
    join("a", 3, rebalance_timeout_ms=2000, saves={"a": "member_id"}),
    post_join("b", 3, rebalance_timeout_ms=2000),
    heartbeat("a", "$a", 1),
    post_join("a", 3, rebalance_timeout_ms=2000, member_id="$a"),
    ["recv", "a"],
    ["recv", "b", {"b": "member_id"}],
    sync("a", "$a", 2),
    ["wait", 3500],
    heartbeat("a", "$a", 2),
    heartbeat("b", "$b", 2),
    describe("a"),
)

# ---------------------------------------------------------------------------------- other configs

# These run with LIMITED_CONFIGS.
LIMITED_CONFIGS = {
    "group.max.size": 2,
    "group.initial.rebalance.delay.ms": 1000,
    "group.min.session.timeout.ms": 100,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 2000,
}
LIMITED_SETTINGS = {
    "max_size": 2,
    "initial_rebalance_delay_ms": 1000,
    "min_session_timeout_ms": 100,
    "offsets_retention_ms": 60_000,
    "offsets_retention_check_interval_ms": 2000,
}
LIMITED: dict[str, list[Any]] = {}

LIMITED["initial-delay"] = [
    post_join("a", 3),
    ["quiet", "a"],
    post_join("b", 3),
    ["wait", 700],
    ["quiet", "a"],
    ["recv", "a", {"a": "member_id"}],
    ["recv", "b", {"b": "member_id"}],
    describe("a"),
]
LIMITED["initial-delay-is-no-longer-than-the-rebalance-timeout"] = [
    post_join("a", 3, rebalance_timeout_ms=1000),
    ["quiet", "a"],
    ["recv", "a", {"a": "member_id"}],
    describe("a"),
]
LIMITED["group-is-full"] = [
    post_join("a", 3),
    post_join("b", 3),
    ["recv", "a", {"a": "member_id"}],
    ["recv", "b", {"b": "member_id"}],
    join("c", 3),
    join("c", 9),
    join("c", 5, group_instance_id="@i"),
    sync("a", "$a", 1),
    join("c", 5, member_id="nobody"),
    post_join("a", 3, member_id="$a", protocols=[{"name": "range", "metadata": OTHER}]),
    ["send", "c", "JoinGroup", 5, join_fields(), {"c": "member_id"}],
    post_join("c", 5, member_id="$c"),
    join("b", 3, member_id="$b"),
    ["recv", "a"],
    ["recv", "c"],
    heartbeat("b", "$b", 1),
]
LIMITED["handed-out-ids-do-not-count"] = [
    join("a", saves={"a": "member_id"}),
    join("b", saves={"b": "member_id"}),
    join("c", saves={"c": "member_id"}),
    post_join("a", member_id="$a"),
    post_join("b", member_id="$b"),
    join("c", member_id="$c"),
    ["recv", "a"],
    ["recv", "b"],
]
LIMITED["offsets-expire"] = [
    ["topic", "@t", 1],
    ["topic", "@u", 1],
    join(
        "a",
        3,
        session_timeout_ms=300_000,
        saves={"a": "member_id"},
        protocols=[{"name": "range", "metadata": {"subscribe": "@t"}}],
    ),
    sync("a", "$a", 1),
    commit("a", 1, member_id="$a", generation_id_or_member_epoch=1),
    commit("a", 2, member_id="$a", generation_id_or_member_epoch=1, topic="@u"),
    commit("b", 3, group_id="@simple"),
    commit("b", 4, version=2, group_id="@short", retention_time_ms=3000),
    join("c", group_id="@pending", session_timeout_ms=300_000, saves={"c": "member_id"}),
    join("d", 3, group_id="@left", saves={"d": "member_id"}),
    sync("d", "$d", 1, group_id="@left"),
    commit("d", 5, group_id="@left", member_id="$d", generation_id_or_member_epoch=1),
    leave("d", "$d", group="@left"),
    list_groups("a"),
    ["wait", 6500],
    list_groups("a"),
    *[fetch("a", group_id=g) for g in ("@g", "@simple", "@short", "@left")],
    ["wait", 48_000],
    commit("b", 6, group_id="@simple"),
    ["wait", 11_000],
    list_groups("a"),
    *[fetch("a", group_id=g) for g in ("@g", "@simple", "@short", "@left")],
]

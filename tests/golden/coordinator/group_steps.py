"""The steps of which scripts about groups and offsets consist: a request in a line each (see
tests/support/group_scripts.py for the notation)."""

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

"""Request scripts of members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, static members."""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator.group_steps import (
    META,
    ONE_STABLE,
    OTHER,
    STATIC_STABLE,
    TWO_JOINED,
    TWO_STABLE,
    commit,
    describe,
    heartbeat,
    join,
    join_fields,
    leave,
    list_groups,
    plan,
    post_join,
    post_sync,
    sync,
    sync_fields,
)

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

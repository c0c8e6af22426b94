"""Request scripts of groups that move between the classic and the consumer protocol (KIP-848).

They run with the settings of consumer_scripts.py, the last ones with another
group.consumer.migration.policy.
"""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator.consumer_scripts import (
    SETTINGS,
    beat,
    commit,
    describe,
    fetch,
    join,
    owned,
)

Step = list[Any]

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


def told(topics: Any = ("@t",), **has: list[int]) -> dict[str, Any]:
    """A classic member's subscription; `has` is what it owns, by topic."""
    return {"subscription": list(topics), "owned": {f"@{k}": v for k, v in has.items()}}


def classic_join(
    conn: str, member: str, version: int = 9, how: str = "send", saves: Any = None, **fields: Any
) -> Step:
    metadata = fields.pop("metadata", told())
    made = {
        "group_id": "@g", "session_timeout_ms": 8000, "rebalance_timeout_ms": 8000,
        "member_id": member, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}], **fields,
    }  # fmt: skip
    return [how, conn, "JoinGroup", version, made, saves or {}]


def enter(conn: str, name: str, **fields: Any) -> list[Step]:
    """A classic member's two JoinGroups; its id is $name."""
    return [
        classic_join(conn, "", saves={name: "member_id"}, **fields),
        classic_join(conn, f"${name}", **fields),
    ]


def sync(
    conn: str, member: str, generation: int, version: int = 5, how: str = "send", **fields: Any
) -> Step:
    plan = fields.pop("plan", {})
    made = {
        "group_id": "@g", "generation_id": generation, "member_id": member,
        "protocol_type": "consumer", "protocol_name": "range",
        "assignments": [
            {"member_id": k, "assignment": {"assigned": {"@t": v}}} for k, v in plan.items()
        ], **fields,
    }  # fmt: skip
    return [how, conn, "SyncGroup", version, made]


def heartbeat(conn: str, member: str, generation: int, version: int = 4, **fields: Any) -> Step:
    made = {"group_id": "@g", "generation_id": generation, "member_id": member, **fields}
    return ["send", conn, "Heartbeat", version, made]


def heartbeat_until(conn: str, member: str, generation: int, code: int) -> Step:
    made = {"group_id": "@g", "generation_id": generation, "member_id": member}
    return ["until", conn, "Heartbeat", 4, made, {"error_code": code}]


def leave(conn: str, *members: Any, version: int = 5) -> Step:
    identities = [
        {"member_id": x[0], "group_instance_id": x[1]} if isinstance(x, tuple) else {"member_id": x}
        for x in members
    ]
    return ["send", conn, "LeaveGroup", version, {"group_id": "@g", "members": identities}]


def classic_describe() -> Step:
    return ["send", "a", "DescribeGroups", 6, {"groups": ["@g"]}]


LISTED = ["send", "a", "ListGroups", 5, {}]
REBALANCE_IN_PROGRESS = 27
UNKNOWN_MEMBER_ID = 25
TOPIC = ["topic", "@t", 3]
#: A classic group of one member, $c, with all partitions at generation 1.
ONE_CLASSIC = [TOPIC, *enter("c", "c"), sync("c", "$c", 1, plan={"$c": [0, 1, 2]})]
#: The same of two, $c with 0 and 1, $d with 2, at generation 2.
TWO_CLASSIC = [
    *ONE_CLASSIC,
    classic_join("d", "", saves={"d": "member_id"}),
    classic_join("d", "$d", how="post"),
    heartbeat("c", "$c", 1),
    classic_join("c", "$c", metadata=told(t=[0, 1, 2])),
    ["recv", "d"],
    sync("d", "$d", 2, how="post"),
    sync("c", "$c", 2, plan={"$c": [0, 1], "$d": [2]}),
    ["recv", "d"],
]
ALL_OWNED = owned("@t", 0, 1, 2)

# ------------------------------------------------------------------ up

script(
    "upgrade-by-a-consumer-member",
    *ONE_CLASSIC,
    commit("$c", 1, 7),
    join("m1"),
    describe(),
    classic_describe(),
    LISTED,
    heartbeat("c", "$c", 1),
    heartbeat("c", "$c", 2),
    sync("c", "$c", 1),
    commit("$c", 1, 8),
    classic_join("c", "$c", metadata=told(t=[0, 1, 2])),
    sync("c", "$c", 1),
    sync("c", "$c", 2),
    heartbeat("c", "$c", 2),
    beat("m1", 2),
    describe(),
    classic_join("c", "$c", metadata=told(t=[0])),
    describe(),
    sync("c", "$c", 2),
    sync("c", "$c", 3),
    heartbeat("c", "$c", 3),
    beat("m1", 2),
    describe(),
    commit("$c", 3, 9),
    fetch("m1", 2),
    leave("c", "$c", "nobody"),
    describe(),
    beat("m1", 2),
    beat("m1", 3),
)
script(
    "upgrade-with-two-classic-members",
    *TWO_CLASSIC,
    join("m1"),
    describe(),
    heartbeat("c", "$c", 2),
    heartbeat("d", "$d", 2),
    classic_join("c", "$c", metadata=told(t=[0, 1])),
    sync("c", "$c", 2),
    classic_join("d", "$d", metadata=told(t=[2])),
    sync("d", "$d", 2),
    sync("d", "$d", 3),
    classic_join("c", "$c", metadata=told(t=[0])),
    sync("c", "$c", 3),
    heartbeat("c", "$c", 3),
    heartbeat("d", "$d", 3),
    beat("m1", 3),
    describe(),
)
script(
    "upgrade-while-rebalancing",
    *ONE_CLASSIC,
    classic_join("d", "", saves={"d": "member_id"}),
    classic_join("d", "$d", how="post"),
    join("m1"),
    ["recv", "d"],
    describe(),
    heartbeat("c", "$c", 1),
    classic_join("d", "$d"),
    sync("d", "$d", 2),
)
script(
    "upgrade-while-syncing",
    *ONE_CLASSIC,
    classic_join("d", "", saves={"d": "member_id"}),
    classic_join("d", "$d", how="post"),
    heartbeat("c", "$c", 1),
    classic_join("c", "$c", metadata=told(t=[0, 1, 2])),
    ["recv", "d"],
    sync("d", "$d", 2, how="post"),
    join("m1"),
    ["recv", "d"],
    describe(),
    sync("c", "$c", 2),
    heartbeat("c", "$c", 2),
)
script(
    "upgrade-of-what-cannot-be",
    TOPIC,
    *enter("c", "c", protocol_type="connect"),
    join("m1"),
    ["send", "c", "JoinGroup", 3, {"group_id": "@h", "session_timeout_ms": 8000,
     "rebalance_timeout_ms": 8000, "member_id": "", "protocol_type": "consumer",
     "protocols": [{"name": "range", "metadata": "hex:00"}]}, {"h": "member_id"}],
    sync("c", "$h", 1, group_id="@h"),
    join("m1", group_id="@h"),
    ["send", "c", "JoinGroup", 3, {"group_id": "@i", "session_timeout_ms": 8000,
     "rebalance_timeout_ms": 8000, "member_id": "", "protocol_type": "consumer",
     "protocols": [{"name": "range", "metadata": told()}]}, {"i": "member_id"}],
    sync("c", "$i", 1, group_id="@i",
         assignments=[{"member_id": "$i", "assignment": "hex:ff"}]),
    join("m1", group_id="@i"),
    join("m2", group_id="@i"),
    describe("@i"),
)  # fmt: skip
script(
    "upgrade-with-user-data",
    TOPIC,
    *enter("c", "c", metadata="hex:0000000000000000000101"),
    sync("c", "$c", 1),
    join("m1"),
)
script(
    "upgrade-of-a-static-member",
    TOPIC,
    classic_join("c", "", group_instance_id="@i", saves={"c": "member_id"}),
    sync("c", "$c", 1, group_instance_id="@i", plan={"$c": [0, 1, 2]}),
    join("m1", instance_id="@i"),
    describe(),
    heartbeat("c", "$c", 1, group_instance_id="@i"),
    classic_join("c", "$c", group_instance_id="@i"),
    beat("m1", 2, instance_id="@i"),
    describe(),
)
script(
    "classic-member-comes-back-as-a-consumer-member",
    *ONE_CLASSIC,
    leave("c", "$c"),
    join("$c"),
    describe(),
)
script(
    "classic-member-turns-into-a-consumer-member",
    *ONE_CLASSIC,
    join("$c"),
    heartbeat("c", "$c", 1),
    classic_join("c", "$c"),
    describe(),
)

# ----------------------------------------------- classic members of a consumer group

for _version in (2, 4, 9):
    script(
        f"classic-member-joins-a-consumer-group-v{_version}",
        TOPIC,
        join("m1"),
        classic_join("c", "", _version, saves={"c": "member_id"}),
        *([classic_join("c", "$c", _version)] if _version >= 4 else []),
        describe(),
        beat("m1", 2, topic_partitions=ALL_OWNED),
        sync("c", "$c", 3),
        beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
        heartbeat("c", "$c", 3),
        classic_join("c", "$c", _version, metadata=told(t=[])),
        sync("c", "$c", 3, protocol_name="sticky"),
        sync("c", "$c", 3, protocol_type="connect"),
        sync("c", "$c", 3),
        heartbeat("c", "$c", 3),
        heartbeat("c", "$c", 3, group_instance_id="@i"),
        describe(),
    )
script(
    "classic-member-of-a-consumer-group-refused",
    TOPIC,
    join("m1"),
    classic_join("c", "", protocol_type="connect"),
    classic_join("c", "", protocols=[]),
    classic_join("c", "", metadata="hex:00", saves={"x": "member_id"}),
    classic_join("c", "nobody"),
    classic_join("c", "m1"),
    classic_join("c", "", session_timeout_ms=10),
    *enter("c", "c"),
    classic_join("d", "", protocols=[{"name": "sticky", "metadata": told()}],
                 saves={"d": "member_id"}),
    classic_join("d", "$d", protocols=[{"name": "sticky", "metadata": told()}]),
    classic_join("d", "", protocols=[{"name": "range", "metadata": told()},
                                     {"name": "sticky", "metadata": told()}],
                 saves={"e": "member_id"}),
    classic_join("d", "$e", protocols=[{"name": "range", "metadata": told()},
                                       {"name": "sticky", "metadata": told()}]),
    classic_join("f", "", saves={"f": "member_id"}),
    classic_join("f", "$f"),
    describe(),
)  # fmt: skip
script(
    "classic-static-member-of-a-consumer-group",
    TOPIC,
    join("m1"),
    classic_join("c", "", group_instance_id="@i", saves={"c": "member_id"}),
    describe(),
    classic_join("d", "", group_instance_id="@i", saves={"d": "member_id"}),
    heartbeat("c", "$c", 3, group_instance_id="@i"),
    sync("c", "$c", 3, group_instance_id="@i"),
    classic_join("c", "$c", group_instance_id="@i"),
    sync("d", "$d", 3, group_instance_id="@i"),
    heartbeat("d", "$d", 3, group_instance_id="@i"),
    describe(),
    leave("d", ("", "@i"), ("", "@j")),
    describe(),
)
script(
    "classic-subscription-changes-in-a-consumer-group",
    TOPIC,
    ["topic", "@u", 2],
    join("m1"),
    *enter("c", "c"),
    beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
    sync("c", "$c", 3),
    classic_join("c", "$c", metadata=told(["@u"])),
    sync("c", "$c", 3),
    sync("c", "$c", 4),
    heartbeat("c", "$c", 4),
    beat("m1", 3),
    describe(),
)
script(
    "classic-member-of-a-consumer-group-in-time",
    TOPIC,
    join("m1"),
    *enter("c", "c", session_timeout_ms=2000, rebalance_timeout_ms=2500),
    beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
    ["wait", 1500],
    sync("c", "$c", 3),
    ["wait", 1500],
    heartbeat("c", "$c", 3),
    ["wait", 3000],
    heartbeat("c", "$c", 3),
    describe(),
)
script(
    "classic-member-does-not-rejoin-in-time",
    TOPIC,
    *enter("c", "c", session_timeout_ms=60_000, rebalance_timeout_ms=2000),
    sync("c", "$c", 1, plan={"$c": [0, 1, 2]}),
    join("m1"),
    heartbeat("c", "$c", 1),
    ["wait", 1000],
    heartbeat("c", "$c", 1),
    ["wait", 1800],
    heartbeat("c", "$c", 1),
    describe(),
)
script(
    "classic-member-does-not-sync-in-time",
    TOPIC,
    join("m1"),
    *enter("c", "c", session_timeout_ms=60_000, rebalance_timeout_ms=2000),
    ["wait", 3000],
    sync("c", "$c", 3),
    describe(),
)

# ------------------------------------------------------------------ down

script(
    "downgrade-when-the-last-consumer-member-leaves",
    TOPIC,
    join("m1"),
    *enter("c", "c"),
    beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
    sync("c", "$c", 3),
    commit("$c", 3, 4),
    beat("m1", -1),
    describe(),
    classic_describe(),
    LISTED,
    heartbeat("c", "$c", 3),
    sync("c", "$c", 3),
    classic_join("c", "$c", metadata=told(t=[2])),
    sync("c", "$c", 4, plan={"$c": [0, 1, 2]}),
    heartbeat("c", "$c", 4),
    fetch(),
    classic_describe(),
)
script(
    "downgrade-and-up-again",
    *ONE_CLASSIC,
    join("m1"),
    beat("m1", -1),
    classic_describe(),
    heartbeat("c", "$c", 1),
    heartbeat("c", "$c", 2),
    classic_join("c", "$c", metadata=told(t=[0, 1, 2])),
    sync("c", "$c", 3, plan={"$c": [0, 1, 2]}),
    classic_describe(),
    join("m1"),
    describe(),
)
script(
    "downgrade-when-the-session-of-the-last-consumer-member-ends",
    TOPIC,
    ["send", "a", "IncrementalAlterConfigs", 1, {"resources": [
        {"resource_type": 32, "resource_name": "@g", "configs": [
            {"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "1500"},
            {"name": "consumer.heartbeat.interval.ms", "config_operation": 0, "value": "500"},
        ]}]}],
    ["wait", 400],
    join("m1"),
    *enter("c", "c"),
    beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
    sync("c", "$c", 3),
    heartbeat_until("c", "$c", 3, REBALANCE_IN_PROGRESS),
    classic_describe(),
)  # fmt: skip
script(
    "downgrade-of-a-static-member",
    TOPIC,
    join("m1", instance_id="@i"),
    beat("m1", -2, instance_id="@i"),
    classic_join("c", "", group_instance_id="@i", saves={"c": "member_id"}),
    describe(),
    classic_describe(),
    sync("c", "$c", 2, group_instance_id="@i"),
    sync("c", "$c", 3, group_instance_id="@i"),
    heartbeat("c", "$c", 2, group_instance_id="@i"),
)
script(
    "downgrade-of-a-static-member-that-is-there",
    TOPIC,
    join("m1", instance_id="@i"),
    classic_join("c", "", group_instance_id="@i", saves={"c": "member_id"}),
    describe(),
    classic_describe(),
    beat("m1", 2, instance_id="@i"),
)
script(
    "last-member-of-a-mixed-group-leaves",
    TOPIC,
    join("m1"),
    *enter("c", "c"),
    leave("c", "$c"),
    describe(),
    beat("m1", -1),
    describe(),
    LISTED,
)

# ------------------------------------------------------------------ policies

POLICIES = ("disabled", "upgrade", "downgrade")
BY_POLICY: dict[str, dict[str, list[Any]]] = {}
for _policy in POLICIES:
    BY_POLICY[_policy] = {
        f"policy-{_policy}-up": [
            *ONE_CLASSIC,
            join("m1"),
            describe(),
            classic_describe(),
            leave("c", "$c"),
            join("m1"),
            describe(),
        ],
        f"policy-{_policy}-down": [
            TOPIC,
            join("m1"),
            *enter("c", "c"),
            beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
            sync("c", "$c", 3),
            beat("m1", -1),
            describe(),
            classic_describe(),
            heartbeat("c", "$c", 3),
        ],
    }


def settings_of(policy: str) -> dict[str, Any]:
    return {**SETTINGS, "group.consumer.migration.policy": policy}

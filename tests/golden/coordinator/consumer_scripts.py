"""Request scripts of consumer groups, KIP-848 (see tests/support/coordinator_scripts.py).

Kafka computes assignments within the heartbeat that asks for them (its offload to another thread
is switched off), so that who is told what in which heartbeat does not depend on timing.
"""

from __future__ import annotations

from typing import Any

Step = list[Any]

SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.assignor.offload.enable": "false",
    "group.consumer.max.size": 3,
    "group.max.size": 3,
}

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


def owned(topic: str, *partitions: int) -> list[Any]:
    """What a member says it has."""
    return [{"topic_id": f"#{topic}", "partitions": list(partitions)}] if partitions else []


def beat(
    member: str, epoch: int, version: int = 1, wanted: Any = None, conn: str = "a", **fields: Any
) -> Step:
    """ConsumerGroupHeartbeat; until `wanted` holds if it is given."""
    made = {
        "group_id": "@g", "member_id": member, "member_epoch": epoch, "instance_id": None,
        "rack_id": None, "rebalance_timeout_ms": -1, "subscribed_topic_names": None,
        "server_assignor": None, "topic_partitions": None, **fields,
    }  # fmt: skip
    saves = made.pop("saves", {})
    if wanted is None:
        return ["send", conn, "ConsumerGroupHeartbeat", version, made, saves]
    return ["until", conn, "ConsumerGroupHeartbeat", version, made, wanted, saves]


def join(member: str, version: int = 1, **fields: Any) -> Step:
    made = {
        "rebalance_timeout_ms": 30_000, "subscribed_topic_names": ["@t"], "topic_partitions": [],
        **fields,
    }  # fmt: skip
    return beat(member, 0, version, **made)


def describe(*groups: str, version: int = 1, **fields: Any) -> Step:
    made = {"group_ids": list(groups) or ["@g"], **fields}
    return ["send", "a", "ConsumerGroupDescribe", version, made]


def commit(
    member: str, epoch: int, offset: int = 5, version: int = 9, partition: int = 0, **fields: Any
) -> Step:
    topic = fields.pop("topic", "#@t" if version >= 10 else "@t")
    named = {"topic_id" if version >= 10 else "name": topic}
    partitions = [
        {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
    ]
    made = {
        "group_id": "@g", "member_id": member, "generation_id_or_member_epoch": epoch,
        "topics": [{**named, "partitions": partitions}], **fields,
    }  # fmt: skip
    return ["send", "a", "OffsetCommit", version, made]


def fetch(member: Any = None, epoch: int = -1, version: int = 9, topics: Any = None) -> Step:
    asked = None
    if topics is not None:
        named = "topic_id" if version >= 10 else "name"
        asked = [{named: k, "partition_indexes": v} for k, v in topics.items()]
    group = {"group_id": "@g", "member_id": member, "member_epoch": epoch, "topics": asked}
    return ["send", "a", "OffsetFetch", version, {"groups": [group]}]


def configure(group: str = "@g", operation: int = 0, **values: Any) -> Step:
    """IncrementalAlterConfigs of a GROUP; names with _ for dots."""
    configs = [
        {"name": name.replace("_", "."), "config_operation": operation, "value": value}
        for name, value in values.items()
    ]
    resource = {"resource_type": 32, "resource_name": group, "configs": configs}
    return ["send", "a", "IncrementalAlterConfigs", 1, {"resources": [resource]}]


def classic_join(member: str, version: int = 9, **fields: Any) -> list[Any]:
    saves = {fields.pop("saves"): "member_id"} if "saves" in fields else {}
    return ["send", "c", "JoinGroup", version, join_fields(member, **fields), saves]


def join_fields(member: str, **fields: Any) -> dict[str, Any]:
    return {
        "group_id": "@g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000,
        "member_id": member, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": {"subscription": ["@t"]}}], **fields,
    }  # fmt: skip


TOPIC = ["topic", "@t", 3]
STABLE = [TOPIC, join("m1"), beat("m1", 2, wanted={"error_code": 0})]
ALL_ROOM = {"topic_partitions": owned("@t", 0, 1, 2)}


def two() -> list[Any]:
    """m1 with partitions 0 and 1, m2 with 2, both at epoch 3."""
    return [
        *STABLE,
        beat("m1", 2, **ALL_ROOM),
        join("m2"),
        beat("m1", 2, **ALL_ROOM),
        beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
        beat("m2", 3),
        beat("m1", 3, topic_partitions=owned("@t", 0, 1)),
    ]


# ------------------------------------------------------------------ heartbeats

for _version in (0, 1):
    script(
        f"consumer-join-v{_version}",
        TOPIC,
        join("m1", _version),
        beat("m1", 2, _version),
        beat("m1", 2, _version, **ALL_ROOM),
        beat("m1", 2, _version, **ALL_ROOM, rebalance_timeout_ms=30_000,
             subscribed_topic_names=["@t"]),
        describe(),
        join("m1", _version),
        beat("m1", -1, _version),
        describe(),
        ["send", "a", "ListGroups", 5, {}],
    )  # fmt: skip
script(
    "consumer-join-refused",
    TOPIC,
    join("m1", group_id=""),
    join(""),
    join("m1", instance_id=""),
    join("m1", rack_id=""),
    join("m1", rebalance_timeout_ms=-1),
    join("m1", rebalance_timeout_ms=0),
    join("m1", rebalance_timeout_ms=-7),
    join("m1", topic_partitions=None),
    join("m1", topic_partitions=owned("@t", 1)),
    join("m1", subscribed_topic_names=None),
    join("m1", subscribed_topic_names=[]),
    join("m2", server_assignor="nope"),
    join("m2", server_assignor=""),
    join("m2", subscribed_topic_names=None, subscribed_topic_regex="["),
    join("m2", subscribed_topic_names=None, subscribed_topic_regex="(?=x)"),
    join("m2", subscribed_topic_names=None, subscribed_topic_regex=""),
    beat("m3", -2),
    beat("m3", -3),
    beat("m3", 1, group_id="@none"),
    beat("m3", -1, group_id="@none"),
    beat("", 1),
    describe(),
)
script(
    "consumer-epochs",
    *two(),
    beat("m1", 4),
    beat("m1", 1),
    beat("m1", 2),
    beat("m1", 2, topic_partitions=owned("@t", 0)),
    beat("m1", 2, topic_partitions=owned("@t", 0, 1, 2)),
    beat("nobody", 3),
    beat("nobody", -1),
    beat("m2", 3, subscribed_topic_names=["@t", "@t", "@none"]),
    beat("m2", 4, wanted={"error_code": 0}),
    beat("m1", 3),
    describe(),
)
script(
    "consumer-two-members",
    *two(),
    describe(),
    beat("m2", -1),
    describe(),
    beat("m1", 3, wanted={"member_epoch": 4}),
    describe(),
)
script(
    "consumer-member-does-not-revoke",
    *STABLE,
    beat("m1", 2, **ALL_ROOM, rebalance_timeout_ms=1500),
    join("m2"),
    beat("m1", 2, **ALL_ROOM),
    describe(),
    beat("m2", 3),
    beat("m2", 3, wanted={"member_epoch": 4}),
    beat("m1", 2),
    describe(),
)
script(
    "consumer-group-is-full",
    TOPIC,
    *[join(f"m{i}") for i in range(4)],
    join("m1"),
    describe(),
)
script(
    "consumer-more-members-than-partitions",
    ["topic", "@t", 1],
    join("m1"),
    join("m2"),
    beat("m2", 3),
    describe(),
)
script(
    "consumer-topic-made-later",
    join("m1", subscribed_topic_names=["@t", "@u"]),
    describe(),
    ["topic", "@t", 2],
    beat("m1", 2, wanted={"assignment": "any"}),
    describe(),
    ["send", "a", "CreatePartitions", 3, {"topics": [
        {"name": "@t", "count": 3, "assignments": None}], "timeout_ms": 9000}],
    beat("m1", 3, wanted={"assignment": "any"}),
    ["topic", "@u", 1],
    beat("m1", 4, wanted={"assignment": "any"}),
    describe(),
)  # fmt: skip
script(
    "consumer-subscription-changes",
    TOPIC,
    ["topic", "@u", 2],
    join("m1"),
    beat("m1", 2, **ALL_ROOM, subscribed_topic_names=["@u"]),
    beat("m1", 2, topic_partitions=[]),
    beat("m1", 3, topic_partitions=owned("@u", 0, 1), subscribed_topic_names=["@u", "@t"]),
    beat("m1", 4, subscribed_topic_names=[]),
    describe(),
)
for _assignor in ("uniform", "range"):
    script(
        f"consumer-assignor-{_assignor}",
        ["topic", "@t", 5],
        *[join(f"m{i}", server_assignor=_assignor) for i in (1, 2)],
        beat("m1", 2, topic_partitions=[]),
        beat("m2", 3),
        join("m3", server_assignor="range"),
        beat("m3", 4),
        beat("m2", 3, server_assignor="range"),
        describe(),
    )
script(
    "consumer-assignor-changes",
    TOPIC,
    join("m1"),
    join("m2"),
    beat("m1", 2, topic_partitions=owned("@t", 0, 1)),
    beat("m2", 3),
    beat("m2", 3, server_assignor="uniform"),
    describe(),
    beat("m2", 3, server_assignor="range"),
    describe(),
    beat("m1", 3, server_assignor="uniform"),
    beat("m1", 3, server_assignor="uniform"),
    describe(),
)
script(
    "consumer-rack",
    TOPIC,
    join("m1", rack_id="@r"),
    beat("m1", 2, rack_id="@s"),
    describe(),
)

# ------------------------------------------------------------------ patterns

script(
    "consumer-pattern",
    ["topic", "~x1", 3],
    join("m1", subscribed_topic_names=None, subscribed_topic_regex={"pattern": "~x.*"}),
    beat("m1", 1, wanted={"assignment": "any"}),
    describe(),
    join("m2", subscribed_topic_names=None, subscribed_topic_regex={"pattern": "~x.*"}),
    # Kafka looks at patterns once in ten seconds.
    ["wait", 10_500],
    join("m3", subscribed_topic_regex={"pattern": "~x1?"}, subscribed_topic_names=[]),
    ["wait", 500],
    describe(),
    beat("m3", -1),
    beat("m2", -1),
    describe(),
    beat("m1", -1),
)
script(
    "consumer-pattern-changes",
    ["topic", "~x1", 1],
    ["topic", "~y1", 1],
    join("m1", subscribed_topic_names=[], subscribed_topic_regex={"pattern": "~x.*"}),
    beat("m1", 1, wanted={"assignment": "any"}),
    ["wait", 10_500],
    beat("m1", 2, subscribed_topic_regex="["),
    beat("m1", 2, subscribed_topic_regex={"pattern": "~y.*"}, topic_partitions=owned("~x1", 0)),
    ["wait", 500],
    describe(),
    beat("m1", 2, topic_partitions=owned("~x1", 0)),
    beat("m1", 2, topic_partitions=[]),
    describe(),
    beat("m1", 4, subscribed_topic_regex=""),
    describe(),
)

# ------------------------------------------------------------------ static members

script(
    "consumer-static",
    TOPIC,
    join("m1", instance_id="@i"),
    beat("m1", 2, instance_id="@i"),
    beat("m1", 2, instance_id="@j"),
    beat("m1", 2),
    join("m2", instance_id="@i"),
    beat("m2", 2, instance_id="@i"),
    beat("m2", -1, instance_id="@i"),
    beat("m1", -2, instance_id="@i"),
    beat("m1", 2, instance_id="@i"),
    describe(),
    commit("m1", 2),
    fetch("m1", 2),
    join("m2", instance_id="@i"),
    describe(),
    beat("m1", 2, instance_id="@i"),
    beat("m2", 2, instance_id="@i"),
    join("m2", instance_id="@i"),
    beat("m2", -2, instance_id="@i"),
    join("m2", instance_id="@i"),
    describe(),
    beat("m2", -1, instance_id="@i"),
    describe(),
)
script(
    "consumer-static-comes-back-with-another-subscription",
    TOPIC,
    ["topic", "@u", 1],
    join("m1", instance_id="@i"),
    beat("m1", -2, instance_id="@i"),
    join("m2", instance_id="@i", subscribed_topic_names=["@u"]),
    beat("m2", 3),
    describe(),
)
script(
    "consumer-static-does-not-come-back",
    TOPIC,
    configure(consumer_session_timeout_ms="1500", consumer_heartbeat_interval_ms="500"),
    ["wait", 400],
    join("m1", instance_id="@i"),
    join("m2"),
    beat("m1", -2, instance_id="@i"),
    beat("m2", 3, wanted={"member_epoch": 4}),
    describe(),
)

# ------------------------------------------------------------------ offsets

for _version in (8, 9, 10):
    script(
        f"consumer-commit-v{_version}",
        *two(),
        commit("m1", 3, 1, _version),
        commit("m1", 2, 2, _version),
        commit("m2", 2, 2, _version, partition=2),
        commit("m1", 4, 3, _version),
        commit("m1", -1, 3, _version),
        commit("m1", 0, 3, _version),
        commit("nobody", 3, 3, _version),
        commit("", -1, 3, _version),
        commit("", 3, 3, _version),
        commit("m1", 3, 4, _version, group_instance_id="@i"),
        commit("m1", 3, 4, _version, partition=9),
        commit("m1", 3, 4, _version, topic="#none" if _version >= 10 else "@none"),
        fetch(),
        beat("m1", -1),
        beat("m2", -1),
        commit("m1", 3, 5, _version),
        commit("", -1, 6, _version),
        fetch(),
    )
for _version in (9, 10):
    _keys = {"#@t": [0, 2]} if _version >= 10 else {"@t": [0, 2]}
    script(
        f"consumer-fetch-v{_version}",
        *two(),
        commit("m1", 3, 1),
        fetch("m1", 3, _version, _keys),
        fetch("m1", 2, _version, _keys),
        fetch("m1", 4, _version, _keys),
        fetch("m1", -1, _version, _keys),
        fetch("nobody", 3, _version, _keys),
        fetch("", -1, _version, _keys),
        fetch("", 3, _version, _keys),
        fetch(None, -1, _version, _keys),
        fetch("m1", 3, _version),
    )
script(
    "consumer-offsets-in-a-transaction",
    *two(),
    ["settled", "a", "InitProducerId", 4, {"transactional_id": "@x",
     "transaction_timeout_ms": 60_000}, {"p": "producer_id", "p-e": "producer_epoch"}],
    *[
        ["settled", "a", "TxnOffsetCommit", 5, {
            "transactional_id": "@x", "group_id": "@g", "producer_id": "$p",
            "producer_epoch": "$p-e", "member_id": member,
            "generation_id_or_member_epoch": epoch, "topics": [{"name": "@t", "partitions": [
                {"partition_index": 0, "committed_offset": 9, "committed_metadata": ""}]}]}]
        for member, epoch in (("m1", 3), ("m1", 2), ("m1", 9), ("nobody", 3), ("", -1), ("m1", -1))
    ],
    fetch(),
    ["settled", "a", "EndTxn", 5, {"transactional_id": "@x", "producer_id": "$p",
     "producer_epoch": "$p-e", "committed": True}],
    ["until", "a", "DescribeTransactions", 0, {"transactional_ids": ["@x"]},
     {"transaction_states.0.transaction_state": "CompleteCommit"}],
    fetch(),
)  # fmt: skip
script(
    "consumer-offsets-in-a-transaction-v6",
    *two(),
    ["settled", "a", "InitProducerId", 4, {"transactional_id": "@x",
     "transaction_timeout_ms": 60_000}, {"p": "producer_id", "p-e": "producer_epoch"}],
    *[
        ["settled", "a", "TxnOffsetCommit", 6, {
            "transactional_id": "@x", "group_id": group, "producer_id": "$p",
            "producer_epoch": "$p-e", "member_id": member,
            "generation_id_or_member_epoch": epoch, "topics": [
                {"topic_id": "#@t", "partitions": [{"partition_index": partition,
                 "committed_offset": 9, "committed_metadata": ""}]}]}]
        for group, member, epoch, partition in (
            ("@g", "m1", 3, 0), ("@g", "m1", 2, 0), ("@g", "m1", 2, 2), ("@g", "m1", 9, 0),
            ("@g", "m1", -1, 0), ("@g", "nobody", 3, 0), ("@none", "m1", 3, 0),
        )
    ],
)  # fmt: skip
script(
    "consumer-offset-delete",
    *two(),
    ["topic", "@u", 1],
    commit("m1", 3, 1),
    commit("m1", 3, 1, topic="@u"),
    ["send", "a", "OffsetDelete", 0, {"group_id": "@g", "topics": [
        {"name": name, "partitions": [{"partition_index": 0}]} for name in ("@t", "@u")]}],
    fetch(),
)  # fmt: skip

# ------------------------------------------------------------------ administration

script(
    "consumer-describe",
    *two(),
    *[describe("@g", "@none", "", version=v) for v in (0, 1)],
    describe("@g", include_authorized_operations=True),
    describe("@g", "@g"),
    ["send", "a", "ConsumerGroupDescribe", 1, {"group_ids": []}],
    ["send", "a", "DescribeGroups", 6, {"groups": ["@g"]}],
    ["send", "a", "DescribeGroups", 5, {"groups": ["@g"]}],
    ["send", "a", "ListGroups", 5, {"types_filter": ["consumer"]}],
    ["send", "a", "ListGroups", 5, {"types_filter": ["classic"]}],
    ["send", "a", "ListGroups", 5, {"states_filter": ["stable"]}],
    ["send", "a", "ListGroups", 5, {"states_filter": ["Reconciling", "Assigning"]}],
    ["send", "a", "ListGroups", 3, {}],
)
script(
    "consumer-delete",
    *STABLE,
    ["send", "a", "DeleteGroups", 2, {"groups_names": ["@g"]}],
    commit("m1", 2),
    beat("m1", -1),
    ["send", "a", "DeleteGroups", 2, {"groups_names": ["@g", "@none"]}],
    describe(),
    fetch(),
)
script(
    "consumer-configs",
    TOPIC,
    *[
        configure(**{name: value})
        for name, value in (
            ("consumer_session_timeout_ms", "999"),
            ("consumer_session_timeout_ms", "60001"),
            ("consumer_session_timeout_ms", "x"),
            ("consumer_heartbeat_interval_ms", "499"),
            ("consumer_heartbeat_interval_ms", "15001"),
            ("consumer_heartbeat_interval_ms", "1000"),
            ("consumer_assignment_interval_ms", "-1"),
            ("consumer_session_timeout_ms", "500"),
            ("no_such_thing", "1"),
        )
    ],
    configure("", consumer_heartbeat_interval_ms="1000"),
    join("m1"),
    configure(consumer_session_timeout_ms="2000"),
    ["wait", 400],
    beat("m1", 2),
    ["wait", 3500],
    beat("m1", 2),
    describe(),
    configure(operation=1, consumer_heartbeat_interval_ms=None),
    ["wait", 400],
    join("m1"),
    ["send", "a", "DescribeConfigs", 4, {"resources": [
        {"resource_type": 32, "resource_name": "@g", "configuration_keys": [
            "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"]}]}],
)  # fmt: skip
script(
    "consumer-assignment-interval",
    TOPIC,
    configure(consumer_assignment_interval_ms="2500"),
    ["wait", 400],
    join("m1"),
    beat("m1", 2, **ALL_ROOM),
    join("m2"),
    beat("m1", 2, **ALL_ROOM),
    describe(),
    ["wait", 2600],
    beat("m1", 2, **ALL_ROOM),
    describe(),
)
script(
    "consumer-session-ends",
    TOPIC,
    configure(consumer_session_timeout_ms="1500", consumer_heartbeat_interval_ms="500"),
    ["wait", 400],
    join("m1"),
    ["wait", 1000],
    beat("m1", 2),
    ["wait", 1000],
    beat("m1", 2),
    ["wait", 2500],
    beat("m1", 2),
    describe(),
    ["send", "a", "ListGroups", 5, {}],
)

# ------------------------------------------------------------------ beside classic groups

script(
    "consumer-in-place-of-an-empty-classic-group",
    TOPIC,
    ["send", "a", "OffsetCommit", 8, {"group_id": "@g", "topics": [{"name": "@t", "partitions": [
        {"partition_index": 0, "committed_offset": 3, "committed_metadata": ""}]}]}],
    join("m1"),
    describe(),
    fetch("m1", 2),
    beat("m1", -1),
    ["send", "c", "JoinGroup", 3, join_fields(""), {"c": "member_id"}],
    describe(),
    fetch(),
    ["send", "a", "ListGroups", 5, {}],
)  # fmt: skip
script(
    "classic-requests-to-a-consumer-group",
    *STABLE,
    ["send", "c", "SyncGroup", 5, {"group_id": "@g", "generation_id": 2, "member_id": "m1",
     "protocol_type": "consumer", "protocol_name": "range", "assignments": []}],
    ["send", "c", "Heartbeat", 4, {"group_id": "@g", "generation_id": 2, "member_id": "m1"}],
    ["send", "c", "Heartbeat", 4, {"group_id": "@g", "generation_id": 2, "member_id": "nobody"}],
    ["send", "c", "LeaveGroup", 5, {"group_id": "@g", "members": [{"member_id": "nobody"}]}],
    classic_join("", protocol_type="connect"),
    classic_join("nobody"),
    classic_join("m1"),
    classic_join("", saves="x", protocols=[{"name": "range", "metadata": "hex:00"}]),
    classic_join("", protocols=[]),
    ["send", "c", "LeaveGroup", 5, {"group_id": "@g", "members": [{"member_id": "m1"}]}],
    describe(),
)  # fmt: skip

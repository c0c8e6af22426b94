"""Request scripts of share groups, KIP-932 (see tests/support/coordinator_scripts.py).

Partitions are initialized after the heartbeat that asks for it was answered: scripts beat until the
member has an epoch that says so. Topics have random ids, and Kafka goes through them in the order
of their hashes: where several members share, they share one topic.
"""

from __future__ import annotations

from typing import Any

Step = list[Any]

SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 4,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.share.min.session.timeout.ms": 1000,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.assignment.interval.ms": 0,
    "group.share.assignor.offload.enable": "false",
    "group.consumer.assignor.offload.enable": "false",
    "group.share.max.size": 3,
}

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


def beat(member: str, epoch: Any, wanted: Any = None, conn: str = "a", **fields: Any) -> Step:
    """ShareGroupHeartbeat; until `wanted` holds if it is given."""
    made = {
        "group_id": "@g", "member_id": member, "member_epoch": epoch, "rack_id": None,
        "subscribed_topic_names": None, **fields,
    }  # fmt: skip
    saves = made.pop("saves", {})
    if wanted is None:
        return ["send", conn, "ShareGroupHeartbeat", 1, made, saves]
    return ["until", conn, "ShareGroupHeartbeat", 1, made, wanted, saves]


def join(member: str, **fields: Any) -> Step:
    return beat(member, 0, **{"subscribed_topic_names": ["@t"], **fields})


def describe(*groups: str, **fields: Any) -> Step:
    made = {"group_ids": list(groups) or ["@g"], **fields}
    return ["send", "a", "ShareGroupDescribe", 1, made]


def alter(topics: dict[str, dict[int, int]], group: str = "@g") -> Step:
    asked = [
        {
            "topic_name": name,
            "partitions": [{"partition_index": k, "start_offset": v} for k, v in offsets.items()],
        }
        for name, offsets in topics.items()
    ]
    return ["send", "a", "AlterShareGroupOffsets", 0, {"group_id": group, "topics": asked}]


def delete(*names: str, group: str = "@g") -> Step:
    asked = [{"topic_name": name} for name in names]
    return ["send", "a", "DeleteShareGroupOffsets", 0, {"group_id": group, "topics": asked}]


def offsets(topics: Any = None, group: str = "@g", version: int = 1) -> Step:
    named = None
    if topics is not None:
        named = [{"topic_name": k, "partitions": v} for k, v in topics.items()]
    asked = {"groups": [{"group_id": group, "topics": named}]}
    return ["send", "a", "DescribeShareGroupOffsets", version, asked]


def delete_groups(*groups: str) -> Step:
    return ["send", "a", "DeleteGroups", 3, {"groups_names": list(groups) or ["@g"]}]


def configure(operation: int = 0, group: str = "@g", **values: Any) -> Step:
    """IncrementalAlterConfigs of a GROUP; names with _ for dots."""
    configs = [
        {"name": name.replace("_", "."), "config_operation": operation, "value": value}
        for name, value in values.items()
    ]
    resource = {"resource_type": 32, "resource_name": group, "configs": configs}
    return ["send", "a", "IncrementalAlterConfigs", 1, {"resources": [resource]}]


def grow(topic: str, count: int) -> Step:
    wanted = {"topics": [{"name": topic, "count": count, "assignments": None}], "timeout_ms": 9000}
    return ["send", "admin", "CreatePartitions", 3, wanted]


LIST: Step = ["send", "a", "ListGroups", 5, {}]
TOPIC = ["topic", "@t", 3]
OTHER = ["topic", "@u", 2]
EPOCH_3 = {"member_epoch": 3}
JOINED = [TOPIC, join("m1"), beat("m1", 2, wanted=EPOCH_3)]
"""m1 at epoch 3 with the three partitions of @t."""
LEFT = [*JOINED, beat("m1", -1)]

# ------------------------------------------------------------------ heartbeats

script(
    "share-join",
    *JOINED,
    beat("m1", 3),
    beat("m1", 3, subscribed_topic_names=["@t"]),
    describe(),
    describe(include_authorized_operations=True),
    LIST,
    join("m1"),
    beat("m1", -1),
    describe(),
    LIST,
    ["send", "a", "ListGroups", 5, {"types_filter": ["Share"], "states_filter": ["empty"]}],
    ["send", "a", "ListGroups", 5, {"types_filter": ["consumer"]}],
    join("m1"),
    beat("m1", 5),
)
script(
    "share-join-refused",
    TOPIC,
    join("m1", group_id=""),
    join("m1", group_id="  "),
    join(""),
    join(" "),
    join("x" * 37),
    join("x" * 36),
    join("m1", rack_id=""),
    join("m1", rack_id=" "),
    join("m1", subscribed_topic_names=[]),
    join("m1", subscribed_topic_names=None),
    beat("m1", -2),
    beat("m1", -2, subscribed_topic_names=["@t"]),
    beat("m2", 1),
    beat("m2", -1),
    beat("m2", 1, group_id="@none"),
    beat("m2", -1, group_id="@none"),
    describe("@none", ""),
    describe("@g"),
    LIST,
)
script(
    "share-epochs",
    *JOINED,
    beat("m1", 2),
    beat("m1", 1),
    beat("m1", 4),
    beat("m1", 99, subscribed_topic_names=["@u"]),
    beat("m1", 0, subscribed_topic_names=["@t"]),
    beat("m1", 3),
)
script(
    "share-racks-and-topics-change",
    *JOINED,
    OTHER,
    beat("m1", 3, rack_id="r1"),
    beat("m1", 3, rack_id="r1"),
    beat("m1", 3, rack_id="r2"),
    describe(),
    beat("m1", 3, subscribed_topic_names=["@t", "@u", "@t"]),
    beat("m1", 4, wanted={"member_epoch": 5}),
    beat("m1", 5, subscribed_topic_names=["@u"]),
    beat("m1", 6),
    describe(),
    beat("m1", 6, subscribed_topic_names=["@t"]),
    beat("m1", 7, subscribed_topic_names=[]),
    beat("m1", 8),
    beat("m1", 9),
    describe(),
)
script(
    "share-members-share",
    ["topic", "@t", 1],
    join("m1"),
    beat("m1", 2, wanted=EPOCH_3),
    join("m2"),
    beat("m1", 3),
    beat("m1", 4),
    join("m3"),
    beat("m1", 4),
    beat("m2", 4),
    beat("m3", 5),
    describe(),
    join("m4"),
    join("m3"),
    beat("m2", -1),
    beat("m1", 5),
    beat("m3", 5),
    beat("m2", 5),
    join("m4"),
    beat("m1", 6),
    beat("m3", -1),
    beat("m4", -1),
    beat("m1", 8),
    beat("m1", -1),
    describe(),
)
script(
    "share-different-topics",
    *JOINED,
    OTHER,
    join("m2", subscribed_topic_names=["@u"]),
    beat("m2", 4, wanted={"member_epoch": 5}),
    beat("m1", 3),
    beat("m1", 5),
    beat("m1", 5, subscribed_topic_names=["@t", "@u"]),
    beat("m2", 5),
    beat("m2", 6),
    describe(),
    beat("m1", -1),
    beat("m2", 6),
    describe(),
)
script(
    "share-topic-that-is-not",
    TOPIC,
    join("m1", subscribed_topic_names=["@later"]),
    beat("m1", 2),
    offsets(),
    ["topic", "@later", 1],
    beat("m1", 2, wanted=EPOCH_3),
    beat("m1", 3, wanted={"member_epoch": 4}),
    describe(),
)
script(
    "share-topic-grows",
    *JOINED,
    grow("@t", 5),
    beat("m1", 3, wanted={"member_epoch": 4}),
    beat("m1", 4, wanted={"member_epoch": 5}),
    describe(),
    offsets(),
)
script(
    "share-session-ends",
    configure(share_session_timeout_ms="1000", share_heartbeat_interval_ms="500"),
    *JOINED,
    join("m2"),
    ["wait", 2500],
    beat("m1", 3),
    join("m1"),
    ["wait", 2500],
    describe(),
)
script(
    "share-configs-change",
    *JOINED,
    configure(share_heartbeat_interval_ms="700"),
    beat("m1", 3, wanted={"heartbeat_interval_ms": 700}),
    configure(share_heartbeat_interval_ms="100"),
    configure(share_session_timeout_ms="900"),
    configure(share_session_timeout_ms="70000"),
    configure(share_record_lock_duration_ms="999"),
    configure(share_record_lock_duration_ms="14999"),
    configure(share_record_lock_duration_ms="60001"),
    configure(share_record_lock_duration_ms="20000"),
    configure(share_delivery_count_limit="1"),
    configure(share_delivery_count_limit="11"),
    configure(share_delivery_count_limit="7"),
    configure(share_partition_max_record_locks="99"),
    configure(share_partition_max_record_locks="4001"),
    configure(share_partition_max_record_locks="100"),
    configure(share_auto_offset_reset="none"),
    configure(share_auto_offset_reset="by_duration:PT"),
    configure(share_auto_offset_reset="by_duration:-PT1H"),
    configure(share_auto_offset_reset="by_duration:PT1H"),
    configure(share_auto_offset_reset="earliest"),
    configure(share_isolation_level="read_committed"),
    configure(share_isolation_level="serializable"),
    configure(share_renew_acknowledge_enable="maybe"),
    configure(share_renew_acknowledge_enable="false"),
    configure(share_assignment_interval_ms="15001"),
    configure(1, share_heartbeat_interval_ms=None),
    beat("m1", 3, wanted={"heartbeat_interval_ms": 5000}),
)

# ------------------------------------------------------------------ names of other kinds

CLASSIC_JOIN = {
    "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": {"subscription": ["@t"]}}],
}  # fmt: skip
CONSUMER_JOIN = {
    "member_id": "c1", "member_epoch": 0, "instance_id": None, "rack_id": None,
    "rebalance_timeout_ms": 30_000, "subscribed_topic_names": ["@t"], "server_assignor": None,
    "topic_partitions": [],
}  # fmt: skip


def commit(group: str, member: str = "", epoch: int = -1) -> Step:
    partitions = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]
    made = {
        "group_id": group, "member_id": member, "generation_id_or_member_epoch": epoch,
        "topics": [{"name": "@t", "partitions": partitions}],
    }  # fmt: skip
    return ["send", "a", "OffsetCommit", 9, made]


def fetch(group: str, topics: Any = None) -> Step:
    asked = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
    return ["send", "a", "OffsetFetch", 9, {"groups": [asked]}]


script(
    "share-group-asked-as-another-kind",
    *JOINED,
    ["send", "c", "JoinGroup", 9, {"group_id": "@g", **CLASSIC_JOIN}],
    ["send", "a", "ConsumerGroupHeartbeat", 1, {"group_id": "@g", **CONSUMER_JOIN}],
    ["send", "a", "ConsumerGroupDescribe", 1, {"group_ids": ["@g"]}],
    ["send", "a", "DescribeGroups", 6, {"groups": ["@g"]}],
    ["send", "a", "Heartbeat", 4, {"group_id": "@g", "generation_id": 3, "member_id": "m1"}],
    ["send", "a", "LeaveGroup", 5, {"group_id": "@g", "members": [{"member_id": "m1"}]}],
    commit("@g"),
    commit("@g", "m1", 3),
    fetch("@g"),
    fetch("@g", [{"name": "@t", "partition_indexes": [0]}]),
    ["send", "a", "OffsetDelete", 0, {
        "group_id": "@g", "topics": [{"name": "@t", "partitions": [{"partition_index": 0}]}]
    }],
    beat("m1", 3),
)  # fmt: skip
script(
    "another-kind-asked-as-share-group",
    TOPIC,
    ["send", "a", "ConsumerGroupHeartbeat", 1, {"group_id": "@cons", **CONSUMER_JOIN}],
    commit("@simple"),
    join("m1", group_id="@cons"),
    join("m1", group_id="@simple"),
    beat("m1", 1, group_id="@cons"),
    beat("m1", -1, group_id="@simple"),
    describe("@cons", "@simple"),
    alter({"@t": {0: 1}}, "@cons"),
    alter({"@t": {0: 1}}, "@simple"),
    delete("@t", group="@cons"),
    delete("@t", group="@simple"),
    offsets(group="@cons"),
    offsets({"@t": [0]}, group="@simple"),
    ["send", "a", "ConsumerGroupHeartbeat", 1,
     {"group_id": "@cons", "member_id": "c1", "member_epoch": -1}],
    join("m1", group_id="@cons"),
)  # fmt: skip

# ------------------------------------------------------------------ offsets

script(
    "share-offsets-altered",
    *JOINED,
    alter({"@t": {0: 5}}),
    beat("m1", -1),
    alter({"@t": {0: 5, 1: 7}}),
    offsets(),
    alter({"@t": {0: 2, 3: 1}, "@none": {0: 1}}),
    alter({"@t": {}}),
    alter({}),
    alter({"@t": {2: -5}}),
    offsets({"@t": [0, 1, 2, 3], "@none": [0]}),
    offsets({"@t": [0]}, version=0),
    describe(),
    join("m1"),
    beat("m1", 5, wanted={"member_epoch": 6}),
    offsets(),
)
script(
    "share-offsets-of-a-negative-partition",
    TOPIC,
    alter({"@t": {-1: 1}}),
)
script(
    "share-offsets-altered-before-there-is-a-group",
    TOPIC,
    alter({"@t": {0: 5}}, ""),
    alter({"@none": {0: 5}}),
    LIST,
    alter({"@t": {1: 5}}),
    LIST,
    describe(),
    offsets(),
    join("m1"),
    beat("m1", 2, wanted=EPOCH_3),
    describe(),
    offsets(),
)
script(
    "share-offsets-deleted",
    *JOINED,
    OTHER,
    delete("@t"),
    beat("m1", -1),
    delete("@u", "@none"),
    delete("@t", "@u"),
    offsets(),
    delete("@t"),
    delete(),
    delete("@t", group="@none"),
    delete("@t", group=""),
    describe(),
    join("m1"),
    beat("m1", 5, wanted={"member_epoch": 6}),
    offsets(),
)
script(
    "share-group-deleted",
    *JOINED,
    delete_groups("@g"),
    beat("m1", -1),
    delete_groups("@g", "@none"),
    LIST,
    describe(),
    offsets(),
    delete_groups("@g"),
    join("m1"),
    beat("m1", 2, wanted=EPOCH_3),
    offsets(),
)
script(
    "share-group-without-members-deleted",
    TOPIC,
    alter({"@t": {0: 1}}),
    delete_groups("@g"),
    LIST,
    offsets({"@t": [0]}),
)
script(
    "share-topic-deleted",
    *JOINED,
    OTHER,
    beat("m1", 3, subscribed_topic_names=["@t", "@u"]),
    beat("m1", 4, wanted={"member_epoch": 5}),
    ["send", "admin", "DeleteTopics", 6, {
        "topics": [{"name": "@u"}], "timeout_ms": 9000
    }],
    beat("m1", 5, wanted={"member_epoch": 6}),
    beat("m1", 6),
    describe(),
    offsets(),
)  # fmt: skip

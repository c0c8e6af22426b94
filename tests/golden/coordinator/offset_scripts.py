"""Request scripts of offsets, and of looking at groups and deleting them."""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator.group_steps import (
    EMPTY_SUBSCRIPTION,
    ONE_STABLE,
    commit,
    delete,
    describe,
    fetch,
    join,
    leave,
    list_groups,
    offset_delete,
    post_join,
    sync,
)

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


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

"""Request scripts in which time passes: sessions, rebalances, and under other limits expiry."""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator.group_steps import (
    OTHER,
    commit,
    describe,
    fetch,
    heartbeat,
    join,
    join_fields,
    leave,
    list_groups,
    post_join,
    sync,
)

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


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

"""What is answered differently than it was recorded. Pure.

Not compared: times, sizes of batches and their compression, throttling, addresses, messages of
errors, epochs of leaders, the cluster's id. Of Fetch and ShareFetch only the batches and records
that both returned, as how much is there depends on the moment. Keys and values only where the trace
has all of a partition's, as others are not sent either. Of ApiVersions only whether it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwire.trace.error_counts import name_of
from kwire.trace.json_values import Json, JsonObject, number_of, objects_of
from kwire.trace.replay.identities import KINDS, Identities

IGNORED = frozenset(
    ("throttle_time_ms", "host", "port", "rack", "client_host", "cluster_id", "timestamp")
    + ("log_append_time_ms", "max_timestamp", "error_message", "batch_index_error_message")
    + ("leader_epoch", "current_leader", "node_endpoints", "bytes", "codec", "records_bytes")
    + ("heartbeat_interval_ms", "session_lifetime_ms", "acknowledge_error_message", "documentation")
    + ("partition_size", "total_bytes", "usable_bytes", "log_dir", "unknown_tags", "metadata")
)
FETCHES = ("Fetch", "ShareFetch")
OF_A_MOMENT = frozenset(("high_watermark", "last_stable_offset", "aborted_transactions"))
"""In a Fetch: how far the partition is just then."""
LABELS = ("name", "topic", "topic_name", "group_id", "group", "transactional_id", "key") + (
    *("resource_type", "resource_name", "partition_index", "partition", "index", "base_offset"),
    *("topic_id", "member_id", "node_id", "broker_id"),
)
"""Fields by which the entries of lists are laid beside each other."""
NOT_YET = frozenset(
    ("LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION")
    + ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")
    + ("CONCURRENT_TRANSACTIONS", "UNKNOWN_TOPIC_ID")
)
"""Errors by which a cluster says that something is on its way: clients ask again."""


class Difference(NamedTuple):
    """`path` is the field; None: it is not there."""

    path: str
    recorded: Json
    answered: Json

    def __str__(self) -> str:
        return (
            f"{self.path}: recorded {self._shown(self.recorded)}, got {self._shown(self.answered)}"
        )

    def _shown(self, value: Json) -> str:
        if self.path.endswith("error_code") and isinstance(value, int):
            return name_of(value)
        text = repr(value)
        return text if len(text) <= 100 else f"{text[:100]}..."


def aligned(recorded: Json, answered: Json, known: Identities) -> tuple[Json, Json]:
    """Both with lists in one order, by the labels of their entries; ids that are known count."""
    return _ordered(recorded, known, is_recorded=True), _ordered(answered, known, is_recorded=False)


def _ordered(value: Json, known: Identities, *, is_recorded: bool) -> Json:
    if isinstance(value, dict):
        return {
            name: _ordered(held, known, is_recorded=is_recorded) for name, held in value.items()
        }
    if not isinstance(value, list):
        return value
    made = [_ordered(item, known, is_recorded=is_recorded) for item in value]
    if made and all(isinstance(item, dict) for item in made):
        made.sort(key=lambda item: _label(item, known, is_recorded))
    return made


def _label(item: Json, known: Identities, is_recorded: bool) -> tuple[str, ...]:
    if not isinstance(item, dict):
        return ()
    label = []
    for name in LABELS:
        value = item.get(name)
        kind = KINDS.get(name)
        if kind is not None and value is not None:
            if is_recorded:
                value = known.translated(kind, value) if known.is_known(kind, value) else ""
            elif not known.is_taken(kind, value):
                value = ""
        if isinstance(value, int):
            label.append(f"{value:020d}")
        else:
            label.append("" if value is None else str(value))
    return tuple(label)


def differences(api: str, recorded: JsonObject, answered: JsonObject) -> Iterator[Difference]:
    """Of two replies, the recorded one with its ids translated."""
    if api == "ApiVersions":
        if bool(recorded.get("error_code")) != bool(answered.get("error_code")):
            yield Difference("error_code", recorded.get("error_code"), answered.get("error_code"))
        return
    yield from _compare("", recorded, answered, api in FETCHES)


def _compare(path: str, recorded: Json, answered: Json, is_fetch: bool) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(answered, dict):
        for name in {**recorded, **answered}:
            if name in IGNORED or (is_fetch and name in OF_A_MOMENT):
                continue
            place = f"{path}.{name}" if path else name
            mine, theirs = recorded.get(name), answered.get(name)
            if name == "records" and isinstance(mine, dict) and isinstance(theirs, dict):
                yield from _batches(f"{place}.batches", mine, theirs, is_fetch)
                if _are_kept(mine):
                    yield from _records(place, mine, theirs)
            else:
                yield from _compare(place, mine, theirs, is_fetch)
    elif isinstance(recorded, list) and isinstance(answered, list):
        if len(recorded) != len(answered):
            yield Difference(f"{path}, entries", len(recorded), len(answered))
        for index, (mine, theirs) in enumerate(zip(recorded, answered)):
            yield from _compare(f"{path}[{index}]", mine, theirs, is_fetch)
    elif recorded != answered:
        yield Difference(path, recorded, answered)


def _are_kept(summed: JsonObject) -> bool:
    """Whether batches have all their records there, with keys and values whole."""
    records = objects_of(summed, "records")
    count = sum(number_of(batch, "count") for batch in objects_of(summed, "batches"))
    return len(records) == count and not any(map(_is_cut, records))


def _is_cut(value: Json) -> bool:
    if isinstance(value, dict):
        return "cut" in value or any(map(_is_cut, value.values()))
    return isinstance(value, list) and any(map(_is_cut, value))


def _records(path: str, recorded: JsonObject, answered: JsonObject) -> Iterator[Difference]:
    """Of the records that both have, by their offsets."""
    theirs = {number_of(one, "offset"): one for one in objects_of(answered, "records")}
    for mine in objects_of(recorded, "records"):
        offset = number_of(mine, "offset")
        if offset in theirs:
            yield from _compare(f"{path}[offset {offset}]", mine, theirs[offset], False)


def _batches(
    path: str, recorded: JsonObject, answered: JsonObject, is_fetch: bool
) -> Iterator[Difference]:
    mine, theirs = recorded.get("batches"), answered.get("batches")
    if not isinstance(mine, list) or not isinstance(theirs, list):
        return
    if not is_fetch and len(mine) != len(theirs):
        yield Difference(f"{path}, entries", len(mine), len(theirs))
    for index, (one, other) in enumerate(zip(mine, theirs)):
        yield from _compare(f"{path}[{index}]", one, other, is_fetch)

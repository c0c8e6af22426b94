"""Resolving the patterns of a group: which topics they match now.

Done outside of heartbeats: when a member brings a new pattern, when the metadata has other topics,
and every group.consumer.regex.refresh.interval.ms.
"""

from __future__ import annotations

from kwire.coordinator.group.consumer import records
from kwire.coordinator.group.consumer.groups import REGEX_TIMER, ConsumerGroups
from kwire.coordinator.group.consumer.state import ResolvedRegex
from kwire.coordinator.group.consumer.subscriptions import metadata_hash, used_patterns
from kwire.coordinator.regex import compile_pattern
from kwire.coordinator.seam import CoordinatorRecord, Moment, Result


def resolve(groups: ConsumerGroups, group_id: str, moment: Moment) -> Result:
    """Match every pattern of the group anew; records for all of them when one has changed."""
    group = groups.storage.consumer.get(group_id)
    if group is None:
        return Result()
    patterns = used_patterns(group.members)
    if not patterns:
        return Result()
    topics_of: dict[str, tuple[str, ...]] = {}
    for pattern in patterns:
        matches = compile_pattern(pattern)
        topics_of[pattern] = tuple(sorted(name for name in groups.topics.names() if matches(name)))
    made: list[CoordinatorRecord] = []
    known = {pattern: resolved.topics for pattern, resolved in group.regexes.items()}
    if any(known.get(pattern) != found for pattern, found in topics_of.items()):
        version = groups.topics.version()
        made = [
            records.regex(group_id, pattern, ResolvedRegex(found, version, moment.wall_ms))
            for pattern, found in topics_of.items()
        ]
    names: dict[str, None] = {}
    for member in group.members.values():
        names.update(dict.fromkeys(member.topic_names))
        if member.topic_regex:
            names.update(dict.fromkeys(topics_of[member.topic_regex]))
    hashed = metadata_hash(sorted(names), groups.topics)
    if made or hashed != group.metadata_hash:
        made.append(records.group_epoch(group_id, group.epoch + 1, hashed))
    groups.deadlines.schedule(
        (REGEX_TIMER, group_id), moment.now_ms + groups.settings.regex_refresh_interval_ms
    )
    return Result(made)

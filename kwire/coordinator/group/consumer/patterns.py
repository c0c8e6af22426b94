"""Resolving the patterns of a group: which topics they match now.

Done outside of heartbeats: when a member brings a new pattern, when the metadata has other topics,
and every group.consumer.regex.refresh.interval.ms. Many topics are matched in slices between which
the loop turns; what one group has found others take over for as long as the topics are the same.
With an authorizer a pattern matches what the client may describe that was heard last of those with
a pattern (KIP-848; as Apache Kafka 4.4, where a refresh counts for who triggers it).
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.coordinator.group.consumer import records
from kwire.coordinator.group.consumer.groups import REGEX_TIMER, ConsumerGroups
from kwire.coordinator.group.consumer.jobs import Matching
from kwire.coordinator.group.consumer.state import ResolvedRegex
from kwire.coordinator.group.consumer.subscriptions import used_patterns
from kwire.coordinator.group.topics import metadata_hash
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result


def _visible(names: tuple[str, ...], describes: Callable[[str], bool] | None) -> tuple[str, ...]:
    return names if describes is None else tuple(name for name in names if describes(name))


def resolve(groups: ConsumerGroups, group_id: str, moment: Moment) -> Result[None]:
    """Match every pattern of the group anew, or a slice of that; records for all of them when one
    has changed."""
    group = groups.stored.get(group_id)
    patterns = {} if group is None else used_patterns(group.members)
    if group is None or not patterns:
        groups.matching.pop(group_id, None)
        return Result()
    describes = groups.describers.get(group_id)
    if describes is None and groups.settings.has_authorizer:
        groups.matching.pop(group_id, None)
        return Result()  # until a member's heartbeat says whose rights count
    job = groups.matching.get(group_id)
    if job is None or (job.patterns, job.generation) != (patterns, groups.generation):
        job = Matching(patterns, groups.topics, groups.generation, groups.matched)
        groups.matching[group_id] = job
    if job.step():
        groups.deadlines.schedule((REGEX_TIMER, group_id), moment.now_ms)
        return Result()
    del groups.matching[group_id]
    topics_of = {pattern: _visible(job.found[pattern], describes) for pattern in patterns}
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

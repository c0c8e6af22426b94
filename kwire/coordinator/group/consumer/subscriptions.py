"""Which topics a consumer group reads: the names its members gave and what their patterns match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kwire.coordinator.group.consumer.state import ConsumerGroup, Member


def topic_names(group: ConsumerGroup, member: Member) -> list[str]:
    """The topics of one member, by name and by pattern, each once, in ascending order."""
    names = dict.fromkeys(member.topic_names)
    resolved = group.regexes.get(member.topic_regex) if member.topic_regex else None
    if resolved is not None:
        names.update(dict.fromkeys(resolved.topics))
    return sorted(names)


def subscribed(group: ConsumerGroup, members: Iterable[Member]) -> list[str]:
    """The topics of all `members`, ascending."""
    names: dict[str, None] = {}
    patterns: dict[str, None] = {}
    for member in members:
        names.update(dict.fromkeys(member.topic_names))
        if member.topic_regex:
            patterns[member.topic_regex] = None
    for pattern in patterns:
        resolved = group.regexes.get(pattern)
        if resolved is not None:
            names.update(dict.fromkeys(resolved.topics))
    return sorted(names)


def used_patterns(members: Mapping[str, Member], without: Iterable[str] = ()) -> dict[str, None]:
    """The patterns of the members but those in `without`."""
    leaving = dict.fromkeys(without)
    return {
        member.topic_regex: None
        for member_id, member in members.items()
        if member.topic_regex and member_id not in leaving
    }

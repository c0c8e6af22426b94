"""Which topics a consumer group reads: the names its members gave and what their patterns match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kwire.coordinator.group.consumer.state import ConsumerGroup, Member, count_readers


def topic_names(group: ConsumerGroup, member: Member) -> list[str]:
    """The topics of one member, by name and by pattern, each once, in ascending order."""
    names = dict.fromkeys(member.topic_names)
    resolved = group.regexes.get(member.topic_regex) if member.topic_regex else None
    if resolved is not None:
        names.update(dict.fromkeys(resolved.topics))
    return sorted(names)


def subscribed(
    group: ConsumerGroup, come: Sequence[Member] = (), gone: Sequence[Member] = ()
) -> list[str]:
    """The topics of all members, with those that `come` and without those that have `gone`,
    ascending."""
    names, patterns = dict(group.name_readers), dict(group.pattern_readers)
    for member in come:
        count_readers(names, patterns, member, 1)
    for member in gone:
        count_readers(names, patterns, member, -1)
    for pattern in patterns:
        resolved = group.regexes.get(pattern)
        if resolved is not None:
            names.update(dict.fromkeys(resolved.topics, 1))
    return sorted(names)


def used_patterns(members: Mapping[str, Member], without: Iterable[str] = ()) -> dict[str, None]:
    """The patterns of the members but those in `without`."""
    leaving = dict.fromkeys(without)
    return {
        member.topic_regex: None
        for member_id, member in members.items()
        if member.topic_regex and member_id not in leaving
    }

"""What a share group counts of its members and targets is what they say, after any records."""

from __future__ import annotations

import random
from collections import Counter

from kwire.coordinator.group.share.state import ShareGroup
from kwire.protocol import messages as m

TOPICS = [bytes([n]) * 16 for n in range(3)]
NAMES = ["a", "b", "c", "d"]
MEMBER, TARGET = 10, 13


def _random_record(group: ShareGroup, source: random.Random) -> None:
    member_id = f"member-{source.randrange(6)}"
    is_tombstone = source.random() < 0.3
    if source.random() < 0.5:
        key = m.ShareGroupMemberMetadataKey(group_id="g", member_id=member_id)
        names = source.sample(NAMES, source.randrange(4))
        value = m.ShareGroupMemberMetadataValue(
            client_id="", client_host="", subscribed_topic_names=names
        )
        group.replay(MEMBER, key, None if is_tombstone else value)
        return
    shape = m.ShareGroupTargetAssignmentMemberValue
    topics = [
        shape.TopicPartition(topic_id=x, partitions=source.sample(range(5), source.randrange(4)))
        for x in source.sample(TOPICS, source.randrange(3))
    ]
    target_key = m.ShareGroupTargetAssignmentMemberKey(group_id="g", member_id=member_id)
    group.replay(TARGET, target_key, None if is_tombstone else shape(topic_partitions=topics))


def test_counts_follow_members_and_targets() -> None:
    source = random.Random(3)
    group = ShareGroup()
    for _ in range(2000):
        _random_record(group, source)
        names = Counter(x for member in group.members.values() for x in member.topic_names)
        assert group.subscriptions == names
        assigned: dict[bytes, Counter[int]] = {}
        for target in group.targets.values():
            for topic_id, indexes in target.items():
                if indexes:
                    assigned.setdefault(topic_id, Counter()).update(indexes)
        assert group.assigned == assigned


def test_the_topics_of_a_group_with_one_member_changed() -> None:
    source = random.Random(4)
    group = ShareGroup()
    for _ in range(500):
        _random_record(group, source)
        changed = f"member-{source.randrange(7)}"
        wanted = tuple(sorted(source.sample(NAMES, source.randrange(4))))
        others = (x.topic_names for y, x in group.members.items() if y != changed)
        expected = sorted({*wanted, *(name for names in others for name in names)})
        assert group.topic_names(changed, wanted) == expected

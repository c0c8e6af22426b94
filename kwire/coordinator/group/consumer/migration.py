"""Groups that change their protocol while members are in them (KIP-848,
group.consumer.migration.policy).

Up: the first member of the consumer protocol that joins a classic group of consumers turns it
into a consumer group. Its members go on in the classic protocol, with the generation that they
have as their epoch, and are asked to join again. Down: when the last member of the consumer
protocol goes, the group becomes a classic one at its epoch and rebalances; when a static member
takes that last one's place in the classic protocol, without a rebalance. What the group is to be
is built beside the one there is, which only the records replace. Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kwire.coordinator.group.classic import records as classic_records
from kwire.coordinator.group.classic.group import ClassicGroup, ClassicMember
from kwire.coordinator.group.consumer import records
from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
from kwire.coordinator.group.consumer.state import (
    ClassicProtocols,
    ConsumerGroup,
    Current,
    Member,
    MemberState,
    Partitions,
    TopicPartitions,
)
from kwire.coordinator.group.consumer_protocol import (
    PROTOCOL_TYPE,
    encode_assignment,
    parse_assignment,
    parse_subscription,
    version_of,
)
from kwire.coordinator.group.topics import Topics, metadata_hash
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError

DISABLED = "disabled"
UPGRADING = ("bidirectional", "upgrade")
DOWNGRADING = ("bidirectional", "downgrade")


# --- up ---


def check_upgrade(group: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Raise GROUP_ID_NOT_FOUND unless a classic group with members may become a consumer group."""
    reason = None
    if settings.migration_policy not in UPGRADING:
        reason = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > settings.max_size:
        reason = "the group exceeds the consumer group maximum size"
    if reason is not None:
        raise _not_upgraded(group, reason + ".")


def upgraded(group: ClassicGroup, topics: Topics) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
    """The consumer group that a classic one becomes, and the records that make it one; raises
    GROUP_ID_NOT_FOUND when what its members sent cannot be understood."""
    group_id, epoch = group.group_id, group.generation
    try:
        members = {x.member_id: _consumer_member(x, group.protocol) for x in group.members.values()}
        assigned = {x.member_id: _assigned(group, x, topics) for x in group.members.values()}
    except MalformedError:
        raise _not_upgraded(group, "the embedded consumer protocol is malformed.") from None
    names: dict[str, None] = {}
    for member in members.values():
        names.update(dict.fromkeys(member.topic_names))
    made = [classic_records.group_tombstone(group_id)]
    made += [records.member(group_id, member) for member in members.values()]
    made.append(records.group_epoch(group_id, epoch, metadata_hash(sorted(names), topics)))
    made += [
        records.target(group_id, member_id, {t: tuple(p) for t, p in partitions.items()})
        for member_id, partitions in assigned.items()
    ]
    made.append(records.target_epoch(group_id, epoch, 0))
    made += [
        records.current(
            group_id, member_id, Current(epoch, epoch, MemberState.STABLE, partitions, {})
        )
        for member_id, partitions in assigned.items()
    ]
    built = ConsumerGroup()
    for record in made[1:]:
        built.replay(record.key.API_KEY, record.key, record.value)
    return built, made


def _not_upgraded(group: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}",
    )


def _consumer_member(member: ClassicMember, protocol: str | None) -> Member:
    # A member that came since the last generation may not support its protocol.
    metadata = dict(member.protocols).get(protocol or "", member.protocols[0][1])
    subscription = parse_subscription(metadata)
    return Member(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=tuple(sorted(set(subscription.topics))),
        topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=None,
        classic=ClassicProtocols(member.session_timeout_ms, member.protocols),
    )


def _assigned(group: ClassicGroup, member: ClassicMember, topics: Topics) -> Partitions:
    """What the last leader gave the member, of the topics that still exist."""
    if not member.assignment:
        return {}
    assignment = parse_assignment(member.assignment)
    if assignment.user_data:
        raise _not_upgraded(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade.",
        )
    found: Partitions = {}
    for name, indexes in assignment.partitions.items():
        info = topics.find(name)
        if info is not None and indexes:
            found[info.topic_id] = dict.fromkeys(indexes, group.generation)
    return found


# --- down ---


def may_downgrade(
    members: Mapping[str, Member], settings: ConsumerGroupSettings, size_max: int
) -> bool:
    """Whether a consumer group whose members are now `members` becomes a classic one."""
    return (
        settings.migration_policy in DOWNGRADING
        and 0 < len(members) <= size_max
        and all(member.classic is not None for member in members.values())
    )


def downgraded(
    group_id: str,
    members: Mapping[str, Member],
    targets: Mapping[str, TopicPartitions],
    epoch: int,
    topics: Topics,
    wall_ms: int,
) -> tuple[ClassicGroup, CoordinatorRecord]:
    """The classic group of `members`, which all use the classic protocol, with their targets as
    assignments; and its record."""
    made = ClassicGroup(group_id)
    made.adopt(
        [_classic_member(member, targets.get(member.member_id, {}), topics)
         for member in members.values()],
        PROTOCOL_TYPE, epoch, wall_ms,
    )  # fmt: skip
    assignments = {x.member_id: x.assignment for x in made.members.values()}
    return made, classic_records.group_metadata(group_id, made.to_stored(assignments))


def _classic_member(member: Member, target: TopicPartitions, topics: Topics) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
        assignment_of(member, target, topics),
    )


def assignment_of(
    member: Member, partitions: Mapping[bytes, Iterable[int]], topics: Topics
) -> bytes:
    """Partitions as a classic member reads them, in the version that it speaks."""
    assert member.classic is not None
    named: dict[str, tuple[int, ...]] = {}
    for topic_id, indexes in partitions.items():
        name = topics.name_of(topic_id)
        if name is not None:
            named[name] = tuple(indexes)
    version = max(version_of(member.classic.protocols[0][1]), 0)
    return encode_assignment(named, version)

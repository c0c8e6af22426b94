"""The image: what it refuses, transactions, deltas, snapshots at other levels."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.kraft.features import SUPPORTED_FEATURES, default_features, reason_unmet
from kwire.kraft.images.metadata_image import ImageError, MetadataDelta, MetadataImage
from kwire.kraft.images.topics import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    VALUES_MAX,
    is_reserved_directory,
)
from kwire.kraft.metadata_version import (
    LATEST_PRODUCTION_LEVEL,
    METADATA_VERSIONS,
    from_name,
    records_changed_between,
)
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import decode_record, encode_record

T1, T2 = b"1" * 16, b"2" * 16


def topic(name: str, topic_id: bytes) -> Any:
    return m.TopicRecord(name=name, topic_id=topic_id)


def partition(topic_id: bytes, index: int = 0, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "partition_id": index, "topic_id": topic_id, "replicas": [1, 2], "isr": [1, 2],
        "removing_replicas": [], "adding_replicas": [], "leader": 1, "leader_epoch": 0,
        "partition_epoch": 0, "directories": [b"d" * 16, b"e" * 16],
    }  # fmt: skip
    return m.PartitionRecord(**{**fields, **changes})


def change(topic_id: bytes, index: int = 0, **changes: Any) -> Any:
    return m.PartitionChangeRecord(topic_id=topic_id, partition_id=index, **changes)


def level(value: int = 33, name: str = "metadata.version") -> Any:
    return m.FeatureLevelRecord(name=name, feature_level=value)


def broker(broker_id: int = 1, epoch: int = 5, **changes: Any) -> Any:
    return m.RegisterBrokerRecord(
        broker_id=broker_id, incarnation_id=b"i" * 16, broker_epoch=epoch,
        log_dirs=[b"d" * 16], **changes,
    )  # fmt: skip


def image(*records: Any) -> MetadataImage:
    made = MetadataImage()
    for offset, record in enumerate(records):
        made.replay(record, offset, 1)
    return made


REFUSED = {
    "partition of no topic": [partition(T1)],
    "change of no topic": [change(T1, isr=[1])],
    "change of no partition": [topic("t", T1), change(T1, isr=[1])],
    "topic twice": [topic("t", T1), topic("t", T2)],
    "topic id twice": [topic("t", T1), topic("u", T1)],
    "removal of no topic": [m.RemoveTopicRecord(topic_id=T1)],
    "directories of another number": [topic("t", T1), partition(T1, directories=[b"d" * 16])],
    "ELR of no topic": [m.ClearElrRecord(topic_name="t")],
    "unregistered broker": [m.UnregisterBrokerRecord(broker_id=1, broker_epoch=5)],
    "broker of another epoch": [
        broker(), m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6, fenced=1)
    ],
    "fencing that is none": [
        broker(), m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=2)
    ],
    "shutdown that is none": [
        broker(),
        m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=3),
    ],
    "fencing of no broker": [m.FenceBrokerRecord(id=1, epoch=5)],
    "feature of a later Kafka": [level(99)],
    "feature of no Kafka": [level(1, "no.such.version")],
    "removal of no ACL": [m.RemoveAccessControlEntryRecord(id=T1)],
    "removal of no credential": [m.RemoveUserScramCredentialRecord(name="u", mechanism=1)],
    "removal of no token": [m.RemoveDelegationTokenRecord(token_id="t")],
    "removal of no controller": [m.UnregisterControllerRecord(controller_id=3)],
    "producer ids that go back": [
        m.ProducerIdsRecord(next_producer_id=2000), m.ProducerIdsRecord(next_producer_id=1000)
    ],
    "end of no transaction": [m.EndTransactionRecord()],
    "abort of no transaction": [m.AbortTransactionRecord()],
    "transaction in a transaction": [m.BeginTransactionRecord(), m.BeginTransactionRecord()],
    "no metadata record": [m.RequestHeader()],
    "quota entity with a type twice": [
        m.ClientQuotaRecord(
            entity=[m.ClientQuotaRecord.EntityData(entity_type="user", entity_name="a")] * 2,
            key="k",
        )
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_follow_is_refused_in_one_line(case: str) -> None:
    *before, last = REFUSED[case]
    made = image(*before)
    with pytest.raises(ImageError) as raised:
        made.replay(last, 100)
    assert "\n" not in str(raised.value)
    assert made.offset == len(before) - 1 - (case == "transaction in a transaction")


def test_an_unknown_record_is_refused_inside_a_transaction_at_once() -> None:
    made = image(m.BeginTransactionRecord())
    with pytest.raises(ImageError, match="unknown"):
        made.replay(m.RequestHeader(), 1)


def test_a_transaction_shows_when_it_ends() -> None:
    made = image(level())
    delta = MetadataDelta()
    made.replay(m.BeginTransactionRecord(name="x"), 1, 2, delta)
    made.replay(topic("t", T1), 2, 2, delta)
    made.replay(partition(T1), 3, 2, delta)
    assert delta.is_empty
    assert (made.offset, made.epoch, made.transaction_offset) == (0, 1, 1)
    assert not made.topics.by_name
    made.replay(m.EndTransactionRecord(), 4, 2, delta)
    assert (made.offset, made.epoch) == (4, 2)
    assert list(delta.topics_created) == [T1]
    assert delta.partitions[T1, 0].old is None


def test_an_aborted_transaction_never_was() -> None:
    made = image(
        level(), m.BeginTransactionRecord(), topic("t", T1), m.AbortTransactionRecord(reason="r")
    )
    assert made.offset == 3
    assert made == image(level())


def test_epochs_grow_as_kafkas() -> None:
    made = image(topic("t", T1), partition(T1))
    made.replay(change(T1, isr=[1]), 2)
    p = made.topics.partition("t", 0)
    assert p is not None
    assert (p.leader_epoch, p.partition_epoch, p.isr) == (0, 1, (1,))
    made.replay(change(T1, leader=1), 3)
    p = made.topics.partition("t", 0)
    assert p is not None
    assert (p.leader_epoch, p.partition_epoch) == (1, 2), "also when the leader stays"


def test_clearing_elr_is_a_change_of_the_partitions_that_have_one() -> None:
    elr = partition(T1, isr=[1], eligible_leader_replicas=[2])
    made = image(topic("t", T1), elr, partition(T1, 1))
    made.replay(m.ClearElrRecord(topic_name=""), 3)
    first, second = made.topics.partition("t", 0), made.topics.partition("t", 1)
    assert first is not None
    assert second is not None
    assert (first.elr, first.partition_epoch, first.leader_epoch) == ((), 1, 0)
    assert second.partition_epoch == 0


def test_directories_follow_their_replicas() -> None:
    made = image(topic("t", T1), partition(T1))
    made.replay(change(T1, replicas=[2, 3, 1]), 2)
    p = made.topics.partition("t", 0)
    assert p is not None
    assert p.directories == (b"e" * 16, UNASSIGNED_DIRECTORY, b"d" * 16)
    old = image(topic("t", T1), partition(T1, directories=[]))
    old.replay(change(T1, replicas=[3, 1]), 2)
    p = old.topics.partition("t", 0)
    assert p is not None
    assert p.directories == (MIGRATING_DIRECTORY, MIGRATING_DIRECTORY)


def test_reserved_directories() -> None:
    assert is_reserved_directory(MIGRATING_DIRECTORY)
    assert is_reserved_directory(LOST_DIRECTORY)
    assert is_reserved_directory(bytes(15) + b"\x63")
    assert not is_reserved_directory(bytes(15) + b"\x64")
    assert not is_reserved_directory(b"d" * 16)
    registered = image(broker()).brokers[1]
    assert registered.has_online_directory(b"d" * 16)
    assert registered.has_online_directory(UNASSIGNED_DIRECTORY)
    assert registered.has_online_directory(MIGRATING_DIRECTORY)
    assert not registered.has_online_directory(LOST_DIRECTORY)
    assert not registered.has_online_directory(b"x" * 16)


def test_a_deleted_topic_takes_its_configs_along() -> None:
    config = m.ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")
    made = image(topic("t", T1), partition(T1), config)
    delta = MetadataDelta()
    made.replay(m.RemoveTopicRecord(topic_id=T1), 3, 1, delta)
    assert made.configs == {}
    assert made.topics.partition_count == 0
    assert list(delta.topics_deleted) == [T1]
    assert delta.partitions[T1, 0].new is None
    assert delta.configs == {(2, "t"): {"retention.ms": None}}


def test_a_delta_tells_the_first_old_and_the_last_new_value() -> None:
    made = image(topic("t", T1), partition(T1), broker())
    delta = MetadataDelta()
    made.replay(change(T1, isr=[1]), 3, 1, delta)
    made.replay(change(T1, leader=2), 4, 1, delta)
    told = delta.partitions[T1, 0]
    assert told.old is not None
    assert told.new is not None
    assert (told.old.isr, told.old.leader) == ((1, 2), 1)
    assert (told.new.isr, told.new.leader) == ((1,), 2)
    made.replay(topic("u", T2), 5, 1, delta)
    made.replay(partition(T2), 6, 1, delta)
    made.replay(m.RemoveTopicRecord(topic_id=T2), 7, 1, delta)
    assert list(delta.partitions) == [(T1, 0)], "what came and went leaves no trace"
    assert not delta.topics_created
    assert not delta.topics_deleted


def test_loading_a_snapshot_tells_the_difference() -> None:
    made = image(topic("t", T1), partition(T1), broker(), level())
    kept = made.topics
    delta = MetadataDelta()
    made.load([level(), topic("u", T2), partition(T2), broker(epoch=9)], 50, 3, delta)
    assert (made.offset, made.epoch) == (50, 3)
    assert made.topics is not kept
    assert list(delta.topics_created) == [T2]
    assert list(delta.topics_deleted) == [T1]
    old, new = delta.brokers[1]
    assert old is not None
    assert new is not None
    assert (old.epoch, new.epoch) == (5, 9)
    assert not delta.features


def test_a_snapshot_ends_no_transaction() -> None:
    with pytest.raises(ImageError, match="inside a metadata transaction"):
        MetadataImage().load([m.BeginTransactionRecord()], 1, 1)


@pytest.mark.parametrize("target", [7, 14, 17, 23, 30, 33])
def test_snapshots_can_be_written_at_every_level(target: int) -> None:
    made = image(
        level(), level(1, "group.version"), broker(rack="r", cordoned_log_dirs=[b"d" * 16]),
        m.RegisterControllerRecord(controller_id=3, incarnation_id=T1),
        topic("t", T1), partition(T1, eligible_leader_replicas=[2], last_known_elr=[1], isr=[1]),
        m.ConfigRecord(resource_type=4, resource_name="", name="k", value="v"),
        m.UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", iterations=4096),
        m.DelegationTokenRecord(token_id="t", owner="User:u"),
        m.AccessControlEntryRecord(id=T2, resource_type=2, resource_name="t"),
        m.ProducerIdsRecord(next_producer_id=1000),
    )  # fmt: skip
    gates = METADATA_VERSIONS[target]
    again = MetadataImage()
    for record, version in made.to_records(target):
        again.replay(decode_record(encode_record(record, version))[0])
    assert again.features.metadata_version.level == target
    p = again.topics.partition("t", 0)
    assert p is not None
    assert p.elr == ((2,) if gates.elr else ())
    assert (p.directories[0] == b"d" * 16) is gates.directory_assignment
    assert bool(again.scram) is gates.scram
    assert bool(again.delegation_tokens) is gates.delegation_token
    assert bool(again.controllers) is gates.controller_registration
    assert (again.brokers[1].cordoned_directories is not None) is gates.cordoned_log_dirs
    assert (again == made) is (target == 33)


def test_a_snapshot_in_slices_is_of_the_moment_it_was_begun() -> None:
    config = m.ConfigRecord(resource_type=2, resource_name="t", name="a", value="1")
    made = image(level(), topic("t", T1), partition(T1), partition(T1, 1), config, broker())
    before = made.to_records()
    source = made.record_source()
    read = [next(source) for _ in range(3)]
    later = (
        change(T1, 1, leader=2),
        partition(T1, 2),
        topic("a", T2),
        partition(T2),
        m.ConfigRecord(resource_type=2, resource_name="t", name="b", value="2"),
        m.UnregisterBrokerRecord(broker_id=1, broker_epoch=5),
    )
    for offset, record in enumerate(later, 10):
        made.replay(record, offset, 1)
    assert [*read, *source] == before
    assert made.to_records() != before


def test_zookeeper_migration_states_are_carried() -> None:
    made = image(level(), m.ZkMigrationStateRecord(zk_migration_state=4))
    again = MetadataImage()
    again.load([record for record, _ in made.to_records()], 1, 1)
    assert again == made


def test_a_feature_at_level_0_is_none() -> None:
    made = image(level(), level(1, "group.version"), level(0, "group.version"))
    assert made.features.finalized == {"metadata.version": 33}


def test_metadata_versions_by_name() -> None:
    latest = METADATA_VERSIONS[LATEST_PRODUCTION_LEVEL]
    assert from_name("4.4") == from_name("4.4-IV2") == latest
    assert from_name("3.7") == METADATA_VERSIONS[19]
    assert from_name("4.5") is None, "not for production"
    assert from_name("nonsense") is None
    assert records_changed_between(32, 33)
    assert not records_changed_between(30, 31)


def test_default_features_depend_on_the_metadata_version() -> None:
    assert default_features(7) == {"metadata.version": 7}
    assert default_features(23)["group.version"] == 1
    assert "transaction.version" not in default_features(23)
    assert "kraft.version" not in default_features()
    assert next(iter(default_features())) == "metadata.version"
    assert reason_unmet("eligible.leader.replicas.version", 1, {"metadata.version": 22})
    assert reason_unmet("eligible.leader.replicas.version", 1, {"metadata.version": 23}) is None
    assert SUPPORTED_FEATURES["metadata.version"] == (7, LATEST_PRODUCTION_LEVEL)


def test_equal_partitions_are_one_object_until_they_differ() -> None:
    """100,000 partitions of a node that has them all are as each other: 600 bytes for each."""
    records = [topic("a", T1), topic("b", T2)]
    records += [partition(T1, index) for index in range(3)] + [partition(T2)]
    made = image(*records)
    first = made.topics.partition("a", 0)
    assert first is made.topics.partition("a", 2) is made.topics.partition("b", 0)
    made.replay(change(T1, 2, leader=2), 10, 1)
    made.replay(change(T2, 0, leader=2), 11, 1)
    assert made.topics.partition("a", 0) is first
    changed = made.topics.partition("a", 2)
    assert changed is made.topics.partition("b", 0)
    assert changed is not None
    assert first is not None
    assert (changed.leader, first.leader) == (2, 1)


def test_few_values_of_partitions_are_remembered() -> None:
    made = image(topic("a", T1))
    for index in range(3 * VALUES_MAX):
        made.replay(partition(T1, index, leader_epoch=index), index + 1, 1)
    assert len(made.topics._values) <= VALUES_MAX
    assert len({id(one) for one in made.topics.by_name["a"].partitions.values()}) == 3 * VALUES_MAX

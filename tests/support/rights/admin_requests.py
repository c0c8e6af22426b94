"""Requests that administer topics, configs, brokers, rights and tokens. Nothing of it stays.

`shared` ones are asked of brokers and of controllers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.protocol import messages
from tests.support.rights.data_requests import Ask
from tests.support.rights.users import ADMIN, OWNER
from tests.support.rights.world import GONE, NO_ID, OK, OK_GONE, SECRET, TOPICS, VICTIM, World

m: Any = messages  # the requests are built of parts that have no type of their own here

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
RESOURCES = (
    *((TOPIC, name, "retention.ms", "5000") for name in TOPICS),
    (GROUP, "ok-group", "consumer.session.timeout.ms", "50000"),
    (GROUP, "secret-group", "consumer.session.timeout.ms", "50000"),
    (BROKER, "1", "log.cleaner.threads", "2"),
    (BROKER, "", "log.cleaner.threads", "2"),
    (METRICS, "metrics", "interval.ms", "1000"),
)
LOGGERS = ((LOGGER, "1", "root", "INFO"),)


def of_brokers(world: World) -> Iterator[Ask]:
    """What only a broker is asked.

    Apache Kafka's controllers offer DescribeUserScramCredentials and DescribeDelegationToken, and
    answer both with UNKNOWN_SERVER_ERROR.
    """
    move = m.AlterReplicaLogDirsRequest
    topics = [move.AlterReplicaLogDirTopic(name=n, partitions=[0]) for n in TOPICS]
    directory = move.AlterReplicaLogDir(path="/nowhere", topics=topics)
    yield Ask("AlterReplicaLogDirs", (1, 2), lambda v: move(dirs=[directory]))
    describe = m.DescribeLogDirsRequest
    one = describe.DescribableLogDirTopic(topic=OK, partitions=[0])
    yield Ask("DescribeLogDirs", (1, 3, 5), lambda v: describe(topics=[one]))
    yield Ask("DescribeClientQuotas", (0, 1), lambda v: m.DescribeClientQuotasRequest())
    users = m.DescribeUserScramCredentialsRequest
    yield Ask(
        "DescribeUserScramCredentials", (0,), lambda v: users(users=[users.UserName(name="nobody")])
    )
    yield from _described_tokens(world)
    yield Ask("ListConfigResources", (0,), lambda v: m.ListConfigResourcesRequest())
    yield Ask(
        "ListConfigResources",
        (1,),
        lambda v: m.ListConfigResourcesRequest(resource_types=[METRICS]),
    )


def shared(world: World) -> Iterator[Ask]:
    """What brokers and controllers are asked."""
    for part in (_topics, _configs, _cluster, _acls, _changed_tokens):
        yield from part(world)


def _topics(world: World) -> Iterator[Ask]:
    create = m.CreateTopicsRequest
    new = [
        create.CreatableTopic(name=n, num_partitions=1, replication_factor=1)
        for n in ("ok-new", "secret-new", OK, SECRET)
    ]
    yield Ask(
        "CreateTopics",
        (2, 5, 7),
        lambda v: create(topics=new, timeout_ms=9000, validate_only=True),
    )
    more = m.CreatePartitionsRequest
    counted = [more.CreatePartitionsTopic(name=n, count=2, assignments=None) for n in TOPICS]
    yield Ask(
        "CreatePartitions",
        (0, 3),
        lambda v: more(topics=counted, timeout_ms=9000, validate_only=True),
    )
    elect = m.ElectLeadersRequest
    topics = [elect.TopicPartitions(topic=n, partitions=[0]) for n in (OK, GONE)]
    yield Ask("ElectLeaders", (0, 1, 2), lambda v: elect(topic_partitions=topics, timeout_ms=9000))
    move = m.AlterPartitionReassignmentsRequest
    one = [move.ReassignablePartition(partition_index=0, replicas=None)]
    moved = [move.ReassignableTopic(name=n, partitions=one) for n in (OK, GONE)]
    yield Ask("AlterPartitionReassignments", (0, 1), lambda v: move(topics=moved, timeout_ms=9000))
    yield Ask(
        "ListPartitionReassignments",
        (0,),
        lambda v: m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=9000),
    )


def deletions(world: World) -> Iterator[Ask]:
    """DeleteTopics, and at last of topics that are; `SECRET` is left to who may not."""
    shape = m.DeleteTopicsRequest
    state = shape.DeleteTopicState

    def by_name(version: int, *names: str) -> Any:
        if version <= 5:
            return shape(topic_names=list(names), timeout_ms=9000)
        return shape(topics=[state(name=name) for name in names], timeout_ms=9000)

    yield Ask("DeleteTopics", (1, 5, 6), lambda v: by_name(v, GONE, OK_GONE))
    yield Ask("DeleteTopics by id", (6,), lambda v: shape(
        topics=[state(name=None, topic_id=NO_ID)], timeout_ms=9000
    ))  # fmt: skip
    ids = (world.topic_ids[VICTIM], world.topic_ids[SECRET])
    yield Ask("DeleteTopics that are", (5, 6), lambda v: by_name(v, VICTIM, SECRET))
    yield Ask("DeleteTopics that are, by id", (6,), lambda v: shape(
        topics=[state(name=None, topic_id=each) for each in ids], timeout_ms=9000
    ))  # fmt: skip


def _configs(world: World) -> Iterator[Ask]:
    describe = m.DescribeConfigsRequest
    asked = [
        describe.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=[key]
        )
        for kind, name, key, _ in (*RESOURCES, *LOGGERS)
    ]
    yield Ask("DescribeConfigs", (1, 4), lambda v: describe(resources=asked))
    old = m.AlterConfigsRequest
    for label, resources in (("", RESOURCES), (" of loggers", LOGGERS)):
        changed = [
            old.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[old.AlterableConfig(name=key, value=value)],
            )
            for kind, name, key, value in resources
        ]
        yield Ask(
            "AlterConfigs" + label,
            (0, 2),
            lambda v, changed=changed: old(resources=changed, validate_only=True),
        )
    alter = m.IncrementalAlterConfigsRequest
    both = (*RESOURCES, *LOGGERS)
    for label, resources in (("", RESOURCES), (" of loggers", LOGGERS), (" of both", both)):
        altered = [
            alter.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter.AlterableConfig(name=key, config_operation=0, value=value)],
            )
            for kind, name, key, value in resources
        ]
        yield Ask(
            "IncrementalAlterConfigs" + label,
            (0, 1),
            lambda v, altered=altered: alter(resources=altered, validate_only=True),
        )


def _cluster(world: World) -> Iterator[Ask]:
    quotas = m.AlterClientQuotasRequest
    entry = quotas.EntryData(
        entity=[quotas.EntityData(entity_type="user", entity_name="u")],
        ops=[quotas.OpData(key="producer_byte_rate", value=5.0)],
    )
    yield Ask("AlterClientQuotas", (0, 1), lambda v: quotas(entries=[entry], validate_only=True))
    alter = m.AlterUserScramCredentialsRequest
    gone = alter.ScramCredentialDeletion(name="nobody", mechanism=1)
    yield Ask("AlterUserScramCredentials", (0,), lambda v: alter(deletions=[gone]))
    quorum = m.DescribeQuorumRequest
    partition = [quorum.PartitionData(partition_index=0)]
    topics = [quorum.TopicData(topic_name="__cluster_metadata", partitions=partition)]
    yield Ask("DescribeQuorum", (0, 2), lambda v: quorum(topics=topics))
    update = m.UpdateFeaturesRequest
    feature = update.FeatureUpdateKey(feature="nosuch", max_version_level=1)
    yield Ask("UpdateFeatures", (0, 1, 2), lambda v: update(
        feature_updates=[feature], timeout_ms=9000, **({"validate_only": True} if v else {}),
    ))  # fmt: skip
    yield Ask("UnregisterBroker", (0,), lambda v: m.UnregisterBrokerRequest(broker_id=77))
    yield Ask(
        "UnregisterController", (0,), lambda v: m.UnregisterControllerRequest(controller_id=77)
    )
    add = m.AddRaftVoterRequest
    listener = add.Listener(name="CONTROLLER", host="127.0.0.1", port=9)
    yield Ask("AddRaftVoter", (0, 1), lambda v: add(
        cluster_id="another", voter_id=77, voter_directory_id=NO_ID, listeners=[listener],
        timeout_ms=9000,
    ))  # fmt: skip
    yield Ask("RemoveRaftVoter", (0,), lambda v: m.RemoveRaftVoterRequest(
        cluster_id="another", voter_id=77, voter_directory_id=NO_ID,
    ))  # fmt: skip


def _acls(world: World) -> Iterator[Ask]:
    entry = {"resource_type": 2, "resource_name": "x", "principal": "User:nobody", "host": "*",
             "operation": 3, "permission_type": 3}  # fmt: skip
    create = m.CreateAclsRequest
    one = create.AclCreation(**entry)
    yield Ask("CreateAcls", (1, 3), lambda v: create(creations=[one, one]))
    asked = {"resource_type_filter": 2, "resource_name_filter": "x", "pattern_type_filter": 3,
             "principal_filter": "User:nobody", "host_filter": "*", "operation": 3,
             "permission_type": 3}  # fmt: skip
    yield Ask("DescribeAcls", (1, 3), lambda v: m.DescribeAclsRequest(**asked))
    delete = m.DeleteAclsRequest
    filters = [delete.DeleteAclsFilter(**asked)] * 2
    yield Ask("DeleteAcls", (1, 3), lambda v: delete(filters=filters))


def _described_tokens(world: World) -> Iterator[Ask]:
    describe = m.DescribeDelegationTokenRequest
    owner = describe.DescribeDelegationTokenOwner
    for label, owners in (
        ("", None), (" of the owner", [OWNER]), (" of others", [ADMIN]), (" of nobody", []),
    ):  # fmt: skip
        yield Ask("DescribeDelegationToken" + label, (1, 3), lambda v, o=owners: describe(
            owners=o if o is None else [owner(principal_type="User", principal_name=n) for n in o]
        ))  # fmt: skip


def _changed_tokens(world: World) -> Iterator[Ask]:
    yield Ask("RenewDelegationToken", (1, 2), lambda v: m.RenewDelegationTokenRequest(
        hmac=world.token_hmac, renew_period_ms=1000,
    ))  # fmt: skip
    yield Ask("ExpireDelegationToken", (1, 2), lambda v: m.ExpireDelegationTokenRequest(
        hmac=world.token_hmac, expiry_time_period_ms=100_000,
    ))  # fmt: skip


def made_tokens(world: World) -> Iterator[Ask]:
    """CreateDelegationToken, behind all who list tokens."""
    create = m.CreateDelegationTokenRequest
    for name in (OWNER, "another"):
        yield Ask(f"CreateDelegationToken for {name}", (3,), lambda v, n=name: create(
            owner_principal_type="User", owner_principal_name=n, max_lifetime_ms=60_000,
        ))  # fmt: skip
    yield Ask("CreateDelegationToken", (1, 3), lambda v: create(max_lifetime_ms=60_000))

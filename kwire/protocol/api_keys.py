"""The API keys of Kafka 4.4 and what a listener must know of each. Measured on Apache Kafka 4.4."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "API_KEYS",
    "MUTATION_APIS",
    "NODE_APIS",
    "UNBUILT",
    "VERIFICATION_FROM",
    "ApiInfo",
    "ApiKey",
    "Listener",
    "is_supported",
]

Listener = str
"""`broker` or `controller`: which of a node's listeners answers an API."""


class ApiKey(IntEnum):
    """Every API key, those of removed APIs (4-7) included."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


class ApiInfo(NamedTuple):
    """`min` and `max` are the stable versions; `unstable_max` is None or one version more.

    `flexible_from` is the first version with compact lengths (None: there is none): from it on
    requests have header 2, and responses header 1 except for ApiVersions, which always has 0.
    """

    key: ApiKey
    name: str
    min: int
    max: int
    unstable_max: int | None
    flexible_from: int | None
    listeners: tuple[Listener, ...]
    forwardable: bool
    cluster_action: bool


_BROKER = ("broker",)
_CONTROLLER = ("controller",)
_BOTH = ("broker", "controller")

_TABLE: tuple[
    tuple[str, int, int, int, int | None, int | None, tuple[Listener, ...], bool, bool], ...
] = (
    # name, key, min, max, unstable_max, flexible_from, listeners, forwardable, cluster action
    ("Produce", 0, 3, 13, None, 9, _BROKER, False, False),
    ("Fetch", 1, 4, 18, None, 12, _BOTH, False, False),
    ("ListOffsets", 2, 1, 11, None, 6, _BROKER, False, False),
    ("Metadata", 3, 0, 13, None, 9, _BROKER, False, False),
    ("OffsetCommit", 8, 2, 10, None, 8, _BROKER, False, False),
    ("OffsetFetch", 9, 1, 10, None, 6, _BROKER, False, False),
    ("FindCoordinator", 10, 0, 6, None, 3, _BROKER, False, False),
    ("JoinGroup", 11, 0, 9, None, 6, _BROKER, False, False),
    ("Heartbeat", 12, 0, 4, None, 4, _BROKER, False, False),
    ("LeaveGroup", 13, 0, 5, None, 4, _BROKER, False, False),
    ("SyncGroup", 14, 0, 5, None, 4, _BROKER, False, False),
    ("DescribeGroups", 15, 0, 6, None, 5, _BROKER, False, False),
    ("ListGroups", 16, 0, 5, None, 3, _BROKER, False, False),
    ("SaslHandshake", 17, 0, 1, None, None, _BOTH, False, False),
    ("ApiVersions", 18, 0, 5, None, 3, _BOTH, False, False),
    ("CreateTopics", 19, 2, 7, None, 5, _BOTH, True, False),
    ("DeleteTopics", 20, 1, 6, None, 4, _BOTH, True, False),
    ("DeleteRecords", 21, 0, 2, None, 2, _BROKER, False, False),
    ("InitProducerId", 22, 0, 5, 6, 2, _BROKER, False, False),
    ("OffsetForLeaderEpoch", 23, 2, 4, None, 4, _BROKER, False, False),
    ("AddPartitionsToTxn", 24, 0, 5, None, 3, _BROKER, False, False),
    ("AddOffsetsToTxn", 25, 0, 4, None, 3, _BROKER, False, False),
    ("EndTxn", 26, 0, 5, None, 3, _BROKER, False, False),
    ("WriteTxnMarkers", 27, 1, 2, None, 1, _BROKER, False, True),
    ("TxnOffsetCommit", 28, 0, 6, None, 3, _BROKER, False, False),
    ("DescribeAcls", 29, 1, 3, None, 2, _BOTH, False, False),
    ("CreateAcls", 30, 1, 3, None, 2, _BOTH, True, False),
    ("DeleteAcls", 31, 1, 3, None, 2, _BOTH, True, False),
    ("DescribeConfigs", 32, 1, 4, None, 4, _BOTH, False, False),
    ("AlterConfigs", 33, 0, 2, None, 2, _BOTH, True, False),
    ("AlterReplicaLogDirs", 34, 1, 2, None, 2, _BROKER, False, False),
    ("DescribeLogDirs", 35, 1, 5, None, 2, _BROKER, False, False),
    ("SaslAuthenticate", 36, 0, 2, None, 2, _BOTH, False, False),
    ("CreatePartitions", 37, 0, 3, None, 2, _BOTH, True, False),
    ("CreateDelegationToken", 38, 1, 3, None, 2, _BOTH, True, False),
    ("RenewDelegationToken", 39, 1, 2, None, 2, _BOTH, True, False),
    ("ExpireDelegationToken", 40, 1, 2, None, 2, _BOTH, True, False),
    ("DescribeDelegationToken", 41, 1, 3, None, 2, _BOTH, False, False),
    ("DeleteGroups", 42, 0, 3, None, 2, _BROKER, False, False),
    ("ElectLeaders", 43, 0, 2, None, 2, _BOTH, True, False),
    ("IncrementalAlterConfigs", 44, 0, 1, None, 1, _BOTH, True, False),
    ("AlterPartitionReassignments", 45, 0, 1, None, 0, _BOTH, True, False),
    ("ListPartitionReassignments", 46, 0, 0, None, 0, _BOTH, True, False),
    ("OffsetDelete", 47, 0, 0, None, None, _BROKER, False, False),
    ("DescribeClientQuotas", 48, 0, 1, None, 1, _BROKER, False, False),
    ("AlterClientQuotas", 49, 0, 1, None, 1, _BOTH, True, False),
    ("DescribeUserScramCredentials", 50, 0, 0, None, 0, _BOTH, False, False),
    ("AlterUserScramCredentials", 51, 0, 0, None, 0, _BOTH, True, False),
    ("Vote", 52, 0, 2, None, 0, _CONTROLLER, False, True),
    ("BeginQuorumEpoch", 53, 0, 1, None, 1, _CONTROLLER, False, True),
    ("EndQuorumEpoch", 54, 0, 1, None, 1, _CONTROLLER, False, True),
    ("DescribeQuorum", 55, 0, 2, None, 0, _BOTH, True, True),
    ("AlterPartition", 56, 2, 3, None, 2, _CONTROLLER, False, True),
    ("UpdateFeatures", 57, 0, 2, None, 0, _BOTH, True, True),
    ("Envelope", 58, 0, 0, None, 0, _CONTROLLER, False, True),
    ("FetchSnapshot", 59, 0, 1, None, 0, _CONTROLLER, False, False),
    ("DescribeCluster", 60, 0, 2, None, 0, _BOTH, False, False),
    ("DescribeProducers", 61, 0, 0, None, 0, _BROKER, False, False),
    ("BrokerRegistration", 62, 0, 4, None, 0, _CONTROLLER, False, True),
    ("BrokerHeartbeat", 63, 0, 2, None, 0, _CONTROLLER, False, True),
    ("UnregisterBroker", 64, 0, 0, None, 0, _BOTH, True, False),
    ("DescribeTransactions", 65, 0, 0, None, 0, _BROKER, False, False),
    ("ListTransactions", 66, 0, 2, None, 0, _BROKER, False, False),
    ("AllocateProducerIds", 67, 0, 0, None, 0, _CONTROLLER, True, True),
    ("ConsumerGroupHeartbeat", 68, 0, 1, None, 0, _BROKER, False, False),
    ("ConsumerGroupDescribe", 69, 0, 1, None, 0, _BROKER, False, False),
    ("ControllerRegistration", 70, 0, 0, None, 0, _CONTROLLER, False, False),
    ("GetTelemetrySubscriptions", 71, 0, 0, None, 0, _BROKER, False, False),
    ("PushTelemetry", 72, 0, 0, None, 0, _BROKER, False, False),
    ("AssignReplicasToDirs", 73, 0, 0, None, 0, _CONTROLLER, False, False),
    ("ListConfigResources", 74, 0, 1, None, 0, _BROKER, False, False),
    ("DescribeTopicPartitions", 75, 0, 0, None, 0, _BROKER, False, False),
    ("ShareGroupHeartbeat", 76, 1, 1, None, 1, _BROKER, False, False),
    ("ShareGroupDescribe", 77, 1, 1, None, 1, _BROKER, False, False),
    ("ShareFetch", 78, 1, 2, None, 1, _BROKER, False, False),
    ("ShareAcknowledge", 79, 1, 2, None, 1, _BROKER, False, False),
    ("AddRaftVoter", 80, 0, 1, None, 0, _BOTH, True, False),
    ("RemoveRaftVoter", 81, 0, 0, None, 0, _BOTH, True, False),
    ("UpdateRaftVoter", 82, 0, 0, None, 0, _CONTROLLER, False, False),
    ("InitializeShareGroupState", 83, 0, 0, None, 0, _BROKER, False, True),
    ("ReadShareGroupState", 84, 0, 0, None, 0, _BROKER, False, True),
    ("WriteShareGroupState", 85, 0, 1, None, 0, _BROKER, False, True),
    ("DeleteShareGroupState", 86, 0, 0, None, 0, _BROKER, False, True),
    ("ReadShareGroupStateSummary", 87, 0, 1, None, 0, _BROKER, False, True),
    ("StreamsGroupHeartbeat", 88, 0, 1, None, 0, _BROKER, False, False),
    ("StreamsGroupDescribe", 89, 0, 1, None, 0, _BROKER, False, False),
    ("DescribeShareGroupOffsets", 90, 0, 1, None, 0, _BROKER, False, False),
    ("AlterShareGroupOffsets", 91, 0, 0, None, 0, _BROKER, False, False),
    ("DeleteShareGroupOffsets", 92, 0, 0, None, 0, _BROKER, False, False),
    ("StreamsGroupTopologyDescriptionUpdate", 93, 0, 0, None, 0, _BROKER, False, False),
    ("UnregisterController", 94, 0, 0, None, 0, _BOTH, True, False),
)

API_KEYS: dict[int, ApiInfo] = {row[1]: ApiInfo(ApiKey(row[1]), row[0], *row[2:]) for row in _TABLE}
"""Every API that has versions, in ascending order of its key."""

NODE_APIS: frozenset[int] = frozenset(
    int(info.key) for info in API_KEYS.values() if info.cluster_action
) - {ApiKey.DESCRIBE_QUORUM, ApiKey.UPDATE_FEATURES}
"""What nodes alone ask, of each other. So they do by some Fetches and AddPartitionsToTxn."""

MUTATION_APIS: frozenset[int] = frozenset(
    map(int, (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS))
)
"""What the controller's quota of mutations may make a client wait for."""

VERIFICATION_FROM = 4
"""From this version on brokers alone ask AddPartitionsToTxn."""

UNBUILT: frozenset[int] = frozenset(
    {
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    }
)
"""APIs that kwire does not answer yet: left out of ApiVersions, treated as unknown. Shrinks."""


def is_supported(api_key: int, version: int, listener: Listener, *, unstable: bool = False) -> bool:
    """Whether a request of this key and version may be decoded on this kind of listener."""
    info = API_KEYS.get(api_key)
    if info is None or api_key in UNBUILT or listener not in info.listeners:
        return False
    highest = info.unstable_max if unstable and info.unstable_max is not None else info.max
    return info.min <= version <= highest

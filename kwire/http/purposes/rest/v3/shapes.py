"""The data of the API v3: names and fields as its document has them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from kwire.http.purposes.rest.shapes import INT32_MAX, Group, Partition, Topic

__all__ = ["Group", "Partition", "Topic"]

ClusterId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=64)]
BrokerId: TypeAlias = Annotated[int, Meta(ge=0, le=INT32_MAX)]
ConfigName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
ConfigValue: TypeAlias = Annotated[str, Meta(max_length=65_535)]
CONFIGS_MAX = 1000


class Metadata(Struct, frozen=True):
    """Where a resource is, and what it is called."""

    self: str
    resource_name: str


class ListMetadata(Struct, frozen=True):
    """Where a list is; it has no more pages."""

    self: str
    next: str | None = None


class Related(Struct, frozen=True):
    """A link."""

    related: str


# -- what is asked for


class OfCluster(Struct, frozen=True, forbid_unknown_fields=True):
    """A cluster."""

    cluster_id: ClusterId


class OfBroker(Struct, frozen=True, forbid_unknown_fields=True):
    """A broker."""

    cluster_id: ClusterId
    broker_id: BrokerId


class OfClusterTopic(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic."""

    cluster_id: ClusterId
    topic_name: Topic


class OfPartition(Struct, frozen=True, forbid_unknown_fields=True):
    """A partition."""

    cluster_id: ClusterId
    topic_name: Topic
    partition_id: Partition


class OfReplica(Struct, frozen=True, forbid_unknown_fields=True):
    """A replica."""

    cluster_id: ClusterId
    topic_name: Topic
    partition_id: Partition
    broker_id: BrokerId


class OfConsumerGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """A group."""

    cluster_id: ClusterId
    consumer_group_id: Group


# -- clusters and brokers


class ClusterData(Struct, frozen=True):
    """A cluster."""

    kind: str
    metadata: Metadata
    cluster_id: str
    controller: Related | None
    acls: Related
    brokers: Related
    broker_configs: Related
    consumer_groups: Related
    topics: Related
    partition_reassignments: Related


class ClusterDataList(Struct, frozen=True):
    """Clusters."""

    kind: str
    metadata: ListMetadata
    data: list[ClusterData]


class BrokerData(Struct, frozen=True):
    """A broker."""

    kind: str
    metadata: Metadata
    cluster_id: str
    broker_id: int
    host: str | None
    port: int | None
    rack: str | None
    configs: Related
    partition_replicas: Related


class BrokerDataList(Struct, frozen=True):
    """Brokers."""

    kind: str
    metadata: ListMetadata
    data: list[BrokerData]


# -- topics


class NewConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A config of a topic that is created."""

    name: ConfigName
    value: ConfigValue | None = None


class CreateTopicRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to be created; what is left out is the broker's default."""

    topic_name: Topic
    partitions_count: Annotated[int, Meta(ge=1, le=INT32_MAX)] | None = None
    replication_factor: Annotated[int, Meta(ge=1, le=32_767)] | None = None
    replicas_assignments: (
        Annotated[
            dict[str, Annotated[list[BrokerId], Meta(max_length=1000)]], Meta(max_length=10_000)
        ]
        | None
    ) = None
    configs: Annotated[list[NewConfig], Meta(max_length=CONFIGS_MAX)] | None = None
    validate_only: bool | None = None


class UpdatePartitionCountRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """How many partitions a topic is to have in all."""

    partitions_count: Annotated[int, Meta(ge=1, le=INT32_MAX)]


class TopicData(Struct, frozen=True):
    """A topic."""

    kind: str
    metadata: Metadata
    cluster_id: str
    topic_name: str
    is_internal: bool
    replication_factor: int
    partitions_count: int
    partitions: Related
    configs: Related
    partition_reassignments: Related
    authorized_operations: list[str] = []


class TopicDataList(Struct, frozen=True):
    """Topics."""

    kind: str
    metadata: ListMetadata
    data: list[TopicData]


class PartitionData(Struct, frozen=True):
    """A partition."""

    kind: str
    metadata: Metadata
    cluster_id: str
    topic_name: str
    partition_id: int
    leader: Related | None
    replicas: Related
    reassignment: Related


class PartitionDataList(Struct, frozen=True):
    """Partitions."""

    kind: str
    metadata: ListMetadata
    data: list[PartitionData]


class ReplicaData(Struct, frozen=True):
    """A replica."""

    kind: str
    metadata: Metadata
    cluster_id: str
    topic_name: str
    partition_id: int
    broker_id: int
    is_leader: bool
    is_in_sync: bool
    broker: Related


class ReplicaDataList(Struct, frozen=True):
    """Replicas."""

    kind: str
    metadata: ListMetadata
    data: list[ReplicaData]

"""Metadata, versions 0-13: brokers, topics, partitions and their leaders.

A null topic list (in version 0 an empty one) asks for all topics. A name that does not exist is
created when both the request and auto.create.topics.enable allow it, and answered with
UNKNOWN_TOPIC_OR_PARTITION meanwhile; a name that cannot exist is INVALID_TOPIC_EXCEPTION. From
version 12 a topic may be named by id (UNKNOWN_TOPIC_ID). A partition without a live leader is
LEADER_NOT_AVAILABLE. All topics of a large cluster are described in slices. Source: KIP-4, KIP-430,
KIP-516; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from kwire.api.plain.metadata import PlainMetadata
from kwire.api.shared.topic_names import is_valid
from kwire.kraft.images.cluster import BrokerImage, Endpoint
from kwire.kraft.images.topics import PartitionImage, TopicImage
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import INTERNAL_TOPICS, authorized_operations
from kwire.server.context import RequestContext
from kwire.server.sliced_response import SlicedResponse

VERSIONS = (0, 13)
WAITS_FOR_WRITES = False
DESCRIBE_TOPIC = Requires(
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    "topics[].name",
    denied=Denied.ENTRY,
    note="left out where all topics are asked for",
)
CREATE_CLUSTER = Requires(Operation.CREATE, ResourceType.CLUSTER)
CREATE_TOPIC = Requires(
    Operation.CREATE,
    ResourceType.TOPIC,
    "topics[].name",
    denied=Denied.ENTRY,
    note="topics that are made because they are asked for",
)
DESCRIBE_CLUSTER = Requires(
    Operation.DESCRIBE,
    ResourceType.CLUSTER,
    denied=Denied.LEFT_OUT,
    note="the authorized operations",
)
AUTHORIZATION = (
    DESCRIBE_TOPIC,
    CREATE_TOPIC._replace(instead=(CREATE_CLUSTER,)),
    DESCRIBE_CLUSTER,
)
ALL_FROM_NULL = 1
TOPIC_IDS_FROM = 12
LISTENER_ERRORS_FROM = 6
AT_ONCE_PARTITIONS_MAX = 500
"""All topics are described in one turn of the loop up to this many partitions."""
SLICE_COST = 2_000
TOPIC_COST, PARTITION_COST, KEPT_COST = 5, 6, 1
"""A slice is about 2 ms: what a topic, a partition, and a topic that is encoded already cost."""

AskedTopic: TypeAlias = "m.MetadataRequest.MetadataRequestTopic"
Topic: TypeAlias = "m.MetadataResponse.MetadataResponseTopic"
Partition: TypeAlias = "m.MetadataResponse.MetadataResponsePartition"
Reached = tuple[BrokerImage, Endpoint]
"""A broker, and where this client reaches it."""


def handle(
    context: RequestContext, request: m.MetadataRequest
) -> Answer[m.MetadataResponse] | Pending[SlicedResponse]:
    """See the module."""
    topics = request.topics
    has_ids = any(topic.topic_id != uuids.ZERO for topic in topics or ())
    for topic in topics or ():
        if context.api_version < TOPIC_IDS_FROM:
            if topic.name is None or topic.topic_id != uuids.ZERO:
                return _refused(request, ErrorCode.INVALID_REQUEST)
        elif topic.name is None and not has_ids:
            # Neither name nor id: what Apache Kafka 4.4 answers. Beside an id nothing else counts.
            return _refused(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    response = m.MetadataResponse()
    reader = _MetadataReader(context, request)
    response.brokers = reader.brokers()
    response.cluster_id = context.parts.metadata.cluster_id
    response.controller_id = reader.controller_id()
    wants_all = topics is None or (not topics and context.api_version < ALL_FROM_NULL)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = (
            authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
            if context.allows(DESCRIBE_CLUSTER)
            else 0
        )
    if not wants_all:
        asked = reader.asked_topics()
        if partitions_of(asked) > AT_ONCE_PARTITIONS_MAX:
            return reader.in_slices(response, asked)
        response.topics = reader.described(asked)
    elif reader.partition_count <= AT_ONCE_PARTITIONS_MAX:
        response.topics = reader.all_topics()
    else:
        return reader.all_in_slices(response)
    return response


def error_response(context: RequestContext, error: KafkaError) -> m.MetadataResponse:
    """Version 13 and later carry an error of the whole request."""
    response = m.MetadataResponse()
    response.error_code = int(error.code)
    return response


def denied_response(
    context: RequestContext, request: m.MetadataRequest, error: KafkaError
) -> m.MetadataResponse:
    """A request that is not executed."""
    return _refused(request, error.code)


def _refused(request: m.MetadataRequest, code: ErrorCode) -> m.MetadataResponse:
    """The whole request is at fault: every topic gets the error, no broker is named."""
    response = m.MetadataResponse()
    response.error_code = int(code)
    response.topics = [
        m.MetadataResponse.MetadataResponseTopic(
            error_code=int(code), name=topic.name or "", topic_id=topic.topic_id, partitions=[]
        )
        for topic in request.topics or ()
    ]
    return response


def partitions_of(asked: Sequence[TopicImage | Topic]) -> int:
    """How many partitions the topics have."""
    return sum([len(topic.partitions) for topic in asked])


class _MetadataReader:
    """The image as one client sees it: its listener, its rights."""

    def __init__(self, context: RequestContext, request: m.MetadataRequest) -> None:
        self._context = context
        self._request = request
        self._parts = context.parts
        self._image = context.parts.metadata.image
        listener_name = context.listener_name
        lost_brokers = self._parts.lost_brokers
        self._alive: dict[int, Reached] = {}  # by broker id, ascending
        self._named: list[Reached] = []  # these, and who has just died
        for broker_id in sorted(self._image.brokers):
            broker = self._image.brokers[broker_id]
            endpoint = broker.endpoint(listener_name)
            if endpoint is None:
                continue
            if not broker.fenced:
                self._alive[broker_id] = (broker, endpoint)
            elif not request.topics or not lost_brokers.named(broker_id, context.now_ms):
                continue
            self._named.append((broker, endpoint))

    def brokers(self) -> list[m.MetadataResponse.MetadataResponseBroker]:
        """The brokers that this listener reaches, and for a moment one that has just died."""
        shape = m.MetadataResponse.MetadataResponseBroker
        return [
            shape(
                node_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in self._named
        ]

    def controller_id(self) -> int:
        """Any live broker: each of them forwards to the controller."""
        ids = list(self._alive)
        if not ids:
            return -1
        if self._parts.broker_id in self._alive and len(ids) == 1:
            return ids[0]
        return ids[self._parts.random.below(len(ids))]

    def all_topics(self) -> list[Topic]:
        return [
            self._topic(topic)
            for topic in self._image.topics
            if self._context.sees(DESCRIBE_TOPIC, topic.name)
        ]

    @property
    def partition_count(self) -> int:
        return self._image.topics.partition_count

    def all_in_slices(self, response: m.MetadataResponse) -> Pending[SlicedResponse]:
        """The same, some topics a turn of the loop; each as it is in its turn."""
        sliced = SlicedResponse(response, "topics", self._context.api_version)
        return self._context.slices.run(self._describe_all(sliced), lambda: sliced)

    def _describe_all(self, sliced: SlicedResponse) -> Iterator[None]:
        context, by_id = self._context, self._image.topics.by_id
        wanted = (
            # None where it was deleted since, or may not be seen.
            topic
            if by_id.get(topic.topic_id) is topic and context.sees(DESCRIBE_TOPIC, topic.name)
            else None
            for topic in list(self._image.topics)
        )
        return self._describe(sliced, wanted)

    def _describe(
        self, sliced: SlicedResponse, wanted: Iterable[TopicImage | Topic | None]
    ) -> Iterator[None]:
        context, by_id = self._context, self._image.topics.by_id
        kept = self._parts.described_topics.view(context.listener_name, context.api_version)
        may_keep = not self._request.include_topic_authorized_operations
        cost = 0
        for topic in wanted:
            if cost >= SLICE_COST:
                cost = 0
                yield
            cost += KEPT_COST
            if topic is None:
                continue
            if not isinstance(topic, TopicImage):
                sliced.add([topic])
                continue
            if may_keep and (known := kept.get(topic.topic_id)) is not None:
                sliced.add_encoded(*known)
                continue
            cost += TOPIC_COST + PARTITION_COST * len(topic.partitions)
            described = self._topic(topic)
            if (
                may_keep
                and by_id.get(topic.topic_id) is topic
                and not any(each.error_code for each in described.partitions)
            ):
                known = (sliced.encode([described]), 1 + len(described.partitions))
                kept[topic.topic_id] = known
                sliced.add_encoded(*known)
            else:
                sliced.add([described])

    def in_slices(
        self, response: m.MetadataResponse, asked: Sequence[TopicImage | Topic]
    ) -> Pending[SlicedResponse]:
        """`described`, some topics a turn of the loop; partitions are as they are in its turn."""
        sliced = SlicedResponse(response, "topics", self._context.api_version)
        return self._context.slices.run(self._describe(sliced, asked), lambda: sliced)

    def described(self, asked: Sequence[TopicImage | Topic]) -> list[Topic]:
        """The answers for what `asked_topics` gives."""
        return [self._topic(each) if isinstance(each, TopicImage) else each for each in asked]

    def asked_topics(self) -> list[TopicImage | Topic]:
        """The topics that are asked for, in the order of the answer; answers where there is an
        error."""
        by_id = [t for t in self._request.topics or () if t.topic_id != uuids.ZERO]
        if by_id:
            return self._topics_by_id(by_id)
        found: list[TopicImage | Topic] = []
        missing: list[str] = []
        forbidden: list[Topic] = []
        for name in dict.fromkeys(topic.name for topic in self._request.topics or ()):
            if name is None:
                continue
            if not self._context.allows(DESCRIBE_TOPIC, name):
                forbidden.append(self._error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name))
            elif name in self._image.topics.by_name:
                found.append(self._image.topics.by_name[name])
            else:
                missing.append(name)
        return [*found, *self._missing(missing), *forbidden]

    def _topics_by_id(self, asked: list[AskedTopic]) -> list[TopicImage | Topic]:
        answers: list[TopicImage | Topic] = []
        for topic_id in dict.fromkeys(topic.topic_id for topic in asked):
            topic = self._image.topics.by_id.get(topic_id)
            if topic is None:
                answers.append(self._error(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id))
            elif not self._context.allows(DESCRIBE_TOPIC, topic.name):
                # That it exists is not told: measured on Apache Kafka 4.4.
                answers.append(self._error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id))
            else:
                answers.append(topic)
        return answers

    def _missing(self, names: list[str]) -> list[Topic]:
        config = self._parts.config
        if not (self._request.allow_auto_topic_creation and config["auto.create.topics.enable"]):
            return [
                self._error(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if is_valid(name)
                    else ErrorCode.INVALID_TOPIC_EXCEPTION,
                    name,
                )
                for name in names
            ]
        may_create_all = self._context.sees(CREATE_CLUSTER)
        creatable, answers = [], []
        for name in names:
            if may_create_all or self._context.allows(CREATE_TOPIC, name):
                creatable.append(name)
            else:
                answers.append(self._error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name))
        answered = self._parts.auto_topics.create(creatable, self._context)
        return [self._error(code, name) for name, code in answered.items()] + answers

    def _error(self, code: ErrorCode, name: str | None, topic_id: bytes = uuids.ZERO) -> Topic:
        topic = m.MetadataResponse.MetadataResponseTopic()
        topic.error_code = int(code)
        if name is None:
            topic.name = None if self._context.api_version >= TOPIC_IDS_FROM else ""
        else:
            topic.name = name
            topic.is_internal = name in INTERNAL_TOPICS
            if code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._add_operations(topic)
        topic.topic_id = topic_id
        topic.partitions = []
        return topic

    def _add_operations(self, answer: Topic) -> None:
        if self._request.include_topic_authorized_operations:
            answer.topic_authorized_operations = authorized_operations(
                self._context, ResourceType.TOPIC, answer.name or ""
            )

    def _topic(self, topic: TopicImage) -> Topic:
        answer = m.MetadataResponse.MetadataResponseTopic()
        answer.name = topic.name
        answer.topic_id = topic.topic_id
        answer.is_internal = topic.name in INTERNAL_TOPICS
        answer.partitions = [
            self._partition(index, topic.partitions[index]) for index in sorted(topic.partitions)
        ]
        self._add_operations(answer)
        return answer

    def _partition(
        self, index: int, partition: PartitionImage
    ) -> m.MetadataResponse.MetadataResponsePartition:
        alive = self._alive
        answer = m.MetadataResponse.MetadataResponsePartition()
        answer.partition_index = index
        answer.leader_epoch = partition.leader_epoch
        replicas, isr = list(partition.replicas), list(partition.isr)
        answer.offline_replicas = [r for r in replicas if self._is_offline(r, partition)]
        if self._context.api_version == 0:
            replicas = [replica for replica in replicas if replica in alive]
            isr = [replica for replica in isr if replica in alive]
        answer.replica_nodes, answer.isr_nodes = replicas, isr
        if partition.leader not in alive:
            answer.leader_id = -1
            known = partition.leader in self._image.brokers
            answer.error_code = int(
                ErrorCode.LISTENER_NOT_FOUND
                if known and self._context.api_version >= LISTENER_ERRORS_FROM
                else ErrorCode.LEADER_NOT_AVAILABLE
            )
            return answer
        answer.leader_id = partition.leader
        if len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
            answer.error_code = int(ErrorCode.REPLICA_NOT_AVAILABLE)
        return answer

    def _is_offline(self, replica: int, partition: PartitionImage) -> bool:
        alive = self._alive.get(replica)
        if alive is None:
            return True
        return not alive[0].has_online_directory(partition.directory(replica))


plain_road = partial(PlainMetadata, handle)

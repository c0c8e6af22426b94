"""CreateTopics and DeleteTopics.

Errors, their places and texts as Apache Kafka 4.4 gives them: per topic, all others of the request
go on; `validate_only` answers the same and changes nothing. Order of a topic's records: the topic,
its configs, ClearElr when min.insync.replicas is among them, its partitions. Many topics are
decided in slices; each topic's records are in one.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cache
from typing import TypeAlias

from kwire.kraft.controller import new_partitions
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.placement import place
from kwire.kraft.controller.requests import configs
from kwire.kraft.controller.results import (
    Records,
    Result,
    SlicedWork,
    at_once,
    put_error,
    text_of,
)
from kwire.kraft.controller.state import BROKER, MAX_RECORDS_PER_USER_OPERATION, ControllerState
from kwire.kraft.controller.topic_names import METADATA_TOPIC, check_name
from kwire.kraft.images.topics import PartitionImage
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType

SLICE_RECORDS, SLICE_DELETED = 100, 50
"""A slice is about 3 ms: so many records of new topics, or topics that go."""


def create_topics(
    state: ControllerState, request: m.CreateTopicsRequest, context: ControllerContext, now_ms: int
) -> Result[m.CreateTopicsResponse]:
    """Answer a CreateTopicsRequest (versions 2-7)."""
    return at_once(_creation(state, request, context))


def create_in_slices(
    state: ControllerState,
    request: m.CreateTopicsRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.CreateTopicsResponse] | None:
    """The same of many partitions, topic by topic; None where it is small, or may be too large."""
    count = 0
    for topic in request.topics:
        partitions = len(topic.assignments) or topic.num_partitions
        if partitions == -1:
            partitions = state.config.num_partitions
        count += 1 + max(0, partitions)
        if topic.configs:
            count += len(topic.configs) + 1  # ClearElr
    if not SLICE_RECORDS < count <= MAX_RECORDS_PER_USER_OPERATION:
        return None
    return _creation(state, request, context)


def _creation(
    state: ControllerState, request: m.CreateTopicsRequest, context: ControllerContext
) -> SlicedWork[m.CreateTopicsResponse]:
    names: dict[str, int] = {}
    for topic in request.topics:
        names[topic.name] = names.get(topic.name, 0) + 1
    cluster_allowed = context.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)

    @cache  # an audit log is told once
    def may_create(name: str) -> bool:
        return cluster_allowed or context.authorize(Operation.CREATE, ResourceType.TOPIC, name)

    wanted = [
        topic
        for topic in request.topics
        if names[topic.name] == 1 and topic.name != METADATA_TOPIC and may_create(topic.name)
    ]
    _check_total(wanted, state.config.num_partitions)
    records: Records = []
    results: list[m.CreateTopicsResponse.CreatableTopicResult] = []
    shown: _ShownConfigs = {}
    created: set[str] = set()
    for topic in wanted:
        try:
            results.append(_create_topic(state, topic, context, records, shown, created))
            created.add(topic.name)
        except KafkaError as error:
            result = m.CreateTopicsResponse.CreatableTopicResult(name=topic.name)
            results.append(put_error(result, error))
        if len(records) >= SLICE_RECORDS:
            yield [] if request.validate_only else records
            records = []
    for name, count in names.items():
        refused = _refused(name, count, may_create)
        if refused is not None:
            result = m.CreateTopicsResponse.CreatableTopicResult(name=name)
            results.append(put_error(result, refused))
    yield [] if request.validate_only else records
    return m.CreateTopicsResponse(topics=results)


def _refused(name: str, count: int, may_create: Callable[[str], bool]) -> KafkaError | None:
    if count > 1:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name == METADATA_TOPIC:
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Creation of internal topic {METADATA_TOPIC} is prohibited.",
        )
    if not may_create(name):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    return None


def _check_total(
    topics: list[m.CreateTopicsRequest.CreatableTopic], default_partitions: int
) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += default_partitions
        elif topic.num_partitions > 0:
            total += topic.num_partitions
    if total > MAX_RECORDS_PER_USER_OPERATION:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


_ShownConfigs: TypeAlias = (
    "dict[tuple[tuple[str, str], ...], list[m.CreateTopicsResponse.CreatableTopicConfigs]]"
)
"""Effective configs as answered, by the topic's own: those of one request are mostly the same."""


def _create_topic(
    state: ControllerState,
    topic: m.CreateTopicsRequest.CreatableTopic,
    context: ControllerContext,
    records: Records,
    shown: _ShownConfigs,
    created: Container[str],
) -> m.CreateTopicsResponse.CreatableTopicResult:
    check_name(topic.name)
    if topic.name in state.image.topics.by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    if "." in topic.name or "_" in topic.name:
        # Only topics from before count, as in Kafka: two new ones of a request may collide.
        other = state.index.colliding_topic(topic.name, created)
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{topic.name}' collides with existing topic: {other}",
            )
    values = _creation_configs(topic)
    config_records = configs.records_for_new_topic(state, topic.name, values)
    partitions = _partitions(state, topic)
    context.apply_partition_quota(len(partitions))
    topic_id = _new_topic_id(state)
    result = m.CreateTopicsResponse.CreatableTopicResult(
        name=topic.name, topic_id=topic_id, error_message=None
    )
    if context.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        result.num_partitions = len(partitions)
        result.replication_factor = len(partitions[0].replicas)
        key = tuple(sorted(values.items()))
        if key not in shown:
            shown[key] = _config_entries(state, values)
        result.configs = shown[key]
    else:
        result.topic_config_error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    records.append((m.TopicRecord(name=topic.name, topic_id=topic_id), 0))
    records.extend(config_records)
    for index in sorted(partitions):
        records.append(partitions[index].to_record(topic_id, index, state.gates))
    return result


def _new_topic_id(state: ControllerState) -> bytes:
    while True:
        topic_id = state.random_uuid()
        if topic_id not in state.image.topics.by_id:
            return topic_id


def _creation_configs(topic: m.CreateTopicsRequest.CreatableTopic) -> dict[str, str]:
    values = {config.name: config.value for config in topic.configs if config.value is not None}
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(missing)}",
        )
    return values


def _partitions(
    state: ControllerState, topic: m.CreateTopicsRequest.CreatableTopic
) -> dict[int, PartitionImage]:
    if topic.assignments:
        return _assigned_partitions(state, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    count = state.config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = topic.replication_factor
    if factor == -1:
        factor = state.config.default_replication_factor
    try:
        placed = place(state.usable_brokers(), count, factor, state.random)
    except KafkaError as error:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): {error.message}",
        ) from None
    return {
        index: new_partitions.new_partition(
            state, replicas, new_partitions.placed_isr(state, replicas, factor)
        )
        for index, replicas in enumerate(placed)
    }


def _assigned_partitions(
    state: ControllerState, topic: m.CreateTopicsRequest.CreatableTopic
) -> dict[int, PartitionImage]:
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set "
            "to -1.",
        )
    if topic.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    partitions: dict[int, PartitionImage] = {}
    factor: int | None = None
    for assigned in topic.assignments:
        index, replicas = assigned.partition_index, assigned.broker_ids
        if index in partitions:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        new_partitions.check_manual(state, replicas, factor)
        factor = len(replicas)
        isr = new_partitions.manual_isr(state, replicas, index)
        partitions[index] = new_partitions.new_partition(state, replicas, isr)
    if any(index not in partitions for index in range(len(partitions))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return partitions


def _config_entries(
    state: ControllerState, values: dict[str, str]
) -> list[m.CreateTopicsResponse.CreatableTopicConfigs]:
    image = state.image
    entries = state.config.rules.topic_entries(
        values, image.config(BROKER, str(state.config.node_id)), image.config(BROKER, "")
    )
    return [
        m.CreateTopicsResponse.CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in entries
    ]


_Allowed = Callable[[Operation, str], bool]
"""Whether the caller may do this to the topic of this name."""


class _Deletion:
    """The topics of one DeleteTopicsRequest as they sort into answers and work."""

    def __init__(self) -> None:
        self.responses: list[m.DeleteTopicsResponse.DeletableTopicResult] = []
        self.names: dict[str, int] = {}
        self.ids: dict[bytes, int] = {}
        self.chosen: dict[bytes, str] = {}

    def answer(
        self, name: str | None, topic_id: bytes, code: ErrorCode, message: str | None = None
    ) -> None:
        if message is None and code != ErrorCode.NONE:
            message = text_of(KafkaError(code))
        self.responses.append(
            m.DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=int(code), error_message=message
            )
        )

    def read(self, request: m.DeleteTopicsRequest) -> None:
        """Sort the request's topics; what is malformed or doubled is answered at once."""
        for name in request.topic_names or ():
            self.names[name] = self.names.get(name, 0) + 1
        for topic in request.topics or ():
            if topic.name is None:
                if topic.topic_id == uuids.ZERO:
                    self.answer(
                        None,
                        uuids.ZERO,
                        ErrorCode.INVALID_REQUEST,
                        "Neither topic name nor id were specified.",
                    )
                else:
                    self.ids[topic.topic_id] = self.ids.get(topic.topic_id, 0) + 1
            elif topic.topic_id == uuids.ZERO:
                self.names[topic.name] = self.names.get(topic.name, 0) + 1
            else:
                self.answer(
                    topic.name,
                    topic.topic_id,
                    ErrorCode.INVALID_REQUEST,
                    "You may not specify both topic name and topic id.",
                )
        for name in [name for name, count in self.names.items() if count > 1]:
            del self.names[name]
            self.answer(name, uuids.ZERO, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        for topic_id in [topic_id for topic_id, count in self.ids.items() if count > 1]:
            self.answer(None, topic_id, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")


def delete_topics(
    state: ControllerState, request: m.DeleteTopicsRequest, context: ControllerContext, now_ms: int
) -> Result[m.DeleteTopicsResponse]:
    """Answer a DeleteTopicsRequest (versions 1-6), by name and from 6 also by id."""
    return at_once(_deletion(state, request, context))


def delete_in_slices(
    state: ControllerState,
    request: m.DeleteTopicsRequest,
    context: ControllerContext,
    now_ms: int,
) -> SlicedWork[m.DeleteTopicsResponse] | None:
    """The same of many topics; None where it is small, or may be too large."""
    count = len(request.topic_names or ()) + len(request.topics or ())
    if not SLICE_DELETED < count <= MAX_RECORDS_PER_USER_OPERATION:
        return None
    return _deletion(state, request, context)


def _deletion(
    state: ControllerState, request: m.DeleteTopicsRequest, context: ControllerContext
) -> SlicedWork[m.DeleteTopicsResponse]:
    if not state.config.delete_topic_enable:
        if context.api_version < 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    work = _Deletion()
    work.read(request)
    cluster_allowed = context.may(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)

    def allowed(operation: Operation, name: str) -> bool:
        return cluster_allowed or context.authorize(operation, ResourceType.TOPIC, name)

    for topic_id, count in work.ids.items():
        if count == 1:
            _choose_by_id(state, work, topic_id, allowed)
    for name in work.names:
        _choose_by_name(state, work, name, allowed)
    records: Records = []
    partitions = 0
    for topic_id, name in work.chosen.items():
        topic = state.image.topics.by_id.get(topic_id)
        if topic is None:  # another request has deleted it between two slices
            if name in work.names:
                work.answer(name, uuids.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                work.answer(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        try:
            context.apply_partition_quota(len(topic.partitions))
        except KafkaError as error:
            work.answer(name, topic_id, ErrorCode(error.code), text_of(error))
            continue
        records.append((m.RemoveTopicRecord(topic_id=topic_id), 0))
        work.answer(name, topic_id, ErrorCode.NONE)
        partitions += len(topic.partitions)
        if len(records) >= SLICE_DELETED or partitions >= SLICE_RECORDS:
            yield records
            records, partitions = [], 0
    yield records
    return m.DeleteTopicsResponse(responses=work.responses)


def _choose_by_id(
    state: ControllerState,
    work: _Deletion,
    topic_id: bytes,
    allowed: _Allowed,
) -> None:
    topic = state.image.topics.by_id.get(topic_id)
    if topic is None:
        work.answer(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    elif allowed(Operation.DELETE, topic.name):
        work.chosen[topic_id] = topic.name
    else:
        shown = topic.name if allowed(Operation.DESCRIBE, topic.name) else None
        work.answer(shown, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _choose_by_name(state: ControllerState, work: _Deletion, name: str, allowed: _Allowed) -> None:
    topic = state.image.topics.by_name.get(name)
    if not allowed(Operation.DESCRIBE, name):
        work.answer(name, uuids.ZERO, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif topic is None:
        work.answer(name, uuids.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif not allowed(Operation.DELETE, name):
        work.answer(name, uuids.ZERO, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif topic.topic_id in work.chosen or topic.topic_id in work.ids:
        work.chosen.pop(topic.topic_id, None)
        work.answer(
            name,
            topic.topic_id,
            ErrorCode.INVALID_REQUEST,
            "The provided topic name maps to an ID that was already supplied.",
        )
    else:
        work.chosen[topic.topic_id] = name

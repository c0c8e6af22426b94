"""The five requests about share-partition state, to and from the persister's types.

Every request is about one group and names partitions by topic; results name them the same way. A
topic that is named twice has one entry in a response, and so has a partition: its last result, as
with Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from kwire.protocol import messages as m
from kwire.share.codes import known_code
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    PartitionState,
    PartitionSummary,
    StateBatch,
    WritePartition,
)


class _OfTopic(Protocol):
    """Says of which topic it is."""

    @property
    def topic_id(self) -> bytes: ...


class _OfPartition(_OfTopic, Protocol):
    """Says of which partition of a topic it is."""

    @property
    def partition(self) -> int: ...


P = TypeVar("P", bound=_OfTopic)
Q = TypeVar("Q", bound=_OfPartition)
Entry = TypeVar("Entry")
Topic = TypeVar("Topic")


def _by_topic(
    partitions: Iterable[P],
    entry: Callable[[P], Entry],
    topic: Callable[[bytes, list[Entry]], Topic],
) -> list[Topic]:
    """An entry for each topic, in the order in which they are first named."""
    entries: dict[bytes, list[Entry]] = {}
    for partition in partitions:
        entries.setdefault(partition.topic_id, []).append(entry(partition))
    return [topic(topic_id, listed) for topic_id, listed in entries.items()]


def _results_by_topic(
    results: Iterable[Q],
    entry: Callable[[Q], Entry],
    topic: Callable[[bytes, list[Entry]], Topic],
) -> list[Topic]:
    """`_by_topic`, of the results of one partition the last one."""
    last = {(result.topic_id, result.partition): result for result in results}
    return _by_topic(last.values(), entry, topic)


# --- state batches


class _StateBatchEntry(Protocol):
    """A state batch as a request, a response or a record has it."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def batches_of(entries: Iterable[_StateBatchEntry]) -> list[StateBatch]:
    """The state batches of what was received or read."""
    return [
        StateBatch(x.first_offset, x.last_offset, x.delivery_state, x.delivery_count)
        for x in entries
    ]


def entries_of(batches: Iterable[StateBatch], shape: Callable[..., Entry]) -> list[Entry]:
    """State batches as entries of a class, such as `WriteShareGroupStateRequest.StateBatch`."""
    return [
        shape(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]


# --- results without a state

_PlainResponse: TypeAlias = (
    "m.InitializeShareGroupStateResponse | m.WriteShareGroupStateResponse"
    " | m.DeleteShareGroupStateResponse"
)


def _plain_results(response: _PlainResponse) -> list[PartitionResult]:
    return [
        PartitionResult(
            topic.topic_id, found.partition, known_code(found.error_code), found.error_message
        )
        for topic in response.results
        for found in topic.partitions
    ]


def _plain_entry(shape: Callable[..., Entry]) -> Callable[[PartitionResult], Entry]:
    return lambda result: shape(
        partition=result.partition,
        error_code=result.error_code,
        error_message=result.error_message,
    )


# --- initialize


def initialize_request(
    group_id: str, partitions: Sequence[InitializePartition]
) -> m.InitializeShareGroupStateRequest:
    """An InitializeShareGroupState request."""
    shape = m.InitializeShareGroupStateRequest
    topics = _by_topic(
        partitions,
        lambda asked: shape.PartitionData(
            partition=asked.partition,
            state_epoch=asked.state_epoch,
            start_offset=asked.start_offset,
        ),
        lambda topic_id, listed: shape.InitializeStateData(topic_id=topic_id, partitions=listed),
    )
    return shape(group_id=group_id, topics=topics)


def initialize_asked(request: m.InitializeShareGroupStateRequest) -> list[InitializePartition]:
    """What such a request asks for."""
    return [
        InitializePartition(topic.topic_id, asked.partition, asked.state_epoch, asked.start_offset)
        for topic in request.topics
        for asked in topic.partitions
    ]


def initialize_response(
    results: Iterable[PartitionResult],
) -> m.InitializeShareGroupStateResponse:
    """The response with these results."""
    shape = m.InitializeShareGroupStateResponse
    topics = _results_by_topic(
        results,
        _plain_entry(shape.PartitionResult),
        lambda topic_id, listed: shape.InitializeStateResult(topic_id=topic_id, partitions=listed),
    )
    return shape(results=topics)


def initialize_results(response: m.InitializeShareGroupStateResponse) -> list[PartitionResult]:
    """The results of such a response."""
    return _plain_results(response)


# --- read


def read_request(
    group_id: str, partitions: Sequence[PartitionEpoch]
) -> m.ReadShareGroupStateRequest:
    """A ReadShareGroupState request."""
    shape = m.ReadShareGroupStateRequest
    topics = _by_topic(
        partitions,
        lambda asked: shape.PartitionData(
            partition=asked.partition, leader_epoch=asked.leader_epoch
        ),
        lambda topic_id, listed: shape.ReadStateData(topic_id=topic_id, partitions=listed),
    )
    return shape(group_id=group_id, topics=topics)


def read_asked(request: m.ReadShareGroupStateRequest) -> list[PartitionEpoch]:
    """What such a request asks for."""
    return [
        PartitionEpoch(topic.topic_id, asked.partition, asked.leader_epoch)
        for topic in request.topics
        for asked in topic.partitions
    ]


def read_response(results: Iterable[PartitionState]) -> m.ReadShareGroupStateResponse:
    """The response with these results."""
    shape = m.ReadShareGroupStateResponse
    topics = _results_by_topic(
        results,
        lambda state: shape.PartitionResult(
            partition=state.partition,
            error_code=state.error_code,
            error_message=state.error_message,
            state_epoch=state.state_epoch,
            start_offset=0 if state.error_code else state.start_offset,
            state_batches=entries_of(state.state_batches, shape.StateBatch),
        ),
        lambda topic_id, listed: shape.ReadStateResult(topic_id=topic_id, partitions=listed),
    )
    return shape(results=topics)


def read_results(response: m.ReadShareGroupStateResponse) -> list[PartitionState]:
    """The results of such a response."""
    return [
        PartitionState(
            topic.topic_id,
            found.partition,
            known_code(found.error_code),
            found.error_message,
            found.state_epoch,
            found.start_offset,
            tuple(batches_of(found.state_batches)),
        )
        for topic in response.results
        for found in topic.partitions
    ]


# --- write


def write_request(
    group_id: str, partitions: Sequence[WritePartition]
) -> m.WriteShareGroupStateRequest:
    """A WriteShareGroupState request."""
    shape = m.WriteShareGroupStateRequest
    topics = _by_topic(
        partitions,
        lambda asked: shape.PartitionData(
            partition=asked.partition,
            state_epoch=asked.state_epoch,
            leader_epoch=asked.leader_epoch,
            start_offset=asked.start_offset,
            delivery_complete_count=asked.delivery_complete_count,
            state_batches=entries_of(asked.state_batches, shape.StateBatch),
        ),
        lambda topic_id, listed: shape.WriteStateData(topic_id=topic_id, partitions=listed),
    )
    return shape(group_id=group_id, topics=topics)


def write_asked(request: m.WriteShareGroupStateRequest) -> list[WritePartition]:
    """What such a request asks for."""
    return [
        WritePartition(
            topic.topic_id,
            asked.partition,
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            batches_of(asked.state_batches),
        )
        for topic in request.topics
        for asked in topic.partitions
    ]


def write_response(results: Iterable[PartitionResult]) -> m.WriteShareGroupStateResponse:
    """The response with these results."""
    shape = m.WriteShareGroupStateResponse
    topics = _results_by_topic(
        results,
        _plain_entry(shape.PartitionResult),
        lambda topic_id, listed: shape.WriteStateResult(topic_id=topic_id, partitions=listed),
    )
    return shape(results=topics)


def write_results(response: m.WriteShareGroupStateResponse) -> list[PartitionResult]:
    """The results of such a response."""
    return _plain_results(response)


# --- delete


def delete_request(
    group_id: str, partitions: Sequence[PartitionId]
) -> m.DeleteShareGroupStateRequest:
    """A DeleteShareGroupState request."""
    shape = m.DeleteShareGroupStateRequest
    topics = _by_topic(
        partitions,
        lambda asked: shape.PartitionData(partition=asked.partition),
        lambda topic_id, listed: shape.DeleteStateData(topic_id=topic_id, partitions=listed),
    )
    return shape(group_id=group_id, topics=topics)


def delete_asked(request: m.DeleteShareGroupStateRequest) -> list[PartitionId]:
    """What such a request asks for."""
    return [
        PartitionId(topic.topic_id, asked.partition)
        for topic in request.topics
        for asked in topic.partitions
    ]


def delete_response(results: Iterable[PartitionResult]) -> m.DeleteShareGroupStateResponse:
    """The response with these results."""
    shape = m.DeleteShareGroupStateResponse
    topics = _results_by_topic(
        results,
        _plain_entry(shape.PartitionResult),
        lambda topic_id, listed: shape.DeleteStateResult(topic_id=topic_id, partitions=listed),
    )
    return shape(results=topics)


def delete_results(response: m.DeleteShareGroupStateResponse) -> list[PartitionResult]:
    """The results of such a response."""
    return _plain_results(response)


# --- read summary


def summary_request(
    group_id: str, partitions: Sequence[PartitionEpoch]
) -> m.ReadShareGroupStateSummaryRequest:
    """A ReadShareGroupStateSummary request."""
    shape = m.ReadShareGroupStateSummaryRequest
    topics = _by_topic(
        partitions,
        lambda asked: shape.PartitionData(
            partition=asked.partition, leader_epoch=asked.leader_epoch
        ),
        lambda topic_id, listed: shape.ReadStateSummaryData(topic_id=topic_id, partitions=listed),
    )
    return shape(group_id=group_id, topics=topics)


def summary_asked(request: m.ReadShareGroupStateSummaryRequest) -> list[PartitionEpoch]:
    """What such a request asks for."""
    return [
        PartitionEpoch(topic.topic_id, asked.partition, asked.leader_epoch)
        for topic in request.topics
        for asked in topic.partitions
    ]


def summary_response(
    results: Iterable[PartitionSummary],
) -> m.ReadShareGroupStateSummaryResponse:
    """The response with these results."""
    shape = m.ReadShareGroupStateSummaryResponse
    topics = _results_by_topic(
        results,
        lambda summary: shape.PartitionResult(
            partition=summary.partition,
            error_code=summary.error_code,
            error_message=summary.error_message,
            state_epoch=summary.state_epoch,
            leader_epoch=summary.leader_epoch,
            start_offset=0 if summary.error_code else summary.start_offset,
            delivery_complete_count=summary.delivery_complete_count,
        ),
        lambda topic_id, listed: shape.ReadStateSummaryResult(topic_id=topic_id, partitions=listed),
    )
    return shape(results=topics)


def summary_results(response: m.ReadShareGroupStateSummaryResponse) -> list[PartitionSummary]:
    """The results of such a response."""
    return [
        PartitionSummary(
            topic.topic_id,
            found.partition,
            known_code(found.error_code),
            found.error_message,
            found.state_epoch,
            found.leader_epoch,
            found.start_offset,
            found.delivery_complete_count,
        )
        for topic in response.results
        for found in topic.partitions
    ]

"""DescribeLogDirs, versions 1-5: the log directories with the sizes of their partitions (KIP-113).

A null topic list asks for all partitions. Total and usable bytes of the volume come with version 4
(KIP-827), with version 5 whether the directory gets no new replicas (KIP-1066).
Source: KIP-113, KIP-827, KIP-1066; measured on Apache Kafka 4.4.

While the node is not ready (partitions refuse appends for a shortage, it is fenced) the answer has
a tagged field that Kafka's does not have, and that other clients pass over: `REFUSALS_TAG`, lines
of text `what<TAB>why`, in the words of `/health/ready`. Many logs are described in slices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kwire.log.directories.directory import LogDirectory
from kwire.log.directories.moving import LogMove
from kwire.log.partition.partition_log import PartitionLog
from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext
from kwire.server.parts import Parts
from kwire.server.sliced_response import SlicedResponse, add_topics

VERSIONS = (1, 5)
AUTHORIZATION = (Requires(Operation.DESCRIBE, ResourceType.CLUSTER, checked=Checked.BEFORE),)

Result: TypeAlias = "m.DescribeLogDirsResponse.DescribeLogDirsResult"
Topic: TypeAlias = "m.DescribeLogDirsResponse.DescribeLogDirsTopic"
Wanted = dict[tuple[str, int], None]
Log = tuple[PartitionLog, LogMove | None]
"""A log; a future one with the move that it is the copy of."""

VERSION_WITH_TAGS = 2
REFUSALS_TAG = 10_000
REFUSALS_MAX = 1000
SLICE_LOGS, GROUPED_LOGS = 300, 5_000
"""A slice is about 2 ms: so many logs are described, those of one topic together, or grouped
by topic. Fewer are described at once."""


def handle(
    context: RequestContext, request: m.DescribeLogDirsRequest
) -> Answer[m.DescribeLogDirsResponse] | Pending[SlicedResponse]:
    """See the module."""
    response = m.DescribeLogDirsResponse(results=[])
    wanted: Wanted | None = None
    if request.topics is not None:
        wanted = {
            (topic.topic, index): None for topic in request.topics for index in topic.partitions
        }
    parts = context.parts
    refused = parts.health.reasons()
    if refused and context.api_version >= VERSION_WITH_TAGS:
        lines = [f"{partition}\t{reason}" for partition, reason in refused[:REFUSALS_MAX]]
        response.unknown_tags = [(REFUSALS_TAG, "\n".join(lines).encode())]
    described = [
        (_result(parts, directory), _Found(parts, directory, wanted))
        for directory in parts.logs.directories
    ]
    if sum(len(found.logs) for _, found in described) > SLICE_LOGS:
        sliced = SlicedResponse(response, "results", context.api_version)
        return context.slices.run(_in_slices(described, sliced), lambda: sliced)
    for result, found in described:
        found.group(found.logs)
        result.topics = [found.answer(name) for name in found.names]
        response.results.append(result)
    return response


def _in_slices(described: list[tuple[Result, _Found]], response: SlicedResponse) -> Iterator[None]:
    for result, found in described:
        element = response.begin_element(result, "topics")
        for begin in range(0, len(found.logs), GROUPED_LOGS):
            found.group(found.logs[begin : begin + GROUPED_LOGS])
            yield
        yield from add_topics(map(found.answer, found.names), element.add, SLICE_LOGS)
        element.end()


def _result(parts: Parts, directory: LogDirectory) -> Result:
    """A directory without its topics."""
    result = m.DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=directory.path, topics=[])
    if directory.error is not None:
        result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    else:
        result.total_bytes, result.usable_bytes = _volume(directory.path)
        result.is_cordoned = parts.cordoning.shows(directory.path)
    return result


class _Found:
    """What is wanted of a directory, by topic."""

    __slots__ = ("_by_topic", "logs")

    def __init__(self, parts: Parts, directory: LogDirectory, wanted: Wanted | None) -> None:
        self.logs: list[Log] = []
        self._by_topic: dict[str, list[Log]] = {}
        if directory.error is not None:
            return
        logs = parts.logs
        if wanted is None:
            self.logs = [(log, None) for log in logs.logs_in(directory)]
        else:
            for key in wanted:
                log = logs.get(*key)
                if log is not None and logs.directory_of(*key) is directory:
                    self.logs.append((log, None))
        for key, move in logs.moves.moves.items():
            if move.directory is directory and (wanted is None or key in wanted):
                self.logs.append((move.target, move))

    def group(self, logs: Sequence[Log]) -> None:
        """Group some of them by topic."""
        for each in logs:
            self._by_topic.setdefault(each[0].topic, []).append(each)

    @property
    def names(self) -> list[str]:
        return list(self._by_topic)

    def answer(self, name: str) -> Topic:
        """A topic, as its logs are by then."""
        shape = m.DescribeLogDirsResponse.DescribeLogDirsPartition
        return m.DescribeLogDirsResponse.DescribeLogDirsTopic(
            name=name,
            partitions=[
                shape(
                    partition_index=log.partition,
                    partition_size=log.size_bytes,
                    offset_lag=max(0, log.high_watermark - log.log_end_offset)
                    if move is None
                    else move.lag,
                    is_future_key=move is not None,
                )
                for log, move in self._by_topic[name]
            ],
        )


def _volume(path: str) -> tuple[int, int]:
    """Total and usable bytes of the volume that holds `path`; -1 where that cannot be told."""
    try:
        found = os.statvfs(path)
    except (AttributeError, OSError):
        return -1, -1
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

"""DescribeLogDirs, versions 1-5: the log directories with the sizes of their partitions (KIP-113).

A null topic list asks for all partitions. Total and usable bytes of the volume come with version 4
(KIP-827), with version 5 whether the directory gets no new replicas (KIP-1066).
Source: KIP-113, KIP-827, KIP-1066; measured on Apache Kafka 4.4.

While the node is not ready (partitions refuse appends for a shortage, it is fenced) the answer has
a tagged field that Kafka's does not have, and that other clients pass over: `REFUSALS_TAG`, lines
of text `what<TAB>why`, in the words of `/health/ready`.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 5)
AUTHORIZATION = (Requires(Operation.DESCRIBE, ResourceType.CLUSTER, checked=Checked.BEFORE),)

Topic: TypeAlias = "m.DescribeLogDirsResponse.DescribeLogDirsTopic"

VERSION_WITH_TAGS = 2
REFUSALS_TAG = 10_000
REFUSALS_MAX = 1000


def handle(
    context: RequestContext, request: m.DescribeLogDirsRequest
) -> Answer[m.DescribeLogDirsResponse]:
    """See the module."""
    response = m.DescribeLogDirsResponse()
    response.results = []
    wanted: dict[tuple[str, int], None] | None = None
    if request.topics is not None:
        wanted = {
            (topic.topic, index): None for topic in request.topics for index in topic.partitions
        }
    logs = context.parts.logs
    refused = context.parts.health.reasons()
    if refused and context.api_version >= VERSION_WITH_TAGS:
        lines = [f"{partition}\t{reason}" for partition, reason in refused[:REFUSALS_MAX]]
        response.unknown_tags = [(REFUSALS_TAG, "\n".join(lines).encode())]
    for directory in logs.directories:
        result = m.DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=directory.path, topics=[])
        response.results.append(result)
        if directory.error is not None:
            result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
            continue
        result.total_bytes, result.usable_bytes = _volume(directory.path)
        result.is_cordoned = context.parts.cordoning.shows(directory.path)
        topics: dict[str, Topic] = {}
        for log in logs.logs_in(directory):
            if wanted is not None and (log.topic, log.partition) not in wanted:
                continue
            lag = max(0, log.high_watermark - log.log_end_offset)
            _add(topics, (log.topic, log.partition), log.size_bytes, lag)
        for key, move in logs.moves.moves.items():
            if move.directory is directory and (wanted is None or key in wanted):
                _add(topics, key, move.target.size_bytes, move.lag, is_future=True)
        result.topics = list(topics.values())
    return response


def _add(
    topics: dict[str, Topic],
    key: tuple[str, int],
    size_bytes: int,
    lag: int,
    *,
    is_future: bool = False,
) -> None:
    """Add a partition's log; a future one is the copy of a move that is under way."""
    name, index = key
    topic = topics.get(name)
    if topic is None:
        topic = topics[name] = m.DescribeLogDirsResponse.DescribeLogDirsTopic(
            name=name, partitions=[]
        )
    topic.partitions.append(
        m.DescribeLogDirsResponse.DescribeLogDirsPartition(
            partition_index=index,
            partition_size=size_bytes,
            offset_lag=lag,
            is_future_key=is_future,
        )
    )


def _volume(path: str) -> tuple[int, int]:
    """Total and usable bytes of the volume that holds `path`; -1 where that cannot be told."""
    try:
        found = os.statvfs(path)
    except (AttributeError, OSError):
        return -1, -1
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

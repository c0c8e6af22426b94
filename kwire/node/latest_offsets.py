"""The ends of partitions, wherever they are led: of this broker's own, and by ListOffsets of other
leaders. The lag of share groups is counted from them (KIP-1226)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kwire.kraft.images.metadata_image import MetadataImage
from kwire.pending import Pending, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.replica.partition import Partition

LATEST_TIMESTAMP = -1
CONSUMER = -1

TopicPartition = tuple[str, int]
Found = dict[TopicPartition, int | KafkaError]
ResponseT = TypeVar("ResponseT", bound=Message)


class LatestOffsets:
    """`send(node_id, request)` asks another broker; `partition(topic, index)` finds one here."""

    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        partition: Callable[[str, int], Partition | None],
        send: Callable[[int, Request[m.ListOffsetsResponse]], Pending[m.ListOffsetsResponse]],
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._partition = partition
        self._send = send

    def of(self, partitions: Sequence[TopicPartition]) -> Pending[Found]:
        """The high watermark of each, or why nobody tells it."""
        found: Found = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for key in partitions:
            known = self._image().topics.partition(*key)
            if known is None or known.leader < 0:
                found[key] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
            elif known.leader == self._node_id:
                found[key] = self._local(key)
            else:
                by_leader.setdefault(known.leader, []).append(key)
        asked = list(by_leader.items())
        pendings = [self._send(leader, _request(keys)) for leader, keys in asked]
        outcome: Pending[Found] = Pending()

        def settle(done: Pending[list[Pending[m.ListOffsetsResponse]]]) -> None:
            for (_, keys), pending in zip(asked, done.result()):
                error = pending.error()
                if error is None:
                    found.update(_answers(pending.result()))
                    continue
                code = error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION
                found.update((key, KafkaError(code)) for key in keys)
            outcome.complete(found)

        gather(pendings).add_done_callback(settle)
        return outcome

    def _local(self, key: TopicPartition) -> int | KafkaError:
        partition = self._partition(*key)
        if partition is None:
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            return partition.leader_log().high_watermark
        except KafkaError as error:
            return KafkaError(error.code)


def _request(keys: Iterable[TopicPartition]) -> m.ListOffsetsRequest:
    shape = m.ListOffsetsRequest
    topics: dict[str, list[m.ListOffsetsRequest.ListOffsetsPartition]] = {}
    for topic, index in keys:
        topics.setdefault(topic, []).append(
            shape.ListOffsetsPartition(partition_index=index, timestamp=LATEST_TIMESTAMP)
        )
    return shape(
        replica_id=CONSUMER,
        topics=[
            shape.ListOffsetsTopic(name=topic, partitions=asked) for topic, asked in topics.items()
        ],
    )


def _answers(response: m.ListOffsetsResponse) -> Found:
    return {
        (topic.name, x.partition_index): KafkaError(x.error_code) if x.error_code else x.offset
        for topic in response.topics
        for x in topic.partitions
    }

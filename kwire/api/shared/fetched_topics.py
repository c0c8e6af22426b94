"""What a Fetch tells of partitions, and of their topics where its answer is made in slices.

Neighbours share an entry of their topic. One that goes on in the next slice is encoded piece by
piece.
"""

from __future__ import annotations

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica.reading import ReadResult
from kwire.server.sliced_response import SlicedElement, SlicedResponse

Topic = m.FetchResponse.FetchableTopicResponse
TopicKey = bytes | str
"""The topic's id (version 13 and later) or name."""


def new_topic(key: TopicKey) -> Topic:
    """The entry of a topic, without partitions."""
    topic = Topic()
    if isinstance(key, bytes):
        topic.topic_id = key
    else:
        topic.topic = key
    topic.partitions = []
    return topic


def answer_of(index: int, result: ReadResult) -> m.FetchResponse.PartitionData:
    """The entry of a partition."""
    answer = m.FetchResponse.PartitionData()
    answer.partition_index = index
    answer.high_watermark = result.high_watermark
    answer.last_stable_offset = result.last_stable_offset
    answer.log_start_offset = result.log_start_offset
    answer.records = result.buffers or b""
    if result.aborted is None:
        answer.aborted_transactions = None
    else:
        transaction = m.FetchResponse.AbortedTransaction
        answer.aborted_transactions = [
            transaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in result.aborted
        ]
    if result.error_code:
        answer.error_code = int(result.error_code)
    if result.preferred_replica >= 0:
        answer.preferred_read_replica = result.preferred_replica
    if result.diverging_epoch is not None:
        epoch, end_offset = result.diverging_epoch
        answer.diverging_epoch = m.FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return answer


def downgrade(answer: m.FetchResponse.PartitionData) -> None:
    """Versions before 6 do not know KAFKA_STORAGE_ERROR."""
    if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        answer.error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class FetchedTopics:
    """Fills `response` with partitions, which come in the order of the answer. `end_slice` before
    a turn ends, `end` behind the last."""

    def __init__(self, response: SlicedResponse) -> None:
        self.response = response
        self._whole: list[Topic] = []
        self._key: TopicKey | None = None
        self._topic: Topic | None = None
        self._element: SlicedElement | None = None  # of that topic, where a part is encoded

    def add(self, key: TopicKey, answer: m.FetchResponse.PartitionData) -> None:
        """The next partition."""
        topic = self._topic
        if topic is None or key != self._key:
            self._end_topic()
            self._key = key
            self._topic = topic = new_topic(key)
        topic.partitions.append(answer)

    def end_slice(self) -> None:
        """Encode what there is. EncodeError."""
        self._add_whole()
        topic = self._topic
        if topic is not None:
            if self._element is None:
                self._element = self.response.begin_element(
                    new_topic(self._key or ""), "partitions"
                )
            self._element.add(topic.partitions)
            topic.partitions = []

    def end(self) -> None:
        """There are no more. EncodeError."""
        self._end_topic()
        self._topic = None
        self._add_whole()

    def _end_topic(self) -> None:
        topic, element = self._topic, self._element
        if element is not None and topic is not None:
            element.add(topic.partitions)
            element.end()
            self._element = None
        elif topic is not None:
            self._whole.append(topic)

    def _add_whole(self) -> None:
        if self._whole:
            self.response.add(self._whole)
            self._whole = []

"""Where the batch lies in a usual Produce, and the answer to one.

What is usual: one topic, one partition, no transaction, no tagged fields, every length written as
clients write it. Such requests of one client for one topic begin with the same bytes, up to the
partition's index (`ProduceHead`):

| all up to the index  | API key and version, correlation id, client id, acks, timeout, topic |
| int32                | partition's index                                                    |
| int32, uvarint       | size of the batch; from version 9 on size + 1 as an unsigned varint  |
| size                 | the batch                                                            |
| three bytes of 0     | from version 9 on: no tagged fields                                  |
"""

from __future__ import annotations

from struct import Struct
from typing import TypeAlias

from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import encode_request, encode_response, parse_request_header
from kwire.protocol.request_frames import SAID_START

FLEXIBLE_FROM = 9
LOG_START_FROM = 5
TOPIC_IDS_FROM = 13
BATCH_BYTES_MAX = 0x3FFE
"""What two bytes of a varint count."""
HEAD_BYTES_MAX = 1024
"""From the client id on; a topic's name has 249 at most."""
NO_TAGS = b"\0\0\0"
BODY_BYTES_MAX = SAID_START + HEAD_BYTES_MAX + 8 + BATCH_BYTES_MAX + len(NO_TAGS)

_PLACE = Struct(">ii")
_FLEXIBLE_PLACE = Struct(">iBB")
_RESULT = Struct(">ihqq")
_RESULT_WITH_START = Struct(">ihqqq")


BatchPlace: TypeAlias = tuple[int, int, int]
"""The partition's index, and where its batch begins and ends in the request."""


class ProduceHead:
    """What a client says in front of the partition, `size_bytes` from the request's start.

    `topic` is the name, empty where the topic is named by its id.
    """

    __slots__ = (
        "_before",
        "_behind",
        "_has_start",
        "_is_flexible",
        "_middle",
        "acks",
        "client_id",
        "size_bytes",
        "timeout_ms",
        "topic",
        "topic_id",
        "version",
    )

    def __init__(
        self, request: m.ProduceRequest, version: int, client_id: str | None, size_bytes: int
    ) -> None:
        (topic,) = request.topic_data
        self.version = version
        self.client_id = client_id
        self.size_bytes = size_bytes
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.topic = topic.name
        self.topic_id = topic.topic_id
        self._is_flexible = version >= FLEXIBLE_FROM
        self._has_start = version >= LOG_START_FROM
        self._before, self._middle, self._behind = _answer(self.topic, self.topic_id, version)

    def batch_place(self, body: memoryview) -> BatchPlace | None:
        """Where the batch of a request lies that begins with this head; None for one that is not
        usual behind it. struct.error for one that ends before."""
        at = self.size_bytes
        if not self._is_flexible:
            index, size_bytes = _PLACE.unpack_from(body, at)
            start = at + 8
            if size_bytes <= 0 or start + size_bytes != len(body):
                return None
            return index, start, start + size_bytes
        index, low, high = _FLEXIBLE_PLACE.unpack_from(body, at)
        if low < 0x80:
            start = at + 5
            end = start + low - 1
        elif 0 < high < 0x80:
            start = at + 6
            end = start + (low & 0x7F | high << 7) - 1
        else:
            return None
        if end <= start or end + 3 != len(body) or body[end:] != NO_TAGS:
            return None
        return index, start, end

    def answer(
        self, correlation_id: bytes, index: int, base_offset: int, log_start_offset: int
    ) -> bytes:
        """The frame that says that the batch is appended at `base_offset`."""
        if self._has_start:
            result = _RESULT_WITH_START.pack(index, 0, base_offset, -1, log_start_offset)
        else:
            result = _RESULT.pack(index, 0, base_offset, -1)
        return b"".join((self._before, correlation_id, self._middle, result, self._behind))

    def response(self, index: int, base_offset: int, log_start_offset: int) -> m.ProduceResponse:
        """The same as a response, for who has something to add."""
        return _response(self.topic, self.topic_id, index, base_offset, log_start_offset)


def head_of(body: memoryview) -> ProduceHead | None:
    """The head of a usual request; None for any other.

    Sizes are asked first: what is large costs nothing here in front of the general way.
    """
    if len(body) > BODY_BYTES_MAX:
        return None
    try:
        key, version, correlation_id, client_id, position = parse_request_header(body)
        request, _ = m.ProduceRequest.decode_from(body, position, version)
    except MalformedError:
        return None
    if request.transactional_id is not None or len(request.topic_data) != 1:
        return None
    (topic,) = request.topic_data
    if len(topic.partition_data) != 1:
        return None
    (data,) = topic.partition_data
    records = data.records
    if not isinstance(records, memoryview) or not 0 < len(records) <= BATCH_BYTES_MAX:
        return None
    if request._tagged or topic._tagged or data._tagged:
        return None
    tail, size_field = 0, 4
    if version >= FLEXIBLE_FROM:
        tail, size_field = len(NO_TAGS), 1 if len(records) < 0x7F else 2
    size_bytes = len(body) - tail - len(records) - size_field - 4
    if size_bytes > SAID_START + HEAD_BYTES_MAX:
        return None
    plain = b"".join(encode_request(key, version, correlation_id, client_id, request))
    # As bytes: a memoryview is compared item by item.
    if plain[4:] != body.tobytes():
        return None  # longer varints than needed, or something in its header
    return ProduceHead(request, version, client_id, size_bytes)


def _response(
    topic: str, topic_id: bytes, index: int, base_offset: int, log_start_offset: int
) -> m.ProduceResponse:
    shape = m.ProduceResponse
    result = shape.PartitionProduceResponse(
        index=index, base_offset=base_offset, log_start_offset=log_start_offset
    )
    return shape(
        responses=[
            shape.TopicProduceResponse(name=topic, topic_id=topic_id, partition_responses=[result])
        ]
    )


def _answer(topic: str, topic_id: bytes, version: int) -> tuple[bytes, bytes, bytes]:
    """What is in front of an answer's correlation id, of the partition's result, and behind it."""
    index, base_offset, start = 0x7E5A5AA5, 0x5AA55AA55AA55AA5, 0x2BD44DB22BD44DB2
    response = _response(topic, topic_id, index, base_offset, start)
    frame = b"".join(encode_response(response.API_KEY, version, 0, response))
    if version >= LOG_START_FROM:
        result = _RESULT_WITH_START.pack(index, 0, base_offset, -1, start)
    else:
        result = _RESULT.pack(index, 0, base_offset, -1)
    middle, behind = frame[8:].split(result)
    return frame[:4], middle, behind

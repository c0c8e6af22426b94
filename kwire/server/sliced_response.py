"""A response with a long array, whose elements are encoded as they are made.

Encoding takes as long as making them: neither may be done of 10,000 in one turn of the loop.
Whoever looks into such a response (faults, traces) decodes it; its error codes are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Protocol, TypeAlias, TypeVar

from kwire.protocol import messages as m
from kwire.protocol.structs import Parts, Struct
from kwire.server.response import error_counts

LongResponse: TypeAlias = (
    m.ConsumerGroupDescribeResponse
    | m.CreateTopicsResponse
    | m.MetadataResponse
    | m.DescribeConfigsResponse
    | m.DescribeGroupsResponse
    | m.DescribeLogDirsResponse
    | m.FetchResponse
    | m.ListOffsetsResponse
    | m.OffsetFetchResponse
    | m.OffsetForLeaderEpochResponse
)
"""The responses that are made in slices."""

JOINED_BYTES_MAX = 1 << 20
"""A larger response leaves in the pieces in which it was encoded: they may have records."""

PIECE_BYTES_MIN = 64 * 1024
"""Records of at least so much are a piece of their own. The others are joined with what is around
them, or the answer would have two pieces for each partition."""


class Topic(Protocol):
    """What an answer tells of a topic by its partitions."""

    @property
    def partitions(self) -> Sized: ...


T = TypeVar("T", bound=Topic)


def add_topics(
    topics: Iterable[T], add: Callable[[list[T]], None], slice_partitions: int
) -> Iterator[None]:
    """`add` topics, each made when it is taken; a slice ends with that many partitions, those of
    one topic together."""
    count = 0
    for topic in topics:
        if count >= slice_partitions:
            count = 0
            yield
        add([topic])
        count += len(topic.partitions)


class SlicedResponse:
    """A response at one version: `message` is all of it but the elements of `array`.

    `errors` counts the error codes of the elements, by code.
    """

    __slots__ = ("_count", "_encoded", "array", "errors", "message", "version")

    def __init__(self, message: LongResponse, array: str, version: int) -> None:
        self.message = message
        self.array = array
        self.version = version
        self.errors: Counter[int] = Counter()
        self._count = 0
        self._encoded: Parts = []

    def encode(self, elements: Sequence[Struct]) -> bytes:
        """Elements as `add_encoded` takes them."""
        return self.message.encode_elements(self.array, elements, self.version)

    def add(self, elements: Sequence[Struct]) -> None:
        """The next elements; EncodeError."""
        message, version = self.message, self.version
        self._encoded += _pieces(message.encode_element_parts(self.array, elements, version))
        self._count += len(elements)
        for element in elements:
            self.errors.update(error_counts(element))

    def add_encoded(self, element: bytes, fine: int) -> None:
        """The next element; its error codes are `fine` times 0."""
        self._encoded.append(element)
        self._count += 1
        self.errors[0] += fine

    def add_pieces(self, element: Parts) -> None:
        """The next element, encoded; its error codes are counted already."""
        self._encoded += element
        self._count += 1

    def begin_element(self, element: Struct, array: str) -> SlicedElement:
        """The next element, which has a long array of its own."""
        return SlicedElement(self, element, array)

    @property
    def throttle_time_ms(self) -> int:
        """How long its client has to wait."""
        return self.message.throttle_time_ms

    @throttle_time_ms.setter
    def throttle_time_ms(self, wait_ms: int) -> None:
        self.message.throttle_time_ms = wait_ms

    def encode_parts(self, version: int) -> Parts:
        """As `Message.encode_parts`, at the version that its elements have."""
        assert version == self.version
        encoded, message = self._encoded, self.message
        if sum(map(len, encoded)) > JOINED_BYTES_MAX:
            return message.encode_parts_around(self.array, self._count, encoded, version)
        return [message.encode_around(self.array, (self._count, b"".join(encoded)), version)]

    def encode_answer(self, version: int, parts: Parts) -> bool:
        """As `Message.encode_answer`: its codes are counted apart."""
        parts += self.encode_parts(version)
        return True

    def decoded(self) -> LongResponse:
        """All of it as a message."""
        encoded = b"".join(self.encode_parts(self.version))
        decoded, _ = type(self.message).decode_from(encoded, 0, self.version)
        return decoded


class SlicedElement:
    """An element of the array of a `SlicedResponse`: `element` is all of it but those of `array`.
    It is in the response once it is ended."""

    __slots__ = ("_array", "_count", "_encoded", "_response", "element")

    def __init__(self, response: SlicedResponse, element: Struct, array: str) -> None:
        self.element = element
        self._response = response
        self._array = f"{response.array}.{array}"
        self._count = 0
        self._encoded: Parts = []

    def add(self, elements: Sequence[Struct]) -> None:
        """The next elements of its array; EncodeError."""
        response = self._response
        message, version = response.message, response.version
        self._encoded += _pieces(message.encode_element_parts(self._array, elements, version))
        self._count += len(elements)
        for element in elements:
            response.errors.update(error_counts(element))

    def end(self) -> None:
        """There are no more; the array of `element` itself is empty. EncodeError."""
        response = self._response
        message, version = response.message, response.version
        encoded = message.encode_element_parts_around(
            self._array, self.element, self._count, self._encoded, version
        )
        response.errors.update(error_counts(self.element))
        response.add_pieces(encoded)


def _pieces(parts: Parts) -> Parts:
    """The same bytes in fewer pieces: of what is short, many are joined."""
    if len(parts) == 1:
        return parts
    pieces: Parts = []
    begin = 0
    for at, part in enumerate(parts):
        if len(part) >= PIECE_BYTES_MIN:
            if begin < at:
                pieces.append(b"".join(parts[begin:at]))
            pieces.append(part)
            begin = at + 1
    if begin < len(parts):
        pieces.append(b"".join(parts[begin:]))
    return pieces

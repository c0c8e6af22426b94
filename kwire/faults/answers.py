"""Error answers of any API: of the response's class, with an entry for each that was asked for.

What an entry has beside its code are the values that Apache Kafka 4.4 puts there: -1 for offsets,
epochs and ids that are not known, and empty lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kwire.faults.asked import (
    PARTITION_FIELDS,
    TOPIC_FIELDS,
    Entry,
    NameOf,
    partition_of,
    topic_of,
)
from kwire.faults.places import ERROR_FIELDS, Place
from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Message, Struct

Chosen: TypeAlias = Callable[[Entry], bool]
"""Whether an entry of a request is meant."""
StartOf: TypeAlias = Callable[[Entry], int]
"""The first offset of a partition's log; -1 where it is not known."""

_UNKNOWN = (
    *("base_offset", "committed_offset", "committed_leader_epoch", "end_offset", "offset"),
    *("high_watermark", "last_stable_offset", "log_start_offset", "low_watermark"),
    *("leader_epoch", "timestamp", "node_id", "port", "generation_id"),
    *("producer_id", "producer_epoch", "expiry_timestamp_ms"),
)
UNKNOWN = dict.fromkeys(_UNKNOWN, -1)
"""What is not known in an answer that has an error."""
SAME = frozenset(
    (
        *TOPIC_FIELDS,
        *PARTITION_FIELDS,
        *("topic_id", "group_id", "transactional_id", "member_id", "group_instance_id"),
        *("producer_id", "resource_type", "resource_name", "user", "feature", "key", "entity"),
    )
)
"""By these an entry of a response is that of the request."""
SCALARS = ("group_id", "transactional_id", "key", *TOPIC_FIELDS)
"""What an entry is that has no fields: the first of these that the answer has."""
BEFORE_READING = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
)
"""Errors of a Fetch that are found before the log is read: no transaction was aborted, where that
is unknown with all others."""
NO_PROTOCOL_FROM = 7
"""From this version on a JoinGroup response has no protocol where there is an error."""
FOUND_BY_LOG = frozenset(
    (
        *(ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_SERVER_ERROR),
        *(ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD),
        *(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        *(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER),
        *(ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH),
    )
)
"""Errors of a Produce beside which the start of the log is told."""
EMPTY_LISTS = ("aborted_transactions",)
EMPTY_BYTES = ("records",)


def error_response(
    place: Place, request: Struct, version: int, code: ErrorCode, chosen: Chosen, name_of: NameOf
) -> Message:
    """The response with `code` for all chosen entries, and nothing else."""
    response: Message = m.response_class(place.api_key)()
    if not place.answered:
        _set_error(response, code)
        if isinstance(response, m.JoinGroupResponse) and version >= NO_PROTOCOL_FROM:
            response.protocol_name = None
        return response
    builder = _Builder(response, code, chosen, name_of)
    builder.fill(request, response, response.SCHEMA.root, place.asked, place.answered, None)
    return response


class _Builder:
    """Goes down the lists of request and response side by side."""

    def __init__(self, response: Message, code: ErrorCode, chosen: Chosen, name_of: NameOf) -> None:
        self._structs = response.STRUCTS
        self._code = code
        self._chosen = chosen
        self._name_of = name_of

    def fill(
        self,
        request: Struct,
        answer: Struct,
        shape: schema.Struct,
        asked: tuple[str, ...],
        answered: tuple[str, ...],
        topic: str | None,
    ) -> None:
        """Answer each entry of `request` at `asked` in `answer` at `answered`."""
        if len(asked) > len(answered):  # a list of the request without its like in the response
            for item in getattr(request, asked[0]) or ():
                self.fill(item, answer, shape, asked[1:], answered, topic)
            return
        field = next(one for one in shape.fields if one.name == answered[0])
        assert field.struct is not None
        made = list(getattr(answer, answered[0]) or ())
        for item in getattr(request, asked[0]) or ():
            entry = self._structs[field.struct.name]()
            _identify(entry, item)
            name = topic if isinstance(item, int) else self._topic(item, topic)
            if len(answered) > 1:
                self.fill(item, entry, field.struct, asked[1:], answered[1:], name)
                if getattr(entry, answered[1]):
                    made.append(entry)
            elif self._chosen(Entry(name, partition_of(item) if len(asked) else None)):
                _set_error(entry, self._code)
                made.append(entry)
        setattr(answer, answered[0], made)

    def _topic(self, item: Struct | str, topic: str | None) -> str | None:
        if isinstance(item, str):
            return item
        return topic_of(item, self._name_of) or topic


def _identify(entry: Struct, item: Struct | int | str) -> None:
    """Name in the answer what the request has named."""
    if isinstance(item, Struct):
        for field in entry.FIELDS:
            if field in SAME and hasattr(item, field):
                setattr(entry, field, getattr(item, field))
        _alias(entry, item, PARTITION_FIELDS)
        _alias(entry, item, TOPIC_FIELDS)
        return
    wanted = PARTITION_FIELDS if isinstance(item, int) else SCALARS
    for field in wanted:
        if field in entry.FIELDS:
            setattr(entry, field, item)
            return


def _alias(entry: Struct, item: Struct, names: tuple[str, ...]) -> None:
    """Where both name the same thing by other words."""
    theirs = [name for name in names if name in item.FIELDS]
    ours = [name for name in names if name in entry.FIELDS]
    if theirs and ours:
        setattr(entry, ours[0], getattr(item, theirs[0]))


def _set_error(entry: Struct, code: ErrorCode) -> None:
    for field in entry.FIELDS:
        if field in ERROR_FIELDS:
            setattr(entry, field, int(code))
        elif field in UNKNOWN and "transaction_state" not in entry.FIELDS:
            setattr(entry, field, UNKNOWN[field])
        elif field in EMPTY_LISTS:
            setattr(entry, field, [] if code in BEFORE_READING else None)
        elif field in EMPTY_BYTES:
            setattr(entry, field, b"")


def tell_log_starts(response: Message, start_of: StartOf, name_of: NameOf) -> None:
    """A Produce that its log refuses is told where the log starts."""
    if not isinstance(response, m.ProduceResponse):
        return
    for topic in response.responses:
        name = topic_of(topic, name_of)
        for partition in topic.partition_responses:
            if partition.error_code in FOUND_BY_LOG:
                partition.log_start_offset = start_of(Entry(name, partition.index))


def has_entries(request: Struct, path: tuple[str, ...]) -> bool:
    """Whether a request names anything at a path of lists."""
    items = getattr(request, path[0]) or ()
    return any(len(path) == 1 or has_entries(item, path[1:]) for item in items)


# -- a request of which only a part fails


def without(place: Place, request: Message, chosen: Chosen, name_of: NameOf) -> Message | None:
    """The request without the chosen entries; None when nothing is left of it."""
    if not place.asked:
        return None
    left, found = _without(request, place.asked, chosen, name_of, None)
    return left if found and isinstance(left, Message) else None


def _without(
    struct: Struct,
    path: tuple[str, ...],
    chosen: Chosen,
    name_of: NameOf,
    topic: str | None,
) -> tuple[Struct, bool]:
    """A copy without them, and whether it has any entry."""
    kept: list[Struct | int | str] = []
    for item in getattr(struct, path[0]) or ():
        name = topic
        if isinstance(item, str):
            name = item
        elif isinstance(item, Struct):
            name = topic_of(item, name_of) or topic
        if len(path) > 1:
            inner, found = _without(item, path[1:], chosen, name_of, name)
            if found:
                kept.append(inner)
        elif not chosen(Entry(name, partition_of(item) if not isinstance(item, str) else None)):
            kept.append(item)
    return struct.copy(**{path[0]: kept}), bool(kept)


def merge(place: Place, response: Struct, refused: Struct, *, after: bool = False) -> None:
    """Put the entries of `refused` into `response`, in the place of those that are there. `after`:
    what was asked for has been done, and a Produce tells the offsets beside its error."""
    if after and isinstance(response, m.ProduceResponse):
        _merge_codes(response, refused)
        return
    if not place.answered:
        for field in ERROR_FIELDS:
            if hasattr(refused, field):
                setattr(response, field, getattr(refused, field))
        return
    _merge(response, refused, place.answered)


def _merge_codes(response: m.ProduceResponse, refused: Struct) -> None:
    assert isinstance(refused, m.ProduceResponse), refused
    there = {
        (topic.name, topic.topic_id, one.index): one
        for topic in response.responses
        for one in topic.partition_responses
    }
    for topic in refused.responses:
        for one in topic.partition_responses:
            done = there.get((topic.name, topic.topic_id, one.index))
            if done is not None and not done.error_code:
                done.error_code = one.error_code


def _merge(into: Struct, refused: Struct, path: tuple[str, ...]) -> None:
    there = list(getattr(into, path[0]) or ())
    for entry in getattr(refused, path[0]):
        at = next((at for at, one in enumerate(there) if _is_same(one, entry)), None)
        if at is None:
            there.append(entry)
        elif len(path) > 1:
            _merge(there[at], entry, path[1:])
        else:
            there[at] = entry
    setattr(into, path[0], there)


def _is_same(one: Struct, other: Struct) -> bool:
    return all(
        getattr(one, field) == getattr(other, field) for field in one.FIELDS if field in SAME
    )

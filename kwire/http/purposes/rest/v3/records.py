"""Records, as one JSON object after the other, each with a report of its own.

A body is any number of records: objects behind each other, with white space between them or none.
The answer has a report for each, in their order, one a line: `error_code` is 200 for a record that
is kept, whatever becomes of the others. Records of a request go out together, those of a partition
in their order.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct, field

from kwire.client.errors import ClientError
from kwire.client.shared_producer import Sent
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.publishing import ACKS, Publishing
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Documents, Reply, Route
from kwire.http.purposes.rest.shapes import Base64
from kwire.http.purposes.rest.v3.failures import as_v3, failure_of
from kwire.http.purposes.rest.v3.links import links_of
from kwire.http.purposes.rest.v3.shapes import OfClusterTopic, Partition
from kwire.json_numbers import refused
from kwire.protocol.records import Record
from kwire.protocol.records.partitioner import partition_of

TAG = "v3: records"
RECORDS_MAX = 10_000
HEADERS_MAX = 256
UNPROCESSABLE = 422
EPOCH = datetime.fromtimestamp(0, UTC)
WITH_SCHEMA = ("AVRO", "JSONSCHEMA", "PROTOBUF")
Type: TypeAlias = Literal["BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"]


class ProduceRequestHeader(Struct, frozen=True, forbid_unknown_fields=True):
    """A header; its value is base64."""

    name: str
    value: Base64 | None = None


def _null() -> Raw:
    return Raw(b"null")


class ProduceRequestData(Struct, frozen=True, forbid_unknown_fields=True):
    """A key or a value: `data` is base64 of BINARY, text of STRING, anything of JSON."""

    type: Type | None = None
    data: Raw = field(default_factory=_null)
    subject: str | None = None
    subject_name_strategy: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    schema: str | None = None


class ProduceRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A record."""

    partition_id: Partition | None = None
    headers: Annotated[list[ProduceRequestHeader], Meta(max_length=HEADERS_MAX)] | None = None
    key: ProduceRequestData | None = None
    value: ProduceRequestData | None = None
    timestamp: Annotated[datetime, Meta(tz=True)] | None = None


class ProduceResponseData(Struct, frozen=True):
    """A key or a value that is kept."""

    size: int
    type: str | None


class ProduceResponse(Struct, frozen=True, omit_defaults=True):
    """What became of a record: `message` is why where `error_code` is not 200."""

    error_code: int
    message: str = ""
    cluster_id: str = ""
    topic_name: str = ""
    partition_id: int | None = None
    offset: int | None = None
    timestamp: datetime | None = None
    key: ProduceResponseData | None = None
    value: ProduceResponseData | None = None


_DECODER = msgspec.json.Decoder(ProduceRequest)
_TEXT = msgspec.json.Decoder(str)
_BYTES = msgspec.json.Decoder(Base64)


class _Wrong(Exception):
    """A record is not as it should be."""


class _NoPartition(_Wrong):
    """The topic is not known to have the partition that a record names."""

    def __init__(self, index: int, partitions: int) -> None:
        super().__init__(f"partition_id: expected less than {partitions}, got {index}")
        self.index = index


def documents(raw: bytes) -> list[str]:
    """The JSON documents that stand behind each other; Problem where they are none."""
    decoder = json.JSONDecoder(parse_constant=refused)
    found: list[str] = []
    try:
        text = raw.decode()
        at, end = 0, len(text)
        while True:
            while at < end and text[at] in " \t\r\n":
                at += 1
            if at == end:
                return found
            if len(found) >= RECORDS_MAX:
                raise Problem(400, "invalid_body", f"there are more than {RECORDS_MAX} records")
            _, after = decoder.raw_decode(text, at)
            found.append(text[at:after])
            at = after
    except RecursionError:
        raise Problem(400, "invalid_json", "the JSON is nested too deeply") from None
    except ValueError as error:
        message = f"record {len(found)}: no JSON: {error}"
        raise Problem(400, "invalid_json", message, index=len(found)) from None


def _bytes_of(what: str, given: ProduceRequestData | None) -> bytes | None:
    """What a key or a value is in a record; _Wrong."""
    if given is None:
        return None
    has_schema = (given.schema_id, given.schema_version, given.schema, given.subject)
    if given.type in WITH_SCHEMA or any(one is not None for one in has_schema):
        raise _Wrong(f"{what}: schemas are not offered here; encode it, and send it as BINARY")
    raw = bytes(given.data)
    try:
        if raw == b"null":
            return None
        if given.type is None:
            raise _Wrong(f"{what}.type: it is needed: BINARY, JSON or STRING")
        if given.type == "JSON":
            return bytes(msgspec.json.format(raw, indent=-1))
        if given.type == "STRING":
            return _TEXT.decode(raw).encode()
        return _BYTES.decode(raw)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _Wrong(f"{what}.data: {error}") from None


class _Placed(Struct, frozen=True):
    """A record, where it goes, and what is told of it."""

    index: int
    record: Record
    timestamp: datetime
    key_type: str | None
    value_type: str | None


def _placed(text: str, partitions: int, unkeyed: int, now_ms: int) -> _Placed:
    try:
        asked = _DECODER.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise _Wrong(str(error)) from None
    key, value = _bytes_of("key", asked.key), _bytes_of("value", asked.value)
    index = asked.partition_id
    if index is None:
        index = unkeyed if key is None else partition_of(key, partitions)
    elif index >= partitions:
        raise _NoPartition(index, partitions)
    timestamp = asked.timestamp or EPOCH + timedelta(milliseconds=now_ms)
    timestamp_ms = (timestamp - EPOCH) // timedelta(milliseconds=1)
    if timestamp_ms < 0:
        raise _Wrong("timestamp: it is before 1970")
    headers = [(one.name, one.value) for one in asked.headers or []]
    return _Placed(
        index,
        Record(0, timestamp_ms, key, value, headers),
        timestamp,
        None if asked.key is None else asked.key.type,
        None if asked.value is None else asked.value.type,
    )


def _size(data: bytes | memoryview | None, kind: str | None) -> ProduceResponseData | None:
    return None if data is None else ProduceResponseData(len(data), kind)


def _report(cluster_id: str, topic: str, placed: _Placed, sent: Sent) -> ProduceResponse:
    if sent.error is not None:
        failure = failure_of(sent.error)
        return ProduceResponse(failure.told.error_code, failure.told.message)
    return ProduceResponse(
        200,
        "",
        cluster_id,
        topic,
        placed.index,
        sent.offsets[0],
        placed.timestamp,
        _size(placed.record.key, placed.key_type),
        _size(placed.record.value, placed.value_type),
    )


async def _kept(
    client: Client, cluster_id: str, topic: str, placed: _Placed | str
) -> ProduceResponse:
    """The report of one record, or why there is none."""
    if isinstance(placed, str):
        return ProduceResponse(400, placed)
    producer = client.part(Publishing, Publishing).producer(ACKS["all"])
    try:
        sent = await producer.send(topic, {placed.index: [placed.record]})
    except ClientError as error:
        failure = failure_of(error)
        return ProduceResponse(failure.told.error_code, failure.told.message)
    if sent[placed.index].error is not None:
        client.cluster.forget_topic(topic)  # it may be another one by now, with fewer partitions
    return _report(cluster_id, topic, placed, sent[placed.index])


@as_v3
async def produce(call: Call[OfClusterTopic, Documents]) -> Reply:
    """Append records, a report for each."""
    asked = call.parameters
    links = await links_of(call, asked.cluster_id)
    texts = documents(call.body.raw)
    if not texts:
        message = "Payload error. Request body is empty. Data is required."
        raise Problem(UNPROCESSABLE, "invalid_body", message)
    cluster = call.client.cluster
    publishing = call.client.part(Publishing, Publishing)
    publishing.check_quota()
    count = len((await cluster.topic(asked.topic_name)).partitions)
    unkeyed = publishing.next_unkeyed() % count
    now_ms = cluster.clock.wall_ms()
    found: list[_Placed | str] = []
    is_asked_anew = False
    for text in texts:
        try:
            try:
                found.append(_placed(text, count, unkeyed, now_ms))
            except _NoPartition as error:
                if is_asked_anew:
                    raise
                is_asked_anew = True
                topic = await cluster.topic(asked.topic_name, partition=error.index)
                count = len(topic.partitions)
                found.append(_placed(text, count, unkeyed, now_ms))
        except _Wrong as error:
            found.append(str(error))
    reports = await asyncio.gather(
        *(_kept(call.client, links.cluster_id, asked.topic_name, one) for one in found)
    )
    return Reply(200, b"".join(msgspec.json.encode(one) + b"\n" for one in reports))


def routes(prefix: str) -> list[AnyRoute]:
    """See the module."""
    return [
        Route(
            "POST",
            f"{prefix}/clusters/{{cluster_id}}/topics/{{topic_name}}/records",
            produce,
            summary="Produce records",
            description=(
                "Any number of records, one JSON object after the other; a report for each, one a "
                "line, in their order, with an error_code of its own: 200 where it is kept."
            ),
            tag=TAG,
            parameters=OfClusterTopic,
            body=Documents,
            document=ProduceRequest,
            answers={200: Answered(ProduceResponse, "A report for each record.")},
            refusals=(404, 422, 429),
        )
    ]

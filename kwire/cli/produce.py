"""`kwire produce`: lines of standard input as records."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from kwire.cli import record_format
from kwire.cli.client import Client
from kwire.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_REGISTRY,
    Bootstrap,
    CommandConfig,
    Registry,
    TopicOption,
    named,
    pairs,
)
from kwire.cli.records import Outgoing, Producer
from kwire.client.errors import ClientError
from kwire.protocol.records import Codec

BATCH_RECORDS = 500
CHUNK_BYTES = 256 << 10
LINE_BYTES_MAX = 64 << 20
EXIT_INTERRUPTED = 130
Encode = Callable[[Outgoing], Outgoing]
_PROPERTIES = ("parse.key", "key.separator", "null.marker")


Layout = Annotated[
    str | None,
    typer.Option("--format", "-f", help="Of a line: json, or as kcat's, such as '%k:%s'."),
]
Json = Annotated[
    bool, typer.Option("--json", "-J", help="As --format json: what consume --json prints.")
]
Separator = Annotated[
    str | None, typer.Option("--key-separator", "-K", help="Splits key and value.")
]
Key = Annotated[str | None, typer.Option("--key", "-k", help="Of every record without one.")]
Headers = Annotated[
    list[str] | None, typer.Option("--header", "-H", help="NAME=VALUE, for every record.")
]
Timestamp = Annotated[
    int | None,
    typer.Option(
        "--timestamp",
        min=0,
        max=record_format.TIMESTAMP_MAX,
        help="Milliseconds since 1970; else now.",
    ),
]
Partition = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, max=record_format.PARTITION_MAX)
]
Null = Annotated[str | None, typer.Option("--null", help="A key or value of this text is null.")]
ValueSchema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        help="Values are JSON by a schema of TOPIC-value: a file, which is registered there, "
        "a version, or latest.",
    ),
]
KeySchema = Annotated[
    str | None, typer.Option("--key-schema", help="Keys by a schema of TOPIC-key.")
]
Compression = Annotated[
    str,
    typer.Option(
        "--compression", "--compression-codec", "-z", help="none, gzip, snappy, lz4 or zstd."
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "--reader-property", help="Kafka's parse.key, key.separator."),
]


def produce(
    name: Annotated[str | None, typer.Argument(metavar="TOPIC", show_default=False)] = None,
    topic: TopicOption = None,
    key_separator: Separator = None,
    key: Key = None,
    header: Headers = None,
    timestamp: Timestamp = None,
    partition: Partition = None,
    null: Null = None,
    schema: ValueSchema = None,
    key_schema: KeySchema = None,
    registry: Registry = DEFAULT_REGISTRY,
    layout: Layout = None,
    as_json: Json = False,
    compression: Compression = "none",
    properties: Properties = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Send each line of standard input as a record.

    Records with a key go where Kafka's producers put them. Without --json or --format a line is
    a value, or a key and a value with --key-separator.
    """
    wanted = named(name, topic, "topic")
    codec = Codec.__members__.get(compression.upper())
    if codec is None:
        raise typer.BadParameter(f"{compression}: not one of none, gzip, snappy, lz4, zstd")
    separator, marker = _of_kafka(pairs(properties), key_separator, null)
    read = _reader(layout, as_json, separator, marker)
    defaults = Outgoing(
        key=None if key is None else key.encode(errors="surrogateescape"),
        headers=tuple(
            record_format.header_of(text.encode(errors="surrogateescape")) for text in header or []
        ),
        timestamp=timestamp,
        partition=partition,
    )
    with Client(bootstrap, command_config=command_config) as client:
        encode = _encode(client, wanted, schema, key_schema, registry)
        producer = Producer(client, wanted, codec)
        try:
            for batch in batches(chunks(), read, defaults, encode):
                producer.send(batch)
        except KeyboardInterrupt:
            end = f"interrupted; {_count(producer.acknowledged)} acknowledged"
            sys.stderr.write(f"{end}; what was under way may be kept too\n")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except ClientError as error:
            if not producer.acknowledged:
                raise
            count = _count(producer.acknowledged)
            raise ClientError(f"{error}; {count} before were acknowledged") from None
    sys.stderr.write(f"{_count(producer.acknowledged)} sent to {wanted}\n")


def _count(records: int) -> str:
    return f"{records} {'record' if records == 1 else 'records'}"


def _of_kafka(
    properties: dict[str, str], separator: str | None, null: str | None
) -> tuple[bytes | None, bytes | None]:
    """(key separator, null marker) with what the console producer's properties say."""
    for name in properties:
        if name not in _PROPERTIES:
            raise typer.BadParameter(f"{name}: the properties are {', '.join(_PROPERTIES)}")
    if properties.get("parse.key", "").lower() == "true":
        separator = separator or properties.get("key.separator", "\t")
    null = null if null is not None else properties.get("null.marker")
    return (
        None if separator is None else separator.encode(errors="surrogateescape"),
        None if null is None else null.encode(errors="surrogateescape"),
    )


def _encode(
    client: Client, topic: str, schema: str | None, key_schema: str | None, registry: str
) -> Encode | None:
    """What makes bytes of the JSON of keys and values; None where nothing is asked. The topic is
    there before a schema is registered for it."""
    if schema is None and key_schema is None:
        return None
    from kwire.cli import schema_values
    from kwire.cli.registry import Registry as Asked

    schemas = schema_values.Schemas(Asked(registry))
    ours = [schema_values.given(one) if one is not None else None for one in (key_schema, schema)]
    client.topic(topic, create=True)
    key, value = (
        None if one is None else schemas.encoder(f"{topic}-{side}", one)
        for side, one in zip(("key", "value"), ours, strict=True)
    )
    return schema_values.encoding(key, value)


def _reader(
    layout: str | None, as_json: bool, separator: bytes | None, null: bytes | None
) -> record_format.Read:
    if as_json and layout not in (None, record_format.JSON_FORMAT):
        raise typer.BadParameter("--json and --format exclude each other")
    if as_json or layout == record_format.JSON_FORMAT:
        return record_format.read_json
    if layout is None:
        return record_format.read_line(separator, null)
    if separator is not None:
        raise typer.BadParameter("--key-separator and --format exclude each other")
    try:
        return record_format.read_format(layout, null)
    except ClientError as error:
        raise typer.BadParameter(str(error)) from None


def chunks() -> Iterator[bytes]:
    """Standard input as it comes: what a pipe or a terminal has now is not kept waiting."""
    while chunk := _some_of_stdin():
        yield chunk


def _some_of_stdin() -> bytes:
    try:
        return os.read(sys.stdin.fileno(), CHUNK_BYTES)
    except OSError as error:
        raise ClientError(f"standard input cannot be read: {error.strerror}") from None


def batches(
    data: Iterator[bytes],
    read: record_format.Read,
    defaults: Outgoing,
    encode: Encode | None = None,
) -> Iterator[list[Outgoing]]:
    """The lines of a chunk as records, at most BATCH_RECORDS together; ClientError with a line's
    number where it is none."""
    begun: list[bytes] = []  # pieces of a line whose end has not come
    begun_bytes = number = 0
    for chunk in data:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*begun, lines[0]])
            begun, begun_bytes = [], 0
        begun.append(rest)
        begun_bytes += len(rest)
        if begun_bytes > LINE_BYTES_MAX:
            raise ClientError(f"line {number + len(lines) + 1}: longer than {LINE_BYTES_MAX} bytes")
        for start in range(0, len(lines), BATCH_RECORDS):
            part = lines[start : start + BATCH_RECORDS]
            yield [
                _record(line, number + at, read, defaults, encode)
                for at, line in enumerate(part, 1)
            ]
            number += len(part)
    if begun_bytes:
        yield [_record(b"".join(begun), number + 1, read, defaults, encode)]


def _record(
    line: bytes,
    number: int,
    read: record_format.Read,
    defaults: Outgoing,
    encode: Encode | None,
) -> Outgoing:
    try:
        record = read(line.removesuffix(b"\r"))
        whole = Outgoing(
            key=defaults.key if record.key is None else record.key,
            value=record.value,
            headers=record.headers + defaults.headers,
            timestamp=defaults.timestamp if record.timestamp is None else record.timestamp,
            partition=record.partition if defaults.partition is None else defaults.partition,
        )
        return whole if encode is None else encode(whole)
    except ClientError as error:
        raise ClientError(f"line {number}: {error}") from None

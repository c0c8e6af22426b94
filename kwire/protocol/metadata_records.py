"""Records of the metadata log and of the remote-log metadata topic: a frame around a message.

| type    | field                                                                    |
|---------|--------------------------------------------------------------------------|
| uvarint | frame version, always 1                                                  |
| uvarint | record type                                                              |
| uvarint | record version                                                           |
|         | the message                                                              |

Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from kwire.protocol import messages
from kwire.protocol.errors import MalformedError, UnsupportedRecordError
from kwire.protocol.structs import Message
from kwire.protocol.varint import encode_uvarint, read_uvarint

__all__ = ["MetadataRecord", "VersionedRecord", "decode_record", "encode_record"]

Buffer = bytes | bytearray | memoryview

MetadataRecord: TypeAlias = Message
"""A message of `messages/records/metadata.py` (or `storage.py`)."""
VersionedRecord: TypeAlias = tuple[MetadataRecord, int]
"""A record and the version it is written in."""

_FRAME_VERSION = 1


def encode_record(message: MetadataRecord, version: int) -> bytes:
    """The value of the record that carries `message`; EncodeError as `Message.encode`."""
    record_type = message.API_KEY
    assert record_type is not None, f"{message.NAME} is no record"
    return b"".join([_frame(record_type, version), *message.encode_parts(version)])


@cache
def _frame(record_type: int, version: int) -> bytes:
    return b"\x01" + encode_uvarint(record_type) + encode_uvarint(version)


def decode_record(buffer: Buffer, module: str = "metadata") -> VersionedRecord:
    """(message, its version); `module` is `metadata`, or `storage` for the remote-log metadata.

    Raises UnsupportedRecordError for a frame, a type or a version of a later Kafka: whoever
    replays must stop there. MalformedError for bytes that are no such record.
    """
    try:
        frame_version, position = read_uvarint(buffer, 0)
        record_type, position = read_uvarint(buffer, position)
        version, position = read_uvarint(buffer, position)
    except IndexError:
        raise MalformedError("a metadata record ends inside its frame") from None
    if frame_version != _FRAME_VERSION:
        raise UnsupportedRecordError(f"metadata record with frame version {frame_version}")
    try:
        cls: type[Message] = messages.metadata_record_class(record_type, module)
    except KeyError:
        raise UnsupportedRecordError(
            f"metadata record of unknown type {record_type} (version {version})"
        ) from None
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise UnsupportedRecordError(
            f"{cls.NAME} has version {version}, this broker knows up to {cls.MAX_VERSION}"
        )
    message, end = cls.decode_from(buffer, position, version)
    if end != len(buffer):
        raise MalformedError(f"{cls.NAME}: {len(buffer) - end} bytes behind the record")
    return message, version

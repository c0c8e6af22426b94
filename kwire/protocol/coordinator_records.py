"""Records of the internal topics: keys that begin with a type, values that begin with a version.

| part  | type  | field                              |
|-------|-------|------------------------------------|
| key   | int16 | record type, then the key at v0    |
| value | int16 | version, then the value at it      |

A deletion has the key and a null value. Modules: `group-coordinator` (`__consumer_offsets`),
`transaction-coordinator` (`__transaction_state`), `share-coordinator` (`__share_group_state`).
Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import Any

from kwire.protocol import messages
from kwire.protocol.errors import EncodeError, MalformedError, UnsupportedRecordError
from kwire.protocol.structs import Message

__all__ = [
    "decode_key",
    "decode_value",
    "encode_key",
    "encode_value",
    "encode_value_around",
    "key_type",
    "value_version",
]

Buffer = bytes | bytearray | memoryview


def encode_key(message: Message) -> bytes:
    """The key of a record."""
    if message.KIND != "coordinator-key":
        raise EncodeError(f"{message.NAME} is not the key of a coordinator record")
    record_type = message.API_KEY
    assert record_type is not None
    return _behind(record_type, message, 0)


def encode_value(message: Message, version: int) -> bytes:
    """The value of a record, for a null value write None."""
    if message.KIND != "coordinator-value":
        raise EncodeError(f"{message.NAME} is not the value of a coordinator record")
    return _behind(version, message, version)


def encode_value_around(
    message: Message, array: str, elements: tuple[int, bytes], version: int
) -> bytes:
    """`encode_value` with these (count, encoded) as the elements of an array."""
    return version.to_bytes(2, "big") + message.encode_around(array, elements, version)


def _behind(number: int, message: Message, version: int) -> bytes:
    """int16 and the message. Without `encode_parts` and its list: every commit comes by here."""
    parts = [number.to_bytes(2, "big")]
    (message._encoders.get(version) or message.encoder(version))(message, parts)
    return b"".join(parts)


def key_type(key: Buffer) -> int:
    """The record type that a key begins with; MalformedError when it is too short."""
    return _int16(key, "key")


def value_version(value: Buffer) -> int:
    """The version that a value begins with; MalformedError when it is too short."""
    return _int16(value, "value")


def decode_key(module: str, buffer: Buffer) -> Any:
    """The key message; UnsupportedRecordError for a type that this broker does not know."""
    record_type = key_type(buffer)
    try:
        cls = messages.coordinator_key_class(module, record_type)
    except KeyError:
        raise UnsupportedRecordError(f"{module} record of unknown type {record_type}") from None
    return _decode(cls, buffer, 0)


def decode_value(module: str, record_type: int, buffer: Buffer) -> Any:
    """The value message of a record whose key has `record_type`.

    Raises UnsupportedRecordError for an unknown type or version.
    """
    try:
        cls = messages.coordinator_value_class(module, record_type)
    except KeyError:
        raise UnsupportedRecordError(f"{module} record of unknown type {record_type}") from None
    version = value_version(buffer)
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise UnsupportedRecordError(
            f"{cls.NAME} has version {version}, this broker knows up to {cls.MAX_VERSION}"
        )
    return _decode(cls, buffer, version)


def _decode(cls: type[Message], buffer: Buffer, version: int) -> Any:
    message, _ = cls.decode_from(buffer, 2, version)
    return message


def _int16(buffer: Buffer, what: str) -> int:
    if len(buffer) < 2:
        raise MalformedError(f"the {what} of a coordinator record is {len(buffer)} bytes long")
    return int.from_bytes(buffer[:2], "big", signed=True)

"""Record batches as JSON: what their headers say; keys and values only where that is asked for.

    bytes     of all batches
    batches   base_offset, last_offset, count, bytes, codec, max_timestamp; of producers with an id
              also producer_id, producer_epoch, base_sequence; transactional, control where true
    records   offset, timestamp, key, value, headers; where keys and values are asked for. Text, or
              {"base64": ...} for what is no text; with {"cut": ..., "bytes": n} only the beginning
    left_out  batches beyond BATCHES_MAX, or why they cannot be read

No more than BATCHES_MAX batches and RECORDS_MAX records of one field are shown.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable

from kwire.protocol import records
from kwire.protocol.errors import KafkaError
from kwire.protocol.structs import Records
from kwire.trace.json_values import Json, JsonObject, number_of, objects_of, text_of

BATCHES_MAX = 100
RECORDS_MAX = 100
DECOMPRESSED_BYTES_MAX = 16 << 20
BATCH_BYTES_MAX = 128 << 20


def summary(value: Records, kept_bytes: int) -> JsonObject:
    """The batches of a `records` field; `kept_bytes` of each key and value, 0: none of them."""
    data = _whole(value)
    batches: list[Json] = []
    contents: list[Json] = []
    shown: JsonObject = {"bytes": len(data), "batches": batches}
    left_out = 0
    try:
        for position, header in records.iterate_headers(data):
            if len(batches) >= BATCHES_MAX:
                left_out += 1
                continue
            batches.append(_batch(header))
            room = RECORDS_MAX - len(contents)
            if kept_bytes and room and not header.is_control:
                contents += _contents(data, position, header, kept_bytes, room)
    except KafkaError as error:
        shown["left_out"] = error.message or error.code.name
    if left_out:
        shown["left_out"] = f"{left_out} batches"
    if kept_bytes:
        shown["records"] = contents
    return shown


def _whole(value: Records) -> bytes | bytearray | memoryview:
    if not isinstance(value, list):
        return value
    return b"".join(
        part if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in value
    )


def _batch(header: records.BatchHeader) -> JsonObject:
    shown: JsonObject = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "bytes": header.size_bytes,
        "codec": header.codec.name.lower(),
        "max_timestamp": header.max_timestamp,
    }
    if header.has_producer_id:
        shown["producer_id"] = header.producer_id
        shown["producer_epoch"] = header.producer_epoch
        shown["base_sequence"] = header.base_sequence
    if header.is_transactional:
        shown["transactional"] = True
    if header.is_control:
        shown["control"] = True
    if header.magic < records.MAGIC_CURRENT:
        shown["magic"] = header.magic
    return shown


def _contents(
    data: records.header.Buffer,
    position: int,
    header: records.BatchHeader,
    kept_bytes: int,
    room: int,
) -> Iterable[JsonObject]:
    found: list[JsonObject] = []
    for part in records.iterate_batch(data, position, header, DECOMPRESSED_BYTES_MAX):
        for record in part[: room - len(found)]:
            shown: JsonObject = {"offset": record.offset, "timestamp": record.timestamp}
            shown["key"] = _content(record.key, kept_bytes)
            shown["value"] = _content(record.value, kept_bytes)
            if record.headers:
                shown["headers"] = [
                    [
                        name if isinstance(name, str) else name.decode(errors="replace"),
                        _content(value, kept_bytes),
                    ]
                    for name, value in record.headers
                ]
            found.append(shown)
        if len(found) >= room:
            break
    return found


def _content(value: bytes | None, kept_bytes: int) -> Json:
    if value is None:
        return None
    if len(value) > kept_bytes:
        return {"cut": value[:kept_bytes].decode(errors="replace"), "bytes": len(value)}
    return text_or_base64(value)


def text_or_base64(value: bytes) -> Json:
    """UTF-8 as text, anything else as {"base64": ...}."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}


# -- and back


def rebuilt(summed: JsonObject) -> bytes:
    """Batches as they were: of the records that were kept whole, else of as many records of about
    the same size. ValueError for what cannot be built anew."""
    kept = objects_of(summed, "records")
    built = bytearray()
    if "left_out" in summed:
        raise ValueError(f"record batches are left out: {summed['left_out']}")
    for shown in objects_of(summed, "batches"):
        count = number_of(shown, "count")
        if "magic" in shown:
            raise ValueError("batches of an old format are not built anew")
        if not 1 <= count <= number_of(shown, "bytes") <= BATCH_BYTES_MAX:
            raise ValueError(f"a batch of {count} records in {shown.get('bytes')} bytes")
        ours, kept = kept[:count], kept[count:]
        built += records.build_batch(
            _records_of(shown, count, ours),
            codec=_codec(text_of(shown, "codec")),
            producer_id=number_of(shown, "producer_id", -1),
            producer_epoch=number_of(shown, "producer_epoch", -1),
            base_sequence=number_of(shown, "base_sequence", -1),
            transactional=bool(shown.get("transactional")),
        )
    return bytes(built)


def _codec(name: str) -> records.Codec:
    if name not in records.CODEC_NAMES:
        raise ValueError(f"codec {name} is not known")
    return records.CODEC_NAMES[name]


def _records_of(shown: JsonObject, count: int, kept: list[JsonObject]) -> list[records.Record]:
    if len(kept) == count:
        try:
            return [_record(entry, index) for index, entry in enumerate(kept)]
        except ValueError:
            pass  # one of them was cut
    size = max(0, (number_of(shown, "bytes") - records.HEADER_SIZE) // count - 8)
    timestamp = number_of(shown, "max_timestamp", -1)
    return [records.Record(timestamp=timestamp, value=bytes(size)) for _ in range(count)]


def _record(entry: JsonObject, index: int) -> records.Record:
    headers: list[tuple[str | bytes, bytes | None]] = []
    found = entry.get("headers")
    for pair in found if isinstance(found, list) else ():
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ValueError("no header")
        headers.append((pair[0], content_of(pair[1])))
    return records.Record(
        timestamp=number_of(entry, "timestamp", -1),
        key=content_of(entry.get("key")),
        value=content_of(entry.get("value")),
        headers=headers,
    )


def content_of(shown: Json) -> bytes | None:
    """The bytes of `text_or_base64`, None of null; ValueError for anything else."""
    if shown is None:
        return None
    if isinstance(shown, str):
        return shown.encode()
    encoded = shown.get("base64") if isinstance(shown, dict) else None
    if not isinstance(encoded, str):
        raise ValueError("not kept whole")
    return b64decode(encoded, validate=True)

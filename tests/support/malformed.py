"""Malformed inputs by name: the bytes that a client sends on a fresh connection, and what follows.

`CLOSED`: the connection is closed without an answer. `ANSWERED`: one whole response comes, and the
connection serves on. `AWAITED`: the bytes announce more than they hold, nothing happens until the
client leaves. The verdicts are those of Apache Kafka 4.4 (measured), but for null records, which
Kafka never answers.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from kwire.checksums import crc32c
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch

CLOSED, ANSWERED, AWAITED = "closed", "answered", "awaited"
INT_MAX = 2**31 - 1
HUGE_COMPACT = b"\xff\xff\xff\xff\x07"
ENDLESS_VARINT = b"\xff" * 10
NO_CLIENT = b"\xff\xff"

CORPUS: dict[str, tuple[bytes, str]] = {}


def _size(value: int) -> bytes:
    return struct.pack(">i", value)


def _framed(payload: bytes) -> bytes:
    return _size(len(payload)) + payload


def _head(key: int, version: int, client: bytes = NO_CLIENT, tags: bytes = b"") -> bytes:
    return struct.pack(">hhi", key, version, 7) + client + tags


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _add(verdict: str, inputs: dict[str, bytes]) -> None:
    for name, data in inputs.items():
        assert name not in CORPUS, name
        CORPUS[name] = (data, verdict)


def _request(version: int, request: Any) -> bytes:
    key = type(request).API_KEY
    return b"".join(map(bytes, frame.encode_request(key, version, 7, "corpus", request)))


def _batch(change: Callable[[bytearray], object] = bytes, values: int = 2) -> bytes:
    records = [Record(i, 1_700_000_000_000, b"k", b"value", []) for i in range(values)]
    batch = bytearray(build_batch(records))
    change(batch)
    return bytes(batch)


def _produce(
    records: bytes | None, *, acks: int = 1, topic: str = "corpus", index: int = 0
) -> bytes:
    shape = m.ProduceRequest
    data = shape.PartitionProduceData(index=index, records=records)
    topics = [shape.TopicProduceData(name=topic, partition_data=[data])]
    return _request(9, shape(acks=acks, timeout_ms=1000, topic_data=topics))


def _poke(offset: int, layout: str, value: int) -> Callable[[bytearray], object]:
    def change(batch: bytearray) -> None:
        struct.pack_into(layout, batch, offset, value)

    return change


def _signed(change: Callable[[bytearray], object]) -> bytes:
    """A changed batch whose checksum is right."""

    def change_and_sign(batch: bytearray) -> None:
        change(batch)
        struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))

    return _batch(change_and_sign)


def _gzip_bomb() -> bytes:
    """A batch of 300 KB whose records are 300 MB of zeros."""
    piece = bytes(1 << 20)
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(piece) for _ in range(300)) + packer.flush()
    batch = bytearray(_batch()[:61]) + packed
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, 1)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return bytes(batch)


_add(
    CLOSED,
    {
        "frame: size is negative": _size(-1),
        "frame: size is the smallest integer": _size(-(2**31)),
        "frame: size is the largest integer": _size(INT_MAX),
        "frame: size is one above socket.request.max.bytes": _size(104857601),
        "frame: no bytes": _size(0),
        "frame: one byte": _framed(b"\0"),
        "frame: a header without its correlation id": _framed(struct.pack(">hh", 3, 1)),
        "frame: 64 KB of zeros": bytes(65536),
        "frame: a request of HTTP": b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        "frame: the hello of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        "frame: the banner of SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
        "frame: the start of a gzip file": b"\x1f\x8b\x08\x00" + bytes(60),
    },
)
_add(
    CLOSED,
    {
        "header: unknown key": _framed(_head(999, 0) + bytes(20)),
        "header: negative key": _framed(_head(-1, 0) + bytes(20)),
        "header: version above the last": _framed(_head(3, 32767) + bytes(20)),
        "header: negative version": _framed(_head(3, -1) + bytes(20)),
        "header: a version that was removed": _framed(_head(1, 0) + bytes(20)),
        "header: an API of controllers": _framed(_head(4, 0) + bytes(20)),
        "header: a vote": _framed(_head(52, 0, tags=b"\0") + bytes(20)),
        "header: an envelope on a client's listener": _framed(_head(58, 0, tags=b"\0") + bytes(20)),
        "header: client id is longer than the frame": _framed(_head(3, 1, b"\x7f\xff") + b"abc"),
        "header: client id and nothing more": _framed(_head(3, 1, b"\0\x04") + b"\xff\xfe\xc0\x80"),
        "header: tag count is huge": _framed(_head(3, 9, tags=HUGE_COMPACT)),
        "header: tag size is huge": _framed(_head(3, 9, tags=b"\x01\x05" + HUGE_COMPACT) + b"ab"),
        "header: tag count has no end": _framed(_head(3, 9, tags=ENDLESS_VARINT)),
        "header: a million tags in ten bytes": _framed(
            _head(3, 9, tags=b"\xc0\x84\x3d" + b"\0" * 7)
        ),
    },
)
_flexible_metadata = _head(3, 9, tags=b"\0")
_produce_head = _head(0, 9, tags=b"\0") + b"\0" + struct.pack(">hi", -1, 1000)
_fetch_head = _head(1, 4) + struct.pack(">iiiib", -1, 100, 1, 1000, 0)
_join_head = _head(11, 5) + _text("g") + struct.pack(">ii", 10000, 10000) + _text("") + NO_CLIENT
_add(
    CLOSED,
    {
        "metadata: count is huge": _framed(_head(3, 1) + _size(INT_MAX)),
        "metadata: name is null": _framed(_head(3, 1) + struct.pack(">ih", 1, -1)),
        "metadata: name of negative length": _framed(_head(3, 1) + struct.pack(">ih", 1, -5)),
        "metadata: compact count is huge": _framed(_flexible_metadata + HUGE_COMPACT),
        "metadata: compact name is huge": _framed(_flexible_metadata + b"\x02" + HUGE_COMPACT),
        "metadata: count has no end": _framed(_flexible_metadata + ENDLESS_VARINT),
        "metadata: tag count is huge": _framed(_flexible_metadata + b"\x01\0\0\0" + HUGE_COMPACT),
        "metadata: tag is longer than the frame": _framed(
            _flexible_metadata + b"\x01\0\0\0\x01\x64" + HUGE_COMPACT
        ),
        "metadata: body is missing": _framed(_flexible_metadata),
        "produce: topic count is huge": _framed(_produce_head + HUGE_COMPACT),
        "produce: partition count is huge": _framed(_produce_head + b"\x02\x02t" + HUGE_COMPACT),
        "produce: records are longer than the frame": _framed(
            _produce_head + b"\x02\x02t\x02" + _size(0) + HUGE_COMPACT
        ),
        "produce: cut within the records": _framed(_produce(_batch())[4:-40]),
        "fetch: topic count is huge": _framed(_fetch_head + _size(INT_MAX)),
        "fetch: partition count is huge": _framed(
            _fetch_head + _size(1) + _text("t") + _size(INT_MAX)
        ),
        "fetch: cut short": _framed(_fetch_head[:-3]),
        "list offsets: cut short": _framed(_head(2, 1) + struct.pack(">ii", -1, 1)),
        "join group: protocol count is huge": _framed(
            _join_head + _text("consumer") + _size(INT_MAX)
        ),
        "join group: metadata is longer than the frame": _framed(
            _join_head + _text("consumer") + _size(1) + _text("range") + _size(INT_MAX)
        ),
        "sync group: assignment count is huge": _framed(
            _head(14, 0) + _text("g") + _size(1) + _text("m") + _size(INT_MAX)
        ),
        "offset commit: topic count is huge": _framed(
            _head(8, 2) + _text("g") + _size(1) + _text("m") + struct.pack(">qi", -1, INT_MAX)
        ),
        "create topics: count is huge": _framed(_head(19, 2) + _size(0x10000000) + bytes(64)),
        "sasl handshake: mechanism is longer than the frame": _framed(
            _head(17, 1) + b"\x7f\xff" + b"PLAIN"
        ),
        "init producer id: transactional id has no end": _framed(
            _head(22, 2, tags=b"\0") + ENDLESS_VARINT
        ),
        "consumer heartbeat: cut short": _framed(_head(68, 0, tags=b"\0") + b"\x02g"),
        "describe configs: resource count is huge": _framed(_head(32, 1) + _size(INT_MAX)),
    },
)
_add(
    ANSWERED,
    {
        "records: null": _produce(None),
        "records: empty": _produce(b""),
        "records: three bytes": _produce(b"\0\0\0"),
        "records: checksum is wrong": _produce(_batch(_poke(17, ">I", 1))),
        "records: magic is 3": _produce(_batch(_poke(16, ">b", 3))),
        "records: magic is negative": _produce(_batch(_poke(16, ">b", -1))),
        "records: batch is longer than the field": _produce(_batch(_poke(8, ">i", 1 << 20))),
        "records: batch length is the largest integer": _produce(_batch(_poke(8, ">i", INT_MAX))),
        "records: batch length is negative": _produce(_batch(_poke(8, ">i", -1))),
        "records: batch is cut": _produce(_batch()[:-5]),
        "records: two batches": _produce(_batch() + _batch()),
        "records: bytes behind the batch": _produce(_batch() + b"\0" * 30),
        "records: count is the largest integer": _produce(_signed(_poke(57, ">i", INT_MAX))),
        "records: count is negative": _produce(_signed(_poke(57, ">i", -7))),
        "records: codec is 6": _produce(_signed(_poke(21, ">h", 6))),
        "records: gzip that is none": _produce(_signed(_poke(21, ">h", 1))),
        "records: snappy that is none": _produce(_signed(_poke(21, ">h", 2))),
        "records: lz4 that is none": _produce(_signed(_poke(21, ">h", 3))),
        "records: zstd that is none": _produce(_signed(_poke(21, ">h", 4))),
        "records: 300 MB of zeros as gzip": _produce(_gzip_bomb()),
        "records: a control batch from a client": _produce(_signed(_poke(21, ">h", 0x20))),
        "produce: partition does not exist": _produce(_batch(), index=INT_MAX),
        "produce: partition is negative": _produce(_batch(), index=-1),
        "produce: name of a topic that cannot be": _produce(_batch(), topic="../../etc"),
        "produce: acks is 5": _produce(_batch(), acks=5),
        "metadata: bytes behind the body": _framed(_head(3, 1) + _size(0) + b"\xde\xad" * 20),
        "metadata: tags are not ascending": _framed(
            _flexible_metadata + b"\x01\0\0\0\x02\x02\0\x01\0"
        ),
        "metadata: name is not UTF-8": _framed(_head(3, 1) + _size(1) + b"\0\x02\xff\xfe"),
        "api versions: version is negative": _framed(_head(18, -1) + bytes(8)),
        "api versions: version is far too new": _framed(_head(18, 99) + bytes(30)),
        "api versions: client name is empty": _framed(_head(18, 3, tags=b"\0") + b"\x01\x01\0"),
        "create topics: two billion partitions": _request(
            5,
            m.CreateTopicsRequest(
                timeout_ms=1000,
                topics=[
                    m.CreateTopicsRequest.CreatableTopic(
                        name="corpus-wide", num_partitions=INT_MAX, replication_factor=1
                    )
                ],
            ),
        ),
        "create topics: name of 300 letters": _request(
            5,
            m.CreateTopicsRequest(
                timeout_ms=1000,
                topics=[
                    m.CreateTopicsRequest.CreatableTopic(
                        name="x" * 300, num_partitions=1, replication_factor=1
                    )
                ],
            ),
        ),
        "find coordinator: type is 77": _request(
            4, m.FindCoordinatorRequest(key_type=77, coordinator_keys=["g"])
        ),
        "fetch: a session that does not exist": _request(
            12, m.FetchRequest(session_id=12345, session_epoch=9, topics=[])
        ),
        "consumer heartbeat: a regex that explodes": _request(
            1,
            m.ConsumerGroupHeartbeatRequest(
                group_id="corpus",
                member_id="corpus-member",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                topic_partitions=[],
                subscribed_topic_regex="(a+)+(b|a+)*$",
            ),
        ),
        "consumer heartbeat: a regex that is none": _request(
            1,
            m.ConsumerGroupHeartbeatRequest(
                group_id="corpus",
                member_id="corpus-other",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                topic_partitions=[],
                subscribed_topic_regex="((((",
            ),
        ),
    },
)
_add(
    AWAITED,
    {
        "frame: two bytes of a size": b"\0\0",
        "frame: 100 MB announced, nothing sent": _size(100 << 20),
        "frame: 100 MB announced, a header sent": _size(100 << 20) + _head(0, 9, tags=b"\0"),
    },
)

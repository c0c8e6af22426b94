"""Record batches: header, walk, build, codecs, control records, and the old formats."""

from __future__ import annotations

from kwire.protocol.records.build import assemble, build_batch, empty_batch
from kwire.protocol.records.compression import CODEC_NAMES, compress, decompress
from kwire.protocol.records.header import (
    CREATE_TIME,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MAGIC_CURRENT,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PREFIX_SIZE,
    BatchHeader,
    Codec,
    add_sequence,
    check_crc,
    compute_crc,
    iterate_headers,
    next_batch_size,
    parse_header,
    stamp,
)
from kwire.protocol.records.reading import (
    Record,
    find_timestamp,
    iterate_batch,
    read_batch,
    read_records,
)

__all__ = [
    "CODEC_NAMES",
    "CREATE_TIME",
    "HEADER_SIZE",
    "LOG_APPEND_TIME",
    "MAGIC_CURRENT",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "PREFIX_SIZE",
    "BatchHeader",
    "Codec",
    "Record",
    "add_sequence",
    "assemble",
    "build_batch",
    "check_crc",
    "compress",
    "compute_crc",
    "decompress",
    "empty_batch",
    "find_timestamp",
    "iterate_batch",
    "iterate_headers",
    "next_batch_size",
    "parse_header",
    "read_batch",
    "read_records",
    "stamp",
]

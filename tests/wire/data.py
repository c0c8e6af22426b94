"""Produce and Fetch in short form."""

from __future__ import annotations

import time

from tests.wire.codec import Obj
from tests.wire.connection import Conn
from tests.wire.records import batch, parse, parse_batches
from tests.wire.waiting import retry

TOPIC_IDS_FROM = 13


def produce_fields(topic, parts, acks=-1, timeout=10000, txn=None):
    """parts: {partition: bytes} of one topic."""
    return {
        "transactional_id": txn,
        "acks": acks,
        "timeout_ms": timeout,
        "topic_data": [
            {
                "name": topic,
                "partition_data": [{"index": i, "records": b} for i, b in parts.items()],
            }
        ],
    }


def produce_parts(conn, topic, parts, version=9, **kw):
    r = conn.send("produce", version, **produce_fields(topic, parts, **kw))
    return {p.index: p for p in r.responses[0].partition_responses}


def produce(conn, topic, records, partition=0, version=9, expect=0, retry=True, **kw):
    """Append one batch (bytes, or a list for `batch`); gives the partition's response."""
    raw = records if isinstance(records, (bytes, bytearray)) else batch(records)
    end = time.monotonic() + 10
    while True:
        p = produce_parts(conn, topic, {partition: bytes(raw)}, version, **kw)[partition]
        if expect == 0 and retry and p.error_code in (3, 5, 6) and time.monotonic() < end:
            time.sleep(0.1)
            continue
        if expect is not None:
            assert p.error_code == expect, p
        return p


def fetch_fields(
    topic,
    parts,
    version,
    *,
    max_wait=500,
    min_bytes=1,
    max_bytes=50_000_000,
    isolation=0,
    partition_max_bytes=10_000_000,
    session_id=0,
    session_epoch=-1,
    forgotten=(),
    tid=None,
    leader_epoch=None,
):
    """parts: {partition: offset} or {partition: (offset, partition_max_bytes)}; topic None: no topics.

    What else a version lacks is left out when it is encoded.
    """
    plist = []
    for i, off in parts.items():
        off, pmax = off if isinstance(off, tuple) else (off, partition_max_bytes)
        d = {
            "partition": i,
            "fetch_offset": off,
            "partition_max_bytes": pmax,
            "log_start_offset": -1,
        }
        if leader_epoch is not None:
            d["current_leader_epoch"] = leader_epoch
        plist.append(d)
    key = {"topic_id": tid} if version >= TOPIC_IDS_FROM else {"topic": topic}
    out = {
        "max_wait_ms": max_wait,
        "max_bytes": max_bytes,
        "min_bytes": min_bytes,
        "isolation_level": isolation,
        "replica_id": -1,
        "session_id": session_id,
        "session_epoch": session_epoch,
        "topics": [dict(partitions=plist, **key)] if parts else [],
    }
    if forgotten:
        out["forgotten_topics_data"] = [dict(partitions=list(forgotten), **key)]
    return out


def fetch(conn, topic, parts, version=12, **kw):
    """The whole response; see `parts_of`."""
    return conn.send("fetch", version, **fetch_fields(topic, parts, version, **kw))


def parts_of(resp):
    return {p.partition_index: p for t in resp.responses for p in t.partitions}


def fetch_one(conn, topic, offset, partition=0, version=12, **kw):
    return parts_of(fetch(conn, topic, {partition: offset}, version, **kw))[partition]


def read_log(conn, topic, partition=0, offset=0, version=12, isolation=0):
    """All batches from `offset` to the high watermark."""
    out = []
    while True:
        p = fetch_one(
            conn, topic, offset, partition, version, max_wait=0, min_bytes=0, isolation=isolation
        )
        assert p.error_code == 0, p
        got, _ = parse(p.records)
        got = [b for b in got if b.last_offset >= offset]
        if not got:
            assert offset >= (p.last_stable_offset if isolation else p.high_watermark), (
                "empty fetch before the end"
            )
            return out
        out += got
        offset = got[-1].last_offset + 1


def produce_once(
    c: Conn,
    topic: str,
    partition: int,
    records: bytes,
    acks: int = -1,
    version: int = 9,
    transactional_id=None,
    timeout_ms: int = 10000,
    retry_not_ready: bool = False,
) -> Obj:
    """Produce bytes to one partition -> Obj(error_code, base_offset, log_append_time, ...). By name: version <= 12."""

    def once():
        r = c.send(
            "produce",
            version,
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                {"name": topic, "partition_data": [{"index": partition, "records": records}]}
            ],
        )
        return r.responses[0].partition_responses[0]

    return retry(once, lambda x: x.error_code not in (3, 6), 10) if retry_not_ready else once()


def fetch_partition(
    conn, topic, partition=0, offset=0, version=11, isolation=0, max_wait_ms=500, **kw
):
    """One partition's part of a fetch without a session; `.batches` holds the parsed batches."""
    r = fetch(
        conn, topic, {partition: offset}, version, isolation=isolation, max_wait=max_wait_ms, **kw
    )
    assert r.get("error_code", 0) == 0, r
    p = parts_of(r)[partition]
    p.batches = parse_batches(p.records)
    return p

"""Malformed and abusive input: the one who sends it is refused, everybody else is served as before.

Each check sends its input on connections of its own and then asks for versions, metadata and a produce/fetch round
trip on fresh ones. With `--broker-pid` (or CHECKS_BROKER_PID) the broker's memory is watched as well.
"""

import contextlib
import os
import socket
import struct
import time

import pytest

from tests import wire as w

MAX_INT = 0x7FFFFFFF
PROMPT = 5.0  # seconds within which a refusal must come


def _head(key, version, corr=1, client=-1, tags=None):
    return struct.pack(">hhih", key, version, corr, client) + (b"" if tags is None else tags)


def _framed(payload):
    return struct.pack(">i", len(payload)) + payload


@pytest.fixture
def alive(bootstrap, c, broker_pid):
    """alive() after the abuse: the broker serves new and old connections and has not grown by much."""
    topic = w.unique("alive")
    w.create_topic(c, topic)
    w.produce(c, topic, [b"before"])
    w.still_serves(bootstrap)
    before = w.rss_kb(broker_pid) if broker_pid else 0

    def check(growth_mb=150):
        w.still_serves(bootstrap)
        w.produce(c, topic, [b"after"])
        with w.Conn(bootstrap) as d:
            got = [r.value for b in w.read_log(d, topic) for r in b.records]
        assert got[0] == b"before"
        assert got[-1] == b"after"
        if broker_pid:
            grown = (w.rss_kb(broker_pid) - before) // 1024
            assert grown < growth_mb, f"{grown} MB more"

    return check


def _refused(bootstrap, payload, times=3, raw=False):
    """The connection is closed without an answer."""
    for _ in range(times):
        with w.Conn(bootstrap) as d:
            try:
                d.send_raw(payload if raw else _framed(payload))
            except w.Closed:
                continue
            d.expect_close(PROMPT)


# ---------------------------------------------------------------- headers
@pytest.mark.case("HOSTILE-HEADER")
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(_head(999, 0) + b"\0" * 20, id="unknown_key"),
        pytest.param(_head(-1, 0) + b"\0" * 20, id="negative_key"),
        pytest.param(_head(3, 32767) + b"\0" * 20, id="version_too_new"),
        pytest.param(_head(3, -1) + b"\0" * 20, id="version_negative"),
        pytest.param(_head(1, 0) + b"\0" * 20, id="version_removed"),
        pytest.param(_head(4, 0) + b"\0" * 20, id="controller_only_key"),
        pytest.param(_head(58, 0, tags=b"\0") + b"\0" * 20, id="envelope_on_a_client_listener"),
        pytest.param(
            struct.pack(">hhih", 3, 1, 1, 32767) + b"abc", id="client_id_longer_than_the_frame"
        ),
        pytest.param(
            struct.pack(">hhih", 3, 1, 1, 4) + b"\xff\xfe\xc0\x80", id="client_id_then_nothing"
        ),
        pytest.param(_head(3, 9, tags=b"\xff\xff\xff\xff\x07"), id="header_tag_count_huge"),
        pytest.param(
            _head(3, 9, tags=b"\x01\x05\xff\xff\xff\xff\x07") + b"ab", id="header_tag_size_huge"
        ),
        pytest.param(
            _head(3, 9, tags=b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            id="header_tag_varint_without_end",
        ),
    ],
)
def test_hostile_headers(bootstrap, alive, payload):
    """A header that names something the listener does not have, or that cannot be read, closes the connection.

    SOURCES: own work
    """
    _refused(bootstrap, payload)
    alive()


# ---------------------------------------------------------------- bodies
@pytest.mark.case("HOSTILE-BODY")
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(_head(3, 1) + struct.pack(">i", MAX_INT), id="metadata_count_huge"),
        pytest.param(_head(3, 1) + struct.pack(">ih", 1, -5), id="topic_name_length_negative"),
        pytest.param(_head(3, 1) + struct.pack(">ih", 1, -1), id="topic_name_null"),
        pytest.param(_head(3, 9, tags=b"\0") + b"\xff\xff\xff\xff\x07", id="compact_count_huge"),
        pytest.param(_head(3, 9, tags=b"\0") + b"\x02\xff\xff\xff\xff\x07", id="compact_name_huge"),
        pytest.param(
            _head(3, 9, tags=b"\0") + b"\x80\x80\x80\x80\x80\x80\x80\x01",
            id="count_varint_over_long",
        ),
        pytest.param(
            _head(3, 9, tags=b"\0") + b"\x01\0\0\0" + b"\xff\xff\xff\x7f", id="body_tag_count_huge"
        ),
        pytest.param(
            _head(3, 9, tags=b"\0") + b"\x01\0\0\0" + b"\x01\x64\xff\xff\xff\xff\x07",
            id="body_tag_size_huge",
        ),
        pytest.param(
            _head(1, 4) + struct.pack(">iiiibi", -1, 100, 1, 1000, 0, MAX_INT),
            id="fetch_topic_count_huge",
        ),
        pytest.param(
            _head(1, 4)
            + struct.pack(">iiiibi", -1, 100, 1, 1000, 0, 1)
            + b"\0\x01t"
            + struct.pack(">i", MAX_INT),
            id="fetch_partition_count_huge",
        ),
        pytest.param(
            _head(0, 7) + struct.pack(">hhii", -1, 1, 1000, MAX_INT), id="produce_topic_count_huge"
        ),
        pytest.param(
            _head(11, 5)
            + struct.pack(">h", 1)
            + b"g"
            + struct.pack(">iihh", 10000, 10000, 0, -1)
            + struct.pack(">h", 8)
            + b"consumer"
            + struct.pack(">i", MAX_INT),
            id="join_protocol_count_huge",
        ),
        pytest.param(_head(36, 1) + struct.pack(">i", MAX_INT), id="sasl_bytes_huge"),
        pytest.param(_head(2, 1) + struct.pack(">ii", -1, 1), id="list_offsets_cut_short"),
        pytest.param(
            _head(19, 2) + struct.pack(">i", 0x10000000) + b"\0" * 64, id="create_topics_count_huge"
        ),
    ],
)
def test_hostile_bodies(bootstrap, alive, payload):
    """Counts, lengths and tags that do not fit the frame make the request unreadable: the connection is closed,
    without an answer and without memory for what was claimed.

    SOURCES: own work
    """
    _refused(bootstrap, payload, times=5)
    alive()


@pytest.mark.case("HOSTILE-BODY")
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(
            struct.pack(">hhih", 3, 1, 1, -2) + struct.pack(">i", 0),
            id="client_id_length_minus_two",
        ),
        pytest.param(
            _head(3, 9, tags=b"\0") + b"\x01\0\0\0" + b"\x02\x02\0\x01\0",
            id="body_tags_not_ascending",
        ),
        pytest.param(
            _head(0, 7)
            + struct.pack(">hhii", -1, 1, 1000, 1)
            + b"\0\x01t"
            + struct.pack(">iii", 1, 0, -7),
            id="records_length_minus_seven",
        ),
        pytest.param(
            _head(3, 9, tags=b"\0") + b"\xff\xff\xff\xff\x0f\0\0\0\0", id="compact_count_minus_two"
        ),
    ],
)
def test_hostile_sloppy_requests_are_answered_or_refused(bootstrap, alive, payload):
    """Kafka reads any negative length as null and does not insist on the order of tags; a broker may also close the
    connection, but it must do one or the other, and promptly.

    SOURCES: own work
    """
    for _ in range(3):
        with w.Conn(bootstrap) as d:
            d.send_frame(payload)
            try:
                assert struct.unpack_from(">i", d.recv_frame(PROMPT))[0] == 1
                assert d.send("api_versions", 0).error_code == 0
            except w.Closed:
                pass
    alive()


@pytest.mark.case("HOSTILE-BODY")
def test_hostile_unknown_tags_in_great_number_are_skipped(bootstrap, alive):
    """A request with thousands of well-formed unknown tagged fields is still a valid request.

    SOURCES: own work
    """
    n = 5000
    tags = w.uvarint(n) + b"".join(w.uvarint(100 + i) + b"\x01x" for i in range(n))
    with w.Conn(bootstrap) as d:
        d.send_frame(_head(3, 9, 7, tags=tags) + b"\x01\0\0\0" + tags)
        corr, r = d.recv_as("metadata", 9, 10)
        assert corr == 7
        assert r.brokers
    alive()


@pytest.mark.case("HOSTILE-BODY")
def test_hostile_bytes_behind_the_body_are_ignored(bootstrap, alive):
    """Bytes left over behind a complete body do no harm: the request is answered.

    SOURCES: own work
    """
    with w.Conn(bootstrap) as d:
        d.send_frame(_head(3, 1, 9) + struct.pack(">i", 0) + b"\xde\xad\xbe\xef" * 10)
        corr, r = d.recv_as("metadata", 1, 10)
        assert corr == 9
        assert r.brokers
        assert d.send("api_versions", 0).error_code == 0
    alive()


@pytest.mark.case("HOSTILE-BODY")
def test_hostile_twenty_thousand_names_in_one_request(bootstrap, c, alive):
    """A large but honest request is answered entry by entry and creates nothing.

    SOURCES: own work
    """
    names = [f"nope-{i}" for i in range(20_000)]
    with w.Conn(bootstrap, timeout=60) as d:
        r = w.metadata(d, names, 9, auto=False)
        assert len(r.topics) == len(names)
        assert {t.error_code for t in r.topics} == {3}
    alive(300)


_RECS = [b"a", b"b", b"c"]


def _one_record_body(body, length=None):
    return w.svarint(len(body) if length is None else length) + body


BATCHES = {
    "crc_wrong": (lambda: w.batch(_RECS, crc=1), {2}),
    "length_below_the_header": (lambda: w.batch(_RECS, length=10), {2, 87}),
    "length_zero": (lambda: w.batch(_RECS, length=0), {2, 87}),
    "length_negative": (lambda: w.batch(_RECS, length=-1), {2, 87}),
    "length_huge": (lambda: w.batch(_RECS, length=MAX_INT), {2, 87, -1}),
    "cut_in_the_header": (lambda: w.batch(_RECS)[:40], {2, 87}),
    "eleven_bytes": (lambda: b"\0" * 11, {2, 87}),
    "zeros": (lambda: b"\0" * 200, {2, 87}),
    "magic_3": (lambda: w.batch(_RECS, magic=3), {2, 87}),
    "magic_negative": (lambda: w.batch(_RECS, magic=-1), {2, 87}),
    "count_negative": (lambda: w.batch(_RECS, count=-5, last_offset_delta=2), {87}),
    "count_huge": (lambda: w.batch(_RECS, count=MAX_INT, last_offset_delta=MAX_INT - 1), {87}),
    "count_huge_gzip": (
        lambda: w.batch(_RECS, codec=1, count=MAX_INT, last_offset_delta=MAX_INT - 1),
        {87},
    ),
    "last_delta_negative": (lambda: w.batch(_RECS, last_offset_delta=-4), {87}),
    "record_length_huge": (lambda: w.batch([], payload=w.svarint(MAX_INT) + b"xx", count=1), {87}),
    "record_length_negative": (lambda: w.batch([], payload=w.svarint(-5) + b"xx", count=1), {87}),
    "key_length_huge": (
        lambda: w.batch([], payload=_one_record_body(b"\0\0\0" + w.svarint(MAX_INT)), count=1),
        {87},
    ),
    "header_count_huge": (
        lambda: w.batch(
            [],
            payload=_one_record_body(
                b"\0\0\0" + w.svarint(-1) + w.svarint(-1) + w.svarint(MAX_INT)
            ),
            count=1,
        ),
        {87},
    ),
    "header_key_null": (
        lambda: w.batch(
            [],
            payload=_one_record_body(
                b"\0\0\0"
                + w.svarint(-1)
                + w.svarint(-1)
                + w.svarint(1)
                + w.svarint(-1)
                + w.svarint(-1)
            ),
            count=1,
        ),
        {87},
    ),
    "varint_without_end": (lambda: w.batch([], payload=b"\xff" * 30, count=1), {2, 87, -1}),
    "payload_behind_the_last_record": (
        lambda: w.batch([], payload=w.encode_record(None, b"x") + b"junk", count=1),
        {87},
    ),
    "gzip_garbage": (
        lambda: w.batch([], payload=b"not gzip at all", count=1, attributes=1),
        {2, 87, -1},
    ),
    "snappy_garbage": (
        lambda: w.batch([], payload=b"\xff\xff\xff\xff\x0f garbage", count=1, attributes=2),
        {2, 87, -1},
    ),
    "lz4_garbage": (
        lambda: w.batch([], payload=b"\x04\x22\x4d\x18garbage!!", count=1, attributes=3),
        {2, 87, -1},
    ),
    "zstd_garbage": (
        lambda: w.batch([], payload=b"\x28\xb5\x2f\xfdgarbage!!", count=1, attributes=4),
        {2, 87, -1},
    ),
    "gzip_cut": (
        lambda: w.batch(
            [],
            payload=w.compress(1, w.encode_record(None, os.urandom(5000)))[:2000],
            count=1,
            attributes=1,
        ),
        {2, 87, -1},
    ),
}


# ---------------------------------------------------------------- connections
@pytest.mark.case("HOSTILE-CONN")
def test_hostile_five_hundred_idle_connections(bootstrap, alive):
    """500 connections that send nothing, or half a length, do not keep others from being served.

    SOURCES: own work
    """
    with contextlib.ExitStack() as stack:
        for i in range(500):
            d = stack.enter_context(w.Conn(bootstrap))
            if i % 2:
                d.send_raw(b"\0\0")
        t0 = time.monotonic()
        alive(100)
        assert time.monotonic() - t0 < 10
    alive(100)


@pytest.mark.case("HOSTILE-CONN")
def test_hostile_slow_senders(bootstrap, alive):
    """Fifty connections that announce 1 MiB and then trickle do not slow the others down.

    SOURCES: own work
    """
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(w.Conn(bootstrap)) for _ in range(50)]
        for d in slow:
            d.send_raw(struct.pack(">i", 1 << 20))
        for _ in range(5):
            for d in slow:
                d.send_raw(b"\0")
            t0 = time.monotonic()
            w.still_serves(bootstrap)
            assert time.monotonic() - t0 < 5
            time.sleep(0.1)
    alive()


@pytest.mark.case("HOSTILE-CONN")
def test_hostile_connects_and_resets(bootstrap, alive):
    """A thousand connections opened and reset, with and without half a request, leave nothing behind.

    SOURCES: own work
    """
    for i in range(1000):
        d = w.Conn(bootstrap)
        if i % 3 == 1:
            d.send_raw(struct.pack(">i", 500) + b"abc")
        elif i % 3 == 2:
            d.post("metadata", 9, topics=None)
        d.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        d.close()
    alive()


@pytest.mark.case("HOSTILE-CONN")
def test_hostile_thousands_of_pipelined_requests(bootstrap, alive):
    """5000 requests sent without reading are all answered, in order, once the client reads.

    SOURCES: own work
    """
    n = 5000
    data = b"".join(_framed(_head(18, 0, i)) for i in range(n))
    with w.Conn(bootstrap, timeout=60) as d:
        d.sock.settimeout(60)
        sent = 0
        got = []
        d.sock.setblocking(False)
        buf = b""
        end = time.monotonic() + 60
        while len(got) < n and time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                if sent < len(data):
                    sent += d.sock.send(data[sent : sent + 65536])
            try:
                part = d.sock.recv(1 << 20)
                assert part, f"closed after {len(got)} answers"
                buf += part
            except BlockingIOError:
                time.sleep(0.001)
            while len(buf) >= 8:
                size, corr = struct.unpack_from(">ii", buf)
                if len(buf) < 4 + size:
                    break
                got.append(corr)
                buf = buf[4 + size :]
        assert got == list(range(n))
    alive()


@pytest.mark.case("HOSTILE-CONN")
def test_hostile_a_client_that_never_reads(bootstrap, c, alive):
    """Clients that ask for much and read nothing cost the broker no more than their socket buffers.

    SOURCES: own work
    """
    topic = w.unique("noread")
    w.create_topic(c, topic)
    for _ in range(8):
        w.produce(c, topic, [os.urandom(900_000)])
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            d = stack.enter_context(w.Conn(bootstrap))
            d.sock.settimeout(0.5)
            req = _framed(w.encode_request("fetch", 12, 1, **w.fetch_fields(topic, {0: 0}, 12)))
            with contextlib.suppress(socket.timeout, BlockingIOError):
                for _ in range(300):
                    d.sock.send(req)
        alive(250)
    alive(250)


@pytest.mark.case("HOSTILE-CONN")
def test_hostile_long_polls_that_are_abandoned(bootstrap, c, alive):
    """200 long-polling fetches whose clients go away do no harm.

    SOURCES: own work
    """
    topic = w.unique("abandon")
    w.create_topic(c, topic)
    for _ in range(200):
        d = w.Conn(bootstrap)
        d.post("fetch", 12, **w.fetch_fields(topic, {0: 0}, 12, max_wait=30000))
        d.close()
    w.produce(c, topic, [b"x"])
    assert w.read_log(c, topic)[0].records[0].value == b"x"
    alive()

"""Connections: order, frame limits, close and idle behaviour."""

import socket
import ssl
import struct
import time

import pytest

from tests import wire as w


def _frame(payload):
    return struct.pack(">i", len(payload)) + payload


@pytest.mark.case("CONN-2")
def test_conn_2_impossible_frame_lengths_close_at_once(bootstrap, broker_pid):
    """A frame length above 100 MiB, a negative one, an empty frame and one too short for a header all end the
    connection at once, without waiting for a body and without memory for it.

    SOURCES: nisshi-io/nisshi#723, confluentinc/librdkafka#756, kroxylicious/kroxylicious#997
    """
    cases = [struct.pack(">i", n) for n in (0x7FFFFFFF, 104857601, -1, -2147483648, 0)]
    cases.append(struct.pack(">i", 3) + b"abc")
    for data in cases:
        with w.Conn(bootstrap) as d:
            d.send_raw(data)
            assert d.expect_close(5) < 2
    before = w.rss_kb(broker_pid) if broker_pid else 0
    conns = []
    for i in range(50):
        d = w.Conn(bootstrap)
        d.send_raw(struct.pack(">i", 104857601 if i % 2 else 0x7FFFFFFF) + b"x" * 100)
        conns.append(d)
    time.sleep(0.5)
    w.still_serves(bootstrap)
    after = w.rss_kb(broker_pid) if broker_pid else 0
    for d in conns:
        d.close()
    assert after - before < 50_000, f"{after - before} kB more after 50 announced frames"
    w.still_serves(bootstrap)


@pytest.mark.case("CONN-3")
def test_conn_3_tls_hello_on_a_plaintext_port_fails_fast(bootstrap):
    """A TLS ClientHello on the plaintext listener reads as a frame length beyond the limit: the broker closes
    at once and sends nothing, so that the client does not wait for its timeout.

    SOURCES: apache/kafka#5940, grepplabs/kafka-proxy#108, kroxylicious/kroxylicious#997
    """
    ctx = ssl.create_default_context()
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    d = w.Conn(bootstrap)
    d.sock.settimeout(8)
    t0 = time.monotonic()
    with pytest.raises((ssl.SSLError, ConnectionError)) as e:
        ctx.wrap_socket(d.sock, server_hostname="localhost")
    assert not isinstance(e.value, TimeoutError)
    assert time.monotonic() - t0 < 3
    assert "WRONG_VERSION" not in str(e.value), (
        "the broker sent something other than an end of stream"
    )
    w.still_serves(bootstrap)


@pytest.mark.case("CONN-3")
def test_conn_3_plaintext_request_on_a_tls_port_gets_no_kafka_answer(tls_bootstrap):
    """A clear-text request to the TLS listener gets a TLS alert and/or a close, never a Kafka answer in clear.

    SOURCES: apache/kafka#2408
    """
    with w.Conn(tls_bootstrap) as d:
        d.send_frame(struct.pack(">hhih", 18, 0, 1, -1))
        d.sock.settimeout(5)
        try:
            first = d.sock.recv(1)
        except ConnectionError:
            first = b""
        assert first in (b"", b"\x15"), first
        try:
            while first:
                first = d.sock.recv(4096)
        except ConnectionError:
            pass
    ctx = ssl.create_default_context()
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    d = w.Conn(tls_bootstrap)
    d.sock = ctx.wrap_socket(d.sock, server_hostname="localhost")
    assert d.send("api_versions", 0).error_code == 0
    d.close()


@pytest.mark.case("CONN-5")
@pytest.mark.parametrize("how", ["close", "half_close"])
def test_conn_5_requests_received_before_eof_are_executed(bootstrap, c, how):
    """Complete acks=0 requests that were sent before the client closed are all executed, in order; a half-closed
    connection is released.

    SOURCES: apache/kafka#1836 (KAFKA-3703), kroxylicious/kroxylicious#4094
    """
    topic = w.unique("conn5")
    w.create_topic(c, topic)
    data = b"".join(
        _frame(
            w.encode_request(
                "produce", 9, i, **w.produce_fields(topic, {0: w.batch([b"%d" % i])}, acks=0)
            )
        )
        for i in range(200)
    )
    d = w.Conn(bootstrap)
    d.send_raw(data)
    if how == "close":
        d.close()
    else:
        d.sock.shutdown(socket.SHUT_WR)
        d.expect_close(10)
        d.close()
    end = time.monotonic() + 10
    while w.latest(c, topic) < 200 and time.monotonic() < end:
        time.sleep(0.1)
    values = [r.value for b in w.read_log(c, topic) for r in b.records]
    assert values == [b"%d" % i for i in range(200)]

"""Version negotiation."""

import struct

import pytest

from tests import wire as w


def _header(key, version, corr, client_id=b"heldout"):
    cid = (
        struct.pack(">h", -1)
        if client_id is None
        else struct.pack(">h", len(client_id)) + client_id
    )
    return struct.pack(">hhi", key, version, corr) + cid


@pytest.mark.case("AV-2")
def test_av_2_null_and_empty_client_id_and_unknown_tags(c):
    """client_id may be null or empty in every header version and stays an int16-length string in flexible
    headers; unknown tagged fields in header and body are skipped.

    SOURCES: redpanda-data/redpanda#6570
    """
    body = b"\x02x\x02y"  # compact strings "x" and "y"
    tag = b"\x01" + w.uvarint(9999) + b"\x03abc"
    for client_id in (None, b"", b"some-client"):
        for version in (0, 1, 2):
            c.send_frame(_header(18, version, 5, client_id))
            corr, r = c.recv_as("api_versions", version, 5)
            assert (corr, r.error_code) == (5, 0)
        for header_tags in (b"\0", tag):
            for body_tags in (b"\0", tag):
                c.send_frame(_header(18, 3, 6, client_id) + header_tags + body + body_tags)
                corr, r = c.recv_as("api_versions", 3, 5)
                assert (corr, r.error_code) == (6, 0)
                # Metadata v12: empty topic list, no auto-creation, no operations
                c.send_frame(_header(3, 12, 8, client_id) + header_tags + b"\x01\0\0" + body_tags)
                corr, r = c.recv_as("metadata", 12, 5)
                assert corr == 8
                assert r.brokers
                assert r.topics == []
        c.send_frame(_header(3, 1, 9, client_id) + struct.pack(">i", 0))
        corr, r = c.recv_as("metadata", 1, 5)
        assert corr == 9
        assert r.brokers


@pytest.mark.case("AV-4")
def test_av_4_produce_range_starts_at_zero_so_old_librdkafka_compresses(bootstrap, c):
    """Produce is advertised from version 0 although versions 0-2 are refused by closing the connection, because
    older librdkafka releases decide from that range whether they may compress. Batches then arrive compressed.

    SOURCES: confluentinc/librdkafka#4956, apache/kafka#18727, kroxylicious/kroxylicious#2851
    """
    row = next(k for k in c.send("api_versions", 0).api_keys if k.api_key == 0)
    assert row.min_version == 0
    row = next(
        k
        for k in c.send(
            "api_versions", 3, client_software_name="a", client_software_version="1"
        ).api_keys
        if k.api_key == 0
    )
    assert row.min_version == 0
    assert row.max_version >= 9
    for version in (0, 1, 2):
        with w.Conn(bootstrap) as d:
            d.send_frame(_header(0, version, 1) + struct.pack(">hii", 1, 1000, 0))
            d.expect_close()

    import logging

    from confluent_kafka import Producer

    lines = []

    class Keep(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    log = logging.getLogger("heldout-av4")
    log.addHandler(Keep())
    log.setLevel(logging.DEBUG)
    for name, number in w.CODECS.items():
        if name == "none":
            continue
        topic = w.unique("av4")
        w.create_topic(c, topic)
        p = Producer(
            {"bootstrap.servers": bootstrap, "compression.codec": name, "linger.ms": 50}, logger=log
        )
        for _ in range(20):
            p.produce(topic, b"A" * 1000)
        assert p.flush(20) == 0
        batches = w.read_log(c, topic)
        assert {b.attributes & 7 for b in batches} == {number}, name
        assert sum(b.count for b in batches) == 20
    assert not [x for x in lines if "does not support compression" in x]


@pytest.mark.case("AV-5")
@pytest.mark.parametrize("key,version", [(3, 99), (999, 0), (1, 99), (3, -1), (-1, 0)])
def test_av_5_unknown_key_or_version_closes_the_connection(bootstrap, c, key, version):
    """An api key or version the broker does not have is never answered: requests accepted before it are
    answered, then the connection is closed without further bytes. Others are served as before.

    SOURCES: danielqsj/kafka_exporter#329, confluentinc/librdkafka#4870
    """
    with w.Conn(bootstrap) as d:
        good = w.encode_request("metadata", 1, 41, topics=[])
        bad = _header(key, version, 42) + b"\0" * 12
        d.send_raw(struct.pack(">i", len(good)) + good + struct.pack(">i", len(bad)) + bad)
        corr, r = d.recv_as("metadata", 1, 5)
        assert corr == 41
        assert r.brokers
        d.expect_close(5)
    assert w.metadata(c, []).brokers
    w.still_serves(bootstrap)

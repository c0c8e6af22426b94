"""Connections: clients that end their side, SASL where there is none, requests behind one that waits."""

import socket

import pytest

from tests import wire as w


def _metadata(d):
    return d.post("metadata", 9, topics=[], allow_auto_topic_creation=False)


@pytest.mark.case("CONN-20")
def test_conn_20_a_client_that_ends_its_side_gets_every_answer(bootstrap, c):
    """What a client has sent before it ends its side (shutdown, `printf ... | nc`) is executed and answered in order,
    also where an answer takes time; then the broker closes.

    SOURCES: KAFKA-3703
    """
    topic, made = w.unique("conn20"), w.unique("conn20")
    w.create_topic(c, topic)
    with w.Conn(bootstrap) as d:
        d.post("fetch", 12, **w.fetch_fields(topic, {0: 0}, 12, max_wait=300, min_bytes=1))
        d.post("produce", 9, **w.produce_fields(topic, {0: w.batch([b"x"])}))
        creatable = {"name": made, "num_partitions": 1, "replication_factor": 1}
        d.post("create_topics", 5, topics=[creatable], timeout_ms=15000)
        _metadata(d)
        d.sock.shutdown(socket.SHUT_WR)
        r = d.recv(20)
        assert not w.parts_of(r)[0].records, "what comes behind a fetch in wait waits as well"
        r = d.recv(20)
        assert r.responses[0].partition_responses[0].error_code == 0
        r = d.recv(20)
        assert r.topics[0].error_code == 0
        w.CREATED.append(made)
        r = d.recv(20)
        assert r.brokers
        d.expect_close(10)
    with w.Conn(bootstrap) as d:
        d.send_raw(b"\0\0\0")
        d.sock.shutdown(socket.SHUT_WR)
        d.expect_close(10)


@pytest.mark.case("CONN-21")
def test_conn_21_sasl_on_a_listener_without_sasl(bootstrap):
    """A listener without SASL answers SaslHandshake and SaslAuthenticate with 34 and goes on serving: the client learns
    that it was told to authenticate where nobody asks for it. Both are advertised.

    SOURCES: redpanda-data/redpanda#27384, segmentio/kafka-go#1362, tulios/kafkajs#472
    """
    with w.Conn(bootstrap) as d:
        keys = {
            k.api_key: (k.min_version, k.max_version) for k in d.send("api_versions", 0).api_keys
        }
        assert (keys[17], keys[36]) == ((0, 1), (0, 2))
        for version in (0, 1):
            for mechanism in ("PLAIN", "SCRAM-SHA-256", ""):
                r = d.send("sasl_handshake", version, mechanism=mechanism)
                assert (r.error_code, r.mechanisms) == (34, [])
        for version in (0, 1, 2):
            r = d.send("sasl_authenticate", version, auth_bytes=b"\0user\0secret")
            assert r.error_code == 34
            assert r.error_message
            assert not r.auth_bytes
        assert w.metadata(d, []).brokers


@pytest.mark.case("CONN-22")
def test_conn_22_a_fetch_in_wait_holds_up_what_follows_it(bootstrap, c):
    """Requests of one connection are handled one after the other: behind a fetch that waits nothing is answered, and a
    produce behind it does not end its wait; data from another connection does.

    SOURCES: confluentinc/confluent-kafka-dotnet#1115, tulios/kafkajs#1397
    """
    topic = w.unique("conn22")
    w.create_topic(c, topic)
    with w.Conn(bootstrap) as d:
        d.post("fetch", 12, **w.fetch_fields(topic, {0: 0}, 12, max_wait=60_000, min_bytes=1))
        _metadata(d)
        d.expect_silence(0.2)
        w.produce(c, topic, [b"x"])
        r = d.recv(20)
        assert len(w.parse(w.parts_of(r)[0].records)[0]) == 1
        assert d.recv(20).brokers
        d.post("fetch", 12, **w.fetch_fields(topic, {0: 1}, 12, max_wait=200, min_bytes=1))
        d.post("produce", 9, **w.produce_fields(topic, {0: w.batch([b"y"])}))
        r = d.recv(20)
        assert not w.parts_of(r)[0].records
        r = d.recv(20)
        assert r.responses[0].partition_responses[0].base_offset == 1

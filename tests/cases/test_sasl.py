"""SASL: handshake versions, refusals, SCRAM nonces, OAUTHBEARER rounds."""

import base64
import json
import time

import pytest

from tests import wire


def handshake(c, mechanism, version=1):
    return c.send("sasl_handshake", version, mechanism=mechanism)


def auth(c, data: bytes, version=2):
    return c.send("sasl_authenticate", version, auth_bytes=data)


def serves(c) -> bool:
    return bool(c.send("metadata", 9, topics=[], allow_auto_topic_creation=False).brokers)


# ------------------------------------------------------------------------------------------------ SASL-1


# ------------------------------------------------------------------------------------------------ SASL-2


@pytest.mark.case("SASL-2")
@pytest.mark.parametrize("version", [0, 1])
def test_sasl_2_unknown_mechanism(conns, sasl_bootstrap, version):
    """An unknown mechanism is 33 with the list of enabled ones, then the connection is closed; names are
    case-sensitive.

    SOURCES: birdayz/kaf#105, #212; lectra-tech/kapoeira#13; confluentinc/librdkafka#3711
    """
    for name in ("FOO", "plain", "Plain", "scram-sha-256", ""):
        c = conns(sasl_bootstrap)
        r = handshake(c, name, version)
        assert r.error_code == 33 and {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} <= set(
            r.mechanisms
        ), name
        assert c.closed_within(5), name


@pytest.mark.case("SASL-2")
def test_sasl_2_no_requests_before_authentication(conns, sasl_bootstrap):
    """Any real request before authentication closes the connection without an answer.

    SOURCES: twmb/franz-go#1009; confluentinc/librdkafka#3711
    """
    posts = [
        ("metadata", 1, {"topics": []}),
        ("metadata", 12, {"topics": None}),
        ("produce", 9, {"acks": -1, "timeout_ms": 1000, "topic_data": []}),
        ("find_coordinator", 3, {"key": "g", "key_type": 0}),
        ("sasl_authenticate", 1, {"auth_bytes": b"\0a\0b"}),
    ]
    for api, version, body in posts:
        c = conns(sasl_bootstrap)
        c.post(api, version, body)
        assert c.closed_within(3), api
        c = conns(sasl_bootstrap)
        assert c.send("api_versions", 0).error_code == 0
        c.post(api, version, body)
        assert c.closed_within(3), api + " after ApiVersions"


@pytest.mark.case("SASL-2")
def test_sasl_2_other_request_during_the_exchange(conns, sasl_bootstrap):
    """Between handshake and success another request gets at most an error 34 and then the end of the connection.

    SOURCES: twmb/franz-go#1009
    """
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        c = conns(sasl_bootstrap)
        assert handshake(c, mechanism).error_code == 0
        c.post("metadata", 9, topics=[{"name": "some-topic"}], allow_auto_topic_creation=False)
        try:
            r = c.recv(5)
            assert r.brokers == []
            assert [t.error_code for t in r.topics] == [34]
        except wire.Closed:
            continue
        assert c.closed_within(5)
        c = conns(sasl_bootstrap)
        assert handshake(c, mechanism).error_code == 0
        c.post("sasl_handshake", 1, mechanism=mechanism)
        try:
            assert c.recv(5).error_code == 34
        except wire.Closed:
            continue
        assert c.closed_within(5)


@pytest.mark.case("SASL-2")
def test_sasl_2_handshake_on_a_plaintext_listener(conn):
    """On a listener without SASL the handshake is answered 34 with no mechanisms and the connection goes on.

    SOURCES: birdayz/kaf#105
    """
    for v in (0, 1):
        r = handshake(conn, "PLAIN", v)
        assert (r.error_code, r.mechanisms) == (34, [])
        assert serves(conn)
    assert auth(conn, b"\0a\0b").error_code == 34
    assert serves(conn)


# ------------------------------------------------------------------------------------------------ SASL-3


# ------------------------------------------------------------------------------------------------ SASL-4


def _need_oauth(conns, bootstrap):
    c = conns(bootstrap)
    if "OAUTHBEARER" not in handshake(c, "FOO").mechanisms:
        pytest.skip("OAUTHBEARER is not offered")


def _jws(claims) -> str:
    enc = lambda d: base64.urlsafe_b64encode(json.dumps(d).encode()).rstrip(b"=").decode()
    return enc({"alg": "none"}) + "." + enc(claims) + "."


def _token(**over):
    now = time.time()
    return _jws(dict({"sub": "alice", "iat": now - 10, "exp": now + 600}, **over))


@pytest.mark.case("SASL-4")
def test_sasl_4_bad_token_takes_two_rounds(conns, sasl_bootstrap):
    """A bad token is answered first with error 0 and a JSON status; after the client's 0x01 comes 58 and the end.
    In between nothing else is served.

    SOURCES: IBM/sarama#1423, PR#1428; robot-head/crabka PR#168
    """
    _need_oauth(conns, sasl_bootstrap)

    for token in ("bad", _token(exp=time.time() - 3600), "a.b.c"):
        c = conns(sasl_bootstrap)
        assert handshake(c, "OAUTHBEARER").error_code == 0
        r = auth(c, f"n,,\x01auth=Bearer {token}\x01\x01".encode())
        if r.error_code == 0:
            assert json.loads(r.auth_bytes)["status"] == "invalid_token"
            r = auth(c, b"\x01")
        assert r.error_code == 58
        assert c.closed_within(5)
    c = conns(sasl_bootstrap)
    assert handshake(c, "OAUTHBEARER").error_code == 0
    expired = _token(exp=time.time() - 3600)
    r = auth(c, f"n,,\x01auth=Bearer {expired}\x01\x01".encode())
    assert r.error_code == 0 and r.auth_bytes, "an expired token takes the two rounds"
    c.post("metadata", 9, topics=[{"name": "x"}], allow_auto_topic_creation=False)
    try:
        assert c.recv(5).topics[0].error_code == 34
    except wire.Closed:
        return
    assert c.closed_within(5)


@pytest.mark.case("SASL-4")
def test_sasl_4_good_token_and_malformed_message(conns, sasl_bootstrap):
    """A good token succeeds in one round with empty bytes; a malformed first message is 58.

    SOURCES: IBM/sarama#1423
    """
    _need_oauth(conns, sasl_bootstrap)
    c = conns(sasl_bootstrap)
    assert handshake(c, "OAUTHBEARER").error_code == 0
    r = auth(c, f"n,,\x01auth=Bearer {_token()}\x01\x01".encode())
    assert (r.error_code, r.auth_bytes) == (0, b"")
    assert serves(c)
    for data in (b"garbage", b"n,,\x01\x01", b"n,,auth=Bearer x", b""):
        c = conns(sasl_bootstrap)
        assert handshake(c, "OAUTHBEARER").error_code == 0
        assert auth(c, data).error_code == 58, data
        assert c.closed_within(5)


@pytest.mark.case("SASL-4")
def test_sasl_4_client_library(sasl_bootstrap, conns, conn, topic):
    """confluent-kafka with a token call-back: a valid unsecured token works, an expired one is an authentication error.

    SOURCES: IBM/sarama#1423
    """
    from confluent_kafka import KafkaError, Producer

    _need_oauth(conns, sasl_bootstrap)
    conf = {
        "bootstrap.servers": sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
    }
    p = Producer(dict(conf, oauth_cb=lambda _: (_token(), time.time() + 600)))
    p.produce(topic, b"v")
    assert p.flush(15) == 0
    assert wire.latest(conn, topic) == 1
    errs = []
    p = Producer(
        dict(
            conf,
            error_cb=errs.append,
            oauth_cb=lambda _: (_token(exp=time.time() - 3600), time.time() + 600),
        )
    )
    end = time.monotonic() + 10
    while not any(e.code() == KafkaError._AUTHENTICATION for e in errs) and time.monotonic() < end:
        p.poll(0.2)
    assert any(e.code() == KafkaError._AUTHENTICATION for e in errs), errs

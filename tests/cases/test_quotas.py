"""Client quotas: throttle times, muting, sessions."""

import time

import pytest

from tests.wire import batch, retry


def alter(c, client, rates: dict):
    """Set (or with None remove) quota keys of one client id and wait until the broker shows it."""
    r = c.send(
        "alter_client_quotas",
        1,
        validate_only=False,
        entries=[
            {
                "entity": [{"entity_type": "client-id", "entity_name": client}],
                "ops": [
                    {"key": k, "value": 0.0 if v is None else float(v), "remove": v is None}
                    for k, v in rates.items()
                ],
            }
        ],
    )
    assert r.entries[0].error_code == 0, r
    want = {k: float(v) for k, v in rates.items() if v is not None}
    got = retry(lambda: show(c, client), lambda x: x == want, 5)
    assert got == want
    time.sleep(0.5)


def show(c, client) -> dict:
    r = c.send(
        "describe_client_quotas",
        1,
        strict=True,
        components=[{"entity_type": "client-id", "match_type": 0, "match": client}],
    )
    assert r.error_code == 0, r
    assert len(r.entries or []) <= 1
    return {v.key: v.value for e in (r.entries or []) for v in e.values}


def put(c, topic, size, n=1):
    t0 = time.monotonic()
    r = c.send(
        "produce",
        9,
        transactional_id=None,
        acks=-1,
        timeout_ms=10000,
        topic_data=[
            {
                "name": topic,
                "partition_data": [{"index": 0, "records": batch([b"x" * (size // n)] * n)}],
            }
        ],
    )
    assert r.responses[0].partition_responses[0].error_code == 0
    return r.throttle_time / 1000, time.monotonic() - t0


@pytest.mark.case("ADM-14")
@pytest.mark.timeout(90)
def test_adm_14_produce_quota_answers_at_once_and_mutes(conn, conns, topic, unique):
    """Over the quota the reply comes at once with a throttle time, and the next request on that connection is answered
    only when that time is over; other clients are not touched, and without the quota there is no throttling.

    SOURCES: redpanda-data/redpanda PR#18218; confluentinc/librdkafka#5592; dpkp/kafka-python#2506; apache/kafka PR#5064
    """
    q = unique("q")
    alter(conn, q, {"producer_byte_rate": 100000})
    assert show(conn, q) == {"producer_byte_rate": 100000.0}
    try:
        c, r = conns(client_id=q), conns(client_id=unique("r"))
        assert put(c, topic, 600000)[0] == 0, "600 kB over a 10 s window is below 100 kB/s"
        throttle, took = put(c, topic, 600000)
        assert 1.0 < throttle < 4.0 and took < throttle * 0.75, (throttle, took)
        t0 = time.monotonic()
        c.post("metadata", 9, topics=[], allow_auto_topic_creation=False)
        assert put(r, topic, 600000)[0] == 0 and put(r, topic, 600000)[0] == 0, "another client id"
        assert time.monotonic() - t0 < throttle * 0.75, "another client id"
        c.recv(10)
        waited = time.monotonic() - t0
        assert throttle - 0.5 < waited < throttle + 4, (throttle, waited)
        t2, took2 = put(c, topic, 600000)
        assert t2 > throttle and took2 < t2 * 0.75, "further over the quota: longer"
        alter(conn, q, {"producer_byte_rate": None})
        assert show(conn, q) == {}
        assert put(conns(client_id=q), topic, 600000)[0] == 0
    finally:
        conn.send(
            "alter_client_quotas",
            1,
            validate_only=False,
            entries=[
                {
                    "entity": [{"entity_type": "client-id", "entity_name": q}],
                    "ops": [{"key": "producer_byte_rate", "value": 0.0, "remove": True}],
                }
            ],
        )


@pytest.mark.case("ADM-14")
@pytest.mark.timeout(90)
def test_adm_14_throttled_fetch_keeps_its_session(conn, conns, topic, unique):
    """A fetch over the quota is answered at once, empty and without error, and the fetch session goes on.

    SOURCES: apache/kafka PR#5064
    """
    q = unique("q")
    for _ in range(20):
        put(conn, topic, 100000)
    alter(conn, q, {"consumer_byte_rate": 100000})
    try:
        c = conns(client_id=q)

        def fetch(sid, epoch, offset, size):
            t0 = time.monotonic()
            r = c.send(
                "fetch",
                11,
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=50 << 20,
                isolation_level=0,
                session_id=sid,
                session_epoch=epoch,
                rack_id="",
                forgotten_topics_data=[],
                topics=[
                    {
                        "topic": topic,
                        "partitions": [
                            {
                                "partition": 0,
                                "current_leader_epoch": -1,
                                "fetch_offset": offset,
                                "log_start_offset": -1,
                                "partition_max_bytes": size,
                            }
                        ],
                    }
                ],
            )
            assert r.error_code == 0
            data = r.responses[0].partitions[0].records if r.responses else b""
            return r, len(data or b""), time.monotonic() - t0

        r, n, _ = fetch(0, 0, 0, 650000)
        assert n > 500000
        assert r.throttle_time == 0
        assert r.session_id > 0
        sid = r.session_id
        r, n, took = fetch(sid, 1, 6, 650000)
        assert (
            r.throttle_time > 500
            and n == 0
            and took < r.throttle_time * 0.00075
            and r.session_id == sid
        ), (r.throttle_time, n, took)
        time.sleep(r.throttle_time / 1000)
        r, n, _ = fetch(sid, 2, 6, 150000)
        assert 90000 < n < 250000 and r.session_id == sid, "session goes on where it was"
    finally:
        alter(conn, q, {"consumer_byte_rate": None})


@pytest.mark.case("ADM-14")
def test_adm_14_describe_and_errors(conn, unique):
    """Quotas of a client id, of the default and of (user, client-id) are kept apart; unknown keys are refused.

    SOURCES: apache/kafka PR#5064
    """
    q = unique("q")

    def op(entity, key, value, remove=False, validate=False):
        return (
            conn.send(
                "alter_client_quotas",
                1,
                validate_only=validate,
                entries=[
                    {
                        "entity": [{"entity_type": t, "entity_name": n} for t, n in entity],
                        "ops": [{"key": key, "value": value, "remove": remove}],
                    }
                ],
            )
            .entries[0]
            .error_code
        )

    pair = [("user", q), ("client-id", q)]
    try:
        assert op([("client-id", q)], "producer_byte_rate", 5000.0, validate=True) == 0
        assert show(conn, q) == {}
        assert op([("client-id", q)], "producer_byte_rate", 5000.0) == 0
        assert op(pair, "consumer_byte_rate", 7000.0) == 0
        assert op([("client-id", q)], "no_such_rate", 1.0) == 42
        assert op([("client-id", q)], "producer_byte_rate", -1.0) == 42
        assert retry(lambda: show(conn, q), lambda x: x, 5) == {"producer_byte_rate": 5000.0}
        r = conn.send(
            "describe_client_quotas",
            1,
            strict=True,
            components=[
                {"entity_type": "user", "match_type": 0, "match": q},
                {"entity_type": "client-id", "match_type": 0, "match": q},
            ],
        )
        (e,) = r.entries
        assert {(x.entity_type, x.entity_name) for x in e.entity} == set(pair)
        assert [(v.key, v.value) for v in e.values] == [("consumer_byte_rate", 7000.0)]
        r = conn.send(
            "describe_client_quotas",
            1,
            strict=False,
            components=[{"entity_type": "client-id", "match_type": 0, "match": q}],
        )
        assert len(r.entries) == 2, "not strict: pairs with this client id too"
    finally:
        op([("client-id", q)], "producer_byte_rate", 0.0, remove=True)
        op(pair, "consumer_byte_rate", 0.0, remove=True)

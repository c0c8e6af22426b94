"""Publishing with an `Idempotency-Key`: what a retry gets, what is refused, whose rights decide."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("msgspec")

from kwire.client.idempotency.key_records import KEY_CHARACTERS_MAX, KEYS_TOPIC
from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, wait_for
from tests.support.rest import Answer, Rest, text64
from tests.support.sasl import USERS
from tests.support.wire import WireClient
from tests.system.test_http import children, port_of
from tests.system.test_http_callers import Secure, header

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "http.listeners": "http://127.0.0.1:0",
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Secure]:
    with Secure(SETTINGS) as one:
        yield one


def caller(broker: Secure, user: str) -> Rest:
    return Rest(port_of(broker), {"Authorization": header(user, USERS[user])})


@pytest.fixture(scope="module")
def rest(broker: Secure) -> Rest:
    return caller(broker, "admin")


@pytest.fixture
def topic(broker: Secure) -> str:
    name = f"once-{next(_numbers)}"
    with WireClient(broker.bootstrap) as client:
        client.create_topic(name, 2, {"max.message.bytes": "2000"})
    return name


def publish(rest: Rest, topic: str, key: str, *values: str, **more: Any) -> Answer:
    body = {"messages": [{"value": text64(value)} for value in values], **more}
    return rest.ask("POST", f"/topics/{topic}/messages", body, {"Idempotency-Key": key})


def kept(rest: Rest, topic: str) -> int:
    """How many committed messages there are."""
    found = [rest.read(topic, index, 0, isolation="read_committed", wait_ms=0) for index in (0, 1)]
    return sum(len(one.told["messages"]) for one in found if one.status == 200)


def test_the_same_request_gives_the_same_offsets(broker: Secure, rest: Rest, topic: str) -> None:
    first = publish(rest, topic, "a", "one", "two")
    assert first.status == 200
    assert "idempotent-replayed" not in first.headers
    again = publish(rest, topic, "a", "one", "two", acks="1")
    assert (again.told, again.headers["idempotent-replayed"]) == (first.told, "true")
    (process,) = children(broker.pid)
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: children(broker.pid) not in ([process], []), "another process", 60.0)
    assert publish(rest, topic, "a", "one", "two").told == first.told
    assert kept(rest, topic) == 2
    assert publish(rest, topic, "b", "one", "two").told != first.told


def test_another_body_with_the_same_key_is_refused(rest: Rest, topic: str) -> None:
    assert publish(rest, topic, "used", "one").status == 200
    for answer in (
        publish(rest, topic, "used", "other"),
        publish(rest, topic, "used", "one", "one"),
        publish(rest, "once-0", "used", "one") if topic != "once-0" else None,
    ):
        if answer is not None:
            assert (answer.status, answer.told["header"]) == (422, "Idempotency-Key")
    assert kept(rest, topic) == 1


def test_requests_of_one_key_at_once_are_one(rest: Rest, topic: str) -> None:
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: publish(rest, topic, "busy", "v"), range(12)))
    assert {answer.status for answer in answers} == {200}
    assert all(answer.told == answers[0].told for answer in answers)
    assert kept(rest, topic) == 1


def test_what_the_broker_refuses_costs_others_nothing(rest: Rest, topic: str) -> None:
    def one(number: int) -> Answer:
        return publish(rest, topic, f"many-{number}", "x" * 5000 if number % 4 == 0 else "x")

    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(one, range(12)))
    assert [answer.status for answer in answers] == [400, 200, 200, 200] * 3
    assert answers[0].told["error"] == "message_too_large"
    assert kept(rest, topic) == 9
    # Nothing is kept by its key: it may be sent again, smaller.
    assert publish(rest, topic, "many-0", "x").status == 200


def test_header_names_of_messages_with_a_key_count_by_their_bytes(rest: Rest, topic: str) -> None:
    """The topic takes 2000 bytes: five of these messages, whose names have 100 characters, are as
    many bytes."""
    messages = [{"value": text64("v"), "headers": {"漢" * 100: "x"}}] * 24
    key = {"Idempotency-Key": "wide"}
    answer = rest.ask("POST", f"/topics/{topic}/messages", {"messages": messages}, key)
    assert (answer.status, kept(rest, topic)) == (200, 24)


@pytest.mark.parametrize(
    ("key", "more", "named"),
    [
        ("", {}, "Idempotency-Key"),
        ("with space", {}, "Idempotency-Key"),
        ("a" * (KEY_CHARACTERS_MAX + 1), {}, "Idempotency-Key"),
        ("zero", {"acks": "0"}, "acks"),
    ],
)
def test_what_is_wrong_is_named(
    rest: Rest, topic: str, key: str, more: dict[str, str], named: str
) -> None:
    answer = publish(rest, topic, key, "v", **more)
    assert answer.status == 400
    assert named in (answer.told.get("header"), answer.told.get("field"))


def test_a_topic_that_is_not_there(rest: Rest) -> None:
    assert publish(rest, "missing", "key", "v").status == 404


def test_rights_and_keys_are_those_of_the_principal(broker: Secure, rest: Rest, topic: str) -> None:
    (cluster,) = rest.ask("GET", "/v3/clusters").told["data"]
    acls = f"/v3/clusters/{cluster['cluster_id']}/acls:batch"
    alice = caller(broker, "alice")
    assert publish(rest, topic, "shared", "of admin").status == 200
    assert publish(alice, topic, "shared", "of alice").status in (403, 404)

    def allow(kind: str, name: str, *operations: str, pattern: str = "LITERAL") -> None:
        one = {
            "resource_type": kind,
            "resource_name": name,
            "pattern_type": pattern,
            "principal": "User:alice",
            "host": "*",
            "permission": "ALLOW",
        }
        data = [one | {"operation": operation} for operation in operations]
        assert rest.ask("POST", acls, {"data": data}).status == 201

    allow("TOPIC", topic, "WRITE")
    allow("TOPIC", KEYS_TOPIC, "READ", "WRITE")
    assert wait_for(
        lambda: publish(alice, topic, "shared", "of alice").status == 403, "half of the rights"
    )
    allow("TRANSACTIONAL_ID", "kwire-rest-alice-", "WRITE", "DESCRIBE", pattern="PREFIXED")
    assert wait_for(
        lambda: publish(alice, topic, "shared", "of alice").status == 200, "all of the rights"
    )
    assert kept(rest, topic) == 2
    assert publish(Rest(rest.port), topic, "shared", "of nobody").status == 401
    # What its batches may have alice may not ask: they are halved until the topic takes them.
    assert publish(alice, topic, "many", *(["x" * 300] * 20)).status == 200
    refused = publish(alice, topic, "large", *(["x" * 300] * 9), "x" * 3000, "x")
    assert (refused.status, refused.told["error"]) == (400, "message_too_large")
    assert (refused.told["index"], refused.told["field"]) == (9, "messages[9]")
    assert kept(rest, topic) == 22


def test_a_message_is_kept_once_though_the_quota_holds_it_back() -> None:
    """The end of its transaction does not wait behind it, for longer than the transaction lasts;
    what comes next is told when to come again."""
    with Broker(options=SETTINGS) as own, WireClient(own.bootstrap) as client:
        client.create_topic("held-back", 2)
        shape = m.AlterClientQuotasRequest
        entity = [shape.EntityData(entity_type="client-id", entity_name="kwire-http")]
        op = shape.OpData(key="producer_byte_rate", value=5_000.0, remove=False)
        client.call(shape(entries=[shape.EntryData(entity=entity, ops=[op])]), 1)
        rest = Rest(port_of(own))
        messages = [{"value": text64("x" * 100_000), "partition": at} for at in (0, 1)]
        body, headers = {"messages": messages}, {"Idempotency-Key": "held-back"}
        sent = rest.ask("POST", "/topics/held-back/messages", body, headers)
        assert sent.told == {"offsets": [{"partition": at, "offset": 0} for at in (0, 1)]}
        late = publish(rest, "held-back", "another", "v")
        assert (late.status, late.told["error"]) == (429, "quota_exceeded")
        assert int(late.headers["retry-after"]) >= 1


def test_over_the_quota_posts_are_kept_or_told_when_to_come_again() -> None:
    """Batches that go beside each other do not wait behind the first one that is throttled, nor
    does anybody else's transaction: each post is answered 200, or 429 with nothing of it kept."""
    with Broker(options=SETTINGS) as own, WireClient(own.bootstrap) as client:
        client.create_topic("burst", 4, {"max.message.bytes": "3000"})
        shape = m.AlterClientQuotasRequest
        entity = [shape.EntityData(entity_type="client-id", entity_name="kwire-http")]
        op = shape.OpData(key="producer_byte_rate", value=1_000.0, remove=False)
        client.call(shape(entries=[shape.EntryData(entity=entity, ops=[op])]), 1)
        port = port_of(own)
        messages = [{"value": text64("x" * 700), "partition": at % 4} for at in range(16)]

        def one(number: int) -> Answer:
            key = {"Idempotency-Key": f"burst-{number}"}
            return Rest(port).ask("POST", "/topics/burst/messages", {"messages": messages}, key)

        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(one, range(8)))
        statuses = [answer.status for answer in answers]
        assert set(statuses) <= {200, 429}, answers
        assert 200 in statuses
        held_back = [answer for answer in answers if answer.status == 429]
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in held_back)
        places = [
            (one["partition"], one["offset"])
            for answer in answers
            if answer.status == 200
            for one in answer.told["offsets"]
        ]
        assert len(set(places)) == len(places) == 16 * statuses.count(200)
        found = sum(
            len(Rest(port).read("burst", at, 0, isolation="read_committed").told["messages"])
            for at in range(4)
        )
        assert found == len(places)

"""A work queue by HTTP, over a share group of real brokers."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("msgspec")

from kwire.http.purposes.rest.message_ids import ID_CHARACTERS_MAX
from kwire.testing.cluster import Broker, wait_for
from tests.support.rest_calls import Answer, Rest, basic, http_port
from tests.support.sasl import USERS
from tests.support.wire import WireClient
from tests.system.test_http import children
from tests.system.test_http_callers import Secure

LOCK_MS = 1000
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.min.record.lock.duration.ms": str(LOCK_MS),
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={**SETTINGS, "http.listeners": "http://127.0.0.1:0"}) as one:
        yield one


@pytest.fixture(scope="module")
def rest(broker: Broker) -> Rest:
    return Rest(http_port(broker))


@pytest.fixture
def queue(broker: Broker) -> str:
    name = f"queue-{next(_numbers)}"
    with WireClient(broker.bootstrap) as client:
        client.create_topic(name, 2)
    return name


def taken(rest: Rest, queue: str, count: int = 1, extra: str = "") -> Answer:
    """A GET that has found messages."""
    path = f"/messages?queue={queue}&max={count}&wait_ms=10000{extra}"
    answer = rest.get(path)
    assert answer.status == 200, answer
    return answer


def test_what_is_acknowledged_is_done_and_all_else_comes_again(rest: Rest, queue: str) -> None:
    sent = {"queue": queue, "body": "grüße", "key": "order_789", "headers": {"trace-id": "abc"}}
    answer = rest.post("/messages", sent)
    assert (answer.status, answer.at("queue"), answer.at("offset")) == (200, queue, 0)
    first = taken(rest, queue)
    assert first.at("lockMs") == LOCK_MS
    message = first.at("messages", 0)
    assert isinstance(message, dict)
    assert message | {"messageId": "", "timestamp": 0} == {
        "messageId": "",
        "body": "grüße",
        "key": "order_789",
        "headers": {"trace-id": "abc"},
        "partition": answer.at("partition"),
        "offset": 0,
        "timestamp": 0,
        "deliveryCount": 1,
    }
    # Nobody says anything: its lock runs out.
    second = taken(rest, queue)
    assert second.at("messages", 0, "deliveryCount") == 2
    late = rest.post("/ack", {"messageId": first.text("messages", 0, "messageId")})
    assert (late.status, late.at("error"), late.at("field")) == (409, "not_held", "messageId")
    # It is given back: it comes at once.
    one = {"messageId": second.text("messages", 0, "messageId")}
    assert rest.post("/release", one).status == 204
    third = taken(rest, queue)
    assert third.at("messages", 0, "deliveryCount") == 3
    one = {"messageId": third.text("messages", 0, "messageId")}
    assert rest.post("/renew", one).at("lockMs") == LOCK_MS
    assert rest.post("/ack", one).status == 204
    assert rest.post("/ack", one).status == 204
    other = rest.post("/release", one)
    assert (other.status, other.at("error")) == (409, "already_answered")
    assert rest.post("/renew", one).status == 409
    assert rest.get(f"/messages?queue={queue}&wait_ms={2 * LOCK_MS}").status == 204


def test_what_is_rejected_does_not_come_again(rest: Rest, queue: str) -> None:
    rest.post("/messages", {"queue": queue, "body": "bad"})
    rejected = {"messageId": taken(rest, queue).text("messages", 0, "messageId")}
    assert rest.post("/reject", rejected).status == 204
    assert rest.get(f"/messages?queue={queue}&wait_ms={2 * LOCK_MS}").status == 204


def test_no_more_is_given_than_is_asked_for_and_a_group_has_its_own(rest: Rest, queue: str) -> None:
    for number in range(5):
        rest.post("/messages", {"queue": queue, "body": str(number), "key": "one"})
    bodies = []
    for count in (2, 2, 1):
        found = taken(rest, queue, count).items("messages")
        assert len(found) == count
        bodies += [one["body"] for one in found if isinstance(one, dict)]
    assert bodies == ["0", "1", "2", "3", "4"]
    assert len(taken(rest, queue, 5, "&group=another").items("messages")) == 5


def test_bytes_that_are_no_text_are_base64(rest: Rest, queue: str) -> None:
    message = {"value": "/w==", "partition": 0}
    rest.post(f"/topics/{queue}/messages", {"messages": [message]})
    found = taken(rest, queue).at("messages", 0)
    assert isinstance(found, dict)
    assert (found["body"], found["bodyBase64"], found["key"]) == (None, "/w==", None)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "named"),
    [
        ("POST", "/messages", {"queue": "no such", "body": ""}, 400, "queue"),
        ("POST", "/messages", {"queue": "missing", "body": ""}, 404, None),
        ("POST", "/messages", {"queue": "q"}, 400, "body"),
        ("POST", "/messages", {"queue": "q", "body": "", "what": 1}, 400, "what"),
        ("GET", "/messages", None, 400, "queue"),
        ("GET", "/messages?queue=missing", None, 404, None),
        ("GET", "/messages?queue=q&max=0", None, 400, "max"),
        ("GET", "/messages?queue=q&max=501", None, 400, "max"),
        ("GET", "/messages?queue=q&wait_ms=-1", None, 400, "wait_ms"),
        ("GET", "/messages?queue=q&wait_ms=30001", None, 400, "wait_ms"),
        ("GET", "/messages?queue=q&queue=q", None, 400, "queue"),
        ("POST", "/ack", {}, 400, "messageId"),
        ("POST", "/ack", {"messageId": ""}, 400, "messageId"),
        ("POST", "/ack", {"messageId": "!"}, 400, "messageId"),
        ("POST", "/ack", {"messageId": "ü"}, 400, "messageId"),
        ("POST", "/ack", {"messageId": "A" * (ID_CHARACTERS_MAX + 1)}, 400, "messageId"),
        ("POST", "/ack", {"messageId": "A" * 200}, 409, "messageId"),
        ("POST", "/renew", {"messageId": "A" * 200}, 409, "messageId"),
    ],
)
def test_what_is_wrong_is_named(
    rest: Rest, method: str, path: str, body: dict[str, str] | None, status: int, named: str | None
) -> None:
    answer = rest.call(method, path, dict(body) if body is not None else None)
    assert answer.status == status, answer
    assert isinstance(answer.body, dict)
    if named is not None:
        assert named in (answer.body.get("field"), answer.body.get("parameter"))


def test_ids_of_a_process_that_has_died_are_told_from_wrong_ones(
    broker: Broker, rest: Rest, queue: str
) -> None:
    rest.post("/messages", {"queue": queue, "body": "kept"})
    one = taken(rest, queue).text("messages", 0, "messageId")
    changed = one[:60] + ("A" if one[60] != "A" else "B") + one[61:]
    assert rest.post("/ack", {"messageId": changed}).status == 400
    (process,) = children(broker.pid)
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: children(broker.pid) not in ([process], []), "another process", 60.0)
    assert rest.post("/ack", {"messageId": one}).at("error") == "not_held"
    assert taken(rest, queue).at("messages", 0, "deliveryCount") == 2


def test_callers_have_their_own_messages_and_rights() -> None:
    with Secure(SETTINGS) as broker:
        admin, alice = (
            Rest(http_port(broker), basic(user, USERS[user])) for user in ("admin", "alice")
        )
        with WireClient(broker.bootstrap) as client:
            client.create_topic("jobs", 1)
        assert admin.post("/messages", {"queue": "jobs", "body": "work"}).status == 200
        assert alice.post("/messages", {"queue": "jobs", "body": "work"}).status == 403
        assert alice.get("/messages?queue=jobs").status == 403
        one = {"messageId": taken(admin, "jobs").text("messages", 0, "messageId")}
        stolen = alice.post("/ack", one)
        assert stolen.status in (400, 409)
        assert admin.post("/ack", one).status == 204
        nobody = Rest(http_port(broker))
        assert nobody.get("/messages?queue=jobs").status == 401
        assert nobody.post("/ack", one).status == 401

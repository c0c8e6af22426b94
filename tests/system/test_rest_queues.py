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
from tests.support.rest import Answer, Rest
from tests.support.sasl import USERS
from tests.support.wire import WireClient
from tests.system.test_http import children, port_of
from tests.system.test_http_callers import Secure, header

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
    return Rest(port_of(broker))


@pytest.fixture
def queue(broker: Broker) -> str:
    name = f"queue-{next(_numbers)}"
    with WireClient(broker.bootstrap) as client:
        client.create_topic(name, 2)
    return name


def taken(rest: Rest, queue: str, count: int = 1, extra: str = "") -> Answer:
    """A GET that has found messages."""
    path = f"/messages?queue={queue}&max={count}&wait_ms=10000{extra}"
    answer = rest.ask("GET", path)
    assert answer.status == 200, answer
    return answer


def test_what_is_acknowledged_is_done_and_all_else_comes_again(rest: Rest, queue: str) -> None:
    sent = {"queue": queue, "body": "grüße", "key": "order_789", "headers": {"trace-id": "abc"}}
    answer = rest.ask("POST", "/messages", sent)
    assert (answer.status, answer.told["queue"], answer.told["offset"]) == (200, queue, 0)
    first = taken(rest, queue)
    assert first.told["lockMs"] == LOCK_MS
    message = first.told["messages"][0]
    assert message | {"messageId": "", "timestamp": 0} == {
        "messageId": "",
        "body": "grüße",
        "key": "order_789",
        "headers": {"trace-id": "abc"},
        "partition": answer.told["partition"],
        "offset": 0,
        "timestamp": 0,
        "deliveryCount": 1,
    }
    # Nobody says anything: its lock runs out.
    second = taken(rest, queue)
    assert second.told["messages"][0]["deliveryCount"] == 2
    late = rest.ask("POST", "/ack", {"messageId": first.told["messages"][0]["messageId"]})
    assert (late.status, late.told["error"], late.told["field"]) == (409, "not_held", "messageId")
    # It is given back: it comes at once.
    one = {"messageId": second.told["messages"][0]["messageId"]}
    assert rest.ask("POST", "/release", one).status == 204
    third = taken(rest, queue)
    assert third.told["messages"][0]["deliveryCount"] == 3
    one = {"messageId": third.told["messages"][0]["messageId"]}
    assert rest.ask("POST", "/renew", one).told["lockMs"] == LOCK_MS
    assert rest.ask("POST", "/ack", one).status == 204
    assert rest.ask("POST", "/ack", one).status == 204
    other = rest.ask("POST", "/release", one)
    assert (other.status, other.told["error"]) == (409, "already_answered")
    assert rest.ask("POST", "/renew", one).status == 409
    assert rest.ask("GET", f"/messages?queue={queue}&wait_ms={2 * LOCK_MS}").status == 204


def test_what_is_rejected_does_not_come_again(rest: Rest, queue: str) -> None:
    rest.ask("POST", "/messages", {"queue": queue, "body": "bad"})
    rejected = {"messageId": taken(rest, queue).told["messages"][0]["messageId"]}
    assert rest.ask("POST", "/reject", rejected).status == 204
    assert rest.ask("GET", f"/messages?queue={queue}&wait_ms={2 * LOCK_MS}").status == 204


def test_no_more_is_given_than_is_asked_for_and_a_group_has_its_own(rest: Rest, queue: str) -> None:
    for number in range(5):
        rest.ask("POST", "/messages", {"queue": queue, "body": str(number), "key": "one"})
    bodies = []
    for count in (2, 2, 1):
        found = taken(rest, queue, count).told["messages"]
        assert len(found) == count
        bodies += [one["body"] for one in found]
    assert bodies == ["0", "1", "2", "3", "4"]
    assert len(taken(rest, queue, 5, "&group=another").told["messages"]) == 5


def test_bytes_that_are_no_text_are_base64(rest: Rest, queue: str) -> None:
    message = {"value": "/w==", "partition": 0}
    rest.ask("POST", f"/topics/{queue}/messages", {"messages": [message]})
    found = taken(rest, queue).told["messages"][0]
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
    answer = rest.ask(method, path, body)
    assert answer.status == status, answer
    if named is not None:
        assert named in (answer.told.get("field"), answer.told.get("parameter"))


def test_ids_of_a_process_that_has_died_are_told_from_wrong_ones(
    broker: Broker, rest: Rest, queue: str
) -> None:
    rest.ask("POST", "/messages", {"queue": queue, "body": "kept"})
    one = taken(rest, queue).told["messages"][0]["messageId"]
    changed = one[:60] + ("A" if one[60] != "A" else "B") + one[61:]
    assert rest.ask("POST", "/ack", {"messageId": changed}).status == 400
    (process,) = children(broker.pid)
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: children(broker.pid) not in ([process], []), "another process", 60.0)
    assert rest.ask("POST", "/ack", {"messageId": one}).told["error"] == "not_held"
    assert taken(rest, queue).told["messages"][0]["deliveryCount"] == 2


def test_callers_have_their_own_messages_and_rights() -> None:
    with Secure(SETTINGS) as broker:
        admin, alice = (
            Rest(port_of(broker), {"Authorization": header(user, USERS[user])})
            for user in ("admin", "alice")
        )
        with WireClient(broker.bootstrap) as client:
            client.create_topic("jobs", 1)
        assert admin.ask("POST", "/messages", {"queue": "jobs", "body": "work"}).status == 200
        assert alice.ask("POST", "/messages", {"queue": "jobs", "body": "work"}).status == 403
        assert alice.ask("GET", "/messages?queue=jobs").status == 403
        one = {"messageId": taken(admin, "jobs").told["messages"][0]["messageId"]}
        stolen = alice.ask("POST", "/ack", one)
        assert stolen.status in (400, 409)
        assert admin.ask("POST", "/ack", one).status == 204
        nobody = Rest(port_of(broker))
        assert nobody.ask("GET", "/messages?queue=jobs").status == 401
        assert nobody.ask("POST", "/ack", one).status == 401

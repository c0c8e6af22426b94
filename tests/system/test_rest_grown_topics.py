"""Topics that get more partitions, or are made anew with fewer, while callers of the REST API are
at work: what a connection knew of them before is asked anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("msgspec")

from kwire.protocol import messages as m
from kwire.testing import wait_until
from kwire.testing.cluster import Broker
from tests.support.rest import Rest, text64
from tests.support.wire import WireClient
from tests.system.test_http import port_of

V = {"value": text64("v")}


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Rest, WireClient]]:
    with (
        Broker(options={"http.listeners": "http://127.0.0.1:0"}) as broker,
        WireClient(broker.bootstrap) as client,
    ):
        yield Rest(port_of(broker)), client


def grow(client: WireClient, topic: str, partitions: int) -> None:
    shape = m.CreatePartitionsRequest
    asked = shape.CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
    answer = client.call(shape(topics=[asked], timeout_ms=10_000), 3)
    assert answer.results[0].error_code == 0
    of_topic = m.MetadataRequest.MetadataRequestTopic(name=topic)
    known = m.MetadataRequest(topics=[of_topic], allow_auto_topic_creation=False)
    wait_until(lambda: len(client.call(known, 9).topics[0].partitions) == partitions)


def begun(rest: Rest, topic: str) -> dict[str, Any]:
    """A transaction's name, once all that the caller has knows the topic."""
    base = "/v3/clusters/" + rest.ask("GET", "/v3/clusters").told["data"][0]["cluster_id"]
    who = rest.ask("POST", "/transactions/init", {"transactional_id": topic}).told
    named = {name: who[name] for name in ("producer_id", "producer_epoch")}
    sent = {**named, "topic": topic, "messages": [V]}
    assert rest.publish(topic, V).status == 200
    assert rest.publish(topic, V, acks="1").status == 200
    assert rest.ask("POST", f"/transactions/{topic}/messages", sent).status == 200
    assert rest.ask("POST", f"/transactions/{topic}/commit", named).status == 200
    once = {"Idempotency-Key": f"{topic}-before"}
    body = {"messages": [V]}
    assert rest.ask("POST", f"/topics/{topic}/messages", body, once).status == 200
    return {"sent": sent, "named": named, "records": f"{base}/topics/{topic}/records"}


def test_messages_go_to_partitions_that_have_come_since(
    world: tuple[Rest, WireClient],
) -> None:
    """One of a caller's connections had heard of them and placed messages there; that which sends
    had not, and said 503 for a minute. A transaction could only be aborted then."""
    rest, client = world
    client.create_topic("grown", 1)
    known = begun(rest, "grown")
    grow(client, "grown", 4)
    wait_until(lambda: len(rest.ask("GET", "/topics/grown/metadata").told["partitions"]) == 4)
    for acks in ("all", "1"):
        answers = [rest.publish("grown", V, acks=acks) for _ in range(4)]
        assert [one.status for one in answers] == [200] * 4, answers
        assert {one.told["offsets"][0]["partition"] for one in answers} == {0, 1, 2, 3}
    for at in range(4):
        once = {"Idempotency-Key": f"grown-{at}"}
        path = "/topics/grown/messages"
        assert rest.ask("POST", path, {"messages": [V]}, once).status == 200
        answer = rest.ask("POST", "/transactions/grown/messages", known["sent"])
        assert answer.status == 200, answer
        answer = rest.ask("POST", known["records"], {"value": {"type": "STRING", "data": "v"}})
        assert answer.told["error_code"] == 200, answer
    assert rest.ask("POST", "/transactions/grown/commit", known["named"]).status == 200


@pytest.mark.parametrize("call", ["publish", "once", "transaction", "v3", "read", "commit"])
def test_a_partition_that_is_named_and_has_come_since_is_found(
    world: tuple[Rest, WireClient], call: str
) -> None:
    """It was refused for up to a minute."""
    rest, client = world
    topic = f"named-{call}"
    client.create_topic(topic, 1)
    known = begun(rest, topic)
    offset = {"topic": topic, "partition": 2, "offset": 0}
    assert rest.ask("POST", "/consumers/g/offsets", {"offsets": [offset]}).status == 404
    grow(client, topic, 3)
    there = {**V, "partition": 2}
    messages = f"/topics/{topic}/messages"
    match call:
        case "publish":
            answer = rest.publish(topic, V, there)
        case "once":
            header = {"Idempotency-Key": topic}
            answer = rest.ask("POST", messages, {"messages": [there]}, header)
        case "transaction":
            sent = {**known["sent"], "messages": [there]}
            answer = rest.ask("POST", f"/transactions/{topic}/messages", sent)
        case "v3":
            record = {"partition_id": 2, "value": {"type": "STRING", "data": "v"}}
            answer = rest.ask("POST", known["records"], record)
            assert answer.told["error_code"] == 200, answer
        case "read":
            answer = rest.ask("GET", f"{messages}?partition=2&offset=0&wait_ms=0")
            assert answer.status == 204, answer
            return
        case _:
            answer = rest.ask("POST", "/consumers/g/offsets", {"offsets": [offset]})
    assert answer.status == 200, answer


def test_a_topic_that_was_made_anew_with_fewer_partitions_is_published_to(
    world: tuple[Rest, WireClient],
) -> None:
    """Messages were placed in partitions of the topic before, for a minute."""
    rest, client = world
    client.create_topic("anew", 4)
    begun(rest, "anew")
    shape = m.DeleteTopicsRequest
    deleted = shape(topics=[shape.DeleteTopicState(name="anew")], timeout_ms=10_000)
    assert client.call(deleted, 6).responses[0].error_code == 0
    client.create_topic("anew", 1)
    answers = [rest.publish("anew", V) for _ in range(9)]
    assert [one.status for one in answers[1:]] == [200] * 8, answers

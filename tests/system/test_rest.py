"""The REST API at a broker that runs, with and without logins: every call, every status."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

pytest.importorskip("msgspec")

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker
from tests.support.rest import Answer, Rest, text64
from tests.support.wire import WireClient, fetch_values
from tests.system.test_http import port_of, wait_for
from tests.system.test_http_callers import ADMIN, Secure

V = {"value": text64("v")}
NOWHERE = {"topic": "nowhere", "partition": 0, "offset": 0}
OFTEN = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
}


class World(NamedTuple):
    """A broker, a caller who may do everything, and a client beside."""

    rest: Rest
    root: WireClient


@pytest.fixture(scope="module", params=["open", "secured"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    is_secured = request.param == "secured"
    options = {"http.listeners": "http://127.0.0.1:0", **OFTEN}
    with Secure(OFTEN) if is_secured else Broker(options=options) as broker:
        headers = {"Authorization": ADMIN} if is_secured else {}
        with WireClient(broker.bootstrap) as root:
            root.create_topic("three", 3)
            yield World(Rest(port_of(broker), headers), root)


@pytest.fixture
def rest(world: World) -> Rest:
    return world.rest


def ok(answer: Answer, status: int = 200):  # type: ignore[no-untyped-def]
    assert answer.status == status, answer
    return answer.told


def refused(answer: Answer, status: int, error: str, **where: object) -> str:
    assert answer.status == status, answer
    assert answer.told["error"] == error, answer
    assert answer.told["error_code"] == status
    assert {name: answer.told.get(name) for name in where} == where, answer
    return str(answer.told["message"])


# -- publishing


def test_offsets_are_in_the_order_of_the_messages(world: World) -> None:
    world.root.create_topic("order", 3)
    sent = [{"key": f"user-{at}", "value": text64(str(at))} for at in range(20)]
    sent[3]["partition"] = 2  # type: ignore[assignment]
    offsets = ok(world.rest.publish("order", *sent))["offsets"]
    assert offsets[3]["partition"] == 2
    for message, where in zip(sent, offsets, strict=True):
        found = ok(world.rest.read("order", where["partition"], where["offset"]))
        assert found["messages"][0]["value"] == message["value"]
        assert found["messages"][0]["offset"] == where["offset"]


def test_a_key_goes_where_the_java_client_puts_it(world: World) -> None:
    """Of 7 partitions, as `BuiltInPartitioner.partitionForKey` of Kafka 4.4 gives them."""
    world.root.create_topic("java", 7)
    keys = ["a", "b", "user-42", "order_789", "", "é"]
    offsets = ok(world.rest.publish("java", *({"key": key, **V} for key in keys)))["offsets"]
    assert [one["partition"] for one in offsets] == [5, 6, 1, 4, 2, 4]


@pytest.mark.parametrize(("acks", "status"), [("0", 202), ("1", 200), ("all", 200)])
def test_acks(world: World, acks: str, status: int) -> None:
    name = f"acks-{acks}"
    world.root.create_topic(name)
    told = ok(world.rest.publish(name, V, V, acks=acks), status)
    offsets = [-1, -1] if acks == "0" else [0, 1]
    assert told == {"offsets": [{"partition": 0, "offset": offset} for offset in offsets]}
    assert wait_for(lambda: len(fetch_values(world.root, name, 0)) == 2)


def test_what_a_message_has_comes_back(world: World) -> None:
    world.root.create_topic("whole")
    headers = {"trace-id": "abc", "none": None, "raw": {"base64": "/w=="}, "many": ["a", "b"]}
    sent = [
        {"key": "k", "value": text64("v"), "headers": headers, "timestamp": 1_712_700_000_000},
        {"key_base64": "/w==", "value": None},
    ]
    ok(world.rest.publish("whole", *sent))
    answer = world.rest.read("whole", 0, 0)
    first, second = ok(answer)["messages"]
    assert first == {"offset": 0, **sent[0]}
    assert second["timestamp"] > 1_712_700_000_000
    del second["timestamp"]
    assert second == {"offset": 1, "key": None, "key_base64": "/w==", "value": None, "headers": {}}
    assert answer.headers["next-offset"] == "2"
    assert answer.told["high_watermark"] == 2
    assert answer.told["partition"] == 0


def test_messages_beyond_one_batch_are_several(world: World) -> None:
    world.root.create_topic("large")
    value = text64("x" * 200_000)
    offsets = ok(world.rest.publish("large", *[{"value": value}] * 12))["offsets"]
    assert [one["offset"] for one in offsets] == list(range(12))


def test_a_message_over_the_limit_is_named_and_nothing_is_kept(world: World) -> None:
    world.root.create_topic("small", configs={"max.message.bytes": "1000"})
    large = {"value": text64("x" * 2000)}
    answer = world.rest.publish("small", V, V, large, V)
    message = refused(answer, 400, "message_too_large", index=2, field="messages[2]")
    assert "max.message.bytes=1000" in message
    assert fetch_values(world.root, "small", 0) == []
    offsets = ok(world.rest.publish("small", *[{"value": text64("x" * 300)}] * 10))["offsets"]
    assert [one["offset"] for one in offsets] == list(range(10))


def test_a_request_of_many_messages_is_kept_whatever_way_it_goes(world: World) -> None:
    """Together they are larger than a batch may be: they go in several, and are told in order."""
    configs = {"max.message.bytes": "1000"}
    rest = world.rest
    world.root.create_topic("batches", 2, configs=configs)
    messages = [{"value": text64("x" * 300), "partition": at % 2} for at in range(20)]
    body, headers = {"messages": messages}, {"Idempotency-Key": "many"}
    once = ok(rest.ask("POST", "/topics/batches/messages", body, headers))["offsets"]
    assert once == [{"partition": at % 2, "offset": at // 2} for at in range(20)]
    again = rest.ask("POST", "/topics/batches/messages", body, headers)
    assert ok(again)["offsets"] == once
    assert again.headers["idempotent-replayed"] == "true"
    who = begun(rest, "batches")
    body = {**who, "topic": "batches", "messages": messages}
    assert len(ok(rest.ask("POST", "/transactions/batches/messages", body))["offsets"]) == 20
    wide = [{**V, "headers": {"漢" * 100: "x"}, "partition": 0}] * 12
    body = {**who, "topic": "batches", "messages": wide}
    assert len(ok(rest.ask("POST", "/transactions/batches/messages", body))["offsets"]) == 12
    ok(rest.ask("POST", "/transactions/batches/commit", who))
    large = [V, {"value": text64("x" * 2000)}]
    body, headers = {"messages": large}, {"Idempotency-Key": "large"}
    sent = rest.ask("POST", "/topics/batches/messages", body, headers)
    refused(sent, 400, "message_too_large", field="messages[1]", index=1)
    sent = rest.ask("POST", "/messages", {"queue": "batches", "body": "x" * 2000})
    refused(sent, 400, "message_too_large", field="body", index=None)


def set_quota(root: WireClient, value: float | None) -> None:
    """For the client id of the HTTP process."""
    shape = m.AlterClientQuotasRequest
    entity = [shape.EntityData(entity_type="client-id", entity_name="kwire-http")]
    op = shape.OpData(key="producer_byte_rate", value=value or 0.0, remove=value is None)
    answer = root.call(shape(entries=[shape.EntryData(entity=entity, ops=[op])]), 1)
    assert answer.entries[0].error_code == 0


def test_over_the_quota(world: World) -> None:
    world.root.create_topic("quota")
    set_quota(world.root, 10_000.0)
    try:
        value = {"value": text64("x" * 60_000)}

        def throttled() -> Answer | None:
            answer = world.rest.publish("quota", value)
            return answer if answer.status == 429 else ok(answer) and None

        who = begun(world.rest, "throttled")
        answer = wait_for(throttled)
        refused(answer, 429, "quota_exceeded")
        assert int(answer.headers["retry-after"]) >= 1
        body = {**who, "topic": "quota", "messages": [V]}
        sent = world.rest.ask("POST", "/transactions/throttled/messages", body)
        refused(sent, 429, "quota_exceeded")
        body = {"queue": "quota", "body": "v"}
        refused(world.rest.ask("POST", "/messages", body), 429, "quota_exceeded")
        body, headers = {"messages": [V]}, {"Idempotency-Key": "throttled"}
        sent = world.rest.ask("POST", "/topics/quota/messages", body, headers)
        refused(sent, 429, "quota_exceeded")
        (cluster,) = ok(world.rest.ask("GET", "/v3/clusters"))["data"]
        path = f"/v3/clusters/{cluster['cluster_id']}/topics/quota/records"
        refused(world.rest.ask("POST", path, {}), 429, "quota_exceeded")
        assert world.rest.ask("GET", "/topics/quota/metadata").status == 200  # nothing else waits
    finally:
        set_quota(world.root, None)
    assert wait_for(lambda: world.rest.publish("three", V).status == 200)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", {}),
        (b"{", {}),
        (b"[]", {}),
        (b"null", {}),
        (b'{"messages":' + b"[" * 50_000, {"index": 0}),
        (b'{"messages":[{"value":"\xff"}]}', {}),
        ({}, {"field": "messages"}),
        ({"messages": []}, {"field": "messages"}),
        ({"messages": [V], "acks": "2"}, {"field": "acks"}),
        ({"messages": [V], "acks": 1}, {"field": "acks"}),
        ({"messages": [V], "more": 1}, {"field": "more"}),
        ({"messages": [V, {"value": "no base64"}]}, {"field": "messages[1].value", "index": 1}),
        ({"messages": [V, {"value": "YQ"}]}, {"field": "messages[1].value", "index": 1}),
        ({"messages": [V, {"value": 1}]}, {"field": "messages[1].value", "index": 1}),
        ({"messages": [{"keys": "a"}]}, {"field": "messages[0].keys", "index": 0}),
        ({"messages": [{"key": 1}]}, {"field": "messages[0].key", "index": 0}),
        ({"messages": [V, {"partition": 3}]}, {"field": "messages[1].partition", "index": 1}),
        ({"messages": [{"partition": -1}]}, {"field": "messages[0].partition", "index": 0}),
        ({"messages": [{"partition": 2**70}]}, {"field": "messages[0].partition", "index": 0}),
        ({"messages": [{"timestamp": -5}]}, {"field": "messages[0].timestamp", "index": 0}),
        ({"messages": [{"headers": {"a": 1}}]}, {"index": 0}),
        ({"messages": [{"key": "a", "key_base64": "YQ=="}]}, {"index": 0}),
    ],
)
def test_a_wrong_body_is_named(rest: Rest, body: object, where: dict[str, object]) -> None:
    answer = rest.ask("POST", "/topics/three/messages", body)
    assert answer.status == 400, answer
    assert answer.told["error"] in ("invalid_body", "invalid_json")
    assert {name: answer.told.get(name) for name in where} == where, answer


@pytest.mark.parametrize("media_type", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_said_to_be_json(rest: Rest, media_type: str) -> None:
    body = {"messages": [V]}
    answer = rest.ask("POST", "/topics/three/messages", body, {"Content-Type": media_type})
    refused(answer, 415, "unsupported_media_type", header="Content-Type")


def test_a_body_that_is_too_large(rest: Rest) -> None:
    answer = rest.ask("POST", "/topics/three/messages", b"{", {"Content-Length": str(17 << 20)})
    refused(answer, 413, "request_entity_too_large")


def test_a_topic_that_is_not_there(rest: Rest) -> None:
    refused(rest.publish("nowhere", V), 404, "not_found")
    refused(rest.read("nowhere", 0, 0), 404, "not_found")
    refused(rest.ask("GET", "/topics/nowhere/metadata"), 404, "not_found")
    refused(rest.ask("GET", "/nothing"), 404, "not_found")
    refused(rest.ask("PUT", "/topics/three/messages", {}), 405, "method_not_allowed")
    assert rest.publish("a%20b", V).status == 400


# -- reading


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "partition"),
        ("partition=0", "offset"),
        ("partition=a&offset=0", "partition"),
        ("partition=0&offset=-1", "offset"),
        ("partition=0&offset=1.0", "offset"),
        ("partition=0&offset=99999999999999999999", "offset"),
        ("partition=0&offset=0&max_bytes=0", "max_bytes"),
        ("partition=0&offset=0&wait_ms=60001", "wait_ms"),
        ("partition=0&offset=0&isolation=none", "isolation"),
        ("partition=0&offset=0&other=1", "other"),
        ("partition=0&offset=0&topic=x", "topic"),
        ("partition=0&partition=1&offset=0", "partition"),
    ],
)
def test_a_wrong_parameter_is_named(rest: Rest, query: str, parameter: str) -> None:
    answer = rest.ask("GET", f"/topics/three/messages?{query}")
    refused(answer, 400, "invalid_parameter", parameter=parameter)


def test_nothing_within_the_wait(rest: Rest) -> None:
    answer = rest.read("three", 2, 0, wait_ms=1)
    assert (answer.status, answer.told) in ((204, None), (200, answer.told))
    end = int(answer.headers["next-offset"])
    assert rest.read("three", 2, end, wait_ms=0).status == 204


def test_offsets_out_of_range(rest: Rest) -> None:
    message = refused(rest.read("three", 0, 1000), 416, "offset_out_of_range", parameter="offset")
    assert message.startswith("offset 1000 is out of range: 0 to ")
    refused(rest.read("three", 3, 0), 404, "not_found", parameter="partition")


def test_who_waits_gets_what_comes(world: World) -> None:
    world.root.create_topic("awaited")
    found: list[Answer] = []
    reading = threading.Thread(
        target=lambda: found.append(world.rest.read("awaited", 0, 0, wait_ms=30_000))
    )
    reading.start()
    ok(world.rest.publish("awaited", V))  # not held up by who waits
    reading.join()
    assert ok(found[0])["messages"][0]["value"] == V["value"]


def test_metadata(rest: Rest) -> None:
    told = ok(rest.ask("GET", "/topics/three/metadata"))
    assert told["topic"] == "three"
    assert [one["partition"] for one in told["partitions"]] == [0, 1, 2]
    first = told["partitions"][0]
    assert (first["leader"], first["replicas"], first["isr"]) == (1, [1], [1])
    assert first["log_start_offset"] == 0 <= first["high_watermark"]
    assert first["leader_epoch"] >= 0


# -- groups


def test_offsets_of_a_group(world: World) -> None:
    world.root.create_topic("orders", 2)
    ok(world.rest.publish("orders", *[{**V, "partition": 1, "timestamp": 1000}] * 3))
    ok(world.rest.publish("orders", *[{**V, "partition": 1, "timestamp": 2000}] * 2))
    assert ok(world.rest.ask("GET", "/consumers/g1/offsets")) == {"offsets": []}
    body = {"offsets": [{"topic": "orders", "partition": 1, "offset": 1}]}
    assert ok(world.rest.ask("POST", "/consumers/g1/offsets", body)) == body
    assert ok(world.rest.ask("GET", "/consumers/g1/offsets")) == body
    for to, offset in [
        ("end", 5),
        ("beginning", 0),
        ({"timestamp": 2000}, 3),
        ({"timestamp": 3000}, 5),
    ]:
        ok(world.rest.ask("POST", "/consumers/g1/seek", {"topic": "orders", "to": to}))
        offsets = ok(world.rest.ask("GET", "/consumers/g1/offsets"))["offsets"]
        assert [one["offset"] for one in offsets] == [0, offset], to


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/consumers/g/offsets", {"offsets": [{"topic": "t", "partition": 0}]}, 400),
        ("/consumers/g/offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": "1"}]}, 400),
        (
            "/consumers/g/offsets",
            {"offsets": [{"topic": "x", "partition": 0, "offset": 0}] * 2},
            400,
        ),
        ("/consumers/g/offsets", {"offsets": [{"topic": "x", "partition": 0, "offset": 0}]}, 404),
        ("/consumers/g/seek", {"topic": "three", "to": "middle"}, 400),
        ("/consumers/g/seek", {"topic": "three", "to": {"timestamp": "1"}}, 400),
        ("/consumers/g/seek", {"topic": "nowhere", "to": "end"}, 404),
    ],
)
def test_wrong_offsets(rest: Rest, path: str, body: object, status: int) -> None:
    assert rest.ask("POST", path, body).status == status


# -- transactions


def begun(rest: Rest, name: str, **more: object) -> dict[str, object]:
    told = ok(rest.ask("POST", "/transactions/init", {"transactional_id": name, **more}))
    return {key: told[key] for key in ("producer_id", "producer_epoch")}


def test_the_life_of_a_transaction(world: World) -> None:
    world.root.create_topic("bank", 2)
    rest, who = world.rest, begun(world.rest, "t1")
    body = {**who, "topic": "bank", "messages": [{**V, "partition": 0}, {**V, "partition": 1}]}
    offsets = {"offsets": [{"topic": "bank", "partition": 0, "offset": 1}]}

    def committed() -> int:
        return rest.read("bank", 0, 0, isolation="read_committed", wait_ms=0).status

    sent = ok(rest.ask("POST", "/transactions/t1/messages", body))
    assert sent == {"offsets": [{"partition": 0, "offset": 0}, {"partition": 1, "offset": 0}]}
    group = {**who, "group": "of-t1", **offsets}
    assert ok(rest.ask("POST", "/transactions/t1/offsets", group)) == offsets
    assert (committed(), rest.read("bank", 0, 0).status) == (204, 200)
    ended = {"transactional_id": "t1", "state": "committed"}
    assert ok(rest.ask("POST", "/transactions/t1/commit", who)) == ended
    assert wait_for(lambda: committed() == 200)
    assert wait_for(lambda: ok(rest.ask("GET", "/consumers/of-t1/offsets")) == offsets)
    ok(rest.ask("POST", "/transactions/t1/messages", body))
    ended = {"transactional_id": "t1", "state": "aborted"}
    assert ok(rest.ask("POST", "/transactions/t1/abort", who)) == ended
    read = rest.read("bank", 0, 2, isolation="read_committed", wait_ms=0)
    assert read.status == 204


def test_who_is_fenced(rest: Rest) -> None:
    old, new = begun(rest, "t2"), begun(rest, "t2")
    body = {"topic": "three", "messages": [V]}
    for path in ("messages", "commit", "abort"):
        answer = rest.ask(
            "POST", f"/transactions/t2/{path}", {**old, **(body if path == "messages" else {})}
        )
        refused(answer, 409, "fenced")
    ok(rest.ask("POST", "/transactions/t2/messages", {**new, **body}))
    ok(rest.ask("POST", "/transactions/t2/commit", new))


def test_a_producer_elsewhere_fences(world: World) -> None:
    who = begun(world.rest, "t3")
    body = {**who, "topic": "three", "messages": [V]}
    ok(world.rest.ask("POST", "/transactions/t3/messages", body))
    request = m.InitProducerIdRequest(transactional_id="t3", transaction_timeout_ms=10_000)
    wait_for(lambda: world.root.call(request, 4).error_code == 0)
    refused(world.rest.ask("POST", "/transactions/t3/messages", body), 409, "fenced")
    refused(world.rest.ask("POST", "/transactions/t3/messages", body), 409, "transaction_to_abort")
    refused(world.rest.ask("POST", "/transactions/t3/abort", who), 409, "fenced")


def test_after_an_error_a_transaction_can_only_be_aborted(rest: Rest) -> None:
    who = begun(rest, "t4")
    body = {**who, "topic": "three", "messages": [V]}
    ok(rest.ask("POST", "/transactions/t4/messages", body))
    late = {**body, "messages": [{**V, "timestamp": 2**60}]}
    answer = rest.ask("POST", "/transactions/t4/messages", late)
    refused(answer, 400, "invalid_timestamp")
    refused(rest.ask("POST", "/transactions/t4/commit", who), 409, "transaction_to_abort")
    ok(rest.ask("POST", "/transactions/t4/abort", who))
    refused(rest.ask("POST", "/transactions/t4/commit", who), 404, "not_found")
    begun(rest, "t4")


def test_what_a_transaction_cannot_commit_leaves_it_open(rest: Rest) -> None:
    who = begun(rest, "t6")
    ok(rest.ask("POST", "/transactions/t6/messages", {**who, "topic": "three", "messages": [V]}))
    body = {**who, "group": "of-t6", "offsets": [NOWHERE]}
    refused(rest.ask("POST", "/transactions/t6/offsets", body), 404, "not_found")
    body["offsets"] = [{"topic": "three", "partition": 3, "offset": 0}]
    refused(rest.ask("POST", "/transactions/t6/offsets", body), 404, "not_found", index=0)
    ok(rest.ask("POST", "/transactions/t6/commit", who))


def test_a_forgotten_transaction_is_aborted(world: World) -> None:
    world.root.create_topic("forgotten")
    rest, who = world.rest, begun(world.rest, "t5", timeout_ms=1000)
    body = {**who, "topic": "forgotten", "messages": [V]}
    ok(rest.ask("POST", "/transactions/t5/messages", body))
    ok(rest.publish("forgotten", V))

    def committed() -> Answer:
        return rest.read("forgotten", 0, 0, isolation="read_committed", wait_ms=200)

    found = wait_for(lambda: (answer := committed()).status == 200 and answer)
    assert [one["offset"] for one in found.told["messages"]] == [1]
    assert wait_for(lambda: rest.ask("POST", "/transactions/t5/commit", who).status in (404, 409))


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("init", {}, 400),
        ("init", {"transactional_id": ""}, 400),
        ("init", {"transactional_id": "a/b"}, 400),
        ("init", {"transactional_id": "t", "timeout_ms": 999}, 400),
        ("none/commit", {}, 400),
        ("none/commit", {"producer_id": 1, "producer_epoch": 0}, 404),
        ("none/abort", {"producer_id": 1, "producer_epoch": 40_000}, 400),
        ("none/messages", {"producer_id": 1, "producer_epoch": 0, "topic": "three"}, 400),
    ],
)
def test_wrong_transactions(rest: Rest, path: str, body: object, status: int) -> None:
    assert rest.ask("POST", f"/transactions/{path}", body).status == status


# -- members of groups


def member(rest: Rest, group: str, **more: object) -> str:
    body = {"auto_offset_reset": "earliest", **more}
    return f"/consumers/{group}/instances/" + str(
        ok(rest.ask("POST", f"/consumers/{group}/instances", body))["instance"]
    )


def test_the_life_of_a_member(world: World) -> None:
    world.root.create_topic("jobs", 2)
    rest = world.rest
    ok(rest.publish("jobs", *({"value": text64(str(at)), "partition": at % 2} for at in range(6))))
    one = member(rest, "workers")
    refused(rest.ask("GET", one + "/records"), 409, "not_subscribed")
    refused(rest.ask("POST", one + "/subscription", {"topics": ["nowhere"]}), 404, "not_found")
    assert rest.ask("POST", one + "/subscription", {"topics": []}).status == 400
    ok(rest.ask("POST", one + "/subscription", {"topics": ["jobs"]}))
    values: list[str] = []

    def read_all() -> bool:
        answer = rest.ask("GET", one + "/records?wait_ms=1000")
        if answer.status == 200:
            values.extend(record["value"] for record in answer.told["records"])
        return len(values) >= 6

    assert wait_for(read_all)
    assert sorted(values) == sorted(text64(str(at)) for at in range(6))
    assert rest.ask("GET", one + "/records?wait_ms=1").status == 204
    partitions = ok(rest.ask("GET", one + "/assignment"))["partitions"]
    assert [part["partition"] for part in partitions] == [0, 1]
    offsets = ok(rest.ask("POST", one + "/offsets", {}))["offsets"]
    assert [part["offset"] for part in offsets] == [3, 3]
    given = {"offsets": [{"topic": "jobs", "partition": 0, "offset": 1}]}
    assert ok(rest.ask("POST", one + "/offsets", given)) == given
    committed = ok(rest.ask("GET", "/consumers/workers/offsets"))["offsets"]
    assert [part["offset"] for part in committed] == [1, 3]
    answer = rest.ask("POST", "/consumers/workers/offsets", given)
    refused(answer, 409, "group_has_members")
    seek = {"topic": "jobs", "to": "end"}
    refused(rest.ask("POST", "/consumers/workers/seek", seek), 409, "group_has_members")
    ok(rest.ask("DELETE", one), 204)
    refused(rest.ask("DELETE", one), 404, "not_found", parameter="instance")
    assert wait_for(lambda: rest.ask("POST", "/consumers/workers/seek", seek).status == 200)


def test_two_members_share_the_partitions_and_what_is_not_committed_comes_again(
    world: World,
) -> None:
    world.root.create_topic("shared", 2)
    rest = world.rest
    ok(rest.publish("shared", *({**V, "partition": at} for at in (0, 1))))
    one, two = member(rest, "pair"), member(rest, "pair")
    ok(rest.ask("POST", one + "/subscription", {"topics": ["shared"]}))
    wait_for(lambda: rest.ask("GET", one + "/records?wait_ms=500").status == 200)
    ok(rest.ask("POST", two + "/subscription", {"topics": ["shared"]}))

    def assigned(instance: str) -> list[int]:
        rest.ask("GET", instance + "/records?wait_ms=100")
        told = ok(rest.ask("GET", instance + "/assignment"))
        return [part["partition"] for part in told["partitions"]]

    assert wait_for(lambda: sorted([assigned(one), assigned(two)]) == [[0], [1]])
    ok(rest.ask("DELETE", two), 204)
    ok(rest.ask("DELETE", one), 204)
    three = member(rest, "pair")
    ok(rest.ask("POST", three + "/subscription", {"topics": ["shared"]}))
    found = []

    def again() -> bool:
        answer = rest.ask("GET", three + "/records?wait_ms=1000")
        found.extend(answer.told["records"] if answer.status == 200 else [])
        return len(found) == 2

    assert wait_for(again)
    ok(rest.ask("DELETE", three), 204)


def test_a_forgotten_member_leaves(rest: Rest) -> None:
    one = member(rest, "leaves", timeout_ms=1000)
    ok(rest.ask("POST", one + "/subscription", {"topics": ["three"]}))
    seek = {"topic": "three", "to": "end"}
    assert wait_for(lambda: rest.ask("POST", "/consumers/leaves/seek", seek).status == 200)
    refused(rest.ask("GET", one + "/records"), 404, "not_found", parameter="instance")


# -- documents


def test_the_document_and_the_page(rest: Rest) -> None:
    told = ok(rest.ask("GET", "/openapi.json"))
    assert told["openapi"] == "3.1.0"
    assert {"/topics/{topic}/messages", "/transactions/init"} < set(told["paths"])
    answer = rest.ask("GET", "/docs")
    page = bytes(ok(answer)).decode()
    assert answer.headers["content-type"].startswith("text/html")
    assert "http://" not in page
    assert "https://" not in page
    for path in told["paths"]:
        assert f"<code>{path}</code>" in page

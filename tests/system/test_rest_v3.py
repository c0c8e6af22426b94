"""Confluent's REST API v3 of a real broker: its shapes, its error codes, and whose rights decide.

What is expected stands in the public OpenAPI document of confluentinc/kafka-rest.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("msgspec")

from kwire.client.cluster import Cluster
from kwire.client.consumer import Consumer, GroupProtocol
from kwire.client.offsets import EARLIEST
from kwire.client.settings import ConnectionSettings
from kwire.testing.cluster import Broker
from tests.support.rest import WAIT_S, Answer, Rest, text64
from tests.support.sasl import USERS
from tests.system.test_http import port_of
from tests.system.test_http_callers import Secure, header

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Secure]:
    with Secure({**SETTINGS, "http.listeners": "http://127.0.0.1:0"}) as one:
        yield one


def caller(broker: Broker, user: str) -> Rest:
    return Rest(port_of(broker), {"Authorization": header(user, USERS[user])})


@pytest.fixture(scope="module")
def rest(broker: Secure) -> Rest:
    return caller(broker, "admin")


@pytest.fixture(scope="module")
def base(rest: Rest) -> str:
    (cluster,) = rest.ask("GET", "/v3/clusters").told["data"]
    return f"/v3/clusters/{cluster['cluster_id']}"


@pytest.fixture
def topic(rest: Rest, base: str) -> str:
    name = f"topic-{next(_numbers)}"
    asked = {"topic_name": name, "partitions_count": 2}
    assert rest.ask("POST", base + "/topics", asked).status == 201
    return name


def code(answer: Answer) -> tuple[int, int]:
    return answer.status, answer.told["error_code"]


def test_a_cluster_and_its_brokers(broker: Secure, rest: Rest, base: str) -> None:
    root = f"http://127.0.0.1:{rest.port}"
    cluster_id = base.rpartition("/")[2]
    found = rest.ask("GET", base).told
    assert found["kind"] == "KafkaCluster"
    name = f"crn:///kafka={cluster_id}"
    assert found["metadata"] == {"self": root + base, "resource_name": name}
    assert found["controller"] == {"related": f"{root}{base}/brokers/1"}
    assert found["topics"] == {"related": f"{root}{base}/topics"}
    listed = rest.ask("GET", "/v3/clusters").told
    assert listed["metadata"] == {"self": f"{root}/v3/clusters", "next": None}
    assert listed["data"] == [found]
    (one,) = rest.ask("GET", base + "/brokers").told["data"]
    assert (one["kind"], one["broker_id"], one["host"]) == ("KafkaBroker", 1, "127.0.0.1")
    assert rest.ask("GET", base + "/brokers/1").told == one
    # The same where Confluent Server has it: links stay below it.
    embedded = rest.ask("GET", "/kafka" + base).told
    assert embedded["metadata"]["self"] == f"{root}/kafka{base}"
    assert code(rest.ask("GET", "/v3/clusters/another")) == (404, 404)
    assert code(rest.ask("GET", base + "/brokers/9")) == (404, 40403)


def test_topics(rest: Rest, base: str) -> None:
    asked = {
        "topic_name": "made",
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    tried = rest.ask("POST", base + "/topics", asked | {"validate_only": True})
    assert (tried.status, tried.told["partitions_count"]) == (200, 2)
    assert code(rest.ask("GET", base + "/topics/made")) == (404, 40403)
    made = rest.ask("POST", base + "/topics", asked)
    assert made.status == 201
    assert made.headers["location"] == made.told["metadata"]["self"]
    found = rest.ask("GET", base + "/topics/made").told
    assert found == made.told
    assert (found["kind"], found["replication_factor"]) == ("KafkaTopic", 1)
    assert found["is_internal"] is False
    assert found in rest.ask("GET", base + "/topics").told["data"]
    assert code(rest.ask("POST", base + "/topics", asked)) == (400, 40002)
    many = {"topic_name": "many", "replication_factor": 3}
    assert code(rest.ask("POST", base + "/topics", many)) == (400, 40002)
    placed = {"topic_name": "placed", "replicas_assignments": {"0": [1], "1": [1]}}
    assert rest.ask("POST", base + "/topics", placed).told["partitions_count"] == 2
    wrong = {"topic_name": "wrong", "replicas_assignments": {"x": [1]}}
    assert rest.ask("POST", base + "/topics", wrong).told["field"] == "replicas_assignments.x"
    assert rest.ask("PATCH", base + "/topics/made", {"partitions_count": 3}).status == 200
    again = rest.ask("PATCH", base + "/topics/made", {"partitions_count": 3})
    assert code(again) == (400, 40002)
    assert rest.ask("DELETE", base + "/topics/made").status == 204
    assert code(rest.ask("DELETE", base + "/topics/made")) == (404, 40403)


def test_partitions_and_replicas(rest: Rest, base: str, topic: str) -> None:
    at = f"{base}/topics/{topic}/partitions"
    found = rest.ask("GET", at).told["data"]
    assert [one["partition_id"] for one in found] == [0, 1]
    assert rest.ask("GET", at + "/1").told == found[1]
    root = f"http://127.0.0.1:{rest.port}"
    assert found[1]["leader"] == {"related": f"{root}{at}/1/replicas/1"}
    (replica,) = rest.ask("GET", at + "/1/replicas").told["data"]
    assert (replica["broker_id"], replica["is_leader"], replica["is_in_sync"]) == (1, True, True)
    assert rest.ask("GET", at + "/1/replicas/1").told == replica
    for path in ("/7", "/7/replicas", "/1/replicas/9"):
        assert code(rest.ask("GET", at + path)) == (404, 40403)


@pytest.mark.parametrize(
    ("owner", "name", "values", "source"),
    [
        ("/topics/TOPIC/configs", "retention.ms", ("1000", "2000"), "DYNAMIC_TOPIC_CONFIG"),
        ("/brokers/1/configs", "log.cleaner.threads", ("1", "2"), "DYNAMIC_BROKER_CONFIG"),
        (
            "/broker-configs",
            "log.retention.ms",
            ("700000000", "800000000"),
            "DYNAMIC_DEFAULT_BROKER_CONFIG",
        ),
    ],
)
def test_configs(
    rest: Rest, base: str, topic: str, owner: str, name: str, values: tuple[str, str], source: str
) -> None:
    at = base + owner.replace("TOPIC", topic)
    assert rest.ask("PUT", f"{at}/{name}", {"value": values[0]}).status == 204
    found = rest.ask("GET", f"{at}/{name}").told
    assert (found["value"], found["source"], found["is_default"]) == (values[0], source, False)
    assert found["synonyms"][0] == {"name": name, "value": values[0], "source": source}
    assert found in rest.ask("GET", at).told["data"]
    change = {"name": name, "value": values[1]}
    assert rest.ask("POST", at + ":alter", {"data": [change], "validate_only": True}).status == 204
    assert rest.ask("GET", f"{at}/{name}").told["value"] == values[0]
    assert rest.ask("POST", at + ":alter", {"data": [change]}).status == 204
    assert rest.ask("GET", f"{at}/{name}").told["value"] == values[1]
    assert rest.ask("DELETE", f"{at}/{name}").status == 204
    after = rest.ask("GET", f"{at}/{name}")
    assert after.status == 404 or after.told["value"] != values[1]
    assert code(rest.ask("PUT", f"{at}/{name}", {"value": "x"})) == (400, 40002)
    assert code(rest.ask("GET", at + "/no.such.config")) == (404, 40403)
    twice = rest.ask("POST", at + ":alter", {"data": [change, change]})
    assert (twice.status, twice.told["field"]) == (400, "data[1].name")
    unsaid = rest.ask("POST", at + ":alter", {"data": [{"name": name}]})
    assert (unsaid.status, unsaid.told["field"]) == (400, "data[0].value")


def test_configs_of_what_is_not_there(rest: Rest, base: str) -> None:
    assert code(rest.ask("GET", base + "/topics/missing/configs")) == (404, 40403)
    assert code(rest.ask("GET", base + "/brokers/9/configs")) == (404, 40403)
    value = {"value": "1"}
    gone = rest.ask("PUT", base + "/brokers/9/configs/log.cleaner.threads", value)
    assert code(gone) == (404, 40403)


def reports(rest: Rest, base: str, topic: str, raw: bytes) -> list[Any]:
    """The report of each record."""
    connection = http.client.HTTPConnection("127.0.0.1", rest.port, timeout=WAIT_S)
    try:
        headers = {**rest.headers, "Content-Type": "application/json"}
        connection.request("POST", f"{base}/topics/{topic}/records", raw, headers)
        response = connection.getresponse()
        assert response.status == 200, response.read()
        return [json.loads(line) for line in response.read().splitlines()]
    finally:
        connection.close()


def test_records_one_after_the_other_with_a_report_each(rest: Rest, base: str, topic: str) -> None:
    key = {"type": "BINARY", "data": text64("foobar")}
    records: list[dict[str, Any]] = [
        {
            "partition_id": 1,
            "headers": [{"name": "Header-1", "value": text64("one")}],
            "key": key,
            "value": {"type": "JSON", "data": {"foo": "bar", "n": 1}},
            "timestamp": "2021-02-05T19:14:42Z",
        },
        {"partition_id": 1, "value": {"type": "STRING", "data": "grüße"}},
        {"partition_id": 1},
        {"partition_id": 9, "value": {"type": "STRING", "data": ""}},
        {"value": {"data": "x"}},
        {"value": {"type": "BINARY", "data": "!"}},
        {"value": {"type": "STRING", "data": 1}},
        {"value": {"schema_id": 1, "data": 1}},
        {"partition_id": 1, "value": {"type": "JSON", "data": None}, "timestamp": None},
        {"what": 1},
    ]
    raw = b" \n".join(json.dumps(one).encode() for one in records[:5])
    raw += b"".join(json.dumps(one).encode() for one in records[5:])
    told = reports(rest, base, topic, raw)
    codes = [one["error_code"] for one in told]
    assert codes == [200, 200, 200, 400, 400, 400, 400, 400, 200, 400]
    assert told[0] == {
        "error_code": 200,
        "cluster_id": base.rpartition("/")[2],
        "topic_name": topic,
        "partition_id": 1,
        "offset": 0,
        "timestamp": "2021-02-05T19:14:42Z",
        "key": {"size": 6, "type": "BINARY"},
        "value": {"size": 19, "type": "JSON"},
    }
    assert [told[at]["offset"] for at in (1, 2, 8)] == [1, 2, 3]
    for at, word in ((3, "partition_id"), (4, "type"), (5, "value"), (7, "schemas"), (9, "what")):
        assert word in told[at]["message"]
    found = rest.read(topic, 1, 0).told["messages"]
    values = [text64('{"foo":"bar","n":1}'), text64("grüße"), None, None]
    assert [one["value"] for one in found] == values
    assert (found[0]["key"], found[0]["headers"]) == ("foobar", {"Header-1": "one"})
    assert found[0]["timestamp"] == 1612552482000


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 422),
        (b" \n", 422),
        (b"{", 400),
        (b"{}{", 400),
        (b"\xff", 400),
        (b'{"value":{"type":"JSON","data":NaN}}', 400),
        (b"[" * 100_000, 400),
        (b"{}" * 10_001, 400),
    ],
)
def test_what_is_no_records(rest: Rest, base: str, topic: str, raw: bytes, status: int) -> None:
    answer = rest.ask("POST", f"{base}/topics/{topic}/records", raw)
    assert code(answer) == (status, status)


def test_records_for_a_topic_that_is_not_there(rest: Rest, base: str) -> None:
    assert code(rest.ask("POST", base + "/topics/missing/records", b"{}")) == (404, 40403)


@pytest.mark.parametrize("protocol", list(GroupProtocol))
def test_consumer_groups(
    broker: Secure, rest: Rest, base: str, topic: str, protocol: GroupProtocol
) -> None:
    group = f"readers-{protocol.value}"
    for index in (0, 1):
        rest.publish(topic, *[{"value": "", "partition": index}] * (2 + index))

    async def scenario() -> None:
        async with (
            Cluster(ConnectionSettings(broker.bootstrap)) as cluster,
            Consumer(cluster, group, [topic], start=EARLIEST, protocol=protocol) as consumer,
        ):
            while sum(consumer._positions.values()) < 5:
                await consumer.poll()
            await consumer.commit()
            rest.publish(topic, *[{"value": "", "partition": 1}] * 4)
            await asyncio.to_thread(check)

    def check() -> None:
        at = f"{base}/consumer-groups/{group}"
        found = rest.ask("GET", at).told
        assert (found["kind"], found["state"]) == ("KafkaConsumerGroup", "STABLE")
        assert (found["type"], found["is_simple"]) == (protocol.value.upper(), False)
        assert found in rest.ask("GET", base + "/consumer-groups").told["data"]
        (member,) = rest.ask("GET", at + "/consumers").told["data"]
        of_member = f"{at}/consumers/{member['consumer_id']}"
        assert rest.ask("GET", of_member).told == member
        assigned = rest.ask("GET", of_member + "/assignments").told["data"]
        assert [one["partition_id"] for one in assigned] == [0, 1]
        for one in assigned:  # what calls itself so is there
            assert rest.ask("GET", base + one["metadata"]["self"].partition(base)[2]).told == one
        nowhere = f"{of_member}/assignments/{topic}/partitions/7"
        assert code(rest.ask("GET", nowhere)) == (404, 40403)
        lags = rest.ask("GET", at + "/lags").told["data"]
        assert [(one["current_offset"], one["log_end_offset"], one["lag"]) for one in lags] == [
            (2, 2, 0),
            (3, 7, 4),
        ]
        assert lags[1]["consumer_id"] == member["consumer_id"]
        assert rest.ask("GET", f"{at}/lags/{topic}/partitions/1").told == lags[1]
        summary = rest.ask("GET", at + "/lag-summary").told
        assert (summary["max_lag"], summary["total_lag"]) == (4, 4)
        assert (summary["max_lag_topic_name"], summary["max_lag_partition_id"]) == (topic, 1)
        assert code(rest.ask("GET", at + "/consumers/nobody")) == (404, 40403)
        assert code(rest.ask("GET", f"{at}/lags/{topic}/partitions/7")) == (404, 40403)

    asyncio.run(asyncio.wait_for(scenario(), WAIT_S))


def test_a_group_that_is_not_there(rest: Rest, base: str) -> None:
    for path in ("", "/consumers", "/lags", "/lag-summary"):
        answer = rest.ask("GET", f"{base}/consumer-groups/missing{path}")
        assert code(answer) == (404, 40403)


ACL = {
    "resource_type": "TOPIC",
    "resource_name": "acl-topic",
    "pattern_type": "LITERAL",
    "principal": "User:bob",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def test_acls(rest: Rest, base: str) -> None:
    at = base + "/acls"
    assert rest.ask("POST", at, ACL).status == 201
    more = [ACL | {"operation": "WRITE"}, ACL | {"pattern_type": "PREFIXED"}]
    assert rest.ask("POST", at + ":batch", {"data": more}).status == 201
    found = rest.ask("GET", at + "?principal=User:bob&operation=READ").told
    assert found["kind"] == "KafkaAclList"
    # In whatever order they come.
    first, second = sorted(found["data"], key=lambda one: one["pattern_type"])
    assert (first["pattern_type"], second["pattern_type"]) == ("LITERAL", "PREFIXED")
    assert first | ACL == first
    # The link of an ACL finds it and no other.
    link = first["metadata"]["self"].partition("/v3")[2]
    assert rest.ask("GET", "/v3" + link).told["data"] == [first]
    unsaid = rest.ask("DELETE", at)
    assert (unsaid.status, unsaid.told["parameter"]) == (400, "resource_type")
    every = "?resource_type=TOPIC&pattern_type=ANY&operation=ANY&permission=ANY&principal=User:bob"
    assert len(rest.ask("DELETE", at + every).told["data"]) == 3
    assert rest.ask("GET", at + "?principal=User:bob").told["data"] == []
    cluster = ACL | {"resource_type": "CLUSTER"}
    assert code(rest.ask("POST", at, cluster)) == (400, 40002)
    assert code(rest.ask("GET", at + "?operation=FLY")) == (400, 400)


def test_rights_are_those_of_the_caller(broker: Secure, rest: Rest, base: str, topic: str) -> None:
    alice = caller(broker, "alice")
    assert alice.ask("GET", base + "/topics").told["data"] == []
    for method, path, body in (
        ("POST", "/topics", {"topic_name": "hers"}),
        ("GET", f"/topics/{topic}", None),
        ("DELETE", f"/topics/{topic}", None),
        ("GET", f"/topics/{topic}/configs", None),
        ("PUT", f"/topics/{topic}/configs/retention.ms", {"value": "1"}),
        ("GET", "/broker-configs", None),
        ("GET", "/acls", None),
        ("POST", "/acls", ACL),
    ):
        answer = alice.ask(method, base + path, body)
        assert answer.status in (403, 404), (path, answer)
        assert answer.told["error_code"] in (40301, 40403), (path, answer)
    report = alice.ask("POST", f"{base}/topics/{topic}/records", b"{}")
    assert report.told["error_code"] in (40301, 40403)
    nobody = Rest(rest.port)
    assert nobody.ask("GET", "/v3/clusters").status == 401

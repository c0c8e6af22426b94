"""Messages as they come, as server-sent events of a real broker."""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

pytest.importorskip("starlette")
pytest.importorskip("msgspec")

from kwire.http.purposes.rest.clients import READERS_MAX
from kwire.http.purposes.rest.tail import ID_CHARACTERS_MAX, PARTITIONS_MAX
from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, wait_for
from tests.support.rest import WAIT_S, Rest, text64
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


class Event(NamedTuple):
    """One event; `told` is the JSON of its data."""

    name: str
    id: str
    told: Any


class Events:
    """The events of an answer, as they come."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def next(self) -> Event:
        """The next one with data."""
        name = last_id = data = ""
        while True:
            line = self._response.readline().decode()
            assert line, "the answer is over"
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                last_id = value
            elif field == "data":
                data = value
            elif not line.strip() and data:
                return Event(name, last_id, json.loads(data))

    def values(self, count: int) -> list[str]:
        """The values of so many."""
        return [self.next().told["value"] for _ in range(count)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options=SETTINGS) as one:
        yield one


@pytest.fixture(scope="module")
def rest(broker: Broker) -> Rest:
    return Rest(port_of(broker))


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"tailed-{next(_numbers)}"
    with WireClient(broker.bootstrap) as client:
        client.create_topic(name, 2)
    return name


@contextmanager
def tailed(rest: Rest, path: str, headers: dict[str, str] | None = None) -> Iterator[Events]:
    connection = http.client.HTTPConnection("127.0.0.1", rest.port, timeout=WAIT_S)
    try:
        connection.request("GET", path, headers={**rest.headers, **(headers or {})})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.getheader("content-type") == "text/event-stream"
        yield Events(response)
    finally:
        connection.close()


def message(value: str, partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"value": text64(value), "partition": partition, **more}


def test_a_tail_tells_what_comes_and_goes_on_after_a_cut(rest: Rest, topic: str) -> None:
    rest.publish(topic, message("before"))
    with tailed(rest, f"/topics/{topic}/tail") as events:
        rest.publish(topic, message("first", key="k", headers={"trace-id": "abc"}))
        event = events.next()
        assert event.told | {"timestamp": 0} == {
            "partition": 0,
            "offset": 1,
            "timestamp": 0,
            "key": "k",
            "value": text64("first"),
            "headers": {"trace-id": "abc"},
        }
        assert event.id == "0:2,1:0"
    rest.publish(topic, message("while away"), message("there too", 1))
    again = {"Last-Event-ID": event.id}
    with tailed(rest, f"/topics/{topic}/tail", again) as events:
        assert sorted(events.values(2)) == sorted([text64("while away"), text64("there too")])
    # An id that does not know a partition: it is new, and told from its beginning.
    with tailed(rest, f"/topics/{topic}/tail", {"Last-Event-ID": "0:3"}) as events:
        assert events.next().told["partition"] == 1


def test_where_a_tail_begins_and_what_it_leaves_out(rest: Rest, topic: str) -> None:
    rest.publish(topic, message("0", key="a"), message("1", headers={"h": "x"}))
    rest.publish(topic, message("2", 1, headers={"h": ["y", "z"]}), message("3", 1, key="a"))
    base = f"/topics/{topic}/tail?from=beginning"
    for query, wanted in (
        ("", ["0", "1", "2", "3"]),
        ("&partition=1", ["2", "3"]),
        ("&key=a", ["0", "3"]),
        ("&header=h", ["1", "2"]),
        ("&header=h:z", ["2"]),
    ):
        with tailed(rest, base + query) as events:
            assert sorted(events.values(len(wanted))) == [text64(value) for value in wanted]
    with tailed(rest, f"/topics/{topic}/tail?partition=0&offset=1") as events:
        assert events.values(1) == [text64("1")]


def test_a_tail_goes_on_behind_what_is_gone(broker: Broker, rest: Rest, topic: str) -> None:
    rest.publish(topic, *(message(str(number)) for number in range(3)))
    with tailed(rest, f"/topics/{topic}/tail?from=beginning&partition=0") as events:
        event = events.next()
        assert event.id == "0:1"
    shape = m.DeleteRecordsRequest
    gone = shape.DeleteRecordsPartition(partition_index=0, offset=2)
    with WireClient(broker.bootstrap) as client:
        asked = shape(
            topics=[shape.DeleteRecordsTopic(name=topic, partitions=[gone])], timeout_ms=30_000
        )
        assert client.call(asked, 2).topics[0].partitions[0].error_code == 0
    with tailed(rest, f"/topics/{topic}/tail?partition=0", {"Last-Event-ID": event.id}) as events:
        assert events.next().told["offset"] == 2
    answer = rest.ask("GET", f"/topics/{topic}/tail?partition=0&offset=1")
    assert (answer.status, answer.told["error"]) == (416, "offset_out_of_range")


@pytest.mark.parametrize(
    ("query", "headers", "status", "named"),
    [
        ("from=middle", {}, 400, "from"),
        ("offset=1", {}, 400, "offset"),
        ("partition=0&offset=-1", {}, 400, "offset"),
        ("partition=7", {}, 404, "partition"),
        ("partition=0&offset=99", {}, 416, "offset"),
        ("key=" + "a" * 2000, {}, 400, "key"),
        ("isolation=none", {}, 400, "isolation"),
        ("", {"Last-Event-ID": "0"}, 400, "Last-Event-ID"),
        ("", {"Last-Event-ID": "0:9223372036854775808"}, 400, "Last-Event-ID"),
        ("", {"Last-Event-ID": "1:" * ID_CHARACTERS_MAX}, 400, "Last-Event-ID"),
    ],
)
def test_what_is_wrong_is_named(
    rest: Rest, topic: str, query: str, headers: dict[str, str], status: int, named: str
) -> None:
    answer = rest.ask("GET", f"/topics/{topic}/tail?{query}".rstrip("?"), None, headers)
    assert answer.status == status, answer
    assert named in (answer.told.get("parameter"), answer.told.get("header"))


def test_a_topic_of_many_partitions_is_tailed_one_by_one(broker: Broker, rest: Rest) -> None:
    with WireClient(broker.bootstrap) as client:
        client.create_topic("wide", PARTITIONS_MAX + 1)
    answer = rest.ask("GET", "/topics/wide/tail")
    assert (answer.status, answer.told["parameter"]) == (400, "partition")
    assert rest.ask("GET", "/topics/missing/tail").status == 404


def test_a_tail_ends_with_its_client(broker: Broker, rest: Rest, topic: str) -> None:
    """Each one that did not end would keep one of the places for readers, and its connection."""
    (process,) = children(broker.pid)

    def connections() -> int:
        with open(f"/proc/{process}/net/tcp") as table:
            port = f":{int(broker.bootstrap.rpartition(':')[2]):04X}"
            return sum(line.split()[2].endswith(port) for line in table if " 01 " in line)

    with tailed(rest, f"/topics/{topic}/tail"):
        before = connections()
        with tailed(rest, f"/topics/{topic}/tail"), tailed(rest, f"/topics/{topic}/tail"):
            wait_for(lambda: connections() > before, "more connections")
        wait_for(lambda: connections() <= before, "their end")
    assert READERS_MAX > 2


def test_a_tail_has_the_rights_of_its_caller() -> None:
    with Secure(SETTINGS | {"http.listeners": "http://127.0.0.1:0"}) as broker:
        with WireClient(broker.bootstrap) as client:
            client.create_topic("secret", 1)
        port = port_of(broker)
        admin, alice = (
            Rest(port, {"Authorization": header(user, USERS[user])}) for user in ("admin", "alice")
        )
        admin.publish("secret", message("told"))
        with tailed(admin, "/topics/secret/tail?from=beginning") as events:
            assert events.values(1) == [text64("told")]
        assert alice.ask("GET", "/topics/secret/tail").status == 403
        assert Rest(port).ask("GET", "/topics/secret/tail").status == 401

"""Usual small requests take their plain road also where others have quotas."""

from __future__ import annotations

import pytest

from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.frame import encode_request
from kwire.protocol.structs import Message
from kwire.quota.client_quotas import ClientQuotas
from kwire.server import unbound_client
from kwire.server.context import RequestContext
from kwire.server.dispatch import Route
from kwire.server.plain_requests import PlainRequests
from kwire.server.request_steps import RequestSteps
from tests.support.connections import ConnectionUnderTest

HEARTBEAT = 12
MUCH = 1e12
LAST = 100


class Roads:
    """A connection whose requests of one API have a road, which refuses numbers above `LAST`;
    `taken` are the numbers of those that took it."""

    def __init__(self, quotas: ClientQuotas, api_key: int = HEARTBEAT) -> None:
        self.api_key = api_key
        self.taken: list[int] = []
        self.general: list[int] = []
        self.steps = RequestSteps()
        self.under_test = ConnectionUnderTest(None, self.steps)
        self.route = Route.of_api(api_key, self._handle, ())
        self.route.plain_road = lambda parts, counts, version: self._road
        connection = self.under_test.connection
        connection._route = lambda key, version: self.route
        connection._plain = PlainRequests(connection._parts, lambda key: self.route)
        self.steps.set_throttles(quotas)

    def _handle(self, context: RequestContext, request: object) -> Message:
        self.general.append(context.correlation_id)
        return m.ProduceResponse() if self.api_key == ApiKey.PRODUCE else m.HeartbeatResponse()

    def _road(self, connection: object, body: memoryview) -> bytes | None:
        number = int.from_bytes(body[4:8], "big")
        if number > LAST:
            return None
        self.taken.append(number)
        return b"\0\0\0\4" + body[4:8].tobytes()

    def ask(self, number: int, client_id: str | None = "x") -> None:
        request: Message = m.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        if self.api_key == ApiKey.PRODUCE:
            request = m.ProduceRequest(acks=1, timeout_ms=1000)
        parts = encode_request(self.api_key, 3, number, client_id, request)
        self.frame = b"".join(parts)
        self.under_test.receive(self.frame)


def quotas(client_id: str | None = "other", name: str = "request_percentage") -> ClientQuotas:
    made = ClientQuotas()
    made.changed((("client-id", client_id),), {name: MUCH})
    return made


def test_quotas_of_others_keep_nobody_off_its_road() -> None:
    """The first request of a client goes the general way, which looks for its quotas."""
    roads = Roads(quotas())
    for number in range(1, 4):
        roads.ask(number)
    assert (roads.general, roads.taken) == ([1], [2, 3])


@pytest.mark.parametrize("name", ["producer_byte_rate", "consumer_byte_rate"])
def test_quotas_of_bytes_do_not_concern_these_requests(name: str) -> None:
    roads = Roads(quotas("x", name))
    roads.ask(1)
    roads.ask(2)
    assert (roads.general, roads.taken) == ([1], [2])


def test_bytes_that_are_within_their_quota_for_certain_are_counted_on_the_road() -> None:
    made = quotas("x", "producer_byte_rate")
    roads = Roads(made, ApiKey.PRODUCE)
    for number in range(1, 6):
        roads.ask(number)
    assert (roads.general, roads.taken) == ([1], [2, 3, 4, 5])
    ((_, sensor),) = made.sensors()
    assert sensor.measure(int(sensor.counted_s * 1000)) > 0
    sizes = 5 * (len(roads.frame) - 4)
    assert sensor._rate.total == sizes


def test_what_a_road_refuses_is_counted_once() -> None:
    made = quotas("x", "producer_byte_rate")
    roads = Roads(made, ApiKey.PRODUCE)
    for number in (1, 2, LAST + 1):
        roads.ask(number)
    assert (roads.general, roads.taken) == ([1, LAST + 1], [2])
    ((_, sensor),) = made.sensors()
    sensor.measure(int(sensor.counted_s * 1000))
    assert sensor._rate.total == 3 * (len(roads.frame) - 4)


def test_near_the_quota_the_general_way_decides() -> None:
    """Every request is above what the quota allows in all its windows."""
    made = ClientQuotas()
    made.changed((("client-id", "x"),), {"producer_byte_rate": 0.1})
    roads = Roads(made, ApiKey.PRODUCE)
    for number in range(1, 4):
        roads.ask(number)
    assert roads.taken == []
    assert roads.general[0] == 1, "the answer makes the client wait"


def test_who_is_held_to_a_share_of_time_is_measured() -> None:
    roads = Roads(quotas("x"))
    for number in range(1, 4):
        roads.ask(number)
    assert (roads.general, roads.taken) == ([1, 2, 3], [])


@pytest.mark.parametrize("others", ["other", "xx", "", None])
def test_each_client_of_a_connection_is_told_from_the_others(others: str | None) -> None:
    roads = Roads(quotas("x"))
    roads.ask(1, others)
    roads.ask(2, "x")
    roads.ask(3, others)
    roads.ask(4, "x")
    roads.ask(5, others)
    assert (roads.general, roads.taken) == ([1, 2, 4], [3, 5])


def test_a_quota_that_is_set_is_asked_for_from_the_next_request_on() -> None:
    made = quotas()
    roads = Roads(made)
    roads.ask(1)
    roads.ask(2)
    made.changed((("client-id", "x"),), {"request_percentage": MUCH})
    roads.ask(3)
    roads.ask(4)
    made.changed((("client-id", "x"),), {})
    roads.ask(5)
    roads.ask(6)
    assert (roads.general, roads.taken) == ([1, 3, 4, 5], [2, 6])


def test_a_connection_that_is_gone_is_told_of_no_change() -> None:
    made = quotas()
    roads = Roads(made)
    known = made.known_clients(roads.under_test.connection.principal)
    roads.ask(1)
    roads.ask(2)
    assert len(known.keepers) == 2, "what its client is bound by, and its road"
    roads.under_test.connection.connection_lost(None)
    assert not known.keepers


def test_roads_that_are_kept_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbound_client, "KNOWN_MAX", 3)
    roads = Roads(quotas())
    for number in range(1, 40):
        roads.ask(number, f"client {number % 5}")
        roads.ask(number, f"client {number % 5}")
    assert roads.taken[-2:] == [39, 39]
    unbound = roads.under_test.connection._unbound
    assert unbound is not None
    assert 1 <= len(unbound._roads) <= 3


def test_versions_that_there_are_not_are_not_kept() -> None:
    roads = Roads(quotas())
    roads.ask(1)
    roads.ask(2)
    unbound = roads.under_test.connection._unbound
    assert unbound is not None
    for version in range(100, 120):
        body = roads.frame[4:6] + version.to_bytes(2, "big") + roads.frame[8:]
        assert unbound.answer(roads.under_test.connection, memoryview(body)) is None
    assert len(unbound._roads) == 1


def test_whoever_looks_at_requests_sees_them_all() -> None:
    roads = Roads(quotas())
    roads.ask(1)
    roads.steps.set_observers(lambda *_: None)
    roads.ask(2)
    roads.ask(3)
    assert (roads.general, roads.taken) == ([1, 2, 3], [])
    roads.steps.set_observers()
    roads.ask(4)
    roads.ask(5)
    assert (roads.general, roads.taken) == ([1, 2, 3, 4], [5])


def test_rights_are_asked_for_where_there_are_quotas_too() -> None:
    roads = Roads(quotas())
    roads.steps._has_authorizer = lambda: True
    roads.steps.image_published()
    roads.ask(1)
    roads.ask(2)
    assert (roads.general, roads.taken) == ([1, 2], [])


@pytest.mark.parametrize("frame", [b"\0\x0c", b"\0\x0c\0\3\0\0\0\1\0", b"\0\x0c\0\3\0\0\0\1\0\5ab"])
def test_a_header_that_is_cut_off_is_the_general_way_s(frame: bytes) -> None:
    roads = Roads(quotas())
    roads.ask(1)
    roads.under_test.receive(len(frame).to_bytes(4, "big") + frame)
    assert roads.taken == []
    assert roads.under_test.transport.closed

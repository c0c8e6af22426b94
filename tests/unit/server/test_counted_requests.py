"""What requests are counted for on their short ways, beside each counted and measured by itself.

Some connections of a few client ids, which share quotas that change, ask at random times; each is
told to wait for as long as by rates that are looked up anew, and measured, with every request.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import fetch
from kwire.api.shared.fetch_size import ANSWER_BYTES, PARTITION_BYTES
from kwire.clock import SeededRandom
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.frame import decode_response, encode_request
from kwire.protocol.records import Record, build_batch
from kwire.protocol.structs import Message
from kwire.quota.client_quotas import ClientQuotas
from kwire.quota.entities import QuotaEntity
from kwire.quota.sensor import Sensor
from kwire.replica.delayed_read import ReadContext
from kwire.server.connection import BrokerConnection
from kwire.server.context import RequestContext
from kwire.server.dispatch import Route
from kwire.server.fetch_sessions import FetchSessionCache
from kwire.server.plain_requests import PlainRequests
from kwire.server.request_steps import RequestSteps
from tests.support.connections import ConnectionUnderTest
from tests.support.parts import made_parts
from tests.support.replica_world import NOW_MS, World

VERSION = 12
CLIENT_IDS = ("a", "b", "cc", None)
USER = "ANONYMOUS"
PRINCIPAL = f"User:{USER}"
ENTITIES: list[QuotaEntity] = [
    (("user", USER),),
    (("client-id", "a"), ("user", USER)),
    (("client-id", None),),
    (("client-id", "cc"),),
]
LONG_MS = 11_500
FULL, OPENS = -1, 0
BATCH_BYTES = len(build_batch([Record(0, NOW_MS, None, b"value", [])]))


class Asking:
    """Connections of one node, and the same quotas once more, asked for with each request."""

    def __init__(self, seed: int, name: str, bounds: list[float]) -> None:
        self.draw = random.Random(seed)
        self.name, self.bounds = name, bounds
        self.steps = RequestSteps()
        self.quotas, self.model = ClientQuotas(), ClientQuotas()
        self.now_ms = self.asked_ms = 1000
        self.number = 0
        self.throttled = self.counted = 0
        self.connections = [ConnectionUnderTest(None, self.steps) for _ in range(3)]
        self.set(ENTITIES[-1], self.draw.choice(bounds))
        self.steps.set_throttles(self.quotas)

    def set(self, entity: QuotaEntity, bound: float | None) -> None:
        values: Mapping[str, float] = {} if bound is None else {self.name: bound}
        for quotas in (self.quotas, self.model):
            quotas.changed(entity, values)

    def time_passes(self) -> None:
        self.now_ms += self.draw.choice([0, 1, 20, self.draw.randrange(1200)])
        if self.draw.random() < 0.03:
            self.now_ms += self.draw.randrange(LONG_MS)
        if self.draw.random() < 0.05:
            bound = self.draw.choice([None, *self.bounds])
            self.set(self.draw.choice(ENTITIES), bound)

    def ready(self) -> ConnectionUnderTest:
        """One of the connections, when it reads again."""
        chosen = self.draw.choice(self.connections)
        loop = chosen.listener.loop
        for timer in [x for x in loop.timers if not x.cancelled]:
            self.now_ms = max(self.now_ms, -int(-timer.when * 1000 // 1))
        loop.now_s = self.now_ms / 1000
        timers, loop.timers = loop.timers, []
        for timer in timers:
            if not timer.cancelled:
                timer.callback()
        self.asked_ms = int(loop.now_s * 1000)  # as connections have it
        return chosen

    def measured(self, client_id: str | None) -> Sensor | None:
        """The model's rate of a client."""
        rates = self.model.client(PRINCIPAL, client_id, self.asked_ms)
        if rates is None:
            return None
        return rates.producer or rates.consumer

    def ask(
        self, under_test: ConnectionUnderTest, api_key: int, client_id: str | None, request: Message
    ) -> tuple[int, Any]:
        """Size of the request, and the answer."""
        self.number += 1
        sent = b"".join(encode_request(api_key, VERSION, self.number, client_id, request))
        under_test.transport.written.clear()
        under_test.receive(sent)
        _, answer = decode_response(api_key, VERSION, bytes(under_test.transport.written[4:]))
        return len(sent) - 4, answer

    def compare(self) -> None:
        """All rates, as metrics ask for them."""
        now_ms = self.asked_ms
        expected = {
            sensor.tags: (sensor.bound, sensor.measure(now_ms))
            for _, sensor in self.model.sensors()
        }
        found = {
            sensor.tags: (sensor.bound, sensor.measure(now_ms))
            for _, sensor in self.quotas.sensors()
        }
        assert found == expected


@pytest.mark.parametrize("has_road", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_produces_count_as_if_each_were_measured(seed: int, has_road: bool) -> None:
    asking = Asking(seed, "producer_byte_rate", [40.0, 150.0, 700.0])
    taken: list[int] = []

    def handle(context: RequestContext, request: object) -> Message:
        return m.ProduceResponse()

    def road(connection: BrokerConnection, body: memoryview) -> bytes | None:
        number = int.from_bytes(body[4:8], "big")
        if number % 5 == 0:
            return None
        taken.append(number)
        answer = bytes(encoded_produce(number))
        return len(answer).to_bytes(4, "big") + answer

    route = Route.of_api(ApiKey.PRODUCE, handle, ())
    if has_road:
        route.plain_road = lambda parts, counts, version: road  # type: ignore[assignment,return-value]
    for under_test in asking.connections:
        connection = under_test.connection
        connection._route = lambda key, version: route
        connection._plain = PlainRequests(connection._parts, lambda key: route)
        connection.recompute_plain()
    for _ in range(400):
        asking.time_passes()
        under_test, client_id = asking.ready(), asking.draw.choice(CLIENT_IDS)
        request = m.ProduceRequest(
            acks=1, timeout_ms=1, transactional_id="t" * asking.draw.randrange(200)
        )
        sensor = asking.measured(client_id)
        size_bytes, answer = asking.ask(under_test, ApiKey.PRODUCE, client_id, request)
        expected = 0
        if sensor is not None:
            expected = sensor.record_and_wait_ms(size_bytes, asking.asked_ms)
            asking.counted += 1
        assert answer.throttle_time_ms == expected
        asking.throttled += expected > 0
        if asking.draw.random() < 0.05:
            asking.compare()
    asking.compare()
    assert 5 < asking.throttled < asking.counted
    assert bool(taken) == has_road


def encoded_produce(number: int) -> bytes:
    """Response header 1 and an empty answer."""
    return number.to_bytes(4, "big") + b"\0" + m.ProduceResponse().encode(VERSION)


class Reading(Asking):
    """Connections that fetch from two partitions, in sessions and without."""

    def __init__(self, seed: int, world: World) -> None:
        super().__init__(seed, "consumer_byte_rate", [300.0, 900.0, 4000.0])
        world.create([1], partitions=2)
        self.world = world
        self.sizes: list[list[int]] = [[], []]
        cache = FetchSessionCache(1000, SeededRandom(seed))
        parts = made_parts(
            fetch_sessions=cache,
            fetch_bytes_max=1 << 20,
            read_context=ReadContext(None, lambda topic, index: True),  # type: ignore[arg-type]
            replicas=world.replicas,
            loop=SimpleNamespace(time=lambda: self.now_ms / 1000),
            image=SimpleNamespace(topics=None),
        )
        route = Route.of_api(ApiKey.FETCH, fetch.handle, ())
        for under_test in self.connections:
            under_test.connection._parts = parts
            under_test.listener.dispatcher.counts[ApiKey.FETCH] = route.counts
            under_test.connection._route = lambda key, version: route
        self.session: tuple[int, int] = (0, OPENS)

    def append(self) -> None:
        index = self.draw.randrange(2)
        self.world.append(index=index)
        self.world.scheduler.turn()
        self.sizes[index].append(BATCH_BYTES)

    def fetch(self) -> tuple[m.FetchRequest, int]:
        """A request, and how large its answer is if all of it may be sent."""
        draw, shape = self.draw, m.FetchRequest
        kind = draw.choice([FULL, OPENS, 1])
        if kind == 1 and self.session[1] == OPENS:
            kind = OPENS
        offsets = {
            index: draw.randrange(len(self.sizes[index]) + 1)
            for index in draw.choice([(0,), (1,), (0, 1)] if kind == FULL else [(0, 1)])
        }
        response_bytes = ANSWER_BYTES[VERSION]
        for index, offset in offsets.items():
            size_bytes = sum(self.sizes[index][offset:])
            if size_bytes or kind != 1:
                response_bytes += PARTITION_BYTES[VERSION] + size_bytes
        topics = [
            shape.FetchTopic(
                topic="t",
                partitions=[
                    shape.FetchPartition(
                        partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                    for index, offset in offsets.items()
                ],
            )
        ]
        session_id, epoch = self.session if kind == 1 else (0, kind)
        request = shape(
            replica_id=-1, max_wait_ms=0, max_bytes=1 << 20, session_id=session_id,
            session_epoch=epoch, topics=topics,
        )  # fmt: skip
        return request, response_bytes


@pytest.mark.parametrize("seed", range(8))
def test_reads_count_as_if_each_were_measured(seed: int, tmp_path: Path) -> None:
    asking = Reading(seed, World(tmp_path))
    for step in range(300):
        asking.time_passes()
        if step % 16 == 0:
            asking.append()
        under_test, client_id = asking.ready(), asking.draw.choice(CLIENT_IDS)
        request, response_bytes = asking.fetch()
        sensor, expected = asking.measured(client_id), 0
        traffic = asking.world.partition().traffic  # of the topic
        before = traffic.bytes_out
        _, answer = asking.ask(under_test, ApiKey.FETCH, client_id, request)
        if sensor is not None:
            expected = sensor.record_and_wait_ms(response_bytes, asking.asked_ms)
            asking.counted += 1
            if expected:
                sensor.record(-response_bytes, asking.asked_ms)
        assert answer.throttle_time_ms == expected
        assert answer.error_code == 0
        asking.throttled += expected > 0
        sent = sum(len(x.records) for topic in answer.responses for x in topic.partitions)
        assert traffic.bytes_out - before == sent
        if expected:
            assert answer.responses == []
        elif request.session_epoch == OPENS:
            asking.session = answer.session_id, 1
        if request.session_epoch > OPENS:
            asking.session = asking.session[0], request.session_epoch + 1
        if asking.draw.random() < 0.05:
            asking.compare()
    asking.compare()
    assert 5 < asking.throttled < asking.counted

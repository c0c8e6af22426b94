"""Which connections are served, which wait and which are turned away, and when."""

from __future__ import annotations

import heapq
import itertools
import logging
import random
from collections.abc import Callable
from typing import cast

import pytest

from kwire.config import BrokerConfig
from kwire.config.dynamic import RESOURCE_BROKER, DynamicConfig
from kwire.server.connection_admission import HELD_MAX, ConnectionAdmission
from kwire.server.connection_limits import ConnectionLimits


class Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, callback: Callable[..., None], *args: object) -> Timer:
        timer = Timer(lambda: callback(*args))
        heapq.heappush(self._timers, (when_s, next(self._order), timer))
        return timer

    def call_later(self, delay_s: float, callback: Callable[..., None], *args: object) -> Timer:
        return self.call_at(self.now_s + delay_s, callback, *args)

    def advance(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self._timers and self._timers[0][0] <= end_s:
            when_s, _, timer = heapq.heappop(self._timers)
            self.now_s = when_s
            if not timer.is_cancelled:
                timer.callback()
        self.now_s = end_s


class Connection:
    """Says what was done to it; `World.gone` ends it."""

    def __init__(self, listener: str, host: str, now_s: float) -> None:
        self.listener_name = listener
        self.client_host = f"/{host}"
        self.last_active_s = now_s
        self.is_held = False
        self.closed_for: str | None = None

    def hold(self, is_held: bool) -> None:
        self.is_held = is_held

    def close(self, reason: str, level: int = logging.INFO) -> None:
        self.closed_for = self.closed_for or reason

    @property
    def is_served(self) -> bool:
        return not self.is_held and self.closed_for is None


class World:
    def __init__(self, settings: dict[str, str], *listeners: str) -> None:
        self.loop = Loop()
        self.dynamic = DynamicConfig(BrokerConfig.load(overrides=settings))
        self.limits = ConnectionLimits(self.dynamic, listeners, listeners[-1])
        self.dynamic.add_listener(self.limits.changed)
        self.admission = ConnectionAdmission(cast("object", self.loop), self.limits)  # type: ignore[arg-type]

    def opens(self, listener: str = "A", host: str = "10.0.0.1") -> Connection:
        connection = Connection(listener, host, self.loop.now_s)
        self.admission.opened(connection)
        return connection

    def gone(self, connection: Connection) -> None:
        self.admission.closed(connection)

    def set(self, **settings: str) -> None:
        values = {name.replace("_", "."): text for name, text in settings.items()}
        self.dynamic.update({(RESOURCE_BROKER, ""): values})


def test_without_limits_everybody_is_served_at_once() -> None:
    world = World({}, "A")
    assert all(world.opens().is_served for _ in range(2000))


def test_beyond_max_connections_a_connection_waits_for_another_to_end() -> None:
    world = World({"max.connections": "2"}, "A")
    first, second, third, fourth = (world.opens() for _ in range(4))
    assert [c.is_held for c in (first, second, third, fourth)] == [False, False, True, True]
    world.gone(second)
    assert third.is_served
    assert fourth.is_held
    world.gone(fourth)  # its client has given up
    world.gone(first)
    assert world.opens().is_served


def test_a_limit_that_is_raised_serves_who_waits() -> None:
    world = World({"max.connections": "1"}, "A")
    held = [world.opens() for _ in range(3)][1:]
    world.set(max_connections="3")
    assert all(connection.is_served for connection in held)


def test_a_limit_that_is_lowered_closes_the_least_recently_used() -> None:
    world = World({}, "A", "B")
    clients = [world.opens() for _ in range(3)]
    broker = world.opens("B")
    broker.last_active_s = 0.0
    for connection, used_s in zip(clients, (20.0, 10.0, 30.0)):
        connection.last_active_s = used_s
    world.set(max_connections="2")
    assert [c.closed_for is not None for c in clients] == [True, True, False]
    assert broker.is_served, "nobody closes what brokers need"


def test_the_listener_between_brokers_takes_the_place_of_a_client() -> None:
    world = World({"max.connections": "2"}, "A", "B")
    old, new = world.opens(), world.opens()
    new.last_active_s += 1
    broker = world.opens("B")
    assert broker.is_served
    assert old.closed_for is not None
    assert new.is_served
    waiting = world.opens()
    assert waiting.is_held
    world.gone(old)
    assert waiting.is_held, "the broker's connection has its place"


def test_creation_rate_delays_and_keeps_the_order() -> None:
    world = World({"max.connection.creation.rate": "1"}, "A")
    connections = [world.opens() for _ in range(14)]
    assert [c.is_served for c in connections] == [True] * 10 + [False] * 4
    served = []
    for _ in range(4):
        world.loop.advance(1.0)
        served.append(sum(c.is_served for c in connections))
    assert served == [11, 12, 13, 14]
    assert all(connection.is_served for connection in connections)


def test_an_address_that_is_too_fast_is_closed_later_and_others_are_served() -> None:
    world = World({}, "A")
    world.limits.set_address_rates({"10.0.0.1": 1})
    flood = [world.opens() for _ in range(12)]
    assert world.opens(host="10.0.0.2").is_served
    assert [c.is_served for c in flood] == [True] * 10 + [False] * 2
    assert all(connection.closed_for is None for connection in flood)
    world.gone(flood[11])
    world.loop.advance(1.0)
    assert [c.closed_for is not None for c in flood[10:]] == [True, False]


def test_a_flood_is_bounded() -> None:
    world = World({"max.connections": "1"}, "A", "B")
    flood = [world.opens() for _ in range(HELD_MAX + 10)]
    assert [c.closed_for is not None for c in flood] == [False] * (HELD_MAX + 1) + [True] * 9
    for connection in flood[HELD_MAX + 1 :]:
        world.gone(connection)
    assert world.limits.total == 1
    world.limits.set_address_rates({None: 0})
    refused = [world.opens("B") for _ in range(HELD_MAX + 2)]
    assert [c.closed_for is not None for c in refused][-3:] == [False, True, True]


@pytest.mark.parametrize("seed", range(20))
def test_no_order_of_events_breaks_a_limit_or_forgets_one_that_waits(seed: int) -> None:
    chance = random.Random(seed)
    world = World({"max.connections": "5", "max.connections.per.ip": "3"}, "A", "B")
    alive: list[Connection] = []
    for _ in range(400):
        action = chance.random()
        if action < 0.5:
            host = f"10.0.0.{chance.randrange(4)}"
            alive.append(world.opens(chance.choice("AAAB"), host))
        elif action < 0.8 and alive:
            world.gone(alive.pop(chance.randrange(len(alive))))
        elif action < 0.9:
            world.set(
                max_connections=str(chance.randint(1, 9)),
                max_connection_creation_rate=str(chance.choice([1, 5, 1000])),
            )
        else:
            world.loop.advance(chance.choice([0.1, 1.0, 5.0]))
        while ended := [c for c in alive if c.closed_for is not None]:
            alive.remove(ended[0])
            world.gone(ended[0])
        served = [c for c in alive if c.is_served]
        assert len(served) == world.limits.total
        clients = [c for c in served if c.listener_name == "A"]
        assert not clients or len(served) <= world.limits.total_max
        by_host = [sum(c.client_host == f"/10.0.0.{n}" for c in served) for n in range(4)]
        assert max(by_host) <= 3
    world.set(max_connections="1000", max_connection_creation_rate="1000")
    world.loop.advance(10.0)
    assert not [c for c in alive if c.is_held and c.closed_for is None]

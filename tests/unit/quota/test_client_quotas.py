"""Which quota counts, whom it is shared with, and what happens when it changes."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from kwire.quota.client_quotas import (
    CONSUMER_BYTE_RATE,
    IDLE_MS_MAX,
    KNOWN_CLIENTS_MAX,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    SENSORS_MAX,
    ClientQuotas,
)
from kwire.quota.entities import QuotaEntity, sanitized, table_key, user_of
from kwire.quota.sensor import Sensor

NAMES = (None, "a", "b")
ENTITIES: list[QuotaEntity] = [
    *[(("user", user),) for user in NAMES],
    *[(("client-id", client),) for client in NAMES],
    *[(("client-id", client), ("user", user)) for client in NAMES for user in NAMES],
]


def naive(quotas: dict[QuotaEntity, float], user: str, client: str) -> float | None:
    """Kafka's eight levels, one below the other."""
    levels: list[QuotaEntity] = [
        (("client-id", client), ("user", user)),
        (("client-id", None), ("user", user)),
        (("user", user),),
        (("client-id", client), ("user", None)),
        (("client-id", None), ("user", None)),
        (("user", None),),
        (("client-id", client),),
        (("client-id", None),),
    ]
    return next((quotas[level] for level in levels if level in quotas), None)


def producer_of(
    quotas: ClientQuotas, user: str, client: str | None, now_ms: int = 0
) -> Sensor | None:
    rates = quotas.client(f"User:{user}", client, now_ms)
    return None if rates is None else rates.producer


@pytest.mark.parametrize("seed", range(40))
def test_the_most_specific_quota_counts(seed: int) -> None:
    rng = random.Random(seed)
    quotas, model = ClientQuotas(), dict[QuotaEntity, float]()
    for _ in range(60):
        entity, bound = rng.choice(ENTITIES), float(rng.randrange(1, 1000))
        if rng.random() < 0.5:
            model.pop(entity, None)
            quotas.changed(entity, {})
        else:
            model[entity] = bound
            quotas.changed(entity, {PRODUCER_BYTE_RATE: bound})
        assert quotas.is_empty == (not model)
        for user, client in itertools.product("abc", "abc"):
            sensor = producer_of(quotas, user, client)
            assert (sensor and sensor.bound) == naive(model, user, client), (user, client, model)


@pytest.mark.parametrize(
    ("entity", "shared"),
    [
        ((("client-id", "c"),), [("u", "c"), ("v", "c")]),
        ((("client-id", None),), [("u", "c"), ("v", "c")]),
        ((("user", "u"),), [("u", "c"), ("u", "d")]),
        ((("user", None),), [("u", "c"), ("u", "d")]),
        ((("client-id", "c"), ("user", "u")), [("u", "c")]),
        ((("client-id", None), ("user", None)), [("u", "c")]),
    ],
)
def test_who_shares_a_quota_shares_its_rate(
    entity: QuotaEntity, shared: list[tuple[str, str]]
) -> None:
    quotas = ClientQuotas()
    quotas.changed(entity, {PRODUCER_BYTE_RATE: 10.0})
    first = producer_of(quotas, *shared[0])
    assert first is not None
    for user, client in itertools.product("uv", "cd"):
        is_same = producer_of(quotas, user, client) is first
        assert is_same == ((user, client) in shared), (user, client)


def test_quotas_of_one_entity_do_not_touch_each_other() -> None:
    quotas = ClientQuotas()
    quotas.changed((("client-id", "c"),), {CONSUMER_BYTE_RATE: 5.0, REQUEST_PERCENTAGE: 20.0})
    quotas.changed((("user", "u"),), {PRODUCER_BYTE_RATE: 7.0})
    rates = quotas.client("User:u", "c", 0)
    assert rates is not None
    assert rates.producer
    assert rates.consumer
    assert rates.request
    assert (rates.producer.tags, rates.consumer.tags) == (("u", ""), ("", "c"))


def test_a_change_acts_at_once_on_rates_that_are_known() -> None:
    quotas = ClientQuotas()
    quotas.changed((("client-id", None),), {PRODUCER_BYTE_RATE: 1000.0})
    sensor = producer_of(quotas, "u", "c")
    assert sensor is not None
    assert sensor.record_and_wait_ms(9000, 0) == 0
    before = quotas.generation
    quotas.changed((("client-id", "c"),), {PRODUCER_BYTE_RATE: 100.0})
    assert quotas.generation > before
    assert sensor.bound == 100
    assert producer_of(quotas, "u", "c") is sensor, "what was used before counts"
    quotas.changed((("client-id", "c"),), {})
    assert sensor.bound == 1000
    quotas.changed((("client-id", None),), {})
    assert sensor.bound == math.inf
    assert producer_of(quotas, "u", "c") is None
    assert not list(quotas.sensors())


def test_a_change_of_nothing_is_none() -> None:
    quotas = ClientQuotas()
    quotas.changed((("client-id", "c"),), {PRODUCER_BYTE_RATE: 1000.0})
    before = quotas.generation
    quotas.changed((("client-id", "c"),), {PRODUCER_BYTE_RATE: 1000.0})
    quotas.changed((("ip", "127.0.0.1"),), {"connection_creation_rate": 5.0})
    assert quotas.generation == before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -5.0])
def test_a_value_that_cannot_be_used_opens_nothing(value: float) -> None:
    """What was set stays; what was never set leaves the decision to the next one."""
    quotas = ClientQuotas()
    quotas.changed((("user", None),), {PRODUCER_BYTE_RATE: 50.0})
    complaints = quotas.changed((("user", "u"),), {PRODUCER_BYTE_RATE: value})
    assert complaints == [f"user 'u': producer_byte_rate is {value}, not above 0"]
    sensor = producer_of(quotas, "u", "c")
    assert sensor is not None
    assert sensor.bound == 50
    quotas.changed((("user", "u"),), {PRODUCER_BYTE_RATE: 10.0})
    quotas.changed((("user", "u"),), {PRODUCER_BYTE_RATE: value})
    assert sensor.bound == 10


def test_unknown_entities_and_quotas_are_named() -> None:
    quotas = ClientQuotas()
    assert quotas.changed((("zone", "x"),), {}) == ["zone 'x': no such entity"]
    both: QuotaEntity = (("ip", None), ("user", "u"))
    assert quotas.changed(both, {}) == ["ip default, user 'u': no such entity"]
    assert quotas.changed((), {}) == [": no such entity"]
    assert quotas.changed(
        (("user", "u"),), {"beer_rate": 1.0, "controller_mutation_rate": -1.0}
    ) == [
        "user 'u': controller_mutation_rate is -1.0, not above 0",
        "user 'u': no quota 'beer_rate'",
    ]
    assert quotas.is_empty
    quotas.changed((("user", "u"),), {"controller_mutation_rate": 1.0})
    assert not quotas.is_empty


def test_rates_of_clients_that_are_gone_are_dropped() -> None:
    quotas = ClientQuotas()
    quotas.changed((("client-id", None),), {PRODUCER_BYTE_RATE: 1000.0})
    first = producer_of(quotas, "u", "c")
    assert first is not None
    first.record_and_wait_ms(1, 1000)
    before = quotas.generation
    assert producer_of(quotas, "u", "d", 1000 + IDLE_MS_MAX) is not None
    assert len(quotas.producer.sensors) == 2
    assert producer_of(quotas, "u", "d", 100_000 + IDLE_MS_MAX) is not None
    assert list(quotas.producer.sensors) == [("", "d")]
    assert quotas.generation > before, "who keeps one asks anew"


def test_clients_that_come_with_ever_new_names_take_bounded_memory() -> None:
    quotas = ClientQuotas()
    quotas.changed((("client-id", None),), {PRODUCER_BYTE_RATE: 1000.0})
    for at in range(3 * SENSORS_MAX):
        producer_of(quotas, "u", f"c{at}", at * 5)
    assert len(quotas.producer.sensors) < 1.5 * SENSORS_MAX


def test_names() -> None:
    assert user_of("User:a:b") == "a:b"
    assert sanitized("CN=a b*,~ü") == "CN%3Da%20b%2A%2C%7E%C3%BC"
    assert table_key((("ip", "1.2.3.4"),)) is None


def test_a_full_table_is_not_looked_through_with_every_new_client() -> None:
    quotas = ClientQuotas()
    quotas.changed((("client-id", None),), {PRODUCER_BYTE_RATE: 10.0})
    for at in range(SENSORS_MAX + 1):
        producer_of(quotas, "u", str(at), 0)
    # After 12 seconds they are idle.
    looks = {now_ms: quotas.producer.drop_idle(now_ms) for now_ms in (11_900, 12_100, 12_900)}
    assert looks == {11_900: False, 12_100: False, 12_900: True}
    assert not quotas.producer.sensors


def test_what_is_known_of_clients_holds_until_others_bind_and_takes_bounded_memory() -> None:
    quotas = ClientQuotas()
    quotas.changed((("client-id", "c"),), {PRODUCER_BYTE_RATE: 10.0})
    known = quotas.known_clients("User:u")
    assert quotas.known_clients("User:u") is known
    rates = quotas.client("User:u", "c", 0)
    assert rates is not None
    assert quotas.client("User:u", "d", 0) is None
    assert known == {"c": rates, "d": None}
    quotas.changed((("client-id", "d"),), {PRODUCER_BYTE_RATE: 20.0})
    assert not known
    for at in range(3 * KNOWN_CLIENTS_MAX):
        quotas.client("User:u", str(at), 0)
        assert len(known) <= KNOWN_CLIENTS_MAX

"""The client quotas of a node: what is set, and the rates of its clients.

`changed(entity, values)` takes what the metadata has for an entity and acts at once on the rates
that are known. `client(principal, client_id)` gives the rates that a client is bound by; they may
be kept until `generation` moves. `known_clients(principal)` keeps them so long: who asks for every
request looks there first. Who has no quota is not measured.

A stored value that cannot be a bound (not a number, infinite, not above 0) is passed over: what
was usable before stays, else the next quota in the order of precedence counts. So are keys and
entities that are unknown. `changed` names them.

Source: ClientQuotaManager and ClientRequestQuotaManager of Apache Kafka 4.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Protocol
from weakref import WeakValueDictionary

from kwire.quota.entities import IP, Part, QuotaEntity, QuotaTable, Tags, shown, table_key, user_of
from kwire.quota.sensor import Sensor
from kwire.quota.windows import THROTTLE_MS_MAX, Rate

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
IDLE_MS_MAX = 3_600_000
"""After so long without a request a rate is dropped."""
SWEEP_MS = 60_000
SWEEP_FULL_MS = 1000
SENSORS_MAX = 10_000
"""Above so many rates of one kind those are dropped already that have nothing left to remember."""
KNOWN_CLIENTS_MAX = 100
"""So many client ids of a principal are kept with their rates."""


class QuotaKind:
    """One quota of users and client ids: its table, and the sensors of the clients it binds."""

    __slots__ = ("_sample_count", "_swept_ms", "_wait_ms_max", "_window_ms", "sensors", "table")

    def __init__(
        self, sample_count: int, window_ms: int, wait_ms_max: int = THROTTLE_MS_MAX
    ) -> None:
        self.table = QuotaTable()
        self.sensors: dict[Tags, Sensor] = {}
        self._sample_count = sample_count
        self._window_ms = window_ms
        self._wait_ms_max = wait_ms_max
        self._swept_ms = 0

    def sensor(self, user: str, client_id: str | None, now_ms: int) -> Sensor | None:
        """The rate by which a client is bound; None without a quota."""
        tags = self.table.tags(user, client_id)
        bound = self.table.bound(tags)
        if bound is None:
            return None
        sensor = self.sensors.get(tags)
        if sensor is None:
            rate = Rate(self._sample_count, self._window_ms)
            sensor = self.sensors[tags] = Sensor(tags, bound, rate, self._wait_ms_max)
            sensor.last_ms = now_ms
        return sensor

    def refresh(self) -> None:
        """Give all sensors the bounds that are set now; those without one are dropped."""
        for tags, sensor in list(self.sensors.items()):
            bound = self.table.bound(tags)
            if bound is None:
                del self.sensors[tags]
                sensor.set_bound(math.inf)  # for requests that are under way
            elif bound != sensor.bound:
                sensor.set_bound(bound)

    def drop_idle(self, now_ms: int) -> bool:
        """Drop sensors that nobody has used for long. Whether there were any."""
        is_full = len(self.sensors) > SENSORS_MAX
        if now_ms < self._swept_ms + (SWEEP_FULL_MS if is_full else SWEEP_MS):
            return False
        self._swept_ms = now_ms
        idle_ms = IDLE_MS_MAX
        if is_full:
            idle_ms = min(idle_ms, (self._sample_count + 1) * self._window_ms)
        idle = [tags for tags, each in self.sensors.items() if each.idle_ms(now_ms) > idle_ms]
        for tags in idle:
            del self.sensors[tags]
        return bool(idle)


class ClientRates:
    """The rates that bind one client; None where it is not bound."""

    __slots__ = ("consumer", "producer", "request")

    def __init__(
        self, producer: Sensor | None, consumer: Sensor | None, request: Sensor | None
    ) -> None:
        self.producer = producer
        self.consumer = consumer
        self.request = request

    def __bool__(self) -> bool:
        return not (self.producer is None and self.consumer is None and self.request is None)


class KeepsRates(Protocol):
    """Who keeps what binds a client, so as not to look for it with each request."""

    def forget_client(self) -> None:
        """What binds the client may be something else now."""
        ...


class KnownClients(dict["str | None", "ClientRates | None"]):
    """The rates of one principal's clients by client id, None for who is not bound; emptied when
    they may be others. `keepers` are told of that, once: who keeps something anew comes again."""

    __slots__ = ("__weakref__", "keepers")

    def __init__(self) -> None:
        super().__init__()
        self.keepers: dict[KeepsRates, None] = {}

    def clear(self) -> None:
        """Whoever asks next looks for all of it."""
        super().clear()
        keepers, self.keepers = self.keepers, {}
        for keeper in keepers:
            keeper.forget_client()


class ClientQuotas:
    """See the module. `sample_count` windows of `window_ms` (quota.window.num and
    quota.window.size.seconds)."""

    def __init__(self, sample_count: int = 11, window_ms: int = 1000) -> None:
        self.sample_count = sample_count
        self.window_ms = window_ms
        self.producer = QuotaKind(sample_count, window_ms)
        self.consumer = QuotaKind(sample_count, window_ms)
        # Nobody waits longer for its share of time than it takes until a window is over.
        self.request = QuotaKind(sample_count, window_ms, wait_ms_max=window_ms)
        self.mutations = QuotaTable()
        """controller_mutation_rate: only what is set; who decides by it has the buckets."""
        self.generation = 0
        self._known: WeakValueDictionary[str, KnownClients] = WeakValueDictionary()
        self._kinds = {
            PRODUCER_BYTE_RATE: self.producer,
            CONSUMER_BYTE_RATE: self.consumer,
            REQUEST_PERCENTAGE: self.request,
        }

    @property
    def is_empty(self) -> bool:
        """Whether nobody has a quota."""
        return not self.mutations and not any(kind.table for kind in self._kinds.values())

    def changed(self, entity: QuotaEntity, values: Mapping[str, float]) -> list[str]:
        """These are all quotas of the entity now. What of it cannot be used, one line each."""
        key = table_key(entity)
        if key is None:
            return [] if is_address(entity) else [f"{shown(entity)}: no such entity"]
        complaints = []
        known = (*self._kinds, CONTROLLER_MUTATION_RATE)
        for name in known:
            value = values.get(name)
            if value is not None and not is_usable(value):
                complaints.append(f"{shown(entity)}: {name} is {value}, not above 0")
            else:
                self._set(name, key, value)
        complaints += [
            f"{shown(entity)}: no quota {name!r}" for name in values if name not in known
        ]
        return complaints

    def _set(self, name: str, key: tuple[Part, Part], value: float | None) -> None:
        kind = self._kinds.get(name)
        if kind is None:
            self.mutations.set(key, value)
        elif kind.table.set(key, value):
            kind.refresh()
            self._others_bind()

    def _others_bind(self) -> None:
        self.generation += 1
        for clients in self._known.values():
            clients.clear()

    def known_clients(self, principal: str) -> KnownClients:
        """What `client` has found for the clients of a principal, as long as it holds."""
        known = self._known.get(principal)
        if known is None:
            known = self._known[principal] = KnownClients()
        return known

    def client(self, principal: str, client_id: str | None, now_ms: int) -> ClientRates | None:
        """The rates that bind a client, as of this `generation`; None if there are none."""
        self._drop_idle(now_ms)
        known = self._known.get(principal)
        if known is None:
            return self._found(principal, client_id, now_ms)
        if client_id not in known:
            if len(known) >= KNOWN_CLIENTS_MAX:
                known.clear()
            known[client_id] = self._found(principal, client_id, now_ms)
        return known[client_id]

    def _found(self, principal: str, client_id: str | None, now_ms: int) -> ClientRates | None:
        user = user_of(principal)
        rates = ClientRates(
            self.producer.sensor(user, client_id, now_ms),
            self.consumer.sensor(user, client_id, now_ms),
            self.request.sensor(user, client_id, now_ms),
        )
        return rates or None

    def sensors(self) -> Iterator[tuple[str, Sensor]]:
        """(name of the quota, sensor) of all clients that are measured."""
        for name, kind in self._kinds.items():
            for sensor in kind.sensors.values():
                yield name, sensor

    def _drop_idle(self, now_ms: int) -> None:
        for kind in self._kinds.values():
            if kind.drop_idle(now_ms):
                self._others_bind()


def is_usable(value: float) -> bool:
    """Whether a stored value can be the bound of a rate."""
    return math.isfinite(value) and value > 0.0


def is_address(entity: QuotaEntity) -> bool:
    """Whether a quota is one of addresses: those are for connections."""
    return len(entity) == 1 and entity[0][0] == IP

"""How many connections a broker holds, and how fast new ones come: what Kafka's ConnectionQuotas
decide (KIP-308, KIP-402, KIP-612; measured on Apache Kafka 4.4).

    max.connections                 of the broker or, with a prefix, of a listener. Beyond it new
                                    connections wait; where it was lowered, and where the listener
                                    of the brokers needs room, the least recently used are closed
    max.connection.creation.rate    of the broker or, with a prefix, of a listener: who comes too
                                    early waits
    max.connections.per.ip          and .overrides: what comes beyond is closed
    connection_creation_rate        of an address: who comes too early is closed, after a while

The listener between brokers is under no limit of the whole broker while there is another listener:
clients cannot keep brokers from each other. Every limit may change while the broker runs. Pure:
time comes as an argument; `connection_admission.py` makes connections wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kwire.config.checks import address_limits
from kwire.config.listener_settings import ListenerSettings, Settings
from kwire.config.values import TypedValue
from kwire.quota.windows import Rate, throttle_ms
from kwire.security.acls.hosts import address_text, literal_address

MAX_CONNECTIONS = "max.connections"
CREATION_RATE = "max.connection.creation.rate"
PER_ADDRESS = "max.connections.per.ip"
OVERRIDES = "max.connections.per.ip.overrides"
NAMES = (MAX_CONNECTIONS, CREATION_RATE, PER_ADDRESS, OVERRIDES)
UNLIMITED = 2**31 - 1
LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = ("localhost", "")
"""What Java takes for it without asking anybody."""
ADDRESSES_MAX = 10_000
"""Of how many addresses a rate is known; those that were quiet for longest are forgotten."""


def address_of(host: str) -> str:
    """One spelling of an address, with or without `/` in front: limits are looked up by it."""
    text = host.removeprefix("/")
    if ":" not in text:
        return LOOPBACK if text == "localhost" else text
    return address_text(text)


class CreationRate:
    """New connections a second of one kind, and the rate they may have."""

    __slots__ = ("_rate", "rate_max")

    def __init__(self, rate_max: int, window_count: int, window_ms: int) -> None:
        self.rate_max = rate_max
        self._rate = Rate(window_count, window_ms)

    def wait_ms(self, now_ms: int) -> int:
        """One more came: how long it has to wait, a window at most."""
        if self.rate_max >= UNLIMITED:
            return 0
        rate = self._rate
        rate.record(1, now_ms)
        value = rate.measure(now_ms)
        if value <= self.rate_max:
            return 0
        if not self.rate_max:  # nobody is let in
            return rate.window_ms
        return min(throttle_ms(value, self.rate_max, rate.span_ms(now_ms)), rate.window_ms)

    def take_back(self, now_ms: int) -> None:
        """The last one does not count: it is not served."""
        if self.rate_max < UNLIMITED:
            self._rate.record(-1, now_ms)


AddressRates: TypeAlias = dict[str, CreationRate]
"""By address, the one that came last at the end."""


class ConnectionLimits:
    """The limits of a broker's listeners, and the connections that count.

    `listeners` are the names of all, `between_brokers` is that by which brokers reach each other.
    `address_rates` are those of a node, whose broker and controller count new connections of an
    address together, and nothing else. `changed` is a listener of `DynamicConfig`; whoever makes
    connections wait is told by `on_change` that limits are other ones now.
    """

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[str],
        between_brokers: str,
        address_rates: AddressRates | None = None,
    ) -> None:
        self._settings = settings
        self._windows = (
            settings["quota.window.num"],
            settings["quota.window.size.seconds"] * 1000,
        )
        self.total = 0
        self.counts = dict.fromkeys(listeners, 0)
        self._protected = between_brokers if len(listeners) > 1 else None
        self.total_max: int = UNLIMITED
        self._listener_max: dict[str, int] = {}
        self._rate = CreationRate(UNLIMITED, *self._windows)
        self._listener_rates = {name: CreationRate(UNLIMITED, *self._windows) for name in listeners}
        self._per_address: dict[str, int] = {}
        self._address_max: int = UNLIMITED
        self._overrides: dict[str, int] = {}
        self.named: dict[str, int] = {}
        """Overrides of hosts by their names, until `found` says what their addresses are."""
        self._address_rates: AddressRates = {} if address_rates is None else address_rates
        self._address_rate_max: Mapping[str | None, int] = {}
        self._on_change: list[Callable[[], None]] = []
        self._take_over()

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told()` whenever limits have changed."""
        self._on_change.append(told)

    # -- the limits

    def changed(self, values: Mapping[str, TypedValue]) -> None:
        """Take over those of the changed settings that are limits."""
        if any(name.endswith(NAMES) for name in values):
            self._take_over()
            for told in self._on_change:
                told()

    def _take_over(self) -> None:
        settings = self._settings
        self.total_max = settings[MAX_CONNECTIONS]
        self._rate.rate_max = settings[CREATION_RATE]
        for name, rate in self._listener_rates.items():
            of_listener = ListenerSettings(settings, name)
            self._listener_max[name] = of_listener(MAX_CONNECTIONS)
            rate.rate_max = of_listener(CREATION_RATE)
        self._address_max = settings[PER_ADDRESS]
        self._overrides, self.named = {}, {}
        for host, limit in address_limits(OVERRIDES, settings[OVERRIDES]).items():
            address = LOOPBACK if host in LOOPBACK_NAMES else literal_address(host)
            if address is None:
                self.named[host] = limit
            else:
                self._overrides[address] = limit

    def found(self, addresses: Mapping[str, str]) -> None:
        """Of hosts that overrides name, those that have an address."""
        for host, limit in self.named.items():
            if host in addresses:
                self._overrides.setdefault(addresses[host], limit)

    def set_address_rates(self, rates: Mapping[str | None, int]) -> None:
        """How many connections a second an address may open; None: every other address."""
        self._address_rate_max = {
            None if host is None else address_of(host): rate for host, rate in rates.items()
        }
        for host, rate in self._address_rates.items():
            rate.rate_max = self._rate_of(host)

    def _rate_of(self, host: str) -> int:
        rates = self._address_rate_max
        return rates.get(host, rates.get(None, UNLIMITED))

    def is_protected(self, listener: str) -> bool:
        """Whether the limits of the whole broker do not hold for a listener."""
        return listener == self._protected

    def of_address(self, host: str) -> int:
        """How many connections an address may have."""
        return self._overrides.get(host, self._address_max)

    # -- one connection

    def wait_ms(self, listener: str, now_ms: int) -> int:
        """A connection came on a listener: how long it has to wait by the rates."""
        own = self._listener_rates[listener].wait_ms(now_ms)
        return own if self.is_protected(listener) else max(own, self._rate.wait_ms(now_ms))

    def has_slot(self, listener: str) -> bool:
        """Whether a listener may take one more now."""
        if self.counts[listener] >= self._listener_max[listener]:
            return False
        return self.is_protected(listener) or self.total < self.total_max

    def address_wait_ms(self, listener: str, host: str, now_ms: int) -> int:
        """Whether an address opens connections too fast: after how long this one is closed, 0
        where it is served. One that is not served counts for no rate."""
        if not self._address_rate_max:
            return 0
        rate = self._address_rates.pop(host, None)
        if rate is None:
            rate = CreationRate(self._rate_of(host), *self._windows)
            if len(self._address_rates) >= ADDRESSES_MAX:
                del self._address_rates[next(iter(self._address_rates))]
        self._address_rates[host] = rate  # behind all others
        wait_ms = rate.wait_ms(now_ms)
        if wait_ms > 0:
            rate.take_back(now_ms)
            self._listener_rates[listener].take_back(now_ms)
            if not self.is_protected(listener):
                self._rate.take_back(now_ms)
        return wait_ms

    def add(self, listener: str, host: str) -> bool:
        """Count a connection that is served; False where its address has too many: it is to be
        closed."""
        held = self._per_address.get(host, 0) + 1
        self._per_address[host] = held
        self.counts[listener] += 1
        self.total += 1
        return held <= self.of_address(host)

    def remove(self, listener: str, host: str) -> None:
        """A counted connection is gone."""
        held = self._per_address[host] - 1
        if held:
            self._per_address[host] = held
        else:
            del self._per_address[host]
        self.counts[listener] -= 1
        self.total -= 1

    @property
    def excess(self) -> int:
        """How many connections are to be closed, of listeners that are not protected."""
        return max(0, self.total - self.total_max)

"""The listeners of a node: bound early, so that their ports can be advertised, started in order."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kwire.config import listeners as settings
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.kraft.images.settings import QuotaEntity
from kwire.kraft.raft.types import Endpoint
from kwire.node.host_addresses import HostAddresses
from kwire.node.start_error import StartError
from kwire.pending import Pending
from kwire.protocol.api_keys import API_KEYS, UNBUILT
from kwire.security.acls.hosts import literal_address
from kwire.server.connection_admission import ConnectionAdmission
from kwire.server.connection_limits import OVERRIDES, AddressRates, ConnectionLimits
from kwire.server.dispatch import Dispatcher
from kwire.server.listener import Listener, make_room

logger = logging.getLogger(__name__)

DEFAULT_CONTROLLER_LISTENER = "CONTROLLER"
DEFAULT_CONTROLLER_PORT = 9093

ADDRESS_RATE = "connection_creation_rate"

MakeListener = Callable[[settings.Listener, Dispatcher, ConnectionAdmission | None], Listener]
"""(its settings, what it serves, which connections it serves) -> a listener, not bound yet."""


def controller_listener_name(config: BrokerConfig) -> str:
    """The listener by which controllers are reached."""
    names = config.controller_listener_names()
    return names[0] if names else DEFAULT_CONTROLLER_LISTENER


class Listeners:
    """`bound` by name. `advertised` is what clients and other brokers are given, once the broker's
    listeners are bound; `host_name()` names this host where a setting does not."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: BrokerConfig,
        dynamic_config: DynamicConfig,
        make: MakeListener,
        host_name: Callable[[], str],
    ) -> None:
        self._config = config
        self._loop = loop
        self._dynamic_config = dynamic_config
        self._admissions: list[ConnectionAdmission] = []
        self._address_rates: AddressRates = {}
        self._hosts = HostAddresses(loop)
        self.look_up = self._hosts.look_up
        self._rates_set = 0
        self._make = make
        self._host_name = host_name
        self.bound: dict[str, Listener] = {}
        self.advertised: list[settings.Listener] = []

    # -- bind and start

    async def bind_controller(self, dispatcher: Dispatcher) -> None:
        """Take the addresses of the controller's listeners; their ports go into the metadata."""
        names = self._config.controller_listener_names()
        listeners = [one for one in self._config.listeners() if one.name in names]
        admission = self._admission(listeners, "") if listeners else None
        for listener in listeners:
            await self._bind(listener, dispatcher, admission)

    async def bind_broker(self) -> None:
        """Take the addresses of the listeners for clients and other brokers."""
        names = {key: info.name for key, info in API_KEYS.items() if "broker" in info.listeners}
        for key in UNBUILT:
            names.pop(key, None)
        dispatcher = Dispatcher(names)
        listeners = self._config.broker_listeners()
        admission = self._admission(listeners, self._config.inter_broker_listener_name())
        for listener in listeners:
            await self._bind(listener, dispatcher, admission)
        self.advertised = [
            listener._replace(port=listener.port or self.bound[listener.name].port)
            for listener in self._config.advertised_listeners(self._host_name)
        ]

    def _admission(
        self, listeners: Sequence[settings.Listener], between_brokers: str
    ) -> ConnectionAdmission:
        """Which connections the broker's listeners serve, or the controller's. The same limits hold
        for either by itself, but that new connections of an address are counted together (measured
        on Apache Kafka 4.4)."""
        names = [listener.name for listener in listeners]
        limits = ConnectionLimits(self._dynamic_config, names, between_brokers, self._address_rates)
        self._dynamic_config.add_listener(limits.changed)
        self._look_up_overrides(limits)
        limits.on_change(partial(self._look_up_overrides, limits))
        self._admissions.append(ConnectionAdmission(self._loop, limits))
        return self._admissions[-1]

    async def _bind(
        self,
        listener: settings.Listener,
        dispatcher: Dispatcher,
        admission: ConnectionAdmission | None,
    ) -> None:
        bound = self._make(listener, dispatcher, admission)
        one_family = settings.shares_port(listener, self._config.listeners())
        try:
            await bound.bind(listener.host, listener.port, one_family=one_family)
        except OSError as error:
            raise StartError(
                f"cannot listen on {listener.host or '*'}:{listener.port}: "
                f"{error.strerror or error}"
            ) from None
        self.bound[listener.name] = bound

    async def start_controller(self, is_early: Callable[[str], bool]) -> None:
        """Serve other controllers, and brokers that look for one, by the listeners that do so
        before the ACLs are known."""
        for name in self._config.controller_listener_names():
            if name in self.bound and is_early(name):
                await self.bound[name].start()

    async def start(self) -> None:
        """Serve everybody."""
        for listener in self.bound.values():
            await listener.start()

    # -- addresses

    @property
    def of_other_brokers(self) -> Listener:
        """The first listener of the broker."""
        return self.bound[self._config.broker_listeners()[0].name]

    def ready_address(self) -> tuple[str, int]:
        """Host and port of the first listener, as the ready line shows it."""
        config = self._config
        listener = (config.broker_listeners() if config.is_broker else config.listeners())[0]
        return listener.host or "0.0.0.0", self.bound[listener.name].port

    def local_address(self, name: str | None = None) -> str:
        """host:port by which a client on this machine reaches a listener, the first by default."""
        host, port = self.ready_address()
        for listener in self._config.broker_listeners():
            if listener.name == name:
                host, port = listener.host, self.bound[listener.name].port
        if settings.is_wildcard(host):
            host = "::1" if ":" in host else "127.0.0.1"
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def advertised_controller(self) -> Sequence[settings.Listener]:
        """The controller listeners of this node as others reach them."""
        return [
            listener._replace(port=listener.port or self.bound[listener.name].port)
            for listener in self._config.advertised_controller_listeners(self._host_name)
        ]

    def controller_endpoints(self) -> Sequence[Endpoint]:
        """Where this node's controller is reached; a developer's node alone needs no listener."""
        found = [
            Endpoint(listener.name, listener.host, listener.port)
            for listener in self.advertised_controller()
        ]
        name = controller_listener_name(self._config)
        return found or [Endpoint(name, "localhost", DEFAULT_CONTROLLER_PORT)]

    # -- the metadata

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over how fast addresses may open connections, where that has changed."""
        if any(_is_of_address(one) for one in delta.client_quotas):
            self._set_rates(address_rates(image.client_quotas))

    def _set_rates(self, rates: Mapping[str | None, int]) -> None:
        """Those of addresses hold at once, those of names when they are looked up."""
        self._rates_set += 1
        number, known, names = self._rates_set, dict[str | None, int](), dict[str, int]()
        for host, rate in rates.items():
            address = host if host is None or host == "localhost" else literal_address(host)
            if host is not None and address is None:
                names[host] = rate
            else:
                known[address] = rate

        def found(done: Pending[dict[str, str]]) -> None:
            if number != self._rates_set:
                return
            addresses = done.result()
            for name, rate in names.items():
                if name in addresses:
                    known.setdefault(addresses[name], rate)
                else:
                    logger.warning(
                        "%s of %s is passed over: no address of this host was found; set it "
                        "again, or that of the address",
                        ADDRESS_RATE,
                        name,
                    )
            self._hold_rates(known)

        self._hold_rates(known)
        if names:
            self.look_up(names).add_done_callback(found)

    def _look_up_overrides(self, limits: ConnectionLimits) -> None:
        """Limits of hosts by their names hold when these are looked up."""
        named = dict(limits.named)
        if not named:
            return

        def found(done: Pending[dict[str, str]]) -> None:
            if named != limits.named:  # others are set by now
                return
            addresses = done.result()
            limits.found(addresses)
            for host in named:
                if host not in addresses:
                    logger.warning(
                        "%s of %s is passed over: no address of this host was found",
                        OVERRIDES,
                        host,
                    )

        self.look_up(named).add_done_callback(found)

    def _hold_rates(self, rates: Mapping[str | None, int]) -> None:
        for admission in self._admissions:
            admission.limits.set_address_rates(rates)

    # -- shortages and end

    def make_room(self) -> None:
        """Close connections that nobody uses: files lack descriptors."""
        make_room(self.bound.values())

    def close_broker(self) -> None:
        """No more clients; the controller's listeners stay."""
        names = self._config.controller_listener_names()
        for listener in self.bound.values():
            if listener.name not in names:
                listener.stop_accepting()
                listener.close_connections()

    def close(self) -> None:
        """Close what is left."""
        self._hosts.close()
        for admission in self._admissions:
            admission.close()
        for listener in self.bound.values():
            listener.stop_accepting()
            listener.close_connections()


def address_rates(
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
) -> dict[str | None, int]:
    """How many connections a second an address may open; None: every other address. A stored value
    that cannot be a rate is passed over, with a line in the log."""
    found = {}
    for entity, values in quotas.items():
        if _is_of_address(entity) and ADDRESS_RATE in values:
            host, rate = entity[0][1], values[ADDRESS_RATE]
            if math.isfinite(rate) and rate >= 0:
                found[host] = int(rate)
            else:
                where = "every address" if host is None else host
                logger.warning("%s of %s is passed over: it is %s", ADDRESS_RATE, where, rate)
    return found


def _is_of_address(entity: QuotaEntity) -> bool:
    return len(entity) == 1 and entity[0][0] == "ip"

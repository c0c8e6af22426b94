"""Registered brokers and controllers of the metadata image.

Replays RegisterBrokerRecord (versions 0-4), UnregisterBrokerRecord, FenceBrokerRecord,
UnfenceBrokerRecord, BrokerRegistrationChangeRecord (0-3), RegisterControllerRecord and
UnregisterControllerRecord as Kafka 4.4 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from kwire.kraft.images.errors import ImageError
from kwire.kraft.images.topics import LOST_DIRECTORY, is_reserved_directory
from kwire.kraft.metadata_version import MetadataVersion
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import VersionedRecord

FENCE = 1
UNFENCE = -1
ENTER_CONTROLLED_SHUTDOWN = 1
"""Values of BrokerRegistrationChangeRecord's two change fields; 0 is no change."""


class Endpoint(NamedTuple):
    """Where a node listens: `security_protocol` is Kafka's number (0 PLAINTEXT, 1 SSL, ...)."""

    name: str
    host: str
    port: int
    security_protocol: int


class BrokerImage(NamedTuple):
    """One registered broker. Its epoch is the offset of its registration record."""

    broker_id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[bytes, ...]
    cordoned_directories: tuple[bytes, ...] | None
    is_migrating_zk_broker: bool = False

    @property
    def is_active(self) -> bool:
        """May lead and be in sync: neither fenced nor shutting down."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener_name: str | None) -> Endpoint | None:
        """The endpoint of a listener, or None."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return endpoint
        return None

    @property
    def has_uncordoned_directory(self) -> bool:
        """Whether new replicas may be placed on it (KIP-1066)."""
        cordoned = self.cordoned_directories
        if not cordoned or not self.directories:
            return True
        return any(directory not in cordoned for directory in self.directories)

    def has_online_directory(self, directory: bytes) -> bool:
        """Whether a replica in `directory` can be served: known, or not yet assigned."""
        if not self.directories or is_reserved_directory(directory):
            return directory != LOST_DIRECTORY
        return directory in self.directories


class ControllerImage(NamedTuple):
    """One registered controller."""

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: dict[str, tuple[int, int]]
    zk_migration_ready: bool = False

    def endpoint(self, listener_name: str | None) -> Endpoint | None:
        """The endpoint of a listener, or None."""
        for endpoint in self.endpoints:
            if endpoint.name == listener_name:
                return endpoint
        return None


class NamedEndpoint(Protocol):
    """An entry of the listeners in any registration, request or record."""

    name: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(Protocol):
    """An entry of the supported features in any registration, request or record."""

    name: str
    min_supported_version: int
    max_supported_version: int


class ClusterChanges(Protocol):
    """Who is told what a replayed record changed; `old` None is new, `new` None is gone."""

    def broker_changed(
        self, broker_id: int, old: BrokerImage | None, new: BrokerImage | None
    ) -> None: ...

    def controller_changed(
        self, controller_id: int, old: ControllerImage | None, new: ControllerImage | None
    ) -> None: ...


def endpoints_of(items: Iterable[NamedEndpoint]) -> tuple[Endpoint, ...]:
    """Endpoints of a registration request or record; of two with one name the last counts."""
    found = {e.name: Endpoint(e.name, e.host, e.port, e.security_protocol) for e in items}
    return tuple(found.values())


def features_of(items: Iterable[FeatureRange]) -> dict[str, tuple[int, int]]:
    """Supported feature ranges of a registration request or record."""
    return {f.name: (f.min_supported_version, f.max_supported_version) for f in items}


class ClusterImage:
    """Brokers and controllers by id."""

    __slots__ = ("brokers", "controllers")

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerImage] = {}
        self.controllers: dict[int, ControllerImage] = {}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ClusterImage)
            and self.brokers == other.brokers
            and self.controllers == other.controllers
        )

    def replay_register_broker(
        self, record: m.RegisterBrokerRecord, delta: ClusterChanges | None
    ) -> None:
        cordoned = record.cordoned_log_dirs
        broker = BrokerImage(
            broker_id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=endpoints_of(record.end_points),
            features=features_of(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs or ()),
            cordoned_directories=None if cordoned is None else tuple(cordoned),
            is_migrating_zk_broker=record.is_migrating_zk_broker,
        )
        self._put_broker(broker, delta)

    def replay_unregister_broker(
        self, record: m.UnregisterBrokerRecord, delta: ClusterChanges | None
    ) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        del self.brokers[broker.broker_id]
        if delta is not None:
            delta.broker_changed(broker.broker_id, broker, None)

    def replay_fence(
        self,
        record: m.FenceBrokerRecord | m.UnfenceBrokerRecord,
        fenced: bool,
        delta: ClusterChanges | None,
    ) -> None:
        broker = self._broker(record.id, record.epoch)
        self._put_broker(broker._replace(fenced=fenced), delta)

    def replay_registration_change(
        self, record: m.BrokerRegistrationChangeRecord, delta: ClusterChanges | None
    ) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced not in (0, FENCE, UNFENCE):
            raise ImageError(f"BrokerRegistrationChangeRecord with fenced={record.fenced}")
        if record.in_controlled_shutdown not in (0, ENTER_CONTROLLED_SHUTDOWN):
            raise ImageError(
                "BrokerRegistrationChangeRecord with in_controlled_shutdown="
                f"{record.in_controlled_shutdown}"
            )
        if record.fenced:
            broker = broker._replace(fenced=record.fenced == FENCE)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=True)
        if record.log_dirs:
            broker = broker._replace(directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned_directories=tuple(record.cordoned_log_dirs))
        self._put_broker(broker, delta)

    def replay_register_controller(
        self, record: m.RegisterControllerRecord, delta: ClusterChanges | None
    ) -> None:
        controller = ControllerImage(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=endpoints_of(record.end_points),
            features=features_of(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )
        old = self.controllers.get(controller.controller_id)
        self.controllers[controller.controller_id] = controller
        if delta is not None:
            delta.controller_changed(controller.controller_id, old, controller)

    def replay_unregister_controller(
        self, record: m.UnregisterControllerRecord, delta: ClusterChanges | None
    ) -> None:
        old = self.controllers.pop(record.controller_id, None)
        if old is None:
            raise ImageError(f"unregistration of unknown controller {record.controller_id}")
        if delta is not None:
            delta.controller_changed(record.controller_id, old, None)

    def to_records(self, gates: MetadataVersion) -> Iterator[VersionedRecord]:
        for broker_id in sorted(self.brokers):
            yield broker_record(self.brokers[broker_id], gates), gates.register_broker_record
        if gates.register_controller_record is not None:
            for controller_id in sorted(self.controllers):
                controller = self.controllers[controller_id]
                yield controller_record(controller), gates.register_controller_record

    def _put_broker(self, broker: BrokerImage, delta: ClusterChanges | None) -> None:
        old = self.brokers.get(broker.broker_id)
        self.brokers[broker.broker_id] = broker
        if delta is not None:
            delta.broker_changed(broker.broker_id, old, broker)

    def _broker(self, broker_id: int, epoch: int) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise ImageError(f"change of broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise ImageError(
                f"change of broker {broker_id} at epoch {epoch}, registered is {broker.epoch}"
            )
        return broker


def broker_record(broker: BrokerImage, gates: MetadataVersion) -> m.RegisterBrokerRecord:
    """The RegisterBrokerRecord that recreates a registration at the version of `gates`."""
    record = m.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            m.RegisterBrokerRecord.BrokerEndpoint(
                name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
            )
            for e in broker.endpoints
        ],
        features=[
            m.RegisterBrokerRecord.BrokerFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
    if gates.register_broker_record >= 2:
        record.is_migrating_zk_broker = broker.is_migrating_zk_broker
    if gates.directory_assignment:
        record.log_dirs = list(broker.directories)
    if gates.cordoned_log_dirs and broker.cordoned_directories is not None:
        record.cordoned_log_dirs = list(broker.cordoned_directories)
    return record


def controller_record(controller: ControllerImage) -> m.RegisterControllerRecord:
    """The RegisterControllerRecord that recreates a registration."""
    return m.RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            m.RegisterControllerRecord.ControllerEndpoint(
                name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
            )
            for e in controller.endpoints
        ],
        features=[
            m.RegisterControllerRecord.ControllerFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in controller.features.items()
        ],
    )

"""Client instances: what is asked of each, and when it may ask and send again.

An instance is known from its first request until its connection closes, or until it has been
silent for three of its intervals, a minute at least. It is made anew when subscriptions change.
One is too early (THROTTLING_QUOTA_EXCEEDED) within its interval, but for:

    a Get after a push that was refused for its subscription or its compression
    the first push after a Get
    a push that says that it is the last

Source: KIP-714; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.compression import decompress
from kwire.protocol.records.header import Codec
from kwire.telemetry.kept_pushes import KeptPushes, Push
from kwire.telemetry.subscriptions import Asked, Subscription, asked_of, read_subscriptions

INSTANCES_MAX = 16384
FORGOTTEN_MS = 60_000
INTERVALS_KEPT = 3
NEVER_MS = -(1 << 62)
ACCEPTED = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""The compression types that clients are told of, the best first; none is accepted as well."""
RESERVED = (uuids.ZERO, uuids.ONE)
GET_AFTER = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class Connection(Protocol):
    """What is seen of the connection that a request came by."""

    def add_close_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback()` once when the connection closes."""
        ...


class Sender(NamedTuple):
    """Whoever sends a request; `connection` is None within the process."""

    connection: Connection | None
    client_id: str | None
    software_name: str
    software_version: str
    address: str
    port: int

    def attributes(self, instance_id: bytes) -> dict[str, str | None]:
        """What subscriptions match by."""
        return {
            "client_instance_id": uuids.to_text(instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.address,
            "client_source_port": str(self.port),
        }


class ClientInstance:
    """One client instance as it is known here."""

    __slots__ = (
        "asked",
        "attributes",
        "expires_ms",
        "is_terminating",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "version",
    )

    def __init__(self, attributes: Mapping[str, str | None], asked: Asked, version: int) -> None:
        self.attributes = attributes
        self.asked = asked
        self.version = version
        self.last_get_ms = self.last_push_ms = NEVER_MS
        self.is_terminating = False
        self.last_error = ErrorCode.NONE
        self.expires_ms = 0

    def may_get(self, now_ms: int) -> bool:
        """Whether a Get is not too early, and that there was one."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.asked.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Whether a push is not too early, and that there was one."""
        since_ms = now_ms - self.last_push_ms
        if self.last_get_ms <= self.last_push_ms and since_ms < self.asked.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class ClientInstances:
    """See the module. `size_max()` is telemetry.max.bytes, `draw_id()` gives ids of instances."""

    def __init__(
        self, size_max: Callable[[], int], draw_id: Callable[[], bytes], pushes: KeptPushes
    ) -> None:
        self._size_max = size_max
        self._draw_id = draw_id
        self._pushes = pushes
        self._subscriptions: list[Subscription] = []
        self._version = 0
        self._known: OrderedDict[bytes, ClientInstance] = OrderedDict()
        self._by_connection: dict[Connection, bytes] = {}
        self.unknown_subscriptions = 0
        """Pushes with another subscription than the client's."""
        self.throttled = 0
        """Requests that came too early."""

    def __len__(self) -> int:
        return len(self._known)

    def subscribe(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """These are the subscriptions by name from now on."""
        self._subscriptions = read_subscriptions(configs)
        self._version += 1

    def _disconnected(self, connection: Connection) -> None:
        """The instance that this connection has made known is forgotten."""
        instance_id = self._by_connection.pop(connection, None)
        if instance_id is not None:
            self._known.pop(instance_id, None)

    def expire(self, now_ms: int) -> None:
        """Forget whom nothing was heard of; the order of the last requests is not quite that of
        expiry, for intervals differ: what is behind one that stays is seen later."""
        while self._known:
            instance_id, instance = next(iter(self._known.items()))
            if instance.expires_ms > now_ms:
                return
            del self._known[instance_id]

    def get(
        self, request: m.GetTelemetrySubscriptionsRequest, sender: Sender, now_ms: int
    ) -> m.GetTelemetrySubscriptionsResponse:
        """What is asked of the client. Raises KafkaError."""
        instance_id = request.client_instance_id
        if instance_id == uuids.ZERO:
            instance_id = self._draw_id()
        instance = self._instance(instance_id, sender, now_ms)
        if not instance.may_get(now_ms) and instance.last_error not in GET_AFTER:
            self.throttled += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return m.GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.asked.subscription_id,
            accepted_compression_types=[int(codec) for codec in ACCEPTED],
            push_interval_ms=instance.asked.interval_ms,
            telemetry_max_bytes=self._size_max(),
            delta_temporality=True,
            requested_metrics=list(instance.asked.metrics),
        )

    def push(self, request: m.PushTelemetryRequest, sender: Sender, now_ms: int) -> None:
        """Take metrics. Raises KafkaError."""
        if request.client_instance_id in RESERVED:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        instance = self._instance(request.client_instance_id, sender, now_ms)
        try:
            self._check(request, instance, now_ms)
            if len(request.metrics):
                self._keep(request, instance, now_ms)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = request.terminating
        instance.last_error = ErrorCode.NONE

    def _check(
        self, request: m.PushTelemetryRequest, instance: ClientInstance, now_ms: int
    ) -> None:
        if instance.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not instance.may_push(now_ms) and not request.terminating:
            self.throttled += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if request.subscription_id != instance.asked.subscription_id:
            self.unknown_subscriptions += 1
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if request.compression_type not in (Codec.NONE, *ACCEPTED):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(request.metrics) > self._size_max():
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _keep(self, request: m.PushTelemetryRequest, instance: ClientInstance, now_ms: int) -> None:
        """What cannot be unpacked within the limit is refused; what it says is read elsewhere."""
        codec = Codec(request.compression_type)
        try:
            decompress(codec, request.metrics, self._size_max())
        except KafkaError:
            raise KafkaError(ErrorCode.INVALID_RECORD) from None
        attributes = instance.attributes
        push = Push(
            instance_id=attributes["client_instance_id"] or "",
            client_id=attributes["client_id"] or "",
            software_name=attributes["client_software_name"] or "",
            software_version=attributes["client_software_version"] or "",
            interval_ms=instance.asked.interval_ms,
            codec=int(codec),
            pushed_ms=now_ms,
            payload=bytes(request.metrics),
        )
        self._pushes.add(push)

    def _instance(self, instance_id: bytes, sender: Sender, now_ms: int) -> ClientInstance:
        """The instance with this id, made anew where it is not known or what is asked of it is
        from before a change."""
        instance = self._known.get(instance_id)
        if instance is not None and instance.expires_ms <= now_ms:
            instance = None
        if instance is None or instance.version < self._version:
            attributes = sender.attributes(instance_id) if instance is None else instance.attributes
            asked = asked_of(self._subscriptions, instance_id, attributes)
            instance = ClientInstance(attributes, asked, self._version)
            if sender.connection is not None:
                self._remember(sender.connection, instance_id)
            self.expire(now_ms)
            if len(self._known) >= INSTANCES_MAX:
                self._known.popitem(last=False)
            self._known[instance_id] = instance
        self._known.move_to_end(instance_id)
        kept_ms = max(FORGOTTEN_MS, instance.asked.interval_ms * INTERVALS_KEPT)
        instance.expires_ms = now_ms + kept_ms
        return instance

    def _remember(self, connection: Connection, instance_id: bytes) -> None:
        if connection not in self._by_connection:
            connection.add_close_callback(lambda: self._disconnected(connection))
        self._by_connection[connection] = instance_id

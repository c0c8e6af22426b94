"""The metadata that this node has published to its parts, with what is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from kwire.kraft.images.metadata_image import MetadataImage
from kwire.protocol import api_versions
from kwire.protocol.api_keys import Listener


class Quorum(Protocol):
    """What is known of the metadata quorum."""

    @property
    def kraft_version(self) -> int:
        """Its level."""
        ...

    @property
    def complete(self) -> tuple[int, int] | None:
        """See `RaftDriver.complete`."""
        ...


class PublishedMetadata:
    """`image` is the newest published one. `broker_listener` is the name of the listener of brokers
    among themselves, `controller_listeners` are those that serve the controller, `quorum()`
    is where it comes from."""

    __slots__ = (
        "_apis",
        "_broker_listener",
        "_controller_listeners",
        "_quorum",
        "cluster_id",
        "image",
        "takes_telemetry",
    )

    def __init__(
        self,
        broker_listener: str,
        controller_listeners: Collection[str],
        quorum: Callable[[], Quorum],
    ) -> None:
        self.image = MetadataImage()
        self.cluster_id = ""
        self._broker_listener = broker_listener
        self._controller_listeners = controller_listeners
        self._quorum = quorum
        self.takes_telemetry: Callable[[], bool] = lambda: False
        """Whether anybody reads what clients send of themselves, once the listeners serve."""
        self._apis: dict[str, list[tuple[int, int, int]]] = {}

    def has_other_brokers(self) -> bool:
        """Whether others can take over what this broker cannot write."""
        return len(self.image.brokers) > 1

    def has_all_of(self, now_ms: int) -> bool:
        """Whether `image` has all that was committed at this time of the loop."""
        complete = self._quorum().complete
        return (
            complete is not None and complete[1] >= now_ms and self.image.offset + 1 >= complete[0]
        )

    def address_of(self, broker_id: int) -> tuple[str, int] | None:
        """Where a broker is reached by other brokers."""
        broker = self.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._broker_listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def finalized_features(self) -> dict[str, int]:
        """Feature levels of the cluster, kraft.version among them."""
        return {**self.image.features.finalized, "kraft.version": self._quorum().kraft_version}

    def listener_type(self, listener_name: str) -> Listener:
        """Whom a listener serves."""
        return "controller" if listener_name in self._controller_listeners else "broker"

    def advertised_apis(self, listener_name: str) -> list[tuple[int, int, int]]:
        """(API key, lowest, highest version) of what ApiVersions lists, ascending."""
        kind = self.listener_type(listener_name)
        if kind not in self._apis:
            taken = self.takes_telemetry()
            self._apis[kind] = api_versions.advertised(kind, telemetry=taken)
        return self._apis[kind]

"""The metadata that this node has published to its parts, with what is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kwire.kraft.images.metadata_image import MetadataImage
from kwire.protocol import api_versions
from kwire.protocol.api_keys import Listener


class PublishedMetadata:
    """`image` is the newest published one. `controller_listeners` are the names of the listeners
    that serve the controller, `kraft_version` tells the quorum's level."""

    __slots__ = ("_apis", "_controller_listeners", "_kraft_version", "cluster_id", "image")

    def __init__(
        self, controller_listeners: Collection[str], kraft_version: Callable[[], int]
    ) -> None:
        self.image = MetadataImage()
        self.cluster_id = ""
        self._controller_listeners = controller_listeners
        self._kraft_version = kraft_version
        self._apis: dict[str, list[tuple[int, int, int]]] = {}

    def finalized_features(self) -> dict[str, int]:
        """Feature levels of the cluster, kraft.version among them."""
        return {**self.image.features.finalized, "kraft.version": self._kraft_version()}

    def listener_type(self, listener_name: str) -> Listener:
        """Whom a listener serves."""
        return "controller" if listener_name in self._controller_listeners else "broker"

    def advertised_apis(self, listener_name: str) -> list[tuple[int, int, int]]:
        """(API key, lowest, highest version) of what ApiVersions lists, ascending."""
        kind = self.listener_type(listener_name)
        if kind not in self._apis:
            self._apis[kind] = api_versions.advertised(kind)
        return self._apis[kind]

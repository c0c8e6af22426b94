"""Log directories that get no new replicas: `cordoned.log.dirs`, static and dynamic (KIP-1066).

The log manager makes no log in them while another is there; heartbeats tell the controller, which
places no replica on a broker that has no other directory. What is in a cordoned directory stays
and is served. Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kwire.config.dynamic import DynamicConfig
from kwire.config.requirements import ALL_DIRECTORIES, CORDONED
from kwire.config.values import Value
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.log.directories.manager import LogManager
from kwire.protocol import uuids


class Cordoning:
    """Keeps the log manager's cordoned directories those of the config.

    `image()` is the published metadata: below metadata.version 4.3-IV0 only this broker knows of
    them. `on_change()` is called when they are others than before.
    """

    def __init__(
        self, config: DynamicConfig, manager: LogManager, image: Callable[[], MetadataImage]
    ) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._config = config
        self._manager = manager
        self._image = image
        config.add_listener(self._configured)
        self._apply()

    def reported(self) -> list[bytes] | None:
        """The ids of the cordoned directories for a heartbeat; None where nobody would read it."""
        if not self._is_supported():
            return None
        directories = self._manager.directories
        ids = [d.directory_id for d in directories if d in self._manager.cordoned]
        return [known for known in ids if known != uuids.ZERO]

    def shows(self, path: str) -> bool:
        """Whether DescribeLogDirs tells that a directory is cordoned."""
        return self._is_supported() and any(d.path == path for d in self._manager.cordoned)

    def _is_supported(self) -> bool:
        return self._image().features.metadata_version.cordoned_log_dirs

    def _configured(self, changed: Mapping[str, Value]) -> None:
        if CORDONED in changed:
            self._apply()
            self.on_change()

    def _apply(self) -> None:
        entries: list[str] = self._config[CORDONED]
        known = self._config.static.log_directories
        self._manager.cordoned = [
            directory
            for entry, directory in zip(known, self._manager.directories, strict=True)
            if entry in entries or ALL_DIRECTORIES in entries
        ]

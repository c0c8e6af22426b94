"""Whose the log directories are: formatted for this node on first use, else checked."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from kwire.clock import Clock, Random
from kwire.config.broker_config import BrokerConfig
from kwire.kraft import quorum_settings as settings
from kwire.kraft.raft.types import Endpoint
from kwire.log.directories.directory import LogDirectory, LogDirectoryError, holds_log, parse_name
from kwire.log.directories.manager import LogManager
from kwire.protocol import uuids

logger = logging.getLogger(__name__)


class DirectoryIdentities:
    """What `meta.properties` of the log directories say, and what is written there.

    `endpoint()` is where this node's controller is reached, `listener_name` by which listener.
    """

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogManager,
        clock: Clock,
        random: Random,
        *,
        listener_name: str,
        endpoint: Callable[[], Endpoint],
    ) -> None:
        self._config = config
        self._logs = logs
        self._clock = clock
        self._random = random
        self._listener_name = listener_name
        self._endpoint = endpoint
        self.scram: list[str] = []
        """Users of a new cluster, as `kwire format --add-scram` takes them."""

    @property
    def metadata_directory(self) -> str:
        """The log directory that holds the metadata log."""
        path: str | None = self._config["metadata.log.dir"]
        return os.path.abspath(path or self._config.log_directories[0])

    @property
    def metadata_directory_id(self) -> bytes:
        return next(
            directory.directory_id
            for directory in self._logs.directories
            if directory.path == self.metadata_directory
        )

    def establish(self, features: Mapping[str, int]) -> str:
        """Format what is not formatted, check what is; the id of the cluster.

        The log directories are locked. Raises LogDirectoryError, FormatError, ConfigError.
        """
        directories = self._online()
        properties = [d.meta_properties() for d in directories]
        known = [found for found in properties if found is not None]
        for directory, found in zip(directories, properties):
            if found is None:
                self._check_is_new(directory.path)
        if len(known) < len(properties):
            self._format(features, known[0].get("cluster.id") if known else None)
            known = [d.meta_properties() or {} for d in directories]
        for directory, found in zip(directories, known):
            self._check(directory.path, found, known[0])
            if directory.directory_id == uuids.ZERO:
                self._give_id(directory, found)
        cluster_id = known[0].get("cluster.id", "")
        given = self._config.cluster_id
        if given is not None and given != cluster_id:
            logger.warning(
                "CLUSTER_ID is %s, but %s belongs to cluster %s, and stays so",
                given,
                directories[0].path,
                cluster_id,
            )
        return cluster_id

    def _online(self) -> list[LogDirectory]:
        """The log directories that could be opened; LogDirectoryError without the metadata's."""
        directories = self._logs.directories
        for directory in directories:
            if directory.error is not None and directory.path == self.metadata_directory:
                raise LogDirectoryError(
                    f"{directory.path}, which holds the metadata, cannot be used: {directory.error}"
                )
        return [directory for directory in directories if directory.error is None]

    def _check(self, path: str, found: dict[str, str], first: dict[str, str]) -> None:
        node_id = str(self._config.node_id)
        if found.get("node.id", found.get("broker.id")) != node_id:
            raise LogDirectoryError(
                f"{path} belongs to node {found.get('node.id')}, this node's id is {node_id}; "
                "set node.id to it, or choose another data directory"
            )
        if found.get("cluster.id") != first.get("cluster.id"):
            raise LogDirectoryError(
                f"{path} belongs to cluster {found.get('cluster.id')}, another log directory to "
                f"{first.get('cluster.id')}; move the wrong one away"
            )

    def _give_id(self, directory: LogDirectory, found: dict[str, str]) -> None:
        from kwire.kraft.formatting.log_directories import random_directory_id

        directory.give_id(found, random_directory_id(self._random), self._clock.wall_ms())
        shown = uuids.to_text(directory.directory_id)
        logger.info("%s had no directory.id; it is %s now", directory.path, shown)

    def _check_is_new(self, path: str) -> None:
        """A directory with partitions is never formatted: its identity was lost."""
        names = self._logs.files.directories(path)
        files = self._logs.files
        if any(
            parse_name(name) is not None and holds_log(files, f"{path}/{name}") for name in names
        ):
            raise LogDirectoryError(
                f"{path}/meta.properties is missing, but there are partitions: restore it from a "
                "copy or by hand (cluster.id, node.id, directory.id, version=1)"
            )

    def _format(self, features: Mapping[str, int], cluster_id: str | None) -> None:
        from kwire.kraft.formatting.log_directories import FormatOptions, format_directories

        config = self._config
        static = settings.static_voters(config, self._listener_name)
        alone = config.is_controller and (
            static.ids == [config.node_id]
            if static is not None
            else config.developer or config.bootstraps_from_itself()
        )
        if cluster_id is None:
            cluster_id = config.cluster_id
            # Whether a controller begins a dynamic quorum or joins one, its id does not say.
            is_known = static is not None or not config.is_controller
            if not alone and not (cluster_id and is_known):
                hint = ", or set the environment's CLUSTER_ID" if is_known else ""
                raise LogDirectoryError(
                    f"{self.metadata_directory} is not formatted, and this node is not alone in "
                    f"its quorum: format it with kwire format{hint}"
                )
        paths = [directory.path for directory in self._online()]
        lines = format_directories(
            FormatOptions(
                cluster_id=cluster_id or uuids.to_text(uuids.random_uuid(self._random)),
                node_id=config.node_id,
                directories=paths,
                metadata_directory=self.metadata_directory,
                is_controller=config.is_controller,
                has_static_voters=static is not None,
                endpoint=self._endpoint() if config.is_controller else None,
                listener_name=self._listener_name,
                standalone=alone and static is None,
                no_initial_controllers=not alone and static is None,
                ignore_formatted=True,
                features=[f"{name}={level}" for name, level in features.items()],
                scram=self.scram,
            ),
            clock=self._clock,
            random=self._random,
            files=self._logs.files,
        )
        for line in lines:
            logger.info("%s", line)

"""Opens a node's log directories and the metadata log in one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.log.directories.directory import METADATA_PARTITION, LogDirectoryError
from kwire.log.directories.manager import LogManager
from kwire.node.directory_identities import DirectoryIdentities
from kwire.node.listeners import Listeners
from kwire.node.metadata_quorum import MetadataQuorum
from kwire.node.start_error import StartError
from kwire.node.workers import Workers
from kwire.protocol.errors import KafkaError
from kwire.server.dispatch import Dispatcher


class QuorumOpening:
    """What comes before anything is asked or answered. `features` are the levels of a new cluster's
    features, `controller_dispatcher()` what the controller's listeners serve."""

    def __init__(
        self,
        config: BrokerConfig,
        features: Mapping[str, int],
        *,
        logs: LogManager,
        identities: DirectoryIdentities,
        listeners: Listeners,
        controller_dispatcher: Callable[[], Dispatcher],
        quorum: MetadataQuorum,
        workers: Workers,
    ) -> None:
        self._config = config
        self._features = features
        self._logs = logs
        self._identities = identities
        self._listeners = listeners
        self._controller_dispatcher = controller_dispatcher
        self._quorum = quorum
        self._workers = workers

    async def run(self) -> str:
        """The cluster's id. Raises StartError and ConfigError, one line each."""
        from kwire.kraft.formatting.errors import FeatureError, FormatError
        from kwire.kraft.raft.election import QuorumStateError
        from kwire.kraft.raft.types import RaftInvariantError
        from kwire.kraft.snapshots.content import SnapshotError

        try:
            self._logs.open_directories()
            if self._config.is_controller:
                await self._listeners.bind_controller(self._controller_dispatcher())
            return self._open()
        except FeatureError as error:
            raise ConfigError(str(error)) from None
        except (
            LogDirectoryError,
            FormatError,
            RaftInvariantError,
            SnapshotError,
            QuorumStateError,
        ) as error:
            raise StartError(str(error)) from None
        except OSError as error:
            raise self._unusable(error) from None
        except KafkaError as error:  # of the metadata log
            cause = error.__cause__
            if isinstance(cause, OSError):
                raise self._unusable(cause) from None
            raise StartError(error.message) from None

    def _unusable(self, error: OSError) -> StartError:
        where = error.filename or self._identities.metadata_directory
        return StartError(f"{where}: {error.strerror or error}")

    def _open(self) -> str:
        identities = self._identities
        cluster_id = identities.establish(self._features)
        self._quorum.open(
            cluster_id,
            identities.metadata_directory,
            identities.metadata_directory_id,
            self._listeners.controller_endpoints() if self._config.is_controller else (),
            files=self._logs.files,
            scheduler=self._workers.scheduler("kwire-metadata"),
            known=self._logs.known_logs.get(METADATA_PARTITION),
        )
        return cluster_id

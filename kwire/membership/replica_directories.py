"""Where replicas live, reported to the controller; moves between directories (KIP-858, KIP-113)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from kwire.config.dynamic import DynamicConfig
from kwire.config.values import Value
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.log.directories.manager import LogManager
from kwire.log.partition.partition_log import PartitionLog
from kwire.membership.asking import AskController
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.replica.partition import Partition

logger = logging.getLogger(__name__)

RETRY_S = 0.5
PARTITIONS_MAX = 2250  # of one request, as in Kafka

MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Key = tuple[bytes, int]


class ReplicaDirectories:
    """Sends AssignReplicasToDirs for what the metadata has elsewhere than it is.

    `hosted(topic, index)` is a replica of this broker, `broker_epoch()` below 0 while the broker
    is not registered.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: DynamicConfig,
        logs: LogManager,
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        hosted: Callable[[str, int], Partition | None],
        ask: AskController,
    ) -> None:
        self._loop = loop
        self._config = config
        self._logs = logs
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._hosted = hosted
        self._ask = ask
        self._waiting: dict[Key, bytes] = {}
        self._asking: Pending[m.AssignReplicasToDirsResponse] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        logs.moves.on_moved = self._moved
        config.add_listener(self._configured)
        self._configured({})

    def _configured(self, changed: Mapping[str, Value]) -> None:
        self._logs.moves.rate_max = self._config[MOVE_RATE]

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata changed: compare the directories of the changed partitions."""
        if len(self._logs.directories) < 2:
            return  # the controller knows the only one
        for change in delta.partitions.values():
            new = change.new
            if new is None or self._broker_id not in new.replicas:
                self._waiting.pop((change.topic_id, change.index), None)
                continue
            at = new.replicas.index(self._broker_id)
            home = self._logs.directory_of(change.topic_name, change.index)
            if home is not None and home.error is None and new.directories[at] != home.directory_id:
                self._waiting[change.topic_id, change.index] = home.directory_id
            else:
                self._waiting.pop((change.topic_id, change.index), None)
        self._send()

    def _moved(self, log: PartitionLog) -> None:
        """A move has ended: the partition goes on with the other log."""
        hosted = self._hosted(log.topic, log.partition)
        if hosted is not None and hosted.topic_id == log.topic_id:
            hosted.disturb()
            hosted.log = log
        home = self._logs.directory_of(log.topic, log.partition)
        if home is not None:
            self._waiting[log.topic_id, log.partition] = home.directory_id
            self._send()

    def _send(self) -> None:
        if not self._waiting or self._asking is not None or self._is_closed:
            return
        if self._broker_epoch() < 0:
            self._later()
            return
        sent = dict(list(self._waiting.items())[:PARTITIONS_MAX])
        self._asking = self._ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, self._request(sent))
        self._asking.add_done_callback(lambda done: self._answered(sent, done))

    def _request(self, sent: dict[Key, bytes]) -> m.AssignReplicasToDirsRequest:
        shape = m.AssignReplicasToDirsRequest
        directories: dict[
            bytes, dict[bytes, list[m.AssignReplicasToDirsRequest.PartitionData]]
        ] = {}
        for (topic_id, index), directory_id in sent.items():
            topics = directories.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append(shape.PartitionData(partition_index=index))
        return shape(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                shape.DirectoryData(
                    id=directory_id,
                    topics=[
                        shape.TopicData(topic_id=topic_id, partitions=partitions)
                        for topic_id, partitions in topics.items()
                    ],
                )
                for directory_id, topics in directories.items()
            ],
        )

    def _answered(
        self, sent: dict[Key, bytes], done: Pending[m.AssignReplicasToDirsResponse]
    ) -> None:
        self._asking = None
        error = done.error()
        code: int = ErrorCode.NONE if error is not None else done.result().error_code
        if error is not None or code != ErrorCode.NONE:
            logger.warning("the controller was not told where replicas are: %s", error or code)
            self._later()
            return
        for key, directory_id in sent.items():
            if self._waiting.get(key) == directory_id:
                del self._waiting[key]
        self._send()

    def _later(self) -> None:
        if self._timer is None and not self._is_closed:
            self._timer = self._loop.call_later(RETRY_S, self._again)

    def _again(self) -> None:
        self._timer = None
        self._send()

    @property
    def waiting(self) -> int:
        """Replicas whose directory the controller is not told yet."""
        return len(self._waiting)

    def close(self) -> None:
        """Send nothing more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

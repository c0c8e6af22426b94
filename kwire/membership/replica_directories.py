"""Where replicas live, told to the controller; moves between directories (KIP-858, KIP-113)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kwire.log.partition.partition_log import PartitionLog
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kwire.node.node import Node

logger = logging.getLogger(__name__)

RETRY_S = 0.5
PARTITIONS_MAX = 2250  # of one request, as in Kafka

MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Key = tuple[bytes, int]


class LogDirectories:
    """Sends AssignReplicasToDirs for what the metadata has elsewhere than it is."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: dict[Key, bytes] = {}
        self._asking: Pending[Any] | None = None
        self._timer: Any = None
        self._is_closed = False
        node.log_manager.moves.on_moved = self._moved
        node.dynamic_config.add_listener(self._configured)
        self._configured({})

    def _configured(self, changed: Any) -> None:
        self._node.log_manager.moves.rate_max = self._node.dynamic_config[MOVE_RATE]

    def applied(self, delta: Any) -> None:
        """The metadata changed: compare the directories of the changed partitions."""
        if len(self._node.log_manager.directories) < 2:
            return  # the controller knows the only one
        for change in delta.partitions.values():
            new = change.new
            if new is None or self._node.broker_id not in new.replicas:
                self._waiting.pop((change.topic_id, change.index), None)
                continue
            at = new.replicas.index(self._node.broker_id)
            home = self._node.log_manager.directory_of(change.topic_name, change.index)
            if home is not None and home.error is None and new.directories[at] != home.directory_id:
                self._waiting[change.topic_id, change.index] = home.directory_id
            else:
                self._waiting.pop((change.topic_id, change.index), None)
        self._send()

    def _moved(self, log: PartitionLog) -> None:
        """A move has ended: the partition goes on with the other log."""
        hosted = self._node.replicas.partition(log.topic, log.partition)
        if hosted is not None and hosted.topic_id == log.topic_id:
            hosted.log = log
        home = self._node.log_manager.directory_of(log.topic, log.partition)
        if home is not None:
            self._waiting[log.topic_id, log.partition] = home.directory_id
            self._send()

    def _send(self) -> None:
        if not self._waiting or self._asking is not None or self._is_closed:
            return
        if self._node.lifecycle.epoch < 0:
            self._later()
            return
        sent = dict(list(self._waiting.items())[:PARTITIONS_MAX])
        self._asking = self._node.controller_channel.ask(
            ApiKey.ASSIGN_REPLICAS_TO_DIRS, self._request(sent)
        )
        self._asking.add_done_callback(lambda done: self._answered(sent, done))

    def _request(self, sent: dict[Key, bytes]) -> Any:
        shape = m.AssignReplicasToDirsRequest
        directories: dict[bytes, dict[bytes, list[Any]]] = {}
        for (topic_id, index), directory_id in sent.items():
            topics = directories.setdefault(directory_id, {})
            topics.setdefault(topic_id, []).append(shape.PartitionData(partition_index=index))
        return shape(
            broker_id=self._node.broker_id,
            broker_epoch=self._node.lifecycle.epoch,
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

    def _answered(self, sent: dict[Key, bytes], done: Pending[Any]) -> None:
        self._asking = None
        error = done.error()
        code = ErrorCode.NONE if error is not None else done.result().error_code
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
            self._timer = self._node.loop.call_later(RETRY_S, self._again)

    def _again(self) -> None:
        self._timer = None
        self._send()

    def close(self) -> None:
        """Send nothing more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

"""Topics that come into being because a client named them (auto.create.topics.enable).

The creation is sent to the controller and not waited for: the client is told that the topic is
unknown, asks again, and finds it (as Kafka 4.4 does). The internal topics are created the same way
by the requests that need them, with the configs Kafka gives them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kwire.api.shared.topic_names import is_valid
from kwire.config.broker_config import BrokerConfig
from kwire.membership.requester import Requester
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.server.authorization import INTERNAL_TOPICS
from kwire.server.parts import Forwarder

logger = logging.getLogger(__name__)

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CREATE_TOPICS_VERSION = 7


class AutoTopicCreation:
    """Sends CreateTopics for missing topics, each once at a time."""

    def __init__(self, config: BrokerConfig, forwarder: Forwarder) -> None:
        self._config = config
        self._forwarder = forwarder
        self._in_flight: dict[str, None] = {}

    def create(self, names: Iterable[str], requester: Requester | None) -> dict[str, ErrorCode]:
        """Start to create topics; what a client is told of each meanwhile."""
        answers: dict[str, ErrorCode] = {}
        wanted: list[str] = []
        internal: list[str] = []
        for name in names:
            if not is_valid(name):
                answers[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
                continue
            answers[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if name not in self._in_flight:
                self._in_flight[name] = None
                (internal if name in INTERNAL_TOPICS else wanted).append(name)
        if wanted:
            self._send(wanted, requester)
        if internal:
            self._send(internal, None)  # the broker's own, whoever the client is
        return answers

    def asked(
        self, names: Iterable[str], requester: Requester | None
    ) -> Pending[m.CreateTopicsResponse]:
        """Ask the controller for these topics, with the configs that they have when made so."""
        request = m.CreateTopicsRequest(
            topics=[self._creatable(name) for name in names],
            timeout_ms=int(self._config["request.timeout.ms"]),
        )
        return self._forwarder.forward(request, requester, version=CREATE_TOPICS_VERSION)

    def _send(self, names: list[str], requester: Requester | None) -> None:
        self.asked(names, requester).add_done_callback(lambda done: self._done(names, done))

    def _done(self, names: list[str], done: Pending[m.CreateTopicsResponse]) -> None:
        for name in names:
            self._in_flight.pop(name, None)
        error = done.error()
        if error is not None:
            logger.warning("auto-creation of %s failed: %s", ", ".join(names), error)
            return
        for topic in done.result().topics:
            if topic.error_code not in (0, int(ErrorCode.TOPIC_ALREADY_EXISTS)):
                logger.warning(
                    "auto-creation of %s failed: error %d %s",
                    topic.name,
                    topic.error_code,
                    topic.error_message or "",
                )

    def _creatable(self, name: str) -> m.CreateTopicsRequest.CreatableTopic:
        config = self._config
        partitions, replication = config["num.partitions"], config["default.replication.factor"]
        configs: dict[str, str] = {}
        if name == CONSUMER_OFFSETS:
            partitions = config["offsets.topic.num.partitions"]
            replication = config["offsets.topic.replication.factor"]
            configs = {
                "compression.type": "producer",
                "cleanup.policy": "compact",
                "segment.bytes": str(config["offsets.topic.segment.bytes"]),
            }
        elif name == TRANSACTION_STATE:
            partitions = config["transaction.state.log.num.partitions"]
            replication = config["transaction.state.log.replication.factor"]
            configs = {
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
                "segment.bytes": str(config["transaction.state.log.segment.bytes"]),
                "unclean.leader.election.enable": "false",
            }
        elif name == SHARE_GROUP_STATE:
            partitions = config["share.coordinator.state.topic.num.partitions"]
            replication = config["share.coordinator.state.topic.replication.factor"]
            configs = {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(config["share.coordinator.state.topic.min.isr"]),
                "segment.bytes": str(config["share.coordinator.state.topic.segment.bytes"]),
                "retention.ms": "-1",
            }
        shape = m.CreateTopicsRequest.CreatableTopic
        pair = m.CreateTopicsRequest.CreatableTopicConfig
        return shape(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            configs=[pair(name=key, value=value) for key, value in configs.items()],
        )

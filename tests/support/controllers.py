"""A controller with a log in memory, for tests: requests go in as if they came from the wire."""

from __future__ import annotations

import dataclasses
from typing import Any

from kwire.clock import SeededRandom
from kwire.config import BrokerConfig
from kwire.kraft.controller import Controller, ControllerConfig, ControllerContext
from kwire.kraft.controller.config_rules import controller_config
from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import decode_record, encode_record
from kwire.protocol.structs import Message

CLUSTER_ID = "a3dpcmUtY2x1c3Rlci1pZA"
PROPERTIES = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:1",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


def directory(broker_id: int, number: int = 0) -> bytes:
    return b"directory%04d%03d" % (broker_id, number)


def make_config(**changes: Any) -> ControllerConfig:
    config = BrokerConfig.load(properties=PROPERTIES, developer=False)
    return dataclasses.replace(controller_config(config, CLUSTER_ID), **changes)


class ControllerBench:
    """A controller, its log and its clock. Records are encoded and decoded on their way."""

    def __init__(
        self,
        seed: int = 1,
        features: dict[str, int] | None = None,
        config: ControllerConfig | None = None,
        activate: bool = True,
    ) -> None:
        self.config = config or make_config()
        self.controller = Controller(self.config, SeededRandom(seed))
        self.log: list[tuple[Any, int]] = []
        self.now_ms = 1_000
        self.epochs: dict[int, int] = {}
        if activate:
            bootstrap: list[tuple[Message, int]] | None = None
            if features is not None:
                bootstrap = [
                    (m.FeatureLevelRecord(name=name, feature_level=level), 0)
                    for name, level in features.items()
                ]
            self.append(self.controller.activate(self.now_ms, 0, 1, bootstrap))

    @property
    def image(self) -> Any:
        return self.controller.image

    def append(self, records: list[tuple[Any, int]]) -> None:
        for record, version in records:
            decoded = decode_record(encode_record(record, version))
            self.controller.replay(decoded[0], len(self.log), 1)
            self.log.append(decoded)

    def handle(
        self, request: Any, version: int | None = None, **context: Any
    ) -> tuple[list[tuple[Any, int]], Any]:
        """(records, response) without appending them."""
        cls = type(request)
        at = cls.MAX_VERSION if version is None else version
        decoded = cls.decode(request.encode(at), at)
        made = ControllerContext(
            api_version=at, next_offset=len(self.log), wall_ms=self.now_ms, **context
        )
        records, response = self.controller.handle(decoded, made, self.now_ms)
        return records, type(response).decode(response.encode(at), at)

    def call(self, request: Any, version: int | None = None, **context: Any) -> Any:
        """The response; the records are appended."""
        records, response = self.handle(request, version, **context)
        self.append(records)
        return response

    def expire(self, to_ms: int | None = None) -> None:
        """Let time pass and do what is due."""
        if to_ms is not None:
            self.now_ms = to_ms
        for _ in range(100):
            deadline_ms = self.controller.deadline_ms()
            if deadline_ms is None or deadline_ms > self.now_ms:
                return
            self.append(self.controller.expire(self.now_ms, self.now_ms, len(self.log)))
            for work in self.controller.begun():
                for records in work:
                    self.append(records)
        raise AssertionError("timers that never end")

    # --- brokers ---------------------------------------------------------------------------

    def registration(self, broker_id: int, life: int = 1, **changes: Any) -> Any:
        shape = m.BrokerRegistrationRequest
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": b"life%04d%08d" % (broker_id, life),
            "listeners": [
                shape.Listener(name="PLAINTEXT", host="h", port=9092, security_protocol=0)
            ],
            "features": [
                shape.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED_FEATURES.items()
            ],
            "rack": None,
            "log_dirs": [directory(broker_id)],
        }
        return shape(**{**fields, **changes})

    def register(self, broker_id: int, life: int = 1, **changes: Any) -> Any:
        answer = self.call(self.registration(broker_id, life, **changes))
        if answer.error_code == 0:
            self.epochs[broker_id] = answer.broker_epoch
        return answer

    def heartbeat(self, broker_id: int, **changes: Any) -> Any:
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "broker_epoch": self.epochs.get(broker_id, -1),
            "current_metadata_offset": len(self.log),
            "cordoned_log_dirs": [],
        }
        return self.call(m.BrokerHeartbeatRequest(**{**fields, **changes}))

    def start(self, *broker_ids: int, **changes: Any) -> None:
        """Register brokers and unfence them."""
        for broker_id in broker_ids:
            assert self.register(broker_id, **changes).error_code == 0
            assert not self.heartbeat(broker_id).is_fenced

    # --- topics ----------------------------------------------------------------------------

    def create(self, name: str, assigned: dict[int, list[int]] | None = None, **fields: Any) -> Any:
        shape = m.CreateTopicsRequest
        configs = {key.replace("_", "."): v for key, v in fields.pop("configs", {}).items()}
        topic = shape.CreatableTopic(
            name=name,
            num_partitions=fields.get("partitions", -1),
            replication_factor=fields.get("factor", -1),
            assignments=[
                shape.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
                for index, ids in (assigned or {}).items()
            ],
            configs=[shape.CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
        )
        return self.call(shape(topics=[topic])).topics[0]

    def partition(self, name: str, index: int = 0) -> Any:
        return self.image.topics.partition(name, index)

    def alter_isr(self, name: str, index: int, isr: list[int], **changes: Any) -> Any:
        """AlterPartition as the leader would send it; the answer for the partition."""
        shape = m.AlterPartitionRequest
        partition = self.partition(name, index)
        fields: dict[str, Any] = {
            "partition_index": index,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "leader_recovery_state": 0,
            "new_isr_with_epochs": [
                shape.BrokerState(broker_id=b, broker_epoch=self.epochs.get(b, -1)) for b in isr
            ],
        }
        topic_id = self.image.topics.by_name[name].topic_id
        answer = self.call(
            shape(
                broker_id=partition.leader,
                broker_epoch=self.epochs.get(partition.leader, -1),
                topics=[
                    shape.TopicData(
                        topic_id=topic_id,
                        partitions=[shape.PartitionData(**{**fields, **changes})],
                    )
                ],
            )
        )
        return answer.topics[0].partitions[0] if answer.topics else answer

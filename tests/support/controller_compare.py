"""Two controllers' answers and records in one language: ids and epochs by name, maps unordered."""

from __future__ import annotations

import itertools
from typing import Any


def struct(value: Any, key: str, names: dict[str, dict[Any, str]]) -> Any:
    """A message as plain data; ids and epochs by name, lists in no order."""
    if isinstance(value, list):
        items = [struct(item, key, names) for item in value]
        return items if key in ORDERED else sorted(items, key=repr)
    if hasattr(type(value), "encode_parts") or hasattr(value, "unknown_tags"):
        return {field: struct(getattr(value, field), field, names) for field in value.FIELDS}
    if key in ("topic_id", "broker_epoch", "epoch"):
        kind = "topics" if key == "topic_id" else "epochs"
        return names[kind].get(value, value)
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    return value


ORDERED = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "directories",
    "replica_nodes",
)


class Side:
    """What one controller called things."""

    def __init__(self) -> None:
        self.names: dict[str, dict[Any, str]] = {"topics": {}, "epochs": {}}

    def learn(self, request: Any, response: Any) -> None:
        name = type(response).NAME
        if name == "CreateTopicsResponse" and not request.validate_only:
            for topic in response.topics:
                self.names["topics"][topic.topic_id] = topic.name
        elif name == "CreateTopicsResponse":
            for topic in response.topics:
                topic.topic_id = bytes(16)
        elif name == "BrokerRegistrationResponse" and response.error_code == 0:
            life = f"{request.broker_id} {bytes(request.incarnation_id)!r}"
            self.names["epochs"][response.broker_epoch] = life

    def learn_record(self, record: Any) -> None:
        name: str = type(record).NAME
        if name == "TopicRecord":
            self.names["topics"][record.topic_id] = record.name
        elif name == "RegisterBrokerRecord":
            life = f"{record.broker_id} {bytes(record.incarnation_id)!r}"
            self.names["epochs"][record.broker_epoch] = life
        elif name in ("AccessControlEntryRecord", "RemoveAccessControlEntryRecord"):
            record.id = bytes(16)

    def plain(self, message: Any) -> Any:
        return struct(message, "", self.names)


def record_runs(records: list[Any], side: Side) -> list[Any]:
    """Records as plain data; neighbours of one type in no order, as Kafka's maps give them."""
    shown = []
    for record in records:
        side.learn_record(record[0])
        shown.append((type(record[0]).NAME, record[1], side.plain(record[0])))
    return [
        sorted(group, key=repr) for _, group in itertools.groupby(shown, key=lambda item: item[0])
    ]


def is_kafkas_own(record: Any) -> bool:
    """A sign of life, or the registration of the controller itself."""
    name: str = type(record).NAME
    is_registration = name == "RegisterControllerRecord" and record.controller_id == 1
    return name == "NoOpRecord" or bool(is_registration)

"""Every config, many values, every operation: answered as Apache Kafka 4.4 does, code and text.

What is asked is `tests/support/config_sweep.py`; `tests/differential/test_configs_live.py` asks a
live Kafka the same. Here the requests go through the broker's checks and the controller's, without
sockets. `is_meant` names the differences that are meant: what kwire has not built is refused where
Kafka takes it, and nothing is answered UNKNOWN_SERVER_ERROR, as Kafka does where it fails itself.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwire.api import alter_configs, incremental_alter_configs
from kwire.config import BrokerConfig, ConfigError
from kwire.config.broker_config import definition_of
from kwire.config.dynamic import DynamicConfig
from kwire.kraft.controller.config_rules import controller_config
from kwire.pending import Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support import config_sweep as sweep
from tests.support.config_scenario import peer_properties
from tests.support.controllers import CLUSTER_ID, ControllerBench
from tests.support.parts import made_parts

PORTS = sweep.Ports(32100, 32101)
PROPERTIES = peer_properties(PORTS.broker, {})
HANDLERS = {
    m.IncrementalAlterConfigsRequest: incremental_alter_configs.handle,
    m.AlterConfigsRequest: alter_configs.handle,
}
# What Kafka takes into its configuration and then ends with: a port that cannot be, no such class.
KAFKA_ENDS_LATER = (
    *("listeners", "advertised.listeners", "replica.selector.class"),
    "authorizer.class.name",
)


class Node:
    """A broker and its controller as far as changing configs concerns them."""

    def __init__(self, properties: dict[str, str] = PROPERTIES) -> None:
        config = BrokerConfig.load(properties=properties, developer=False)
        self.dynamic_config = DynamicConfig(config)
        made = controller_config(config, CLUSTER_ID, dynamic=self.dynamic_config)
        self.bench = ControllerBench(config=made)
        self.bench.start(1)
        topics = [
            m.CreateTopicsRequest.CreatableTopic(
                name=sweep.TOPIC_NAME, num_partitions=1, replication_factor=1
            )
        ]
        assert self.bench.call(m.CreateTopicsRequest(topics=topics)).topics[0].error_code == 0
        self.parts = made_parts(
            dynamic_config=self.dynamic_config, image=self.bench.image, forwarder=self
        )

    def forward(self, request: Any, *_: Any, version: int, **__: Any) -> Pending[Any]:
        return Pending.completed(self.bench.handle(request, version)[1])

    def call(self, request: Any) -> Any:
        handler = HANDLERS.get(type(request))
        if handler is None:
            return self.bench.handle(request)[1]
        context: Any = SimpleNamespace(
            parts=self.parts,
            api_key=request.API_KEY,
            api_version=request.MAX_VERSION,
            authorize=lambda *_: True,
            allows=lambda *_: True,
        )
        return as_pending(handler(context, request)).result()


def is_meant(change: sweep.Change, kafka: tuple[int, str], ours: tuple[int, str]) -> bool:
    """Whether a difference from Kafka is meant."""
    if kafka[0] == ErrorCode.UNKNOWN_SERVER_ERROR:
        return ours[0] in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG)
    unbuilt = ours[0] == ErrorCode.INVALID_CONFIG and (
        "is refused: " in ours[1] or "is not built yet" in ours[1]
    )
    names = [definition_of(name) for name, _ in change.configs]
    marked = any(found is not None and found.support == "refused" for found in names)
    if unbuilt and (marked or "is not built yet" in ours[1]):
        # Kafka's controller may have its own reason, behind the broker's.
        return kafka[0] in (ErrorCode.NONE, ErrorCode.INVALID_CONFIG)
    if [name for name, _ in change.configs] == ["listeners"] and kafka[0] == ErrorCode.NONE:
        return "port out of range" in ours[1]
    # Of several malformed values Kafka tells one by an order of its own.
    return len(change.configs) > 1 and kafka[0] == ours[0] and "Not a number" in ours[1]


def test_changes_are_answered_as_kafka_answers_them() -> None:
    answers = sweep.play(Node().call, PORTS)
    recorded = sweep.Answers.read(sweep.DATA)
    differences = []
    for change in sweep.changes():
        kafka, ours = recorded.of(change), answers.of(change)
        if kafka != ours and not is_meant(change, kafka, ours):
            differences.append((change, kafka, ours))
    assert differences == []


def test_listeners_without_a_map_of_protocols_are_refused_in_kafkas_words() -> None:
    node = Node({name: text for name, text in PROPERTIES.items() if name != sweep.PROTOCOL_MAP})
    told = {}
    for listeners in sweep.WITHOUT_A_MAP:
        change = sweep.Change(sweep.BROKER, "1", sweep.SET, (("listeners", listeners),))
        told[listeners] = sweep.answer_of(node.call(sweep.request_of(change, PORTS)), PORTS)
    assert told == {
        listeners: (ErrorCode.INVALID_REQUEST, text)
        for listeners, text in sweep.WITHOUT_A_MAP.items()
    }


def test_a_node_starts_with_what_kafka_starts_with() -> None:
    """Beyond those of the docstring, what Kafka only finds out while it starts is refused."""
    recorded = sweep.Answers.read(sweep.STATIC_DATA)
    differences = []
    for settings in sweep.static_settings():
        refused, text = recorded.known[sweep.static_key(settings)]
        given = {name: PORTS.put_in(value) for name, value in settings.items()}
        try:
            BrokerConfig.load(properties={**PROPERTIES, **given}, developer=False)
            ours = ""
        except ConfigError as error:
            ours = str(error)
        unbuilt = "is refused: " in ours or "not built yet" in ours
        meant = not refused and (unbuilt or set(settings) <= set(KAFKA_ENDS_LATER))
        if bool(refused) != bool(ours) and not meant:
            differences.append((settings, text, ours))
    assert differences == []

"""The controller scenario: kwire's controller answers and writes what Apache Kafka 4.4 did.

`tests/golden/data/controller_answers_*.json.gz` were made by `record_answers.py`. Every step's
response, and in the end the metadata log record by record, must be equal, but for what is random
(ids), what counts on from elsewhere (broker epochs are log offsets) and the order of what Kafka
keeps in hash maps.
"""

from __future__ import annotations

import gzip
import itertools
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.config import BrokerConfig
from kwire.kraft.controller import Controller, ControllerContext
from kwire.kraft.controller.bootstrap import default_bootstrap_records
from kwire.kraft.controller.rules import controller_config
from kwire.kraft.features import default_features
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import decode_record, encode_record
from tests.support.controller_scenario import CLUSTER_ID, scenario

DATA = pathlib.Path(__file__).parents[1] / "data"
VARIANTS = {
    "default": default_features(),
    "no-elr": {
        name: level
        for name, level in default_features().items()
        if name != "eligible.leader.replicas.version"
    },
    "3.9": default_features(21),
}
"""How the cluster was formatted: the feature levels."""


def _recorded(variant: str) -> Any:
    path = DATA / f"controller_answers_{variant}.json.gz"
    return json.loads(gzip.decompress(path.read_bytes()))


PROPERTIES = {
    "node.id": "1",
    "process.roles": "controller",
    "listeners": "CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:1",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
}


def _struct(value: Any, key: str, names: dict[str, dict[Any, str]]) -> Any:
    """A message as plain data; ids and epochs by name, lists in no order."""
    if isinstance(value, list):
        items = [_struct(item, key, names) for item in value]
        return items if key in _ORDERED else sorted(items, key=repr)
    if hasattr(type(value), "encode_parts") or hasattr(value, "unknown_tags"):
        return {field: _struct(getattr(value, field), field, names) for field in _fields(value)}
    if key in ("topic_id", "broker_epoch", "epoch"):
        kind = "topics" if key == "topic_id" else "epochs"
        return names[kind].get(value, value)
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    return value


_ORDERED = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "directories",
    "replica_nodes",
)


def _fields(value: Any) -> list[str]:
    return [f for f in type(value).__slots__ if not f.startswith("_") and f != "unknown_tags"]


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
        name = type(record).NAME
        if name == "TopicRecord":
            self.names["topics"][record.topic_id] = record.name
        elif name == "RegisterBrokerRecord":
            life = f"{record.broker_id} {bytes(record.incarnation_id)!r}"
            self.names["epochs"][record.broker_epoch] = life
        elif name in ("AccessControlEntryRecord", "RemoveAccessControlEntryRecord"):
            record.id = bytes(16)

    def plain(self, message: Any) -> Any:
        return _struct(message, "", self.names)


class Run:
    """The dialogue with kwire's controller, and what it wrote."""

    def __init__(self, features: dict[str, int]) -> None:
        config = BrokerConfig.load(properties=PROPERTIES, developer=False)
        settings = controller_config(config, CLUSTER_ID)
        self.controller = Controller(
            type(settings)(
                **{
                    **{f: getattr(settings, f) for f in type(settings).__dataclass_fields__},
                    "has_authorizer": True,
                    "session_timeout_ms": 600_000,
                }
            ),
            SeededRandom(7),
        )
        self.log: list[tuple[Any, int]] = []
        self.now_ms = 1000
        bootstrap = default_bootstrap_records(features)
        self._append(self.controller.activate(self.now_ms, 0, 1, bootstrap))
        self._register_itself()

    def _append(self, records: list[tuple[Any, int]]) -> None:
        for record, version in records:
            self.controller.replay(record, len(self.log))
            self.log.append(decode_record(encode_record(record, version)))

    def _register_itself(self) -> None:
        self.call(0, m.ControllerRegistrationRequest(controller_id=1, incarnation_id=b"i" * 16))

    def call(self, version: int, request: Any) -> Any:
        # What a controller gets was on the wire.
        name = type(request).NAME
        request = getattr(m, name).decode(request.encode(version), version)
        self.now_ms += 1
        context = ControllerContext(api_version=version, next_offset=len(self.log))
        records, response = self.controller.handle(request, context, self.now_ms)
        self._append(records)
        return type(response).decode(response.encode(version), version)


def _dialogue(run: Run) -> Iterator[tuple[str, Any, Any, int]]:
    """(API, request, kwire's response, version) of every step."""
    dialogue = scenario()
    version, request = next(dialogue)
    while True:
        response = run.call(version, request)
        yield type(request).NAME.removesuffix("Request"), request, response, version
        try:
            version, request = dialogue.send(response)
        except StopIteration:
            return


@pytest.fixture(scope="module", params=VARIANTS)
def compared(
    request: pytest.FixtureRequest,
) -> tuple[list[tuple[int, str, Any, Any, Any]], Run, list[str]]:
    """Every step as (number, API, request, Kafka's answer, kwire's answer), and both logs."""
    return compare(request.param)


def compare(variant: str) -> tuple[list[tuple[int, str, Any, Any, Any]], Run, list[str]]:
    recorded = _recorded(variant)
    run, kafka, kwire = Run(VARIANTS[variant]), Side(), Side()
    steps = []
    for number, (step, (api, request, response, version)) in enumerate(
        zip(recorded["steps"], _dialogue(run), strict=True)
    ):
        assert (step["api"], step["version"]) == (api, version), f"step {number}"
        answer = type(response).decode(bytes.fromhex(step["response"]), version)
        kafka.learn(request, answer)
        kwire.learn(request, response)
        steps.append((number, api, request, kafka.plain(answer), kwire.plain(response)))
    return steps, run, recorded["log"]


def test_every_answer_is_kafkas(compared: tuple[list[Any], Run, list[str]]) -> None:
    steps, _, _ = compared
    different = [
        f"step {number}, {api}: {request}\n  Kafka {theirs}\n  kwire {ours}"
        for number, api, request, theirs, ours in steps
        if theirs != ours
    ]
    assert not different, "\n".join(different)


def _runs(records: list[Any], side: Side) -> list[Any]:
    """Records as plain data; neighbours of one type in no order, as Kafka's maps give them."""
    shown = []
    for record in records:
        side.learn_record(record[0])
        shown.append((type(record[0]).NAME, record[1], side.plain(record[0])))
    return [
        sorted(group, key=repr) for _, group in itertools.groupby(shown, key=lambda item: item[0])
    ]


def _is_kafkas_own(record: Any) -> bool:
    """A sign of life, or the registration of the controller itself."""
    name = type(record).NAME
    return name == "NoOpRecord" or (
        name == "RegisterControllerRecord" and record.controller_id == 1
    )


def test_the_metadata_log_is_kafkas(compared: tuple[list[Any], Run, list[str]]) -> None:
    _, run, log = compared
    theirs = [decode_record(bytes.fromhex(value)) for value in log]
    theirs = [pair for pair in theirs if not _is_kafkas_own(pair[0])]
    ours = [pair for pair in run.log if not _is_kafkas_own(pair[0])]
    for expected, got in zip(_runs(theirs, Side()), _runs(ours, Side())):
        assert got == expected
    assert len(ours) == len(theirs)

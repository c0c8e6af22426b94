"""The controller scenario: kwire's controller answers and writes what Apache Kafka 4.4 did.

`tests/golden/data/controller_answers_*.json.gz` were made by `record_answers.py`. Every step's
response, and in the end the metadata log record by record, must be equal, but for what is random
(ids), what counts on from elsewhere (broker epochs are log offsets) and the order of what Kafka
keeps in hash maps.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.config import BrokerConfig
from kwire.kraft.controller import Controller, ControllerContext
from kwire.kraft.controller.bootstrap import default_bootstrap_records
from kwire.kraft.controller.config_rules import controller_config
from kwire.kraft.features import default_features
from kwire.protocol import messages as m
from kwire.protocol.metadata_records import decode_record, encode_record
from tests.support.controller_compare import Side, is_kafkas_own, record_runs
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


def test_the_metadata_log_is_kafkas(compared: tuple[list[Any], Run, list[str]]) -> None:
    _, run, log = compared
    theirs = [decode_record(bytes.fromhex(value)) for value in log]
    theirs = [pair for pair in theirs if not is_kafkas_own(pair[0])]
    ours = [pair for pair in run.log if not is_kafkas_own(pair[0])]
    for expected, got in zip(record_runs(theirs, Side()), record_runs(ours, Side())):
        assert got == expected
    assert len(ours) == len(theirs)

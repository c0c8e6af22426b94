"""CreateAcls, DescribeAcls and DeleteAcls are answered as by Apache Kafka 4.4, malformed ones too.

Where Kafka says UNKNOWN_SERVER_ERROR, or its controller closes the connection, kwire names the
field: INVALID_REQUEST.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster.in_thread import NodeInThread
from tests.golden.acls import dialogue

SERVER_ERROR = [0, [[-1, None]]]
INVALID_REQUEST = "[[42, "
DATA = Path(__file__).parent.parent / "data" / "acl_answers.json.gz"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = {}
    settings = {
        **dialogue.PROPERTIES,
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
    }
    with NodeInThread(tmp_path_factory.mktemp("acls"), settings=settings) as node:
        made["broker"] = dialogue.run(node.bootstrap)
        controller = f"127.0.0.1:{node.node.listeners.bound['CONTROLLER'].port}"
        made["controller"] = dialogue.run(controller)
    features = {"metadata.version": dialogue.OLDER_LEVEL}
    older = tmp_path_factory.mktemp("older")
    with NodeInThread(older, settings=dialogue.PROPERTIES, features=features) as node:
        made["older"] = dialogue.run(node.bootstrap, only_hosts=True)
    return made


@pytest.mark.parametrize("part", ["broker", "controller", "older"])
def test_answers_are_kafkas(part: str, answers: dict[str, Any]) -> None:
    ours, theirs = answers[part], json.loads(gzip.decompress(DATA.read_bytes()))[part]
    assert sorted(ours) == sorted(theirs)
    for label, answer in theirs.items():
        if answer in (SERVER_ERROR, "closed") and ours[label] != answer:
            assert INVALID_REQUEST in str(ours[label]), label
            ours[label] = answer
    wrong = {label: (ours[label], theirs[label]) for label in ours if ours[label] != theirs[label]}
    shown = "\n".join(f"{label}\n  ours  {a}\n  Kafka {b}" for label, (a, b) in wrong.items())
    assert not wrong, f"{len(wrong)} of {len(ours)} answers differ\n{shown}"

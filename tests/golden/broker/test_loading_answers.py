"""`coordinator-loading` is, byte for byte, what Apache Kafka 4.4 answers while coordinators load.

Recorded by `python -m tests.support.machine.record`, without the texts of errors.
`tests/differential/test_machines_live.py` asks anew.
"""

from __future__ import annotations

import json

import pytest

from kwire.faults.answers import error_response
from kwire.faults.machine import Asked, Faults
from kwire.faults.rules import parse_rule
from kwire.protocol import frame
from kwire.protocol.errors import ErrorCode
from tests.golden.broker.test_fault_answers import codes_in
from tests.support.cluster_fault_answers import Failing
from tests.support.fault_answers import shown
from tests.support.machine.loading import SPARED, requests
from tests.support.machine.record import LOADING

RECORDED: dict[str, str] = json.loads(LOADING.read_text())
QUESTIONS = [(failing, version) for failing in requests() for version in failing.versions]
BEFORE_THE_COORDINATOR = {int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)}
"""What is wrong with a SyncGroup that names no protocol is found before it."""


def test_a_coordinator_that_loads_was_asked() -> None:
    assert set(RECORDED) == {f"{failing.label} v{version}" for failing, version in QUESTIONS}
    codes = {code for failing, version in QUESTIONS for code in codes_of(failing, version)}
    assert codes == {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        *BEFORE_THE_COORDINATOR,
    }


def codes_of(failing: Failing, version: int) -> set[int]:
    theirs = bytes.fromhex(RECORDED[f"{failing.label} v{version}"])
    key = int(failing.request.API_KEY or 0)
    return codes_in(frame.decode_response(key, version, memoryview(theirs)[4:])[1])


@pytest.mark.parametrize(
    ("failing", "version"), QUESTIONS, ids=[f"{one.label} v{version}" for one, version in QUESTIONS]
)
def test_the_fault_answers_as_a_coordinator_that_loads(failing: Failing, version: int) -> None:
    if codes_of(failing, version) == BEFORE_THE_COORDINATOR:
        return
    request, faults = failing.request, Faults(1)
    faults.add(parse_rule({"kind": "coordinator-loading"}))
    key = int(request.API_KEY or 0)
    plan = faults.plan(Asked(key, version, "client", "User:a", request), lambda _: None)
    assert (plan is None) == (failing.label == SPARED)
    if plan is None:
        return
    (refused,) = plan.refused
    ours = error_response(
        refused.place, request, version, refused.code, refused.chosen, lambda _: None
    )
    assert shown(request, ours, version) == RECORDED[f"{failing.label} v{version}"], ours

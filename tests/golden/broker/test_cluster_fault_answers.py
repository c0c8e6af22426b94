"""An error on command is, byte for byte, what Apache Kafka 4.4 answers where a leader or
coordinator is elsewhere, or a follower lags.

Recorded by `python -m tests.support.cluster_fault_answers`, without the texts of errors.
`tests/differential/test_cluster_fault_answers_live.py` asks anew.
"""

from __future__ import annotations

import json

import pytest

from kwire.faults.answers import error_response, merge, tell_log_starts
from kwire.faults.places import places_of
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Message
from kwire.server.leader_hints import EndpointT, LeaderHints, name_leaders
from tests.golden.broker.test_fault_answers import codes_in, everything
from tests.support.cluster_fault_answers import (
    DATA,
    NOT_HERE,
    OTHER,
    TOPIC_ID,
    Failing,
    requests,
    told,
    waiting,
)

RECORDED: dict[str, str] = json.loads(DATA.read_text())
ASKED = [*requests(), *waiting()]
QUESTIONS = [(failing, version) for failing in ASKED for version in failing.versions]
CODES = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,  # of a SyncGroup that names none, asked anywhere
}
LOCK_DURATION_MS = 30_000


def code_of(failing: Failing, version: int) -> tuple[ErrorCode, Message]:
    key = int(failing.request.API_KEY or 0)
    theirs = bytes.fromhex(RECORDED[f"{failing.label} v{version}"])
    _, answer = frame.decode_response(key, version, memoryview(theirs)[4:])
    (code,) = codes_in(answer)
    return ErrorCode(code), answer


def name_of(topic_id: bytes) -> str | None:
    return NOT_HERE if topic_id == TOPIC_ID else None


class LedByTheOther(LeaderHints):
    """What the metadata of the broker that is asked says of all these topics."""

    def __init__(self) -> None:
        """Nothing else is known."""

    def leader_of(self, topic: str, index: int) -> tuple[int, int]:
        return OTHER, 0

    def endpoints(self, endpoint_class: type[EndpointT]) -> list[EndpointT]:
        return [endpoint_class(node_id=OTHER, host="127.0.0.1", port=0)]


def executed(answer: Message) -> Message:
    """The answer as it would be had nothing gone wrong behind the append."""
    assert isinstance(answer, m.ProduceResponse)
    (topic,) = answer.responses
    (done,) = (one.copy(error_code=0) for one in topic.partition_responses)
    assert done.base_offset >= 0, "the records were appended"
    return answer.copy(responses=[topic.copy(partition_responses=[done])])


def test_all_these_failures_are_recorded() -> None:
    assert {code_of(failing, version)[0] for failing, version in QUESTIONS} == CODES


@pytest.mark.parametrize(
    ("failing", "version"), QUESTIONS, ids=[f"{one.label} v{version}" for one, version in QUESTIONS]
)
def test_an_error_on_command_is_that_of_a_cluster(failing: Failing, version: int) -> None:
    request = failing.request
    key = int(request.API_KEY or 0)
    code, theirs = code_of(failing, version)
    (place, *_) = places_of(key, code, version)
    ours = error_response(place, request, version, code, everything, name_of)
    tell_log_starts(ours, lambda _: 0, name_of)
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        name_leaders(ours, version, LedByTheOther(), name_of)
    if isinstance(ours, m.ShareFetchResponse):
        ours.acquisition_lock_timeout_ms = LOCK_DURATION_MS  # a config, put in by who executes
    if failing.after:
        refused, ours = ours, executed(theirs)
        merge(place, ours, refused, after=True)
    recorded = RECORDED[f"{failing.label} v{version}"]
    assert told(request, ours, version) == recorded, f"ours {ours}\nKafka {theirs}"

"""Who may do what, and what is told to whom may not: as Apache Kafka 4.4 answers, API by API.

Each of 452 requests is sent by 38 users: one without rights, one for every single right, some with
a few, one with all. Recorded by `tests/differential/test_rights_live.py` with KWIRE_RECORD=1.
"""

from __future__ import annotations

import pytest

from kwire.protocol.api_keys import API_KEYS, UNBUILT
from kwire.testing.cluster import Broker, free_adjacent_ports, free_ports
from tests.support.rights.playing import Answers, differences, labels_without_answers, play, read
from tests.support.rights.users import SINGLE, properties, user_of

NOT_ASKED = {
    "SaslHandshake": "needs no right",
    "SaslAuthenticate": "needs no right",
    "ApiVersions": "needs no right",
    "GetTelemetrySubscriptions": "needs no right",
    "PushTelemetry": "needs no right",
}
KAFKA_ANSWERS_NO_CONTROLLER = {
    "DescribeUserScramCredentials": "UNKNOWN_SERVER_ERROR from Kafka's controllers",
    "DescribeDelegationToken": "UNKNOWN_SERVER_ERROR from Kafka's controllers",
}


@pytest.fixture(scope="module")
def recorded() -> Answers:
    return read()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    port = free_adjacent_ports()
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{port + 1}",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **{
            f"{topic}.{setting}": "1"
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            for setting in ("num.partitions", "replication.factor")
        },
        **properties(port, port + 1, free_ports(1)[0]),
    }
    data = tmp_path_factory.mktemp("rights")
    with Broker(data_dir=data, properties=settings, pass_listen=False):
        return play(f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}")


@pytest.mark.parametrize("listener", ["broker", "controller", "last", "patterns", "changes"])
def test_answers_are_kafkas(listener: str, told: Answers, recorded: Answers) -> None:
    wrong = differences({listener: told[listener]}, recorded)
    shown = [f"{what}\n  ours  {a}\n  Kafka {b}"[:2000] for what, (a, b) in wrong.items()]
    assert not wrong, f"{len(wrong)} answers differ\n" + "\n".join(shown[:20])


def test_nothing_recorded_is_left_out(told: Answers, recorded: Answers) -> None:
    unbuilt = {API_KEYS[key].name for key in UNBUILT}
    left_out = labels_without_answers(told, recorded)
    assert {label.split(" ")[0] for label in left_out} <= unbuilt


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_every_api_is_asked(listener: str, recorded: Answers) -> None:
    asked = {label.split(" ")[0] for label in recorded[listener]}
    asked |= {label.split(" ")[0] for label in recorded["last"]}
    wanted = {info.name for info in API_KEYS.values() if listener in info.listeners}
    wanted -= set(NOT_ASKED)
    if listener == "controller":
        wanted -= set(KAFKA_ANSWERS_NO_CONTROLLER)
    assert sorted(wanted - asked) == []


def test_each_right_opens_something(recorded: Answers) -> None:
    """A single right that changes no answer would be one that the scenario does not ask about."""
    opened: set[str] = set()
    for listener, asked in recorded.items():
        for label, answers in asked.items():
            if label.startswith("CreateDelegationToken"):
                # Each user is told its own name, so that no two answers are the same.
                answers = [[answer["error_code"], users] for answer, users in answers]
            if listener in ("patterns", "changes"):
                continue
            refused = next(answer for answer, users in answers if "none" in users)
            opened.update(u for answer, users in answers if answer != refused for u in users)
    single = {user_of((kind, right)) for kind, rights in SINGLE.items() for right in rights}
    assert sorted(single - opened) == ["transactional_id-two_phase_commit"]  # InitProducerId 6

"""Which rights the controller asks for, and how often: each denial is a line of the audit log."""

from __future__ import annotations

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from tests.support.controllers import ControllerBench


def _topic(name: str) -> m.CreateTopicsRequest.CreatableTopic:
    return m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)


def test_the_right_to_create_a_topic_is_asked_for_once() -> None:
    asked: list[tuple[int, int, str]] = []

    def authorize(operation: int, resource_type: int, name: str) -> bool:
        asked.append((operation, resource_type, name))
        return False

    answer = ControllerBench().call(
        m.CreateTopicsRequest(topics=[_topic("a"), _topic("b"), _topic("b")]),
        authorize=authorize,
        authorize_quietly=lambda *_: False,
    )
    assert asked == [(Operation.CREATE, ResourceType.TOPIC, "a")]
    assert [(one.name, one.error_code) for one in answer.topics] == [
        ("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("b", ErrorCode.INVALID_REQUEST),
    ]

"""What the controller asks the authorizer for."""

from __future__ import annotations

from kwire.protocol import messages as m
from tests.support.controllers import ControllerBench


def test_a_topic_that_may_not_be_made_is_asked_for_once() -> None:
    """An audit log had two lines of one denial."""
    asked: list[tuple[int, int, str]] = []

    def authorize(operation: int, resource_type: int, name: str) -> bool:
        asked.append((operation, resource_type, name))
        return False

    topic = m.CreateTopicsRequest.CreatableTopic(
        name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=1000)
    answer = ControllerBench().call(
        request, authorize=authorize, authorize_quietly=lambda *right: False
    )
    assert answer.topics[0].error_code == 29
    assert asked == [(5, 2, "t")]

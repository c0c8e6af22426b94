"""What one request may ask for."""

from __future__ import annotations

import pytest

from kwire.protocol import messages as m
from tests.support.controllers import ControllerBench


@pytest.mark.parametrize("partitions", [10_001, 2**31 - 1])
def test_too_many_partitions_are_refused_before_they_are_placed(partitions: int) -> None:
    bench = ControllerBench()
    bench.start(1)
    assert bench.create("t", partitions=partitions, factor=1).error_code == 44
    assert not bench.image.topics.by_name


def test_a_request_may_write_10000_records() -> None:
    bench = ControllerBench()
    bench.start(1)
    shape = m.CreateTopicsRequest
    topics = [
        shape.CreatableTopic(name=f"t{i}", num_partitions=1, replication_factor=1)
        for i in range(5_001)
    ]
    answer = bench.call(shape(topics=topics, timeout_ms=1000))
    assert {topic.error_code for topic in answer.topics} == {44}
    assert not bench.image.topics.by_name
    answer = bench.call(shape(topics=topics[:5_000], timeout_ms=1000))
    assert {topic.error_code for topic in answer.topics} == {0}
    assert len(bench.image.topics.by_name) == 5_000


def test_too_many_additional_partitions() -> None:
    bench = ControllerBench()
    bench.start(1)
    bench.create("t", partitions=1, factor=1)
    shape = m.CreatePartitionsRequest
    wanted = shape.CreatePartitionsTopic(name="t", count=2**31 - 1, assignments=None)
    assert bench.call(shape(topics=[wanted], timeout_ms=1000)).results[0].error_code == 44


def test_a_request_without_time_is_late() -> None:
    bench = ControllerBench()
    bench.start(1)
    shape = m.CreateTopicsRequest
    one = shape.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert bench.call(shape(topics=[one], timeout_ms=0)).topics[0].error_code == 7
    assert "t" not in bench.image.topics.by_name

"""What one request may ask for."""

from __future__ import annotations

import pytest

from kwire.kraft.controller.state import MAX_RECORDS_PER_USER_OPERATION
from kwire.protocol import messages as m
from kwire.security.acls.binding import AclBinding
from tests.support.controllers import ControllerBench, make_config


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


def test_too_many_acls_to_delete_are_refused_and_none_is_deleted() -> None:
    bench = ControllerBench(config=make_config(has_authorizer=True))
    bench.start(1)
    rule = AclBinding(2, "t", 3, "User:a", "*", 3, 3)
    for number in range(MAX_RECORDS_PER_USER_OPERATION + 1):
        bench.image.acls[number.to_bytes(16)] = rule._replace(resource_name=f"t{number}")
    shape = m.DeleteAclsRequest.DeleteAclsFilter
    every, one = (
        shape(
            resource_type_filter=2,
            resource_name_filter=name_filter,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        for name_filter in (None, "t0")
    )
    held = len(bench.image.acls)
    refusal = "Cannot remove more than 10000 acls in a single delete operation."
    for filters in ([every], [one, every], [every, one]):
        answer = bench.call(m.DeleteAclsRequest(filters=filters))
        assert len(answer.filter_results) == len(filters)
        for result in answer.filter_results:
            assert result.error_code == 42
            assert result.error_message == refusal
            assert not result.matching_acls
        assert len(bench.image.acls) == held
    (result,) = bench.call(m.DeleteAclsRequest(filters=[one])).filter_results
    assert (result.error_code, len(result.matching_acls)) == (0, 1)
    (result,) = bench.call(m.DeleteAclsRequest(filters=[every])).filter_results
    assert (result.error_code, len(result.matching_acls)) == (0, MAX_RECORDS_PER_USER_OPERATION)
    assert not bench.image.acls

"""Where the feature share.version is at level 0, share groups are UNSUPPORTED_VERSION."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.coordinator_scripts import SimulatedBroker

GROUP = "g"


@pytest.fixture(scope="module")
def broker() -> Iterator[SimulatedBroker]:
    started = SimulatedBroker({})
    started.set_feature("share.version", 0)
    yield started
    started.stop()


@pytest.mark.parametrize(
    ("api", "version", "request_of"),
    [
        (
            "ShareGroupHeartbeat",
            1,
            m.ShareGroupHeartbeatRequest(
                group_id=GROUP, member_id="m", subscribed_topic_names=["t"]
            ),
        ),
        ("AlterShareGroupOffsets", 0, m.AlterShareGroupOffsetsRequest(group_id=GROUP)),
        ("DeleteShareGroupOffsets", 0, m.DeleteShareGroupOffsetsRequest(group_id=GROUP)),
    ],
)
def test_requests_are_refused(
    broker: SimulatedBroker, api: str, version: int, request_of: Any
) -> None:
    broker.post("a", api, version, request_of)
    assert broker.receive("a").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_every_group_that_is_to_be_described_is_refused(broker: SimulatedBroker) -> None:
    broker.post("a", "ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["g", "h"]))
    groups = broker.receive("a").groups
    assert [(x.group_id, x.error_code) for x in groups] == [
        ("g", ErrorCode.UNSUPPORTED_VERSION),
        ("h", ErrorCode.UNSUPPORTED_VERSION),
    ]

"""DescribeCluster on the two kinds of listeners."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import describe_cluster
from kwire.clock import SeededRandom
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.parts import made_parts


def _image(level: int = 33) -> MetadataImage:
    image = MetadataImage()
    image.replay(m.FeatureLevelRecord(name="metadata.version", feature_level=level))
    for node_id in (1, 2):
        shape = m.RegisterBrokerRecord
        image.replay(
            shape(
                broker_id=node_id, incarnation_id=b"i" * 16, fenced=node_id == 2, rack="r",
                end_points=[shape.BrokerEndpoint(name="PLAINTEXT", host="b", port=node_id)],
            )
        )  # fmt: skip
        control = m.RegisterControllerRecord
        image.replay(
            control(
                controller_id=node_id,
                end_points=[control.ControllerEndpoint(name="CTL", host="c", port=node_id)],
            )
        )
    return image


def _context(listener: str, version: int = 2, allowed: bool = True, **changes: Any) -> Any:
    parts = made_parts(
        config=SimpleNamespace(controller_listener_names=lambda: ["CTL"]),
        image=changes.get("image", _image()),
        cluster_id="cluster",
        random=SeededRandom(1),
        quorum=SimpleNamespace(leader_id=changes.get("leader_id", 2)),
    )
    return SimpleNamespace(
        parts=parts,
        listener_name=listener,
        api_version=version,
        authorize=lambda *_: allowed,
        allows=lambda *_: allowed,
    )


def _ask(context: Any, **fields: Any) -> Any:
    response = describe_cluster.handle(context, m.DescribeClusterRequest(**fields))
    version = context.api_version
    return m.DescribeClusterResponse.decode(response.encode(version), version)


def test_a_broker_listener_shows_live_brokers() -> None:
    answer = _ask(_context("PLAINTEXT"))
    assert [(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers] == [(1, "b", 1, "r")]
    assert (answer.controller_id, answer.cluster_id, answer.endpoint_type) == (1, "cluster", 1)
    answer = _ask(_context("PLAINTEXT"), include_fenced_brokers=True)
    assert [(b.broker_id, b.is_fenced) for b in answer.brokers] == [(1, False), (2, True)]
    assert _ask(_context("OTHER")).brokers == []


def test_a_controller_listener_shows_the_controllers() -> None:
    answer = _ask(_context("CTL"), endpoint_type=2)
    assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(1, "c", 1), (2, "c", 2)]
    assert (answer.controller_id, answer.endpoint_type) == (2, 2)
    assert _ask(_context("CTL", leader_id=9), endpoint_type=2).controller_id == -1
    assert _ask(_context("CTL", leader_id=None), endpoint_type=2).controller_id == -1


@pytest.mark.parametrize(
    ("listener", "version", "endpoint_type", "code"),
    [
        ("PLAINTEXT", 1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        ("PLAINTEXT", 1, 7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        ("CTL", 1, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        ("CTL", 0, 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_wrong_kind_of_endpoint(
    listener: str, version: int, endpoint_type: int, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as raised:
        _ask(_context(listener, version), endpoint_type=endpoint_type)
    assert raised.value.code == code


def test_controllers_need_rights_and_registrations() -> None:
    with pytest.raises(KafkaError) as raised:
        _ask(_context("CTL", allowed=False), endpoint_type=2)
    assert raised.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(KafkaError) as raised:
        _ask(_context("CTL", image=_image(14)), endpoint_type=2)
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION

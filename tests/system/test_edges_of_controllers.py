"""Odd requests to a controller's listener: what Apache Kafka 4.4 answered, or, where it fails (-1)
and its controller gives up the leadership, the code that says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Cluster
from kwire.testing.cluster.cluster import CLUSTER_ID
from tests.support.wire import WireClient

UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION
NO_PRINCIPAL = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
INVALID = ErrorCode.INVALID_REQUEST
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
OTHER = bytes(range(100, 116))
PRINCIPAL = b"\0\0" + m.DefaultPrincipalData(type="User", name="ANONYMOUS").encode(0)
LOCALHOST = bytes([127, 0, 0, 1])


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    folder: Path = tmp_path_factory.mktemp("controller")
    with Cluster(
        folder, combined=(1,), settings={"delegation.token.secret.key": "secret"}
    ) as cluster:
        cluster.start()
        with WireClient(f"127.0.0.1:{cluster[1].controller_port}") as client:
            yield client


def test_tokens_are_not_for_whom_nothing_has_authenticated(controller: WireClient) -> None:
    """A controller gave a token to who came straight to its own listener without a password."""
    create = m.CreateDelegationTokenRequest(max_lifetime_ms=-1)
    answer = controller.call(create, 3)
    assert (answer.error_code, answer.hmac) == (NOT_ALLOWED, b"")
    renew = m.RenewDelegationTokenRequest(hmac=b"x")
    assert controller.call(renew, 2).error_code == NOT_ALLOWED
    expire = m.ExpireDelegationTokenRequest(hmac=b"x")
    assert controller.call(expire, 2).error_code == NOT_ALLOWED


def forwarded(request: Any, version: int) -> bytes:
    parts = frame.encode_request(type(request).API_KEY, version, 9, "app", request)
    return b"".join(bytes(part) for part in parts)[4:]


CREATION = forwarded(m.CreateTopicsRequest(timeout_ms=1000), 7)
METADATA = forwarded(m.MetadataRequest(), 12)


@pytest.mark.parametrize(
    ("principal", "host", "data", "code"),
    [
        (PRINCIPAL, LOCALHOST, CREATION, 0),
        (PRINCIPAL + b"more", bytes(15) + b"\1", CREATION + b"more", 0),
        (None, LOCALHOST, CREATION, NO_PRINCIPAL),
        (b"\0\0\2", LOCALHOST, METADATA, NO_PRINCIPAL),
        (None, b"", b"", NO_PRINCIPAL),
        (PRINCIPAL, b"abc", b"", INVALID),
        (PRINCIPAL, LOCALHOST, METADATA, INVALID),
        (PRINCIPAL, LOCALHOST, b"", UNSUPPORTED),
        (PRINCIPAL, LOCALHOST, b"\x01" + CREATION[1:], UNSUPPORTED),
        (PRINCIPAL, LOCALHOST, CREATION[:3] + b"\x63" + CREATION[4:], UNSUPPORTED),
        (PRINCIPAL, LOCALHOST, CREATION[:-3], UNSUPPORTED),
    ],
)
def test_what_is_wrong_with_an_envelope_and_what_is_looked_at_first(
    controller: WireClient, principal: bytes | None, host: bytes, data: bytes, code: int
) -> None:
    request = m.EnvelopeRequest(
        request_data=data, request_principal=principal, client_host_address=host
    )
    assert controller.call(request, 0).error_code == code


def features(shape: Any) -> list[Any]:
    return [
        shape.Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    ]


@pytest.mark.parametrize(
    "wrong", [{"port": 0}, {"host": ""}, {"security_protocol": 4}, {"security_protocol": -1}]
)
def test_no_registration_that_another_node_could_not_read(
    controller: WireClient, wrong: dict[str, Any]
) -> None:
    """Apache Kafka's controller fails at these; in one quorum with it they would end it."""
    good = {"name": "PLAINTEXT", "host": "h", "port": 9, "security_protocol": 0}
    broker = m.BrokerRegistrationRequest
    request = broker(
        broker_id=70,
        cluster_id=CLUSTER_ID,
        incarnation_id=OTHER,
        log_dirs=[OTHER],
        features=features(broker),
        listeners=[broker.Listener(**{**good, **wrong})],
    )
    assert controller.call(request, 4).error_code == INVALID
    shape = m.ControllerRegistrationRequest
    other = shape(
        controller_id=71,
        incarnation_id=OTHER,
        features=features(shape),
        listeners=[shape.Listener(**{**good, **wrong})],
    )
    assert controller.call(other, 0).error_code == INVALID


def test_of_two_listeners_with_one_name_the_last_counts(controller: WireClient) -> None:
    shape = m.ControllerRegistrationRequest
    two = [
        shape.Listener(name="CONTROLLER", host=host, port=9, security_protocol=0) for host in "ab"
    ]
    request = shape(controller_id=72, incarnation_id=OTHER, features=features(shape), listeners=two)
    assert controller.call(request, 0).error_code == 0
    cluster = controller.call(m.DescribeClusterRequest(endpoint_type=2), 2)
    assert {node.broker_id: node.host for node in cluster.brokers}[72] == "b"
    assert controller.call(m.UnregisterControllerRequest(controller_id=72), 0).error_code == 0


def test_no_partitions_to_alter_are_looked_at_first(controller: WireClient) -> None:
    nothing = controller.call(m.AlterPartitionRequest(broker_id=99, broker_epoch=5), 3)
    assert (nothing.error_code, nothing.topics) == (0, [])


def test_a_feature_that_is_named_twice_has_two_results(controller: WireClient) -> None:
    shape = m.UpdateFeaturesRequest
    one = shape.FeatureUpdateKey(feature="group.version", max_version_level=1, upgrade_type=1)
    answer = controller.call(shape(timeout_ms=5000, feature_updates=[one, one]), 1)
    assert [result.feature for result in answer.results] == ["group.version"] * 2


@pytest.mark.parametrize(
    ("level", "kind", "reason"),
    [
        (-1, 2, "A feature version cannot be less than 0."),
        (0, 2, "Can't downgrade the version of this feature."),
        (
            0,
            1,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        ),
    ],
)
def test_why_a_kraft_version_is_refused(
    controller: WireClient, level: int, kind: int, reason: str
) -> None:
    shape = m.UpdateFeaturesRequest
    one = shape.FeatureUpdateKey(
        feature="kraft.version", max_version_level=level, upgrade_type=kind
    )
    answer = controller.call(shape(timeout_ms=5000, feature_updates=[one]), 1)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message.endswith(reason)


def test_refusals_of_voters_and_of_other_partitions_have_texts(controller: WireClient) -> None:
    for request in (
        m.AddRaftVoterRequest(cluster_id="x", voter_id=3, voter_directory_id=OTHER),
        m.RemoveRaftVoterRequest(cluster_id="x", voter_id=3, voter_directory_id=OTHER),
    ):
        answer = controller.call(request, 0)
        assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        assert answer.error_message == (
            f'The given id "x" doesn\'t match the cluster id "{CLUSTER_ID}"'
        )
    quorum = m.DescribeQuorumRequest
    topic = quorum.TopicData(topic_name="t", partitions=[quorum.PartitionData(partition_index=0)])
    (described,) = controller.call(quorum(topics=[topic]), 2).topics[0].partitions
    assert described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert described.error_message == "This server does not host this topic-partition."


def test_an_error_of_a_metadata_fetch_tells_no_high_watermark(controller: WireClient) -> None:
    shape = m.FetchRequest
    partition = shape.FetchPartition(current_leader_epoch=1, fetch_offset=0, last_fetched_epoch=-1)
    topic = shape.FetchTopic(topic_id=bytes(15) + b"\1", partitions=[partition])
    answer = controller.call(shape(max_wait_ms=0, topics=[topic]), 17)
    (found,) = answer.responses[0].partitions
    assert (found.error_code, found.high_watermark) == (INVALID, -1)

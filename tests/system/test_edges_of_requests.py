"""Odd requests of the data and admin planes: what Apache Kafka 4.4 answered, measured with
`tests/differential/random_requests.py`, which found that kwire once answered them otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Broker, wait_for
from tests.support.frames import Closed
from tests.support.wire import WireClient, batch_of, produce_request

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
NO_OPERATIONS = -(1 << 31)


@pytest.fixture(scope="module")
def client() -> Iterator[WireClient]:
    with Broker() as broker, WireClient(broker.bootstrap) as client:
        for name in ("a", "b"):
            client.create_topic(name)
        yield client


def wait_until_ready(client: WireClient) -> None:
    """The coordinator of the groups is there and loaded."""
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    wait_for(lambda: client.call(find, 6).coordinators[0].error_code == 0, "a coordinator")
    describe = m.DescribeGroupsRequest(groups=["g"])
    wait_for(lambda: client.call(describe, 4).groups[0].error_code == 0, "its groups")


def test_topics_without_partitions_are_left_out(client: WireClient) -> None:
    records = m.DeleteRecordsRequest
    request = records(
        topics=[
            records.DeleteRecordsTopic(name="a", partitions=[]),
            records.DeleteRecordsTopic(
                name="nope",
                partitions=[records.DeleteRecordsPartition(partition_index=0, offset=0)],
            ),
        ],
        timeout_ms=1000,
    )
    assert [topic.name for topic in client.call(request, 2).topics] == ["nope"]
    offsets = m.ListOffsetsRequest
    listing = offsets(
        replica_id=-1,
        topics=[
            offsets.ListOffsetsTopic(name="a", partitions=[]),
            offsets.ListOffsetsTopic(
                name="b",
                partitions=[offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)],
            ),
        ],
    )
    assert [topic.name for topic in client.call(listing, 7).topics] == ["b"]
    moves = m.AlterReplicaLogDirsRequest
    shape = moves.AlterReplicaLogDirTopic
    moving = moves(
        dirs=[
            moves.AlterReplicaLogDir(
                path="nowhere",
                topics=[shape(name="a", partitions=[]), shape(name="b", partitions=[0])],
            )
        ]
    )
    assert [topic.topic_name for topic in client.call(moving, 2).results] == ["b"]
    adding = m.AddPartitionsToTxnRequest
    topic = adding.AddPartitionsToTxnTopic
    asked = adding(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=1,
        v3_and_below_topics=[
            topic(name="a", partitions=[]),
            topic(name="nope", partitions=[0]),
        ],
    )
    answer = client.call(asked, 3)
    assert [topic.name for topic in answer.results_by_topic_v3_and_below] == ["nope"]


def test_last_of_two_deletions_counts(client: WireClient) -> None:
    client.call(produce_request("b", {0: batch_of([b"1", b"2", b"3"])}), 9)
    shape = m.DeleteRecordsRequest
    request = shape(
        topics=[
            shape.DeleteRecordsTopic(
                name="b",
                partitions=[
                    shape.DeleteRecordsPartition(partition_index=0, offset=-7),
                    shape.DeleteRecordsPartition(partition_index=0, offset=1),
                ],
            )
        ],
        timeout_ms=1000,
    )
    partitions = client.call(request, 2).topics[0].partitions
    assert [(p.error_code, p.low_watermark) for p in partitions] == [(0, 1)]


def _described(client: WireClient, names: list[str], cursor: tuple[str, int]) -> list[Any]:
    shape = m.DescribeTopicPartitionsRequest
    request = shape(
        topics=[shape.TopicRequest(name=name) for name in names],
        cursor=shape.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    topics = client.call(request, 0).topics
    return [(t.name, t.error_code, t.topic_authorized_operations) for t in topics]


def test_wrong_cursor_is_told_for_every_topic(client: WireClient) -> None:
    refused = [(name, ErrorCode.INVALID_REQUEST, NO_OPERATIONS) for name in ("b", "a")]
    assert _described(client, ["b", "a"], ("elsewhere", 0)) == refused
    assert _described(client, ["b", "a"], ("a", -1)) == refused
    assert _described(client, [], ("a", -1)) == []


def test_producers_of_a_topic_that_cannot_exist(client: WireClient) -> None:
    shape = m.DescribeProducersRequest
    request = shape(topics=[shape.TopicRequest(name="bad/name", partition_indexes=[0])])
    answer = client.call(request, 0).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answer.error_message == (
        "Topic name is invalid: 'bad/name' contains one or more characters other than ASCII "
        "alphanumerics, '.', '_' and '-'"
    )


def test_unknown_type_of_resource_spoils_the_whole_request(client: WireClient) -> None:
    shape = m.DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        shape(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, "a"), (127, "x"), (2, "nope"))
    ]
    results = client.call(m.DescribeConfigsRequest(resources=resources), 4).results
    told = [(r.resource_type, r.resource_name, r.error_code, r.error_message) for r in results]
    code = ErrorCode.INVALID_REQUEST
    assert told == [(r.resource_type, r.resource_name, code, MALFORMED) for r in resources]


@pytest.mark.parametrize("name", ["x", "1.0", "2147483648", "-2147483649", "1" * 5000])
@pytest.mark.parametrize("kind", [4, 8])
def test_a_brokers_name_is_a_number_of_32_bits(client: WireClient, kind: int, name: str) -> None:
    """One of 5,000 digits was an UNKNOWN_SERVER_ERROR, as Python reads no number of that length."""
    shape = m.DescribeConfigsRequest.DescribeConfigsResource
    resource = shape(resource_type=kind, resource_name=name, configuration_keys=None)
    (result,) = client.call(m.DescribeConfigsRequest(resources=[resource]), 4).results
    told = f"Broker id must be an integer, but it is: {name}"
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, told)
    resource.resource_name = "+1"
    (result,) = client.call(m.DescribeConfigsRequest(resources=[resource]), 4).results
    assert result.error_code == ErrorCode.NONE


def test_unknown_partitions_come_before_the_group(client: WireClient) -> None:
    shape = m.TxnOffsetCommitRequest
    partition = shape.TxnOffsetCommitRequestPartition
    request = shape(
        transactional_id="t",
        group_id="",
        topics=[
            shape.TxnOffsetCommitRequestTopic(
                name="a", partitions=[partition(partition_index=index) for index in (0, 9)]
            )
        ],
    )
    partitions = client.call(request, 5).topics[0].partitions
    codes = {p.partition_index: p.error_code for p in partitions}
    assert codes == {0: ErrorCode.INVALID_GROUP_ID, 9: UNKNOWN}


def test_wrong_pattern_of_transactions_comes_before_their_states(client: WireClient) -> None:
    request = m.ListTransactionsRequest(state_filters=["none"], transactional_id_pattern="[")
    answer = client.call(request, 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.unknown_state_filters == []


def test_unknown_kind_of_coordinator_is_explained(client: WireClient) -> None:
    request = m.FindCoordinatorRequest(key_type=-1, coordinator_keys=["a"])
    answer = client.call(request, 6).coordinators[0]
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, MALFORMED)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"member_epoch": -1, "instance_id": ""}, "MemberId can't be empty."),
        ({"member_epoch": -1, "group_id": ""}, "MemberId can't be empty."),
        ({"member_epoch": -2, "instance_id": ""}, "InstanceId can't be empty."),
        ({"member_epoch": -2, "rack_id": ""}, "RackId can't be empty."),
        ({"member_epoch": 0, "instance_id": ""}, "InstanceId can't be empty."),
    ],
)
def test_order_of_a_heartbeats_checks(
    client: WireClient, fields: dict[str, Any], told: str
) -> None:
    asked = {"group_id": "g", "member_id": "", "instance_id": "i", **fields}
    answer = client.call(m.ConsumerGroupHeartbeatRequest(**asked), 0)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, told)


def test_static_member_that_leaves_is_known_by_its_instance(client: WireClient) -> None:
    wait_until_ready(client)
    request = m.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="", member_epoch=-2, instance_id="i"
    )
    answer = client.call(request, 0)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == "Group g not found."


def test_no_partitions_need_no_election(client: WireClient) -> None:
    request = m.ElectLeadersRequest(election_type=2, topic_partitions=[], timeout_ms=1000)
    answer = client.call(request, 2)
    assert (answer.error_code, answer.replica_election_results) == (0, [])


def test_reassigning_nothing(client: WireClient) -> None:
    request = m.AlterPartitionReassignmentsRequest(
        topics=[], timeout_ms=1000, allow_replication_factor_change=False
    )
    answer = client.call(request, 1)
    assert answer.error_message == ""
    assert answer.allow_replication_factor_change is True


def test_last_of_two_parts_of_a_quota_entity_counts(client: WireClient) -> None:
    shape = m.AlterClientQuotasRequest
    part = shape.EntityData
    request = shape(
        entries=[
            shape.EntryData(
                entity=[
                    part(entity_type="user", entity_name="alice"),
                    part(entity_type="user", entity_name="bob"),
                ],
                ops=[shape.OpData(key="producer_byte_rate", value=9.0)],
            )
        ],
        validate_only=True,
    )
    answer = client.call(request, 1).entries[0]
    assert answer.error_code == 0
    assert [(e.entity_type, e.entity_name) for e in answer.entity] == [("user", "bob")]


def test_empty_salted_password_is_not_stored(client: WireClient) -> None:
    shape = m.AlterUserScramCredentialsRequest
    upsertion = shape.ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=8192, salt=b"s", salted_password=b""
    )
    answer = client.call(shape(deletions=[], upsertions=[upsertion]), 0)
    assert answer.results[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert client.call(m.DescribeUserScramCredentialsRequest(users=None), 0).results == []


def test_operations_on_a_missing_topic_are_told(client: WireClient) -> None:
    shape = m.MetadataRequest
    request = shape(
        topics=[shape.MetadataRequestTopic(name="nope")],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    topic = client.call(request, 8).topics[0]
    assert (topic.error_code, topic.topic_authorized_operations) == (UNKNOWN, 3576)


def test_epoch_before_the_first_does_not_repeat_an_end(client: WireClient) -> None:
    init = m.InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    found = client.call(init, 4)
    while found.error_code in (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ):
        client.call(m.FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 6)
        found = client.call(init, 4)
    assert found.error_code == 0
    request = m.EndTxnRequest(
        transactional_id="t", producer_id=found.producer_id, producer_epoch=-1, committed=False
    )
    assert client.call(request, 5).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
def test_acls_with_anything_unknown_lose_the_connection(client: WireClient, field: str) -> None:
    def told(new: bool, value: int) -> dict[str, Any]:
        names = {"resource_type": 2, "pattern_type": 3, "operation": 3, "permission_type": 3}
        names[field] = value
        kind, pattern = names.pop("resource_type"), names.pop("pattern_type")
        if new:
            acl = {"resource_type": kind, "resource_pattern_type": pattern, "resource_name": "t"}
            return {**names, **acl, "principal": "User:a", "host": "*"}
        return {**names, "resource_type_filter": kind, "pattern_type_filter": pattern}

    host, port = client.socket.getpeername()[:2]
    create, delete = m.CreateAclsRequest, m.DeleteAclsRequest
    for value in (0, 99):
        requests = (
            m.DescribeAclsRequest(**told(False, value)),
            create(creations=[create.AclCreation(**told(True, value))]),
            delete(filters=[delete.DeleteAclsFilter(**told(False, value))]),
        )
        for request in requests:
            with WireClient(f"{host}:{port}") as own:
                if value == 0:
                    with pytest.raises(Closed):
                        own.call(request, 3)
                else:
                    own.call(request, 3)


def test_beside_the_id_of_a_topic_nothing_else_counts(client: WireClient) -> None:
    shape = m.MetadataRequest.MetadataRequestTopic
    topics = [
        shape(name=None),
        shape(name=None, topic_id=client.topic_id("a")),
        shape(name="b"),
    ]
    answer = client.call(m.MetadataRequest(topics=topics, allow_auto_topic_creation=False), 13)
    assert answer.error_code == 0
    assert [(each.name, each.error_code) for each in answer.topics] == [("a", 0)]
    answer = client.call(m.MetadataRequest(topics=[topics[0], topics[2]]), 13)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

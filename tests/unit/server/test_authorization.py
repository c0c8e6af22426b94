"""What each API requires, and how a request without the right is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import list_groups
from kwire.api.init_producer_id import AUTHORIZATION as INIT_PRODUCER_ID
from kwire.cli import tables
from kwire.kraft.controller.routes import AREAS, route_of
from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.security.requirements import REFUSALS, Authorization, Checked, Denied, Requires
from kwire.server.authorization import OPERATIONS, authorized_operations, missing_right
from kwire.server.context import DISCONNECT, RequestContext
from kwire.server.controller_dispatch import ControllerDispatcher, authorization_of
from kwire.server.dispatch import Dispatcher, Route, declared_authorization
from tests.support.parts import made_parts

LISTENERS = ("broker", "controller")
NOTHING_REQUIRED = {
    ApiKey.API_VERSIONS: "a client asks before it authenticates",
    ApiKey.SASL_HANDSHAKE: "a client authenticates",
    ApiKey.SASL_AUTHENTICATE: "a client authenticates",
    ApiKey.RENEW_DELEGATION_TOKEN: "the token names who may renew it",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "the token names who may renew it",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "a client is told what is asked of it",
    ApiKey.PUSH_TELEMETRY: "a client tells of itself",
}


class Recorder:
    """Refuses what is named, and remembers what it was asked."""

    def __init__(self, *denied: tuple[int, int, str]) -> None:
        self.denied = denied
        self.asked: list[tuple[int, int, str]] = []

    def authorize(self, requester: Any, operation: int, resource_type: int, name: str, /) -> bool:
        self.asked.append((operation, resource_type, name))
        return (operation, resource_type, name) not in self.denied

    def authorize_by_resource_type(
        self, requester: Any, operation: int, resource_type: int, /
    ) -> bool:
        return self.authorize(requester, operation, resource_type, "*")


def context_of(api_key: int, version: int, *denied: tuple[int, int, str]) -> RequestContext:
    parts = made_parts(authorizer=Recorder(*denied))
    return RequestContext(parts, None, api_key, version, 1, "c")


def declared() -> list[tuple[str, ApiKey, Authorization]]:
    """(listener, API, what it requires) of all that is served."""
    found = []
    for listener in LISTENERS:
        find = declared_authorization if listener == "broker" else authorization_of
        for key, info in API_KEYS.items():
            if listener in info.listeners and key not in UNBUILT:
                found.append((listener, key, find(int(key), info.name)))
    return found


# -- the declarations


def test_every_api_of_the_listeners_declares_what_it_requires() -> None:
    assert len(declared()) > 90
    nothing = {key for _, key, required in declared() if not required}
    assert nothing == set(NOTHING_REQUIRED)


def test_what_is_declared_is_what_the_routes_ask() -> None:
    class Unasked:
        def raft_request(self, request: Any, context: Any) -> Any: ...

        def heard(self, context: Any, request: Any) -> None: ...

    names = {int(key): info.name for key, info in API_KEYS.items()}
    quorum = Unasked()
    dispatchers: dict[str, Dispatcher] = {
        "broker": Dispatcher(names),
        "controller": ControllerDispatcher(quorum, quorum.raft_request),
    }
    for listener, key, required in declared():
        assert dispatchers[listener].route_local(key).authorization == required, key


@pytest.mark.parametrize("listener", LISTENERS)
def test_resources_are_where_the_request_has_fields(listener: str) -> None:
    for at, key, required in declared():
        if at != listener:
            continue
        for requirement in required:
            for path in filter(None, (requirement.found_in, requirement.unless)):
                root: Any = schema.load(f"{API_KEYS[key].name}Request").root
                for step in path.split("."):
                    assert root is not None, (key, path)
                    fields = {field.name: field for field in root.fields}
                    name = step.removesuffix("[]")
                    assert name in fields, (key, path)
                    assert fields[name].is_array == step.endswith("[]"), (key, path)
                    root = fields[name].struct
                assert root is None, f"{path} of {key.name} is no name"
            request = m.request_class(key)()
            assert all(isinstance(name, str) for name in requirement.resources(request))


def test_what_is_asked_before_the_handler_refuses_the_whole_request() -> None:
    for _, key, required in declared():
        for requirement in required:
            if requirement.checked is Checked.BEFORE:
                assert requirement.denied is Denied.REQUEST, key
                assert requirement.found_in or requirement.resource_type == ResourceType.CLUSTER


def test_the_controller_checks_only_what_a_broker_hands_on() -> None:
    for listener, key, required in declared():
        if any(requirement.checked is Checked.CONTROLLER for requirement in required):
            assert listener == "controller" or API_KEYS[key].forwardable, key


def test_modules_say_what_the_controller_asks() -> None:
    """The right to do something to the cluster is asked by the controller's own table."""
    compared = 0
    for listener, key, required in declared():
        operation = route_of(key).operation if key in AREAS else None
        if operation is not None:
            assert [(x.operation, x.resource_type, x.denied) for x in required] == [
                (operation, ResourceType.CLUSTER, Denied.REQUEST)
            ], (listener, key)
            compared += 1
    assert compared > 20


def test_every_type_has_its_error() -> None:
    assert set(REFUSALS) == set(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}


def test_the_table_shows_every_api() -> None:
    for listener in LISTENERS:
        shown = {row[0] for row in tables.authorization_rows(listener)}
        assert shown == {API_KEYS[key].name for at, key, _ in declared() if at == listener}


# -- resources in a request


def test_resources_are_found_by_their_path() -> None:
    needs = Requires(Operation.READ, ResourceType.TOPIC, "groups[].topics[].name")
    shape = m.OffsetFetchRequest
    topic = shape.OffsetFetchRequestTopics
    request = shape(
        groups=[
            shape.OffsetFetchRequestGroup(group_id="g", topics=[topic(name="a"), topic(name="b")]),
            shape.OffsetFetchRequestGroup(group_id="h", topics=None),
            shape.OffsetFetchRequestGroup(group_id="i", topics=[topic(name="a")]),
        ]
    )
    assert needs.resources(request) == ["a", "b"]
    assert needs._replace(found_in="groups[].group_id").resources(request) == ["g", "h", "i"]
    assert needs._replace(found_in="").resources(request) == []


def test_the_cluster_is_a_resource_without_a_path() -> None:
    needs = Requires(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, unless="transactional_id")
    assert needs.resources(m.InitProducerIdRequest(transactional_id=None)) == [CLUSTER_NAME]
    assert needs.resources(m.InitProducerIdRequest(transactional_id="")) == []


# -- the step


@pytest.mark.parametrize(
    ("api", "version", "denied", "fields", "answer"),
    [
        ("Heartbeat", 4, (3, 3, "g"), {"group_id": "g"}, m.HeartbeatResponse(error_code=30)),
        (
            "JoinGroup", 9, (3, 3, "g"), {"group_id": "g"},
            m.JoinGroupResponse(error_code=30, member_id="", protocol_name=None),
        ),
        ("LeaveGroup", 5, (3, 3, "g"), {"group_id": "g"}, m.LeaveGroupResponse(error_code=30)),
        ("OffsetDelete", 0, (6, 3, "g"), {"group_id": "g"}, m.OffsetDeleteResponse(error_code=30)),
        (
            "AddOffsetsToTxn", 4, (4, 5, "t"), {"transactional_id": "t", "group_id": "g"},
            m.AddOffsetsToTxnResponse(error_code=53),
        ),
        (
            "AddOffsetsToTxn", 4, (3, 3, "g"), {"transactional_id": "t", "group_id": "g"},
            m.AddOffsetsToTxnResponse(error_code=30),
        ),
        (
            "EndTxn", 5, (4, 5, "t"), {"transactional_id": "t"},
            m.EndTxnResponse(error_code=53, producer_id=-1, producer_epoch=-1),
        ),
        (
            "InitProducerId", 5, (4, 5, "t"), {"transactional_id": "t"},
            m.InitProducerIdResponse(error_code=53, producer_id=-1, producer_epoch=-1),
        ),
        (
            "DescribeLogDirs", 4, (8, 4, CLUSTER_NAME), {},
            m.DescribeLogDirsResponse(error_code=31, results=[]),
        ),
        (
            "DescribeClientQuotas", 1, (10, 4, CLUSTER_NAME), {},
            m.DescribeClientQuotasResponse(error_code=31, error_message=None, entries=None),
        ),
        (
            "ListConfigResources", 1, (10, 4, CLUSTER_NAME), {},
            m.ListConfigResourcesResponse(error_code=31),
        ),
        (
            "DescribeUserScramCredentials", 0, (8, 4, CLUSTER_NAME), {"users": None},
            m.DescribeUserScramCredentialsResponse(error_code=31, error_message=None),
        ),
        ("Envelope", 0, (9, 4, CLUSTER_NAME), {}, m.EnvelopeResponse(error_code=31)),
    ],
)  # fmt: skip
def test_a_request_without_the_right_is_refused_in_its_apis_shape(
    api: str, version: int, denied: tuple[int, int, str], fields: dict[str, Any], answer: Any
) -> None:
    key = next(key for key, info in API_KEYS.items() if info.name == api)
    route = Dispatcher({int(key): api}).route(key, version)
    request = m.request_class(key)(**fields)
    assert route.execute(context_of(key, version, denied), request) == answer


@pytest.mark.parametrize("denied", [(4, 5, "t"), (3, 3, "g")])
def test_a_refused_commit_has_the_code_at_every_partition(denied: tuple[int, int, str]) -> None:
    def code(answer: Any) -> list[int]:
        return [x.error_code for topic in answer.topics for x in topic.partitions]

    expected = int(REFUSALS[ResourceType(denied[1])])
    shape = m.TxnOffsetCommitRequest
    partitions = [shape.TxnOffsetCommitRequestPartition(partition_index=i) for i in (0, 1)]
    topic = shape.TxnOffsetCommitRequestTopic(name="a", partitions=partitions)
    request = shape(transactional_id="t", group_id="g", topics=[topic])
    names = {int(key): info.name for key, info in API_KEYS.items()}
    route = Dispatcher(names).route(ApiKey.TXN_OFFSET_COMMIT, 5)
    context = context_of(ApiKey.TXN_OFFSET_COMMIT, 5, denied)
    assert code(route.execute(context, request)) == [expected] * 2
    if denied[1] == ResourceType.GROUP:
        plain = m.OffsetCommitRequest
        partition = plain.OffsetCommitRequestPartition(partition_index=0)
        asked = plain.OffsetCommitRequestTopic(name="a", partitions=[partition])
        route = Dispatcher(names).route(ApiKey.OFFSET_COMMIT, 9)
        context = context_of(ApiKey.OFFSET_COMMIT, 9, denied)
        request_of_group = plain(group_id="g", topics=[asked])
        assert code(route.execute(context, request_of_group)) == [expected]


def refused_produce(acks: int, version: int) -> Any:
    """What a Produce of two partitions gets that an arrival hook refuses."""
    shape = m.ProduceRequest
    data = [shape.PartitionProduceData(index=index, records=b"") for index in (0, 3)]
    topic = shape.TopicProduceData(name="a", topic_id=b"\x01" * 16, partition_data=data)
    request = shape(acks=acks, topic_data=[topic])
    route = Dispatcher({int(ApiKey.PRODUCE): "Produce"}).route(ApiKey.PRODUCE, version)
    error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return route.refused(context_of(ApiKey.PRODUCE, version), request, error)


@pytest.mark.parametrize("version", [3, 12, 13])
def test_a_refused_produce_has_the_code_at_every_partition(version: int) -> None:
    """It lost its connection, which a producer takes for a broker that is gone."""
    [topic] = refused_produce(-1, version).responses
    found = [(x.index, x.error_code, x.base_offset) for x in topic.partition_responses]
    assert found == [(0, 31, -1), (3, 31, -1)]
    assert (topic.name, topic.topic_id) == ("a", b"\x01" * 16)


def test_a_refused_produce_without_acks_ends_the_connection() -> None:
    assert refused_produce(0, 12) is DISCONNECT


def test_the_first_right_that_is_missing_is_told() -> None:
    first = Requires(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id")
    second = Requires(Operation.READ, ResourceType.GROUP, "group_id")
    request = m.AddOffsetsToTxnRequest(transactional_id="t", group_id="g")
    assert missing_right(context_of(25, 4), (first, second), request) is None
    context = context_of(25, 4, (4, 5, "t"), (3, 3, "g"))
    assert missing_right(context, (first, second), request) is first
    assert missing_right(context_of(25, 4, (3, 3, "g")), (first, second), request) is second


def test_another_right_may_stand_in() -> None:
    needs = Requires(
        Operation.DESCRIBE,
        ResourceType.TOPIC,
        instead=(Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),),
    )
    cluster, topic = (9, 4, CLUSTER_NAME), (8, 2, "a")
    assert context_of(23, 4, topic).allows(needs, "a")
    assert context_of(23, 4, cluster).allows(needs, "a")
    assert not context_of(23, 4, cluster, topic).allows(needs, "a")


def test_a_right_on_any_resource_of_a_type_may_stand_in() -> None:
    """An idempotent producer needs WRITE on some topic where it may not do IDEMPOTENT_WRITE."""
    idempotent = INIT_PRODUCER_ID[1]
    cluster, any_topic = (12, 4, CLUSTER_NAME), (4, 2, "*")
    assert context_of(22, 4, cluster).allows(idempotent)
    assert context_of(22, 4, any_topic).allows(idempotent)
    refused = context_of(22, 4, cluster, any_topic)
    assert not refused.allows(idempotent)
    route = Dispatcher({22: "InitProducerId"}).route(22, 4)
    answer = route.execute(refused, m.InitProducerIdRequest(transactional_id=None))
    assert answer == m.InitProducerIdResponse(error_code=31, producer_id=-1, producer_epoch=-1)


def test_the_right_to_everything_is_asked_for_once_a_request() -> None:
    listed = [m.ListGroupsResponse.ListedGroup(group_id=name) for name in "gh"]
    groups = SimpleNamespace(list_groups=lambda *_: m.ListGroupsResponse(groups=listed))
    cluster, group = (8, 4, CLUSTER_NAME), (8, 3, "g")
    asked = Recorder(cluster, group)
    parts = made_parts(authorizer=asked, coordinators=SimpleNamespace(groups=groups))
    context = RequestContext(parts, None, ApiKey.LIST_GROUPS, 5, 1, "c")
    answer: Any = list_groups.handle(context, m.ListGroupsRequest())
    assert [each.group_id for each in answer.groups] == ["h"]
    assert asked.asked == [cluster, group, (8, 3, "h")]


def test_the_nodes_own_requests_need_no_right() -> None:
    context = context_of(ApiKey.HEARTBEAT, 4, (3, 3, "g"))
    context.is_internal = True
    required = (Requires(Operation.READ, ResourceType.GROUP, "group_id"),)
    assert missing_right(context, required, m.HeartbeatRequest(group_id="g")) is None


def test_without_an_authorizer_nothing_is_asked() -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("nobody asks")

    route = Route.of_api(
        ApiKey.HEARTBEAT,
        lambda context, request: m.HeartbeatResponse(),
        (Requires(Operation.READ, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),),
        denied_response=refuse,
    )
    context = RequestContext(made_parts(), None, ApiKey.HEARTBEAT, 4, 1, "c")
    assert route.execute(context, m.HeartbeatRequest(group_id="g")) == m.HeartbeatResponse()


def test_what_may_be_done_to_a_resource_is_a_bit_field() -> None:
    context = context_of(3, 13, *[(x, 2, "a") for x in OPERATIONS[ResourceType.TOPIC] if x != 8])
    assert authorized_operations(context, ResourceType.TOPIC, "a") == 1 << 8
    assert authorized_operations(context_of(3, 13), ResourceType.GROUP, "g") == sum(
        1 << x for x in OPERATIONS[ResourceType.GROUP]
    )


def test_errors_of_types() -> None:
    assert Requires(Operation.READ, ResourceType.GROUP).refusal == (
        ErrorCode.GROUP_AUTHORIZATION_FAILED
    )

"""The group APIs' handlers: authorisation, topics of requests, looking coordinators up.

Codes and shapes were measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwire.api import find_coordinator
from kwire.coordinator.partitioner import partition_for
from kwire.kraft.images.topics import TopicImage
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.server.context import RequestContext
from tests.support.group_scripts import InProcess, build

READ, DESCRIBE = Operation.READ, Operation.DESCRIBE
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"


class Denying:
    """Refuses the resources named."""

    def __init__(self, *denied: tuple[int, int, str]) -> None:
        self._denied = denied

    def authorize(self, context: Any, operation: int, resource_type: int, name: str) -> bool:
        return (operation, resource_type, name) not in self._denied


def send(target: InProcess, api: str, version: int, **fields: Any) -> Any:
    target.post("c", api, version, build(m.by_name(f"{api}Request"), fields))
    return target.receive("c")


def commit(target: InProcess, *topics: str, version: int = 8, group: str = "g") -> dict[str, int]:
    key = "topic_id" if version >= 10 else "name"
    response = send(
        target,
        "OffsetCommit",
        version,
        group_id=group,
        topics=[
            {key: topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
            for topic in topics
        ],
    )
    return {getattr(x, key): x.partitions[0].error_code for x in response.topics}


@pytest.fixture
def target() -> InProcess:
    target = InProcess()
    target.ids = {name: target.create_topic(name, 1) for name in "tu"}  # type: ignore[attr-defined]
    return target


# -------------------------------------------------------------------------- authorisation


def test_members_need_read_on_the_group(target: InProcess) -> None:
    target.parts.authorizer = Denying((READ, GROUP, "g"))  # type: ignore[assignment]
    for version in (3, 9):
        joined = send(target, "JoinGroup", version, group_id="g", session_timeout_ms=10_000)
        assert (joined.error_code, joined.member_id) == (GROUP_REFUSED, "")
    assert send(target, "SyncGroup", 3, group_id="g").error_code == GROUP_REFUSED
    assert send(target, "Heartbeat", 3, group_id="g").error_code == GROUP_REFUSED
    for version in (1, 3):
        assert send(target, "LeaveGroup", version, group_id="g").error_code == GROUP_REFUSED
    assert commit(target, "t", "u") == {"t": GROUP_REFUSED, "u": GROUP_REFUSED}


def test_commits_need_read_on_each_topic(target: InProcess) -> None:
    target.parts.authorizer = Denying((READ, TOPIC, "t"), (READ, TOPIC, "none"))  # type: ignore[assignment]
    told = commit(target, "t", "none", "gone", "u")
    assert told == {
        "t": TOPIC_REFUSED,
        "none": TOPIC_REFUSED,
        "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "u": 0,
    }
    ids: dict[str, bytes] = target.ids  # type: ignore[attr-defined]
    by_id = commit(target, ids["t"], b"\x09" * 16, ids["u"], version=10)  # type: ignore[arg-type]
    assert by_id == {ids["t"]: TOPIC_REFUSED, b"\x09" * 16: ErrorCode.UNKNOWN_TOPIC_ID, ids["u"]: 0}


def test_fetches_need_describe(target: InProcess) -> None:
    assert commit(target, "t", "u") == {"t": 0, "u": 0}
    target.parts.authorizer = Denying((DESCRIBE, TOPIC, "t"))  # type: ignore[assignment]
    everything = send(target, "OffsetFetch", 7, group_id="g", topics=None)
    assert [x.name for x in everything.topics] == ["u"]
    asked = [{"name": name, "partition_indexes": [0]} for name in "tu"]
    named = send(target, "OffsetFetch", 7, group_id="g", topics=asked)
    told = {
        x.name: (x.partitions[0].error_code, x.partitions[0].committed_offset) for x in named.topics
    }
    assert told == {"t": (TOPIC_REFUSED, -1), "u": (0, 1)}
    target.parts.authorizer = Denying((DESCRIBE, GROUP, "g"))  # type: ignore[assignment]
    for version in range(2, 8):
        refused = send(target, "OffsetFetch", version, group_id="g", topics=asked)
        assert (refused.error_code, refused.topics) == (GROUP_REFUSED, [])
    oldest = send(target, "OffsetFetch", 1, group_id="g", topics=asked)
    assert [x.partitions[0].error_code for x in oldest.topics] == [GROUP_REFUSED] * 2
    several = send(target, "OffsetFetch", 8, groups=[{"group_id": g, "topics": None} for g in "gh"])
    assert [(x.group_id, x.error_code) for x in several.groups] == [("g", GROUP_REFUSED), ("h", 0)]


def test_administration_needs_its_operations(target: InProcess) -> None:
    commit(target, "t", group="g")
    commit(target, "t", group="h")
    everyone = [("g", GROUP), ("h", GROUP)]
    assert sorted(x.group_id for x in send(target, "ListGroups", 4).groups) == ["g", "h"]
    denied = Denying(
        (DESCRIBE, CLUSTER, "kafka-cluster"),
        (DESCRIBE, GROUP, "g"),
        *[(6, kind, name) for name, kind in everyone[:1]],
    )
    target.parts.authorizer = denied  # type: ignore[assignment]
    assert [x.group_id for x in send(target, "ListGroups", 4).groups] == ["h"]
    described = send(
        target, "DescribeGroups", 4, groups=["h", "g"], include_authorized_operations=True
    )
    assert [(x.group_id, x.error_code) for x in described.groups] == [
        ("g", GROUP_REFUSED),
        ("h", 0),
    ]
    assert described.groups[0].authorized_operations == -(2**31)
    assert described.groups[1].authorized_operations > 0
    deleted = send(target, "DeleteGroups", 2, groups_names=["g", "h"])
    assert {x.group_id: x.error_code for x in deleted.results} == {"g": GROUP_REFUSED, "h": 0}
    topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    gone = send(target, "OffsetDelete", 0, group_id="g", topics=topics)
    assert (gone.error_code, gone.topics) == (GROUP_REFUSED, [])


# -------------------------------------------------------------------------- FindCoordinator


class Broker:
    is_active = True

    def __init__(self, port: int) -> None:
        self._port = port

    def endpoint(self, listener_name: str) -> Any:
        if listener_name != "PLAINTEXT":
            return None
        return type("Endpoint", (), {"host": "localhost", "port": self._port})


class Leader:
    def __init__(self, leader: int) -> None:
        self.leader = leader


class Wanted:
    def __init__(self) -> None:
        self.created: list[str] = []

    def create(self, names: list[str], context: Any) -> dict[str, ErrorCode]:
        self.created += names
        return {}


@pytest.fixture
def lookup(target: InProcess) -> InProcess:
    """Coordinators: partition i of each internal topic is led by broker i, up to broker 2."""
    target.parts.auto_topics = Wanted()  # type: ignore[assignment]
    for name in ("__consumer_offsets", "__transaction_state", "__share_group_state"):
        topic = TopicImage(name, name.encode()[:16])
        topic.partitions = {i: Leader(i) for i in range(4)}  # type: ignore[misc]
        target.image.topics.by_name[name] = topic
    target.image.brokers = {i: Broker(9000 + i) for i in range(3)}
    return target


def test_a_coordinator_is_the_leader_of_the_keys_partition(lookup: InProcess) -> None:
    groups = [f"g{i}" for i in range(20)]
    for key_type in (0, 1):
        response = send(lookup, "FindCoordinator", 4, key_type=key_type, coordinator_keys=groups)
        for group, found in zip(groups, response.coordinators, strict=True):
            partition = partition_for(group, 4)
            expected = (0, partition, "localhost", 9000 + partition)
            if partition == 3:
                expected = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
            assert (found.error_code, found.node_id, found.host, found.port) == expected
            assert (found.key, found.error_message) == (group, "")


def test_old_versions_answer_one_key_with_a_text(lookup: InProcess) -> None:
    lead, none = "g3", "g2"
    assert (partition_for(lead, 4), partition_for(none, 4)) == (0, 3)
    for version in range(4):
        found = send(lookup, "FindCoordinator", version, key=lead)
        assert (found.error_code, found.node_id, found.port) == (0, 0, 9000)
        assert found.error_message == ("NONE" if version else "")
    lost = send(lookup, "FindCoordinator", 3, key=none, key_type=1)
    assert (lost.error_code, lost.node_id, lost.host, lost.port) == (15, -1, "", -1)
    assert lost.error_message == "The coordinator is not available."
    assert send(lookup, "FindCoordinator", 3, key=none, key_type=2).error_code == 42


@pytest.mark.parametrize(
    ("key_type", "version", "key", "expected"),
    [
        (2, 6, SHARE_KEY, None),
        (2, 6, "a:b:AAAAAAAAAAAAAAAAAAAAAQ:0", None),
        (2, 6, "g:AAAAAAAAAAAAAAAAAAAAAQ:-1", None),
        (2, 6, "x", 42),
        (2, 6, "", 42),
        (2, 6, "g::0", 42),
        (2, 6, "g:AAAAAAAAAAAAAAAAAAAAAQ", 42),
        (2, 6, "g:AAAAAAAAAAAAAAAAAAAAAQ:x", 42),
        (2, 6, ":AAAAAAAAAAAAAAAAAAAAAQ:0", 42),
        (2, 6, "g:zz:0", 42),
        (2, 5, SHARE_KEY, 42),
        (7, 6, "x", 42),
        (7, 4, "x", 42),
        (0, 4, "", None),
    ],
)
def test_keys(
    lookup: InProcess, key_type: int, version: int, key: str, expected: int | None
) -> None:
    response = send(lookup, "FindCoordinator", version, key_type=key_type, coordinator_keys=[key])
    code = response.coordinators[0].error_code
    assert code == expected if expected else code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_the_internal_topic_is_made_when_somebody_asks_for_a_coordinator(lookup: InProcess) -> None:
    auto_topics: Any = lookup.parts.auto_topics
    lookup.image.topics.by_name.clear()
    for key_type in (0, 1):
        response = send(lookup, "FindCoordinator", 4, key_type=key_type, coordinator_keys=["a"])
        assert response.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert auto_topics.created == ["__consumer_offsets", "__transaction_state"]


def test_looking_up_needs_describe(lookup: InProcess) -> None:
    lookup.parts.authorizer = Denying(  # type: ignore[assignment]
        (DESCRIBE, GROUP, "g1"), (DESCRIBE, TRANSACTIONAL_ID, "g1"), (9, CLUSTER, "kafka-cluster")
    )
    for key_type, expected in (
        (0, GROUP_REFUSED),
        (1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ):
        found = send(lookup, "FindCoordinator", 4, key_type=key_type, coordinator_keys=["g1"])
        assert found.coordinators[0].error_code == expected
        old = send(lookup, "FindCoordinator", 2, key_type=key_type, key="g1")
        assert (old.error_code, old.node_id) == (expected, -1)
    context = RequestContext(lookup.parts, None, 10, 6, 1, "c")
    request = m.FindCoordinatorRequest(key_type=2, coordinator_keys=[SHARE_KEY])
    answer: Any = find_coordinator.handle(context, request)
    [refused] = answer.coordinators
    assert (refused.key, refused.error_code, refused.error_message, refused.node_id) == (
        SHARE_KEY, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.", -1,
    )  # fmt: skip

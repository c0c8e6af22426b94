"""Who may what by REST: the principal's rights at the Kafka port decide, call by call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("msgspec")

from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from tests.support.rest import Answer, Rest, text64
from tests.support.wire import WireClient, fetch_values
from tests.system.test_http import port_of, wait_for
from tests.system.test_http_callers import ADMIN, ALICE, ALLOW, LITERAL, Secure, header

V = {"value": text64("v")}


@pytest.fixture(scope="module")
def broker() -> Iterator[Secure]:
    with Secure() as one, WireClient(one.bootstrap) as root:
        root.create_topic("private")
        yield one


@pytest.fixture(scope="module")
def root(broker: Secure) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as one:
        yield one


@pytest.fixture
def alice(broker: Secure) -> Rest:
    return Rest(port_of(broker), {"Authorization": ALICE})


@pytest.fixture
def admin(broker: Secure) -> Rest:
    return Rest(port_of(broker), {"Authorization": ADMIN})


def allow(root: WireClient, kind: ResourceType, name: str, *operations: Operation) -> None:
    """For alice."""
    shape = m.CreateAclsRequest
    request = shape(
        creations=[
            shape.AclCreation(
                resource_type=int(kind),
                resource_name=name,
                resource_pattern_type=LITERAL,
                principal="User:alice",
                host="*",
                operation=int(operation),
                permission_type=ALLOW,
            )
            for operation in operations
        ]
    )
    assert all(result.error_code == 0 for result in root.call(request, 3).results)


CALLS = [
    ("POST", "/topics/private/messages", {"messages": [V]}),
    ("POST", "/topics/private/messages", {"messages": [V], "acks": "1"}),
    ("POST", "/topics/private/messages", {"messages": [V], "acks": "0"}),
    ("GET", "/topics/private/messages?partition=0&offset=0", None),
    ("GET", "/topics/private/metadata", None),
    ("GET", "/consumers/private/offsets", None),
    (
        "POST",
        "/consumers/private/offsets",
        {"offsets": [{"topic": "private", "partition": 0, "offset": 0}]},
    ),
    ("POST", "/consumers/private/seek", {"topic": "private", "to": "beginning"}),
    ("POST", "/transactions/init", {"transactional_id": "private"}),
    ("POST", "/messages", {"queue": "private", "body": "v"}),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_who_has_no_right(
    alice: Rest, admin: Rest, method: str, path: str, body: dict[str, object] | None
) -> None:
    answer = alice.ask(method, path, body)
    assert (answer.status, answer.told["error"]) == (403, "forbidden")
    assert admin.ask(method, path, body).status in (200, 202)


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
@pytest.mark.parametrize("given", ["", header("alice", "wrong"), "Bearer token"])
def test_who_has_not_logged_in(
    alice: Rest, given: str, method: str, path: str, body: dict[str, object] | None
) -> None:
    anybody = Rest(alice.port, {"Authorization": given} if given else {})
    answer = anybody.ask(method, path, body)
    assert (answer.status, answer.told["error"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Basic")


def test_a_member_needs_rights_too(alice: Rest, root: WireClient) -> None:
    root.create_topic("of-members")
    made = alice.ask("POST", "/consumers/members/instances", {}).told
    one = f"/consumers/members/instances/{made['instance']}"
    body = {"topics": ["of-members"]}
    assert alice.ask("POST", one + "/subscription", body).status == 403
    allow(root, ResourceType.TOPIC, "of-members", Operation.READ)
    wait_for(lambda: alice.ask("GET", "/topics/of-members/metadata").status == 200)
    assert alice.ask("POST", one + "/subscription", body).status == 403
    allow(root, ResourceType.GROUP, "members", Operation.READ)
    assert wait_for(lambda: alice.ask("POST", one + "/subscription", body).status == 200)


def test_one_callers_things_are_not_anothers(alice: Rest, admin: Rest, root: WireClient) -> None:
    """A member, and a transaction, that another caller has made are not there for this one."""
    made = admin.ask("POST", "/consumers/of-admin/instances", {}).told
    path = f"/consumers/of-admin/instances/{made['instance']}"
    assert alice.ask("DELETE", path).status == 404
    assert admin.ask("DELETE", path).status == 204
    begun = admin.ask("POST", "/transactions/init", {"transactional_id": "of-admin"}).told
    end = {key: begun[key] for key in ("producer_id", "producer_epoch")}
    assert alice.ask("POST", "/transactions/of-admin/commit", end).status == 404
    assert admin.ask("POST", "/transactions/of-admin/commit", end).status == 200


def test_a_transaction_writes_what_its_caller_may_write(alice: Rest, root: WireClient) -> None:
    root.create_topic("open")
    allow(root, ResourceType.TRANSACTIONAL_ID, "hers", Operation.WRITE, Operation.DESCRIBE)
    allow(root, ResourceType.TOPIC, "open", Operation.WRITE, Operation.READ)
    asked = {"transactional_id": "hers"}

    def init() -> Answer | None:
        answer = alice.ask("POST", "/transactions/init", asked)
        return answer if answer.status == 200 else None

    def who() -> dict[str, object]:
        told = wait_for(init).told
        return {key: told[key] for key in ("producer_id", "producer_epoch")}

    assert wait_for(lambda: alice.publish("open", V).status == 200)
    at = "/transactions/hers"
    begun = who()
    denied = alice.ask("POST", at + "/messages", {**begun, "topic": "private", "messages": [V]})
    assert (denied.status, denied.told["error"]) == (403, "forbidden")
    begun = who()
    offsets = [{"topic": "open", "partition": 0, "offset": 1}]
    body = {**begun, "group": "private", "offsets": offsets}
    denied = alice.ask("POST", at + "/offsets", body)
    assert (denied.status, denied.told["error"]) == (403, "forbidden")
    begun = who()
    sent = alice.ask("POST", at + "/messages", {**begun, "topic": "open", "messages": [V]})
    assert sent.status == 200
    assert alice.ask("POST", at + "/commit", begun).status == 200


def test_a_right_that_is_given_is_enough(alice: Rest, root: WireClient) -> None:
    """Who may write and not see configs publishes all the same: the broker knows the limit."""
    root.create_topic("given", configs={"max.message.bytes": "1000"})
    assert alice.publish("given", V).status == 403
    allow(root, ResourceType.TOPIC, "given", Operation.WRITE)

    def published() -> Answer | None:
        answer = alice.publish("given", V)
        return answer if answer.status == 200 else None

    answer = wait_for(published)
    assert answer.told == {"offsets": [{"partition": 0, "offset": 0}]}
    assert alice.read("given", 0, 0).status == 403
    answer = alice.publish("given", *[{"value": text64("x" * 300)}] * 10)
    assert [one["offset"] for one in answer.told["offsets"]] == list(range(1, 11))
    answer = alice.publish("given", V, {"value": text64("x" * 2000)}, V)
    assert (answer.status, answer.told["error"], answer.told["index"]) == (
        400,
        "message_too_large",
        1,
    )
    kept = [one for one in answer.told.get("offsets", []) if one is not None]
    assert len(fetch_values(root, "given", 0)) == 11 + len(kept)


def test_what_was_kept_of_a_publish_is_told(alice: Rest, admin: Rest, root: WireClient) -> None:
    """A message that the broker refuses in one partition leaves those of the other."""
    root.create_topic("halves", 2, configs={"max.message.bytes": "1000"})
    allow(root, ResourceType.TOPIC, "halves", Operation.WRITE)
    wait_for(lambda: alice.publish("halves", {**V, "partition": 0}).status == 200)
    large = {"value": text64("x" * 2000), "partition": 1}
    answer = alice.publish("halves", {**V, "partition": 0}, large, {**V, "partition": 0})
    assert (answer.status, answer.told["index"]) == (400, 1)
    first, second, third = answer.told["offsets"]
    assert second is None
    assert third["offset"] == first["offset"] + 1
    assert admin.publish("halves", {**V, "partition": 0}, large).told.get("offsets") is None

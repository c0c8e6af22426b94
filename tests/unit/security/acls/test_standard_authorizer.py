"""StandardAuthorizer: what ACLs allow, and what those do that cannot be used."""

from __future__ import annotations

import logging

import pytest

from kwire.protocol.errors import KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import AclBinding, PatternType, PermissionType
from kwire.security.acls.standard_authorizer import DECISIONS_KEPT, StandardAuthorizer
from tests.support.acls import Client, acl

ALICE = Client("User:alice")
BOB = Client("User:bob")
DENY = PermissionType.DENY
PREFIXED = PatternType.PREFIXED
TOPIC = ResourceType.TOPIC


def authorizer_of(*rules: AclBinding, **options: bool) -> StandardAuthorizer:
    made = StandardAuthorizer(["User:admin"], **options)
    made.apply({bytes([at]) * 16: (None, rule) for at, rule in enumerate(rules)})
    made.loaded()
    return made


def allowed(authorizer: StandardAuthorizer, client: Client, name: str = "orders") -> set[str]:
    return {
        operation.name
        for operation in list(Operation)[3:]
        if authorizer.authorize(client, operation, TOPIC, name)
    }


def test_before_the_metadata_is_known_only_super_users_are_answered() -> None:
    authorizer = StandardAuthorizer(["User:admin"], allow_everyone=True)
    assert authorizer.authorize(Client("User:admin"), Operation.READ, TOPIC, "orders")
    with pytest.raises(KafkaError, match="not been loaded"):
        authorizer.authorize(ALICE, Operation.READ, TOPIC, "orders")
    authorizer.loaded()
    assert authorizer.authorize(ALICE, Operation.READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("operation", "implied"),
    [
        (Operation.READ, {"READ", "DESCRIBE"}),
        (Operation.WRITE, {"WRITE", "DESCRIBE"}),
        (Operation.DELETE, {"DELETE", "DESCRIBE"}),
        (Operation.ALTER, {"ALTER", "DESCRIBE"}),
        (Operation.CREATE, {"CREATE"}),
        (Operation.ALTER_CONFIGS, {"ALTER_CONFIGS", "DESCRIBE_CONFIGS"}),
        (Operation.ALL, {each.name for each in list(Operation)[3:]}),
    ],
)
def test_what_a_permission_implies(operation: Operation, implied: set[str]) -> None:
    authorizer = authorizer_of(acl("User:alice", operation))
    assert allowed(authorizer, ALICE) == implied
    assert allowed(authorizer, BOB) == set()
    assert allowed(authorizer, ALICE, "order") == set()


def test_a_denial_outweighs_and_implies_nothing() -> None:
    authorizer = authorizer_of(
        acl("User:*", Operation.ALL, "*"),
        acl("User:alice", Operation.READ, "ord", pattern=PREFIXED, permission=DENY),
    )
    assert "READ" not in allowed(authorizer, ALICE)
    assert {"DESCRIBE", "WRITE"} <= allowed(authorizer, ALICE)
    assert "READ" in allowed(authorizer, BOB)
    assert "READ" in allowed(authorizer, ALICE, "or")


def test_a_resource_without_acls_is_for_super_users_or_for_everybody() -> None:
    rule = acl("User:alice", Operation.READ)
    assert allowed(authorizer_of(rule), ALICE, "other") == set()
    generous = authorizer_of(rule, allow_everyone=True)
    assert "WRITE" in allowed(generous, BOB, "other")
    assert allowed(generous, BOB) == set()
    assert "WRITE" in allowed(generous, Client("User:admin"))


def test_hosts_are_compared_as_text_or_by_range() -> None:
    authorizer = authorizer_of(
        acl("User:alice", Operation.READ, "one", host="127.0.0.1"),
        acl("User:alice", Operation.READ, "range", host="10.1.0.0/16"),
        acl("User:alice", Operation.READ, "six", host="0:0:0:0:0:0:0:1"),
        acl("User:alice", Operation.READ, "short", host="::1"),
        acl("User:alice", Operation.READ, "six-range", host="fd00::/8"),
    )

    def readable(host: str) -> set[str]:
        client = Client("User:alice", host)
        names = ("one", "range", "six", "short", "six-range")
        return {n for n in names if authorizer.authorize(client, Operation.READ, TOPIC, n)}

    assert readable("/127.0.0.1") == {"one"}
    assert readable("/::ffff:127.0.0.1") == {"one"}
    assert readable("/10.1.2.3") == {"range"}
    assert readable("/10.2.0.0") == set()
    assert readable("/::1") == {"six"}
    assert readable("/fd12::7") == {"six-range"}
    assert readable("") == set()


def test_a_wildcard_does_not_cover_what_begins_with_it() -> None:
    """As in Kafka; `*` itself it does."""
    authorizer = authorizer_of(acl("User:alice", Operation.READ, "*"))
    for name, expected in (("*", True), ("*a", False), ("!", True), ("a", True)):
        assert authorizer.authorize(ALICE, Operation.READ, TOPIC, name) == expected


def test_what_was_decided_does_not_outlive_a_change() -> None:
    authorizer = authorizer_of(acl("User:alice", Operation.READ))
    assert authorizer.authorize(ALICE, Operation.READ, TOPIC, "orders")
    assert authorizer.authorize_by_resource_type(ALICE, Operation.READ, TOPIC)
    authorizer.apply({bytes(16): (acl("User:alice", Operation.READ), None)})
    assert not authorizer.authorize(ALICE, Operation.READ, TOPIC, "orders")
    assert not authorizer.authorize_by_resource_type(ALICE, Operation.READ, TOPIC)


def test_long_names_that_anybody_may_ask_about_are_not_kept() -> None:
    """16,384 of 32 KB each, which a client without a right could ask about, stayed in memory."""
    authorizer = authorizer_of(acl("User:alice", Operation.READ, "a", pattern=PREFIXED))
    for number in range(20):
        name = f"{number}{'a' * 32_000}"
        assert not authorizer.authorize(ALICE, Operation.READ, TOPIC, name)
        assert authorizer.authorize(ALICE, Operation.READ, TOPIC, f"a{name}")
    assert sum(len(name) for _, _, _, name in authorizer._decisions) < 1024


def test_the_decisions_kept_are_bounded() -> None:
    authorizer = authorizer_of(acl("User:alice", Operation.READ, "*"))
    for number in range(DECISIONS_KEPT + 10):
        assert authorizer.authorize(ALICE, Operation.READ, TOPIC, f"t{number}")
        authorizer.authorize_by_resource_type(Client(f"User:{number}"), Operation.READ, TOPIC)
    assert len(authorizer._decisions) <= DECISIONS_KEPT
    assert len(authorizer._decisions_of_types) <= DECISIONS_KEPT


@pytest.mark.parametrize(
    "unusable",
    [
        acl("alice", Operation.READ),
        acl("User:alice", Operation.READ, host="10.0.0.0/x"),
        acl("User:alice", Operation.UNKNOWN),
        acl("User:alice", Operation.READ)._replace(pattern_type=9),
        acl("User:alice", Operation.READ)._replace(permission_type=9),
        acl("User:alice", Operation.READ)._replace(resource_type=9),
        acl("User:alice", Operation.READ)._replace(operation=77),
    ],
)
def test_an_acl_that_cannot_be_used_is_named_and_opens_nothing(
    unusable: AclBinding, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        authorizer = authorizer_of(unusable)
    assert "cannot be used" in caplog.text
    assert "ACL AAAAAAAAAAAAAAAAAAAAAA of" in caplog.text
    assert allowed(authorizer, ALICE) == allowed(authorizer, Client("alice")) == set()
    assert not authorizer.authorize_by_resource_type(ALICE, Operation.READ, TOPIC)


@pytest.mark.parametrize(
    "unusable",
    [
        acl("alice", Operation.READ, permission=DENY),
        acl("User:alice", Operation.READ, host="10.0.0.0/x", permission=DENY),
        acl("User:alice", Operation.READ, "other", permission=DENY)._replace(pattern_type=9),
        acl("User:alice", Operation.READ)._replace(permission_type=9),
    ],
)
def test_a_denial_that_cannot_be_used_closes_all_that_it_can_mean(unusable: AclBinding) -> None:
    authorizer = authorizer_of(acl("User:*", Operation.ALL, "*"), unusable)
    assert "READ" not in allowed(authorizer, ALICE)
    assert "WRITE" in allowed(authorizer, ALICE)
    authorizer.apply({b"\x01" * 16: (unusable, None)})
    assert "READ" in allowed(authorizer, ALICE)


def test_some_resource_of_a_type() -> None:
    """KIP-679: a denial outweighs only what it covers as a whole."""
    write = Operation.WRITE
    literal = acl("User:alice", write, "orders")
    prefixed = acl("User:alice", write, "or", pattern=PREFIXED)
    wildcard = acl("User:alice", write, "*")
    cases = [
        ((literal,), True),
        ((literal, acl("User:*", write, "orders", permission=DENY)), False),
        ((literal, acl("User:*", write, "ord", pattern=PREFIXED, permission=DENY)), False),
        ((prefixed, acl("User:*", write, "ord", pattern=PREFIXED, permission=DENY)), True),
        ((prefixed, acl("User:*", write, "or", pattern=PREFIXED, permission=DENY)), False),
        ((prefixed, acl("User:*", write, "or", permission=DENY)), True),
        ((wildcard, acl("User:*", write, "*", permission=DENY)), False),
        ((wildcard, acl("User:*", write, "h", pattern=PREFIXED, permission=DENY)), True),
        ((acl("User:alice", Operation.ALL),), True),
        ((acl("User:alice", Operation.READ),), False),
        ((acl("User:bob", write),), False),
        ((acl("User:alice", write, host="10.0.0.0/8"),), False),
        ((acl("User:alice", write, host="127.0.0.0/8"),), True),
    ]
    for rules, expected in cases:
        authorizer = authorizer_of(*rules)
        assert authorizer.authorize_by_resource_type(ALICE, write, TOPIC) == expected, rules
    assert authorizer_of().authorize_by_resource_type(Client("User:admin"), write, TOPIC)

"""The index of ACLs against a model that looks at every ACL for every question."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import AclBinding, PatternType, PermissionType
from kwire.security.acls.explanation import explain
from kwire.security.acls.standard_authorizer import StandardAuthorizer
from tests.support.acls import Client, model_allows, model_allows_some

NAMES = ["*", "*a", "a", "ab", "abc", "abd", "b", "ba", "!", "!a", "hardcode", "h"]
PRINCIPALS = ["User:a", "User:b", "User:*", "Group:a"]
ADDRESSES = ["10.0.0.1", "10.0.1.2", "192.168.7.9"]
HOSTS = ["*", *ADDRESSES, "10.0.0.0/24", "10.0.0.0/8", "0.0.0.0/0", "192.168.7.9/32"]
KINDS = [ResourceType.TOPIC, ResourceType.GROUP]
OPERATIONS = [
    Operation.ALL, Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS, Operation.CREATE,
]  # fmt: skip
ASKED = [each for each in OPERATIONS if each is not Operation.ALL]

acls = st.builds(
    AclBinding,
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from([PermissionType.ALLOW, PermissionType.DENY]),
)
changes = st.lists(
    st.dictionaries(st.integers(0, 12), st.one_of(st.none(), acls), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)
questions = st.lists(
    st.tuples(
        st.builds(
            Client, st.sampled_from(PRINCIPALS[:2] + PRINCIPALS[3:]), st.sampled_from(ADDRESSES)
        ),
        st.sampled_from(ASKED),
        st.sampled_from(KINDS),
        st.sampled_from(NAMES),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(changes, questions, st.booleans())
def test_decisions_behind_every_change_are_the_models(
    history: list[dict[int, AclBinding | None]], asked: list[Any], allow_everyone: bool
) -> None:
    authorizer = StandardAuthorizer(allow_everyone=allow_everyone)
    authorizer.loaded()
    known: dict[int, AclBinding] = {}
    for step in history:
        delta = {}
        for number, new in step.items():
            delta[bytes([number])] = (known.pop(number, None), new)
            if new is not None:
                known[number] = new
        authorizer.apply(delta)
        rules = list(known.values())
        for client, operation, kind, name in asked:
            expected = model_allows(
                rules, client, operation, kind, name, allow_everyone=allow_everyone
            )
            got = authorizer.authorize(client, operation, kind, name)
            assert got == expected, (client, operation, kind, name, rules)
            explained = explain(
                rules,
                client.principal,
                client.client_host,
                operation,
                kind,
                name,
                allow_everyone=allow_everyone,
            )
            assert explained.is_allowed == expected, (explained, rules)
            expected = model_allows_some(rules, client, operation, kind)
            if not allow_everyone or any(rule.resource_type == kind for rule in rules):
                got = authorizer.authorize_by_resource_type(client, operation, kind)
                hard = authorizer.authorize(client, operation, kind, "hardcode")
                assert got == (expected or hard), (client, operation, kind, rules)

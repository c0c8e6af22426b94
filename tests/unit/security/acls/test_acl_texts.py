"""How people name operations and resources."""

from __future__ import annotations

import pytest

from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.security.acls.text import operation_of, resource_of


@pytest.mark.parametrize(
    "given",
    ["idempotent-write", "IDEMPOTENT_WRITE", "IdempotentWrite", "idempotentwrite"],
)
def test_an_operation_has_kafkas_spellings(given: str) -> None:
    assert operation_of(given) is Operation.IDEMPOTENT_WRITE


@pytest.mark.parametrize("given", ["", "-", "any", "unknown", "read write", "reads", "3"])
def test_what_is_no_operation_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="not an operation; accepted: all, read, write,"):
        operation_of(given)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("topic:a:b", (ResourceType.TOPIC, "a:b")),
        ("TOPIC:A", (ResourceType.TOPIC, "A")),
        ("transactional-id:t", (ResourceType.TRANSACTIONAL_ID, "t")),
        ("TransactionalId:t", (ResourceType.TRANSACTIONAL_ID, "t")),
        ("DELEGATION_TOKEN:t", (ResourceType.DELEGATION_TOKEN, "t")),
        ("user:User:bob", (ResourceType.USER, "User:bob")),
        ("Cluster", (ResourceType.CLUSTER, CLUSTER_NAME)),
        (f"cluster:{CLUSTER_NAME}", (ResourceType.CLUSTER, CLUSTER_NAME)),
    ],
)
def test_a_resource_has_kafkas_spellings(given: str, wanted: tuple[ResourceType, str]) -> None:
    assert resource_of(given) == wanted


@pytest.mark.parametrize("given", ["", "orders", "topic", "topic:", "any:x", "cluster:other", ":x"])
def test_what_is_no_resource_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="not a resource; accepted: topic:NAME"):
        resource_of(given)

"""The requests about ACLs, made of ACLs, and the ACLs in an answer: for every client of kwire.

Versions: those of DescribeAcls, CreateAcls, DeleteAcls that carry types of patterns (KIP-290).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.protocol import messages as m
from kwire.security.acls.binding import AclBinding, PatternType

ANY = 1
"""Every operation, permission, type of resource."""


class AclFilter(NamedTuple):
    """Which ACLs; everything by default. The fields of an `AclBinding`, None for any."""

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission_type: int = ANY


def describe_request(matching: AclFilter) -> m.DescribeAclsRequest:
    """Ask for the ACLs that match."""
    return m.DescribeAclsRequest(
        resource_type_filter=matching.resource_type,
        resource_name_filter=matching.resource_name,
        pattern_type_filter=matching.pattern_type,
        principal_filter=matching.principal,
        host_filter=matching.host,
        operation=matching.operation,
        permission_type=matching.permission_type,
    )


def described(response: m.DescribeAclsResponse) -> list[AclBinding]:
    """The ACLs in an answer; the caller has looked at its error code."""
    return [
        AclBinding(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    ]


def create_request(acls: Sequence[AclBinding]) -> m.CreateAclsRequest:
    """Add ACLs; there is a result for each, in their order."""
    return m.CreateAclsRequest(
        creations=[
            m.CreateAclsRequest.AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in acls
        ]
    )


def delete_request(matching: AclFilter) -> m.DeleteAclsRequest:
    """Remove the ACLs that match; there is one result."""
    return m.DeleteAclsRequest(
        filters=[
            m.DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=matching.resource_type,
                resource_name_filter=matching.resource_name,
                pattern_type_filter=matching.pattern_type,
                principal_filter=matching.principal,
                host_filter=matching.host,
                operation=matching.operation,
                permission_type=matching.permission_type,
            )
        ]
    )

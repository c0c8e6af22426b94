"""Access control lists: those that there are, more, and fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.client.cluster import Cluster
from kwire.client.errors import check
from kwire.protocol import messages as m

ANY, LITERAL, PREFIXED = 1, 3, 4
"""Of types of patterns, and ANY of all other numbers too."""
DENY, ALLOW = 2, 3


class Acl(NamedTuple):
    """One rule, in the numbers of Kafka's protocol; None in a filter means any."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AclFilter(NamedTuple):
    """Which rules; everything by default."""

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission_type: int = ANY


ALL = AclFilter()


class Acls:
    """See the module; ClientError from all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def listed(self, matching: AclFilter = ALL) -> list[Acl]:
        """The rules that match."""
        response = await self._cluster.call(
            m.DescribeAclsRequest(
                resource_type_filter=matching.resource_type,
                resource_name_filter=matching.resource_name,
                pattern_type_filter=matching.pattern_type,
                principal_filter=matching.principal,
                host_filter=matching.host,
                operation=matching.operation,
                permission_type=matching.permission_type,
            )
        )
        check(response.error_code, "ACLs", response.error_message)
        return [
            Acl(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                rule.principal,
                rule.host,
                rule.operation,
                rule.permission_type,
            )
            for resource in response.resources
            for rule in resource.acls
        ]

    async def create(self, rules: Sequence[Acl]) -> None:
        """Add rules; the first one's error where one is refused."""
        kind = m.CreateAclsRequest
        request = kind(
            creations=[
                kind.AclCreation(
                    resource_type=rule.resource_type,
                    resource_name=rule.resource_name,
                    resource_pattern_type=rule.pattern_type,
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission_type,
                )
                for rule in rules
            ]
        )
        response = await self._cluster.call(request)
        for rule, result in zip(rules, response.results, strict=True):
            check(result.error_code, f"ACL for {rule.principal}", result.error_message)

    async def delete(self, matching: AclFilter) -> int:
        """Remove the rules that match; how many those were."""
        kind = m.DeleteAclsRequest
        request = kind(
            filters=[
                kind.DeleteAclsFilter(
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
        result = (await self._cluster.call(request)).filter_results[0]
        check(result.error_code, "ACLs", result.error_message)
        for rule in result.matching_acls:
            check(rule.error_code, f"ACL for {rule.principal}", rule.error_message)
        return len(result.matching_acls)

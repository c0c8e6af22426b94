"""Access control lists: those that there are, more, and fewer."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.client.acl_requests import (
    AclFilter,
    create_request,
    delete_request,
    describe_request,
    described,
)
from kwire.client.cluster import Cluster
from kwire.client.errors import check
from kwire.security.acls.binding import AclBinding

ALL = AclFilter()


class Acls:
    """See the module; ClientError from all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def listed(self, matching: AclFilter = ALL) -> list[AclBinding]:
        """The ACLs that match."""
        response = await self._cluster.call(describe_request(matching))
        check(response.error_code, "ACLs", response.error_message)
        return described(response)

    async def create(self, acls: Sequence[AclBinding]) -> None:
        """Add ACLs; the first one's error where one is refused."""
        response = await self._cluster.call(create_request(acls))
        for acl, result in zip(acls, response.results, strict=True):
            check(result.error_code, f"ACL for {acl.principal}", result.error_message)

    async def delete(self, matching: AclFilter) -> int:
        """Remove the ACLs that match; how many those were."""
        result = (await self._cluster.call(delete_request(matching))).filter_results[0]
        check(result.error_code, "ACLs", result.error_message)
        for acl in result.matching_acls:
            check(acl.error_code, f"ACL for {acl.principal}", acl.error_message)
        return len(result.matching_acls)

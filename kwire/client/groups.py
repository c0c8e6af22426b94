"""Groups of all kinds: listed, described, deleted."""

from __future__ import annotations

from typing import TypeAlias

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import check
from kwire.protocol import messages as m

Listed: TypeAlias = "m.ListGroupsResponse.ListedGroup"
Classic: TypeAlias = "m.DescribeGroupsResponse.DescribedGroup"
OfShareGroup: TypeAlias = "m.ShareGroupDescribeResponse.DescribedGroup"
OfConsumerGroup: TypeAlias = "m.ConsumerGroupDescribeResponse.DescribedGroup"


class Groups:
    """See the module; ClientError from all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def listed(self) -> list[Listed]:
        """The groups of every broker, by id."""
        found: dict[str, Listed] = {}
        for node in (await self._cluster.metadata([])).brokers:
            request = m.ListGroupsRequest(states_filter=[], types_filter=[])
            response = await self._cluster.call(request, node.node_id)
            check(response.error_code, "groups")
            found.update((group.group_id, group) for group in response.groups)
        return [found[name] for name in sorted(found)]

    async def describe_classic(self, group: str) -> Classic:
        """State and members of a group of the classic protocol."""

        async def ask(node_id: int) -> Classic:
            request = m.DescribeGroupsRequest(groups=[group])
            found = (await self._cluster.call(request, node_id)).groups[0]
            check(found.error_code, f"group {group}", found.error_message)
            return found

        return await self._cluster.ask_coordinator(Coordinator.GROUP, group, ask)

    async def describe_consumer(self, group: str) -> OfConsumerGroup:
        """State and members of a group of the consumer protocol."""

        async def ask(node_id: int) -> OfConsumerGroup:
            request = m.ConsumerGroupDescribeRequest(group_ids=[group])
            found = (await self._cluster.call(request, node_id)).groups[0]
            check(found.error_code, f"group {group}", found.error_message)
            return found

        return await self._cluster.ask_coordinator(Coordinator.GROUP, group, ask)

    async def describe_share(self, group: str) -> OfShareGroup:
        """State and members of a share group."""

        async def ask(node_id: int) -> OfShareGroup:
            request = m.ShareGroupDescribeRequest(group_ids=[group])
            found = (await self._cluster.call(request, node_id)).groups[0]
            check(found.error_code, f"group {group}", found.error_message)
            return found

        return await self._cluster.ask_coordinator(Coordinator.GROUP, group, ask)

    async def delete(self, group: str) -> None:
        """Delete a group that has no members."""

        async def ask(node_id: int) -> None:
            request = m.DeleteGroupsRequest(groups_names=[group])
            result = (await self._cluster.call(request, node_id)).results[0]
            check(result.error_code, f"group {group}", result.error_message)

        await self._cluster.ask_coordinator(Coordinator.GROUP, group, ask)

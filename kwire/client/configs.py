"""Configs of topics, brokers and groups: what they are, and changes to them."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kwire.client.cluster import ANY, Cluster
from kwire.client.errors import check
from kwire.protocol import messages as m

Described: TypeAlias = "m.DescribeConfigsResponse.DescribeConfigsResourceResult"


class Resource(enum.IntEnum):
    """Whose configs, as Kafka numbers them."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


OF_ONE_BROKER = (Resource.BROKER, Resource.BROKER_LOGGER)
SET, DELETE = 0, 1


class Configs:
    """See the module; ClientError from all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(
        self, kind: Resource, name: str, keys: Sequence[str] | None = None
    ) -> list[Described]:
        """The configs of a resource by name; all without `keys`."""
        request = m.DescribeConfigsRequest(
            resources=[
                m.DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=int(kind),
                    resource_name=name,
                    configuration_keys=None if keys is None else list(keys),
                )
            ],
            include_synonyms=False,
            include_documentation=False,
        )
        result = (await self._cluster.call(request, _asked(kind, name))).results[0]
        check(result.error_code, f"{kind.name.lower()} {name}", result.error_message)
        return sorted(result.configs, key=lambda config: config.name)

    async def alter(
        self,
        kind: Resource,
        name: str,
        changes: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set configs; None gives one back its default."""
        request_class = m.IncrementalAlterConfigsRequest
        resource = request_class.AlterConfigsResource(
            resource_type=int(kind),
            resource_name=name,
            configs=[
                request_class.AlterableConfig(
                    name=key, config_operation=DELETE if value is None else SET, value=value
                )
                for key, value in changes.items()
            ],
        )
        request = request_class(resources=[resource], validate_only=validate_only)
        result = (await self._cluster.call(request, _asked(kind, name))).responses[0]
        check(result.error_code, f"{kind.name.lower()} {name}", result.error_message)


def _asked(kind: Resource, name: str) -> int:
    """What only one broker knows is asked of that one."""
    return int(name) if kind in OF_ONE_BROKER and name.isdecimal() else ANY

"""Where a resource is: its URL below the address that was asked, and its name.

URL    http://localhost:8080/v3/clusters/ID/topics/orders
name   crn:///kafka=ID/topic=orders
"""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct

from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.route import Call
from kwire.http.purposes.rest.v3.shapes import ListMetadata, Metadata, Related
from kwire.protocol import messages as m

PREFIXES = ("/v3", "/kafka/v3")
CLUSTERS = "/clusters"

P = TypeVar("P", bound=Struct)
B = TypeVar("B", bound=Struct)


class Links:
    """Of one cluster, as one request sees it."""

    def __init__(self, url: str, cluster_id: str) -> None:
        base, _, _ = url.partition("/v3" + CLUSTERS)
        self.cluster_id = cluster_id
        self._url = f"{base}/v3{CLUSTERS}"
        self._name = f"crn:///kafka={cluster_id}"

    def url(self, *path: str | int, query: dict[str, str] | None = None) -> str:
        """Of what is there below the cluster."""
        found = "/".join([self._url, *(quote(str(step), safe="-:") for step in self._below(path))])
        return f"{found}?{urlencode(query)}" if query else found

    def _below(self, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        return (self.cluster_id, *path)

    def clusters(self) -> ListMetadata:
        """Of the list of clusters."""
        return ListMetadata(self._url)

    def related(self, *path: str | int) -> Related:
        """A link to it."""
        return Related(self.url(*path))

    def metadata(self, *path: str | int, name: str = "") -> Metadata:
        """Of a resource; `name` is what its name has beyond the cluster's."""
        return Metadata(self.url(*path), self._name + (f"/{name}" if name else ""))

    def listed(self, *path: str | int, query: dict[str, str] | None = None) -> ListMetadata:
        """Of a list."""
        return ListMetadata(self.url(*path, query=query))


async def described(client: Client) -> m.DescribeClusterResponse:
    """The cluster as it is now; ClientError."""
    cluster = client.cluster
    return await cluster.retrying(lambda: cluster.call(m.DescribeClusterRequest()))


class _Known:
    """The id of a client's cluster (a `Part`): it never changes."""

    is_busy = False

    def __init__(self, client: Client) -> None:
        self.cluster_id = ""

    def check(self, now_s: float) -> None:
        """Nothing grows old."""

    async def close(self) -> None:
        """Nothing is open."""


async def links_of(call: Call[P, B], cluster_id: str) -> Links:
    """The links of the cluster that was asked for; Problem 404 where it is another."""
    known = call.client.part(_Known, _Known)
    if not known.cluster_id:
        known.cluster_id = (await described(call.client)).cluster_id
    if cluster_id != known.cluster_id:
        message = f"Cluster {cluster_id} cannot be found."
        raise Problem(404, "not_found", message, parameter="cluster_id")
    return Links(call.url, cluster_id)

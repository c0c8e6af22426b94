"""The cluster and its brokers."""

from __future__ import annotations

from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.v3.failures import as_v3, missing
from kwire.http.purposes.rest.v3.links import Links, described, links_of
from kwire.http.purposes.rest.v3.shapes import (
    BrokerData,
    BrokerDataList,
    ClusterData,
    ClusterDataList,
    OfBroker,
    OfCluster,
)
from kwire.protocol import messages as m

TAG = "v3: cluster"


def _cluster(links: Links, controller_id: int) -> ClusterData:
    return ClusterData(
        "KafkaCluster",
        links.metadata(),
        links.cluster_id,
        links.related("brokers", controller_id) if controller_id >= 0 else None,
        links.related("acls"),
        links.related("brokers"),
        links.related("broker-configs"),
        links.related("consumer-groups"),
        links.related("topics"),
        links.related("topics", "-", "partitions", "-", "reassignment"),
    )


@as_v3
async def clusters(call: Call[Nothing, Nothing]) -> Reply:
    """The one that there is."""
    found = await described(call.client)
    links = Links(call.url, found.cluster_id)
    data = [_cluster(links, found.controller_id)]
    return Reply(200, ClusterDataList("KafkaClusterList", links.clusters(), data))


@as_v3
async def cluster(call: Call[OfCluster, Nothing]) -> Reply:
    """One."""
    links = await links_of(call, call.parameters.cluster_id)
    return Reply(200, _cluster(links, (await described(call.client)).controller_id))


def _broker(links: Links, one: m.DescribeClusterResponse.DescribeClusterBroker) -> BrokerData:
    number = one.broker_id
    return BrokerData(
        "KafkaBroker",
        links.metadata("brokers", number, name=f"broker={number}"),
        links.cluster_id,
        number,
        one.host,
        one.port,
        one.rack,
        links.related("brokers", number, "configs"),
        links.related("brokers", number, "partition-replicas"),
    )


@as_v3
async def brokers(call: Call[OfCluster, Nothing]) -> Reply:
    """All that are there."""
    links = await links_of(call, call.parameters.cluster_id)
    found = sorted((await described(call.client)).brokers, key=lambda one: one.broker_id)
    data = [_broker(links, one) for one in found]
    return Reply(200, BrokerDataList("KafkaBrokerList", links.listed("brokers"), data))


@as_v3
async def broker(call: Call[OfBroker, Nothing]) -> Reply:
    """One."""
    links = await links_of(call, call.parameters.cluster_id)
    for one in (await described(call.client)).brokers:
        if one.broker_id == call.parameters.broker_id:
            return Reply(200, _broker(links, one))
    raise missing(f"There is no broker {call.parameters.broker_id}.")


def routes(prefix: str) -> list[AnyRoute]:
    """See the module."""
    return [
        Route(
            "GET",
            f"{prefix}/clusters",
            clusters,
            summary="List clusters",
            tag=TAG,
            parameters=Nothing,
            body=Nothing,
            answers={200: Answered(ClusterDataList, "The one cluster.")},
        ),
        Route(
            "GET",
            f"{prefix}/clusters/{{cluster_id}}",
            cluster,
            summary="Get a cluster",
            tag=TAG,
            parameters=OfCluster,
            body=Nothing,
            answers={200: Answered(ClusterData, "The cluster.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            f"{prefix}/clusters/{{cluster_id}}/brokers",
            brokers,
            summary="List brokers",
            tag=TAG,
            parameters=OfCluster,
            body=Nothing,
            answers={200: Answered(BrokerDataList, "The brokers.")},
            refusals=(404,),
        ),
        Route(
            "GET",
            f"{prefix}/clusters/{{cluster_id}}/brokers/{{broker_id}}",
            broker,
            summary="Get a broker",
            tag=TAG,
            parameters=OfBroker,
            body=Nothing,
            answers={200: Answered(BrokerData, "The broker.")},
            refusals=(404,),
        ),
    ]

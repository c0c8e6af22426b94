"""Addresses in replies lead back to the proxy, in every reply that has any."""

from __future__ import annotations

import pytest

from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.structs import Message
from kwire.trace.proxy.addresses import WITH_ADDRESSES, leads_back

BETWEEN_NODES = {"FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "UpdateRaftVoter"}
OF_APPLICATIONS = {"StreamsGroupHeartbeat", "StreamsGroupDescribe"}
TOLD_TO_PEOPLE = {"DescribeQuorum"}


def mapped(host: str, port: int) -> tuple[str, int]:
    return "proxy", port + 1000


def test_every_reply_with_an_address_is_known() -> None:
    found = set()
    for info in API_KEYS.values():
        kind = m.response_class(info.key)
        for struct in (kind.SCHEMA.root, *kind.SCHEMA.structs.values()):
            if {"host", "port"} <= {field.name for field in struct.fields}:
                found.add(info.name)
    known = {API_KEYS[key].name for key in WITH_ADDRESSES if key != ApiKey.API_VERSIONS}
    assert found == known | BETWEEN_NODES | OF_APPLICATIONS | TOLD_TO_PEOPLE


REPLIES: list[Message] = [
    m.MetadataResponse(
        brokers=[m.MetadataResponse.MetadataResponseBroker(node_id=1, host="kafka", port=1)]
    ),
    m.DescribeClusterResponse(
        brokers=[m.DescribeClusterResponse.DescribeClusterBroker(host="kafka", port=1)]
    ),
    m.FindCoordinatorResponse(host="kafka", port=1),
    m.FindCoordinatorResponse(
        coordinators=[m.FindCoordinatorResponse.Coordinator(host="kafka", port=1)]
    ),
    m.ProduceResponse(node_endpoints=[m.ProduceResponse.NodeEndpoint(host="kafka", port=1)]),
    m.FetchResponse(node_endpoints=[m.FetchResponse.NodeEndpoint(host="kafka", port=1)]),
    m.ShareFetchResponse(node_endpoints=[m.ShareFetchResponse.NodeEndpoint(host="kafka", port=1)]),
    m.ShareAcknowledgeResponse(
        node_endpoints=[m.ShareAcknowledgeResponse.NodeEndpoint(host="kafka", port=1)]
    ),
]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: str(reply.NAME))
def test_addresses_lead_back(reply: Message) -> None:
    again = reply.copy()
    assert leads_back(again, mapped)
    assert "kafka" not in repr(again)
    assert "host='proxy', port=1001" in repr(again)


def test_no_coordinator_has_no_address() -> None:
    reply = m.FindCoordinatorResponse(error_code=15, host="", port=-1)
    assert not leads_back(reply, mapped)
    assert (reply.host, reply.port) == ("", -1)


def test_replies_without_addresses_stay_as_they_came() -> None:
    assert not leads_back(m.FetchResponse(), mapped)
    assert not leads_back(m.HeartbeatResponse(), mapped)


def test_versions_whose_addresses_could_not_be_read_are_not_offered() -> None:
    kind = m.ApiVersionsResponse
    keys = [
        kind.ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=99),
        kind.ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=99),
        kind.ApiVersion(api_key=2000, min_version=0, max_version=5),
    ]
    reply = kind(api_keys=keys)
    assert leads_back(reply, mapped)
    highest = [(each.api_key, each.max_version) for each in reply.api_keys]
    assert highest == [
        (ApiKey.METADATA, API_KEYS[ApiKey.METADATA].max),
        (ApiKey.HEARTBEAT, 99),
        (2000, 5),
    ]

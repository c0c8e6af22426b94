"""What only a controller is asked: by the quorum's replicas, by brokers, in a client's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.protocol import frame, messages
from tests.support.rights.data_requests import Ask
from tests.support.rights.users import OWNER
from tests.support.rights.world import NO_ID, OK, SECRET, World

m: Any = messages  # the requests are built of parts that have no type of their own here

QUORUM_TOPIC = "__cluster_metadata"
QUORUM_TOPIC_ID = bytes(15) + b"\x01"
LOOPBACK = bytes((127, 0, 0, 1))
CLIENTS = (
    "none",
    "topic-create",
    "topic-create-and-configs",
    "cluster-create",
    "everything",
    "admin",
)


def asks(world: World) -> Iterator[Ask]:
    yield from _raft(world)
    yield from _brokers(world)
    cluster = m.DescribeClusterRequest
    for label, kind in (("", 2), (" of brokers", 1)):
        yield Ask("DescribeCluster" + label, (1, 2), lambda v, k=kind: cluster(
            endpoint_type=k, include_cluster_authorized_operations=True
        ))  # fmt: skip
    yield Ask("ApiVersions", (3,), lambda v: m.ApiVersionsRequest(
        client_software_name="rights", client_software_version="1"
    ))  # fmt: skip


def _raft(world: World) -> Iterator[Ask]:
    """Of another cluster, so that nothing comes of it."""
    vote = m.VoteRequest
    one = vote.PartitionData(partition_index=0, replica_id=77, replica_epoch=1)
    topics = [vote.TopicData(topic_name=QUORUM_TOPIC, partitions=[one])]
    yield Ask("Vote", (0, 2), lambda v: vote(cluster_id="another", topics=topics))
    for name, shape in (
        ("BeginQuorumEpoch", m.BeginQuorumEpochRequest),
        ("EndQuorumEpoch", m.EndQuorumEpochRequest),
    ):
        partition = shape.PartitionData(partition_index=0, leader_id=77, leader_epoch=1)
        data: Any = shape.TopicData(topic_name=QUORUM_TOPIC, partitions=[partition])
        yield Ask(name, (0, 1), lambda v, s=shape, d=data: s(cluster_id="another", topics=[d]))
    snapshot = m.FetchSnapshotRequest
    piece = snapshot.PartitionSnapshot(
        partition=0, snapshot_id=snapshot.SnapshotId(end_offset=1, epoch=1)
    )
    pieces = [snapshot.TopicSnapshot(name=QUORUM_TOPIC, partitions=[piece])]
    yield Ask("FetchSnapshot", (0, 1), lambda v: snapshot(cluster_id="another", topics=pieces))
    fetch = m.FetchRequest

    def fetched(version: int) -> Any:
        one = [fetch.FetchPartition(partition=0, partition_max_bytes=1)]
        if version >= 13:
            topics = [fetch.FetchTopic(topic_id=QUORUM_TOPIC_ID, partitions=one)]
        else:
            topics = [fetch.FetchTopic(topic=QUORUM_TOPIC, partitions=one)]
        return fetch(cluster_id="another", max_wait_ms=0, topics=topics)

    yield Ask("Fetch", (12, 18), fetched)
    update = m.UpdateRaftVoterRequest
    listener = update.Listener(name="CONTROLLER", host="127.0.0.1", port=9)
    yield Ask("UpdateRaftVoter", (0,), lambda v: update(
        cluster_id="another", voter_id=77, voter_directory_id=NO_ID, listeners=[listener]
    ))  # fmt: skip


def _brokers(world: World) -> Iterator[Ask]:
    """Of brokers and controllers that the cluster does not know."""
    yield Ask("BrokerRegistration", (0, 4), lambda v: m.BrokerRegistrationRequest(
        broker_id=77, cluster_id="another", incarnation_id=NO_ID
    ))  # fmt: skip
    yield Ask("BrokerHeartbeat", (0, 2), lambda v: m.BrokerHeartbeatRequest(
        broker_id=77, broker_epoch=3
    ))  # fmt: skip
    yield Ask("ControllerRegistration", (0,), lambda v: m.ControllerRegistrationRequest(
        controller_id=77, incarnation_id=NO_ID
    ))  # fmt: skip
    alter = m.AlterPartitionRequest
    yield Ask("AlterPartition", (2, 3), lambda v: alter(broker_id=77, broker_epoch=3))
    yield Ask("AllocateProducerIds", (0,), lambda v: m.AllocateProducerIdsRequest(
        broker_id=77, broker_epoch=3
    ))  # fmt: skip
    yield Ask("AssignReplicasToDirs", (0,), lambda v: m.AssignReplicasToDirsRequest(
        broker_id=77, broker_epoch=3
    ))  # fmt: skip


def envelopes(world: World) -> Iterator[Ask]:
    """Requests in the name of clients, and what cannot be read."""
    create = m.CreateTopicsRequest
    new = [
        create.CreatableTopic(name=n, num_partitions=1, replication_factor=1)
        for n in ("ok-new", "secret-new")
    ]
    inner = _encoded(create(topics=new, timeout_ms=9000, validate_only=True), 7)
    for client in CLIENTS:
        principal = _principal("User", client)
        yield _envelope(f"Envelope of {client}", inner, principal, LOOPBACK)
    yield _envelope("Envelope of a role", inner, _principal("Role", "everything"), LOOPBACK)
    yield _envelope("Envelope of a token", inner, _principal("User", "admin", True), LOOPBACK)
    token = m.CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name=OWNER, max_lifetime_ms=60_000
    )
    wanted = _encoded(token, 3)
    for client in ("none", "user-create_tokens", "admin"):
        for by_token in (False, True):
            principal = _principal("User", client, by_token)
            label = f"Envelope for a token, of {client}{' by a token' if by_token else ''}"
            yield _envelope(label, wanted, principal, LOOPBACK)
    admin = _principal("User", "admin")
    yield _envelope("Envelope of nobody", inner, None, LOOPBACK)
    for label, principal in (
        ("nothing", b""), ("half", admin[:5]), ("version 9", b"\x00\x09" + admin[2:]),
        ("more than a principal", admin + b"\x00"),
    ):  # fmt: skip
        yield _envelope(f"Envelope with {label}", inner, principal, LOOPBACK)
    for address in (b"", b"\x7f\x00\x00", bytes(16)):
        yield _envelope(f"Envelope from {len(address)} bytes", inner, admin, address)
    described = _encoded(m.MetadataRequest(topics=None), 12)
    yield _envelope("Envelope of what is not forwarded", described, admin, LOOPBACK)
    yield _envelope("Envelope of bytes", b"\x00\x13\x00\x07", admin, LOOPBACK)
    yield _envelope("Envelope of no API", b"\x7f\x13\x00\x07" + inner[4:], admin, LOOPBACK)
    acl = m.CreateAclsRequest
    grant = acl.AclCreation(
        resource_type=4, resource_name="kafka-cluster", principal="User:none", host="*",
        operation=2, permission_type=3,
    )  # fmt: skip
    forged = _encoded(acl(creations=[grant]), 3)
    yield _envelope("Envelope of a grant by none", forged, _principal("User", "none"), LOOPBACK)
    names = [OK, SECRET]
    deleted = _encoded(m.DeleteTopicsRequest(topic_names=names, timeout_ms=9000), 5)
    yield _envelope("Envelope of a deletion by none", deleted, _principal("User", "none"), LOOPBACK)


def _envelope(label: str, inner: bytes, principal: bytes | None, address: bytes) -> Ask:
    request = m.EnvelopeRequest(
        request_data=inner, request_principal=principal, client_host_address=address
    )
    return Ask(label, (0,), lambda v: request)


def _encoded(request: Any, version: int) -> bytes:
    """A request with its header, without its length."""
    key = type(request).API_KEY
    return b"".join(frame.encode_request(key, version, 99, "client", request))[4:]


def _principal(kind: str, name: str, token: bool = False) -> bytes:
    """Kafka's serialised form: a version, and DefaultPrincipalData."""
    data = m.DefaultPrincipalData(type=kind, name=name, token_authenticated=token)
    return b"\x00\x00" + bytes(data.encode(0))

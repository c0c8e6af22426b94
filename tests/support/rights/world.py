"""What stands in the cluster before anybody asks: topics, groups, transactions, a token, rights."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from kwire.protocol import messages as m
from kwire.protocol.api_keys import UNBUILT
from tests.support.rights.users import ADMIN, OWNER, acls
from tests.support.wire import WireClient, batch_of, produce_request

OK, SECRET, GONE, OK_GONE = "ok", "secret", "gone", "ok-gone"
TOPICS = (OK, SECRET, GONE, OK_GONE)
"""One that may be seen by who has a right on topics, one that may not, and two that are not."""
VICTIM = "ok-victim"
SHARE_KEY = "ok-share:AAAAAAAAAAAAAAAAAAAAAQ:0"
NO_ID = b"\x07" * 16
LIMIT_S = 120.0
"""For a Kafka that shares its machine with others; the recorder waits on conditions alone."""


class World(NamedTuple):
    """What requests name that each cluster gives itself: ids, and the token of `OWNER`."""

    topic_ids: dict[str, bytes]
    token_hmac: bytes
    cluster_id: str
    directory_id: bytes = NO_ID

    def names(self) -> dict[bytes, str]:
        return {identity: name for name, identity in self.topic_ids.items()}


def login(bootstrap: str, user: str) -> WireClient:
    """A connection that has authenticated by PLAIN; its password is its name."""
    client = WireClient(bootstrap, LIMIT_S)
    answer = client.call(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert answer.error_code == 0, answer
    answer = client.call(m.SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}".encode()), 2)
    assert answer.error_code == 0, answer
    return client


def until(ask: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """Ask until it holds; what a new cluster takes its time for."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        answer = ask()
        if holds(answer):
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


def prepare(bootstrap: str, kafka: bool) -> World:
    """Make it all. `kafka`: also what needs APIs that kwire has not built."""
    with login(bootstrap, ADMIN) as admin:
        for name in (OK, SECRET, VICTIM):
            admin.create_topic(name)
            produced = produce_request(name, {0: batch_of([b"value"])})
            until(
                partial(admin.call, produced, 9),
                lambda answer: answer.responses[0].partition_responses[0].error_code == 0,
            )
        ids = {name: admin.topic_id(name) for name in (OK, SECRET, VICTIM)}
        for group in ("ok-simple", "secret-simple"):
            _commit(admin, group)
        for group, topics in (
            ("ok-consumer", [OK, SECRET]), ("ok-alone", [OK]), ("secret-consumer", [SECRET]),
        ):  # fmt: skip
            _join(admin, group, topics)
        for name in ("ok-txn", "secret-txn"):
            _begin(admin, name)
        token = admin.call(
            m.CreateDelegationTokenRequest(
                owner_principal_type="User", owner_principal_name=OWNER, max_lifetime_ms=-1
            ),
            3,
        )
        assert token.error_code == 0, token
        if kafka or m.ShareGroupHeartbeatRequest.API_KEY not in UNBUILT:
            _share(admin, "ok-share", [OK, SECRET])
            _share(admin, "secret-share", [SECRET])
            for group in ("ok-share-idle", "secret-share-idle"):
                _share(admin, group, [OK, SECRET])
                left = m.ShareGroupHeartbeatRequest(
                    group_id=group, member_id=_member_of(group), member_epoch=-1
                )
                assert admin.call(left, 1).error_code == 0
        share_key = m.FindCoordinatorRequest(key_type=2, coordinator_keys=[SHARE_KEY])
        until(
            lambda: admin.call(share_key, 6), lambda answer: not answer.coordinators[0].error_code
        )
        world = World(ids, bytes(token.hmac), admin.cluster_id())
        answer = admin.call(m.CreateAclsRequest(creations=acls()), 3)
        assert all(result.error_code == 0 for result in answer.results), answer
    _wait_for_rights(bootstrap)
    return world


def _wait_for_rights(bootstrap: str) -> None:
    """Until the broker knows the last of the rights; the controller knows them before."""
    with login(bootstrap, "everything") as client:
        until(
            lambda: client.call(
                m.DescribeClusterRequest(include_cluster_authorized_operations=True), 0
            ),
            lambda answer: answer.cluster_authorized_operations > 1 << 12,
        )
        until(
            lambda: client.metadata([SECRET], 9),
            lambda answer: answer.topics[0].error_code == 0,
        )


def _commit(admin: WireClient, group: str) -> None:
    shape = m.OffsetCommitRequest
    one = shape.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topics = [shape.OffsetCommitRequestTopic(name=name, partitions=[one]) for name in (OK, SECRET)]
    coordinator = m.FindCoordinatorRequest(key=group, key_type=0)
    until(lambda: admin.call(coordinator, 3), lambda answer: answer.error_code == 0)
    until(
        lambda: admin.call(shape(group_id=group, topics=topics), 8),
        lambda answer: all(t.partitions[0].error_code == 0 for t in answer.topics),
    )


def _join(admin: WireClient, group: str, topics: list[str]) -> None:
    """A member of the consumer protocol that owns all partitions of its topics."""
    shape = m.ConsumerGroupHeartbeatRequest
    joined = shape(
        group_id=group, member_id=f"member-of-{group}", member_epoch=0,
        rebalance_timeout_ms=600_000, subscribed_topic_names=topics, topic_partitions=[],
    )  # fmt: skip
    answer = until(lambda: admin.call(joined, 1), lambda answer: answer.error_code == 0)
    owned = answer.assignment.topic_partitions if answer.assignment else []
    assert len(owned) == len(topics), answer
    kept = shape(
        group_id=group, member_id=f"member-of-{group}", member_epoch=answer.member_epoch,
        topic_partitions=[
            shape.TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
            for each in owned
        ],
    )  # fmt: skip
    assert admin.call(kept, 1).error_code == 0


def _share(admin: WireClient, group: str, topics: list[str]) -> None:
    request = m.ShareGroupHeartbeatRequest(
        group_id=group, member_id=_member_of(group), member_epoch=0,
        subscribed_topic_names=topics,
    )  # fmt: skip
    answer = until(lambda: admin.call(request, 1), lambda answer: answer.error_code == 0)
    request.subscribed_topic_names = None

    def beat() -> Any:
        request.member_epoch = answer.member_epoch
        return admin.call(request, 1)

    # Its topics are assigned once their state is initialized.
    until(
        beat,
        lambda answer: answer.assignment and len(answer.assignment.topic_partitions) == len(topics),
    )


def _member_of(group: str) -> str:
    return f"AAAAAAAAAAAAAAAAAAAA{len(group):02}"


def _begin(admin: WireClient, name: str) -> None:
    """An open transaction with a partition of both topics."""
    coordinator = m.FindCoordinatorRequest(key=name, key_type=1)
    until(lambda: admin.call(coordinator, 3), lambda answer: answer.error_code == 0)
    begun = until(
        lambda: admin.call(
            m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=900_000), 3
        ),
        lambda answer: answer.error_code == 0,
    )
    shape = m.AddPartitionsToTxnRequest
    added = shape(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=begun.producer_id,
        v3_and_below_producer_epoch=begun.producer_epoch,
        v3_and_below_topics=[
            shape.AddPartitionsToTxnTopic(name=topic, partitions=[0])
            for topic in ((OK, SECRET) if name == "ok-txn" else (SECRET,))
        ],
    )
    until(
        lambda: admin.call(added, 3),
        lambda answer: all(
            p.partition_error_code == 0
            for topic in answer.results_by_topic_v3_and_below
            for p in topic.results_by_partition
        ),
    )

"""Building blocks for group and transaction checks on top of wire.py."""

from __future__ import annotations

import struct

from tests import wire
from tests.wire import Conn, batch, retry


def subscription(topics=(), user_data: bytes | None = None) -> bytes:
    """Consumer protocol subscription, version 0."""
    out = struct.pack(">hi", 0, len(topics))
    for t in topics:
        out += struct.pack(">h", len(t)) + t.encode()
    return out + (
        struct.pack(">i", -1)
        if user_data is None
        else struct.pack(">i", len(user_data)) + user_data
    )


def assignment(parts: dict[str, list[int]]) -> bytes:
    """Consumer protocol assignment, version 0."""
    out = struct.pack(">hi", 0, len(parts))
    for t, ps in parts.items():
        out += (
            struct.pack(">h", len(t))
            + t.encode()
            + struct.pack(">i", len(ps))
            + struct.pack(f">{len(ps)}i", *ps)
        )
    return out + struct.pack(">i", -1)


class Member:
    """One classic group member on its own connection. post_* only send; the reply is read with `.recv()`."""

    def __init__(
        self,
        conn: Conn,
        group: str,
        session_ms=10000,
        rebalance_ms=10000,
        protocols=None,
        instance=None,
        protocol_type="consumer",
        version=5,
    ):
        self.c, self.group, self.session_ms, self.rebalance_ms = (
            conn,
            group,
            session_ms,
            rebalance_ms,
        )
        self.protocols = protocols or [("range", subscription())]
        self.instance, self.protocol_type, self.version = instance, protocol_type, version
        self.id, self.gen = "", -1

    def _join_fields(self, **over):
        return dict(
            {
                "group_id": self.group,
                "session_timeout_ms": self.session_ms,
                "rebalance_timeout_ms": self.rebalance_ms,
                "member_id": self.id,
                "group_instance_id": self.instance,
                "protocol_type": self.protocol_type,
                "protocols": [{"name": n, "metadata": m} for n, m in self.protocols],
            },
            **over,
        )

    def post_join(self, version=None, **over):
        self.c.post("join_group", version or self.version, self._join_fields(**over))

    def got_join(self, timeout=None):
        r = self.c.recv(timeout)
        if r.error_code == 0:
            self.id, self.gen = r.member_id, r.generation_id
        return r

    def join_once(self, version=None, timeout=None, **over):
        """One JoinGroup request."""
        self.post_join(self.version if version is None else version, **over)
        return self.got_join(timeout)

    def post_join_with_id(self):
        """Get a member id first when there is none (and no instance id), then post the real join."""
        if not self.id and not self.instance and self.version >= 4:
            r = self.join_once()
            assert r.error_code == wire.MEMBER_ID_REQUIRED and r.member_id, r
            self.id = r.member_id
        self.post_join()

    def join(self, timeout=None):
        self.post_join_with_id()
        r = self.got_join(timeout)
        assert r.error_code == 0, r
        return r

    def post_sync(self, assignments=None, version=None, **over):
        self.c.post(
            "sync_group",
            3 if version is None else version,
            dict(
                {
                    "group_id": self.group,
                    "generation_id": self.gen,
                    "member_id": self.id,
                    "group_instance_id": self.instance,
                    "protocol_type": self.protocol_type,
                    "protocol_name": self.protocols[0][0],
                    "assignments": [
                        {"member_id": m, "assignment": a} for m, a in (assignments or {}).items()
                    ],
                },
                **over,
            ),
        )

    def sync(self, assignments=None, version=None, timeout=None, **over):
        self.post_sync(assignments, version, **over)
        return self.c.recv(timeout)

    def heartbeat(self, version=3, **over):
        return self.c.send(
            "heartbeat",
            version,
            dict(
                {
                    "group_id": self.group,
                    "generation_id": self.gen,
                    "member_id": self.id,
                    "group_instance_id": self.instance,
                },
                **over,
            ),
        ).error_code

    def commit(self, topic, offset, partition=0, version=7, metadata="", **over):
        r = self.c.send(
            "offset_commit",
            version,
            dict(
                {
                    "group_id": self.group,
                    "generation_id_or_member_epoch": self.gen,
                    "member_id": self.id,
                    "group_instance_id": self.instance,
                    "retention_time_ms": -1,
                    "topics": [
                        {
                            "name": topic,
                            "partitions": [
                                {
                                    "partition_index": partition,
                                    "committed_offset": offset,
                                    "committed_leader_epoch": -1,
                                    "committed_metadata": metadata,
                                }
                            ],
                        }
                    ],
                },
                **over,
            ),
        )
        return r.topics[0].partitions[0].error_code

    def leave(self, version=1):
        if version >= 3:
            r = self.c.send(
                "leave_group",
                version,
                group_id=self.group,
                members=[{"member_id": self.id, "group_instance_id": self.instance}],
            )
            return r.error_code or r.members[0].error_code
        return self.c.send(
            "leave_group", version, group_id=self.group, member_id=self.id
        ).error_code


def join_once(c: Conn, group: str, version: int, member_id: str = "", **told):
    """One JoinGroup and its answer, with fields of its own where `told` has some."""
    body = {
        "group_id": group,
        "session_timeout_ms": 10000,
        "rebalance_timeout_ms": 10000,
        "member_id": member_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"meta"}],
    }
    return c.send("join_group", version, {**body, **told})


def stable(members: list[Member], assignments=None):
    """Bring all members into one Stable generation; the first joins first and is the leader. Returns join replies."""
    replies = [None] * len(members)
    replies[0] = members[0].join()
    members[0].sync({members[0].id: b""})
    for i in range(1, len(members)):
        members[i].post_join_with_id()
        # the others rejoin
        for m in members[:i]:
            retry(m.heartbeat, lambda e: e == wire.REBALANCE_IN_PROGRESS, 10)
            m.post_join()
        for k, m in enumerate(members[: i + 1]):
            replies[k] = m.got_join()
            assert replies[k].error_code == 0, replies[k]
        leader = next(m for m in members[: i + 1] if m.id == replies[0].leader)
        r = leader.sync(
            assignments(members[: i + 1])
            if callable(assignments)
            else {m.id: b"" for m in members[: i + 1]}
        )
        assert r.error_code == 0, r
        for m in members[: i + 1]:
            if m is not leader:
                assert m.sync().error_code == 0
    return replies


def describe_group(c: Conn, group: str, version=5):
    return c.send(
        "describe_groups", version, groups=[group], include_authorized_operations=False
    ).groups[0]


def state_of(c: Conn, group: str) -> str:
    return describe_group(c, group).group_state


def simple_commit(
    c: Conn, group: str, topic: str, offset: int, partition: int = 0, version=7, **over
) -> int:
    """OffsetCommit outside any membership (generation -1, no member id)."""
    r = c.send(
        "offset_commit",
        version,
        dict(
            {
                "group_id": group,
                "generation_id_or_member_epoch": -1,
                "member_id": "",
                "group_instance_id": None,
                "retention_time_ms": -1,
                "topics": [
                    {
                        "name": topic,
                        "partitions": [
                            {
                                "partition_index": partition,
                                "committed_offset": offset,
                                "committed_leader_epoch": -1,
                                "committed_metadata": "",
                            }
                        ],
                    }
                ],
            },
            **over,
        ),
    )
    return r.topics[0].partitions[0].error_code


def committed(c: Conn, group: str, topic: str, partition: int = 0, require_stable=False, version=7):
    """OffsetFetch of one partition -> Obj(committed_offset, committed_leader_epoch, metadata, error_code)."""
    r = c.send(
        "offset_fetch",
        version,
        group_id=group,
        require_stable=require_stable,
        topics=[{"name": topic, "partition_indexes": [partition]}],
    )
    assert r.get("error_code", 0) == 0, r
    return r.topics[0].partitions[0]


class Txn:
    """A transactional producer done by hand (the explicit protocol: Produce <= v11, EndTxn <= v4)."""

    def __init__(self, conn: Conn, tid: str, timeout_ms: int = 60000, init=True):
        self.c, self.tid, self.seq = conn, tid, {}
        if init:
            wire.txn_ready(conn, tid)
            r = wire.init_producer(conn, tid, timeout_ms)
            assert r.error_code == 0, r
            self.pid, self.epoch = r.producer_id, r.producer_epoch

    def add(self, *parts, version=3) -> list[int]:
        """AddPartitionsToTxn for (topic, partition) pairs; waits out 51. Returns the codes in order."""
        by = {}
        for t, p in parts:
            by.setdefault(t, []).append(p)

        def once():
            r = self.c.send(
                "add_partitions_to_txn",
                version,
                v3_and_below_transactional_id=self.tid,
                v3_and_below_producer_id=self.pid,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[{"name": t, "partitions": ps} for t, ps in by.items()],
            )
            return [
                p.partition_error_code
                for t in r.results_by_topic_v3_and_below
                for p in t.results_by_partition
            ]

        return retry(once, lambda codes: wire.CONCURRENT_TRANSACTIONS not in codes, 15, 0.02)

    def produce(self, topic, vals, partition=0, version=7, add=False, **kw):
        if add:
            assert self.add((topic, partition)) == [0]
        seq = self.seq.get((topic, partition), 0)
        data = batch(
            list(vals),
            producer_id=self.pid,
            producer_epoch=self.epoch,
            base_sequence=seq,
            transactional=True,
            **kw,
        )
        r = wire.produce_once(
            self.c, topic, partition, data, version=version, transactional_id=self.tid
        )
        if r.error_code == 0:
            self.seq[(topic, partition)] = seq + len(vals)
        return r

    def add_offsets(self, group, version=3) -> int:
        def once():
            return self.c.send(
                "add_offsets_to_txn",
                version,
                transactional_id=self.tid,
                producer_id=self.pid,
                producer_epoch=self.epoch,
                group_id=group,
            ).error_code

        return retry(once, lambda e: e != wire.CONCURRENT_TRANSACTIONS, 15, 0.02)

    def commit_offsets(
        self,
        group,
        offsets: dict,
        version=3,
        generation=-1,
        member="",
        instance=None,
        metadata=None,
    ):
        """TxnOffsetCommit {(topic, partition): offset} -> codes in order."""
        by = {}
        for (t, p), o in offsets.items():
            by.setdefault(t, []).append((p, o))
        r = self.c.send(
            "txn_offset_commit",
            version,
            transactional_id=self.tid,
            group_id=group,
            producer_id=self.pid,
            producer_epoch=self.epoch,
            generation_id=generation,
            member_id=member,
            group_instance_id=instance,
            topics=[
                {
                    "name": t,
                    "partitions": [
                        {
                            "partition_index": p,
                            "committed_offset": o,
                            "committed_leader_epoch": -1,
                            "committed_metadata": metadata,
                        }
                        for p, o in ps
                    ],
                }
                for t, ps in by.items()
            ],
        )
        return [p.error_code for t in r.topics for p in t.partitions]

    def end(self, commit: bool, version=3, wait=True) -> int:
        """EndTxn; with wait=True waits out 51."""

        def once():
            return self.c.send(
                "end_txn",
                version,
                transactional_id=self.tid,
                producer_id=self.pid,
                producer_epoch=self.epoch,
                committed=commit,
            ).error_code

        return (
            retry(once, lambda e: e != wire.CONCURRENT_TRANSACTIONS, 15, 0.02) if wait else once()
        )


def wait_lso(c: Conn, topic: str, offset: int, partition: int = 0, seconds: float = 15.0) -> int:
    """Wait until the last stable offset (ListOffsets read_committed, latest) reaches `offset`."""
    return retry(
        lambda: wire.latest(c, topic, partition, isolation=1), lambda o: o >= offset, seconds, 0.05
    )


def marker_type(b) -> str:
    """'commit' or 'abort' of a control batch."""
    version, kind = struct.unpack(">hh", b.records[0].key[:4])
    assert version == 0, b
    return {0: "abort", 1: "commit"}[kind]

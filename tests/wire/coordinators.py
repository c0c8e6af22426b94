"""Coordinators of groups and transactions, waited for."""

from __future__ import annotations

from tests.wire.codec import Obj
from tests.wire.connection import Conn
from tests.wire.error_codes import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_NOT_AVAILABLE,
    LOAD_IN_PROGRESS,
    NOT_COORDINATOR,
)
from tests.wire.waiting import retry


def find_coordinator(c: Conn, key: str, key_type: int = 0, seconds: float = 20.0) -> Obj:
    """FindCoordinator v3, waiting out 15 (not available) -> Obj(error_code, node_id, host, port)."""
    r = retry(
        lambda: c.send("find_coordinator", 3, key=key, key_type=key_type),
        lambda x: x.error_code != COORDINATOR_NOT_AVAILABLE,
        seconds,
        0.2,
    )
    assert r.error_code == 0, r
    return r


_LOADING = (LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


def group_ready(c: Conn, group: str, seconds: float = 30.0):
    """Wait until the coordinator for this group serves (does not create the group)."""
    find_coordinator(c, group, 0, seconds)
    r = retry(
        lambda: c.send("offset_fetch", 5, group_id=group, topics=[]),
        lambda x: x.error_code not in _LOADING,
        seconds,
        0.2,
    )
    assert r.error_code == 0, r


def txn_ready(c: Conn, tid: str, seconds: float = 30.0):
    """Wait until the coordinator for this transactional id serves (does not create it)."""
    find_coordinator(c, tid, 1, seconds)
    r = retry(
        lambda: c.send("describe_transactions", 0, transactional_ids=[tid]),
        lambda x: x.transaction_states[0].error_code not in _LOADING,
        seconds,
        0.2,
    )
    assert r.transaction_states[0].error_code not in _LOADING, r


def init_producer(
    c: Conn,
    tid=None,
    timeout_ms: int = 60000,
    version: int = 4,
    producer_id: int = -1,
    epoch: int = -1,
    seconds: float = 20.0,
) -> Obj:
    """InitProducerId, waiting out 14/15/16/51 -> Obj(error_code, producer_id, producer_epoch)."""
    return retry(
        lambda: c.send(
            "init_producer_id",
            version,
            transactional_id=tid,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        ),
        lambda x: x.error_code not in _LOADING + (CONCURRENT_TRANSACTIONS,),
        seconds,
        0.1,
    )

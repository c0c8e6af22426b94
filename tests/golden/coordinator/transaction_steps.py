"""The steps of which scripts about transactions consist: a request in a line each (see
tests/support/coordinator_scripts.py for the notation)."""

from __future__ import annotations

from typing import Any

Step = list[Any]


def init(
    version: int = 4, saves: Any = None, how: str = "settled", conn: str = "a", **fields: Any
) -> Step:
    made = {"transactional_id": "@t", "transaction_timeout_ms": 60_000, **fields}
    return [how, conn, "InitProducerId", version, made, saves or {}]


def begin(name: str = "p", **fields: Any) -> Step:
    """A new owner of the transactional id; its id and epoch are $name and $name-e."""
    return init(saves={name: "producer_id", f"{name}-e": "producer_epoch"}, **fields)


def add(
    version: int = 3, p: str = "p", topics: Any = None, how: str = "settled", **fields: Any
) -> Step:
    asked = [
        {"name": name, "partitions": indexes} for name, indexes in (topics or {"@a": [0]}).items()
    ]
    if version >= 4:
        transaction = {
            "transactional_id": "@t", "producer_id": f"${p}", "producer_epoch": f"${p}-e",
            "verify_only": False, "topics": asked, **fields,
        }  # fmt: skip
        return [how, "a", "AddPartitionsToTxn", version, {"transactions": [transaction]}]
    made = {
        "v3_and_below_transactional_id": "@t",
        "v3_and_below_producer_id": f"${p}",
        "v3_and_below_producer_epoch": f"${p}-e",
        "v3_and_below_topics": asked,
        **{f"v3_and_below_{k}": v for k, v in fields.items()},
    }
    return [how, "a", "AddPartitionsToTxn", version, made]


def add_offsets(version: int = 3, p: str = "p", how: str = "settled", **fields: Any) -> Step:
    made = {
        "transactional_id": "@t", "producer_id": f"${p}", "producer_epoch": f"${p}-e",
        "group_id": "@g", **fields,
    }  # fmt: skip
    return [how, "a", "AddOffsetsToTxn", version, made]


def commit(version: int = 3, p: str = "p", how: str = "settled", **fields: Any) -> Step:
    topic = fields.pop("topic", "#@a" if version >= 6 else "@a")
    metadata = fields.pop("metadata", "m")
    named = {"topic_id" if version >= 6 else "name": topic}
    partition = {
        "partition_index": fields.pop("partition", 0),
        "committed_offset": fields.pop("offset", 7),
        "committed_metadata": metadata,
    }
    made = {
        "transactional_id": "@t", "group_id": "@g", "producer_id": f"${p}",
        "producer_epoch": f"${p}-e", "topics": [{**named, "partitions": [partition]}], **fields,
    }  # fmt: skip
    return [how, "a", "TxnOffsetCommit", version, made]


def end(
    version: int = 3, committed: bool = True, p: str = "p", how: str = "settled", **fields: Any
) -> Step:
    saves = fields.pop("saves", {})
    made = {
        "transactional_id": "@t", "producer_id": f"${p}", "producer_epoch": f"${p}-e",
        "committed": committed, **fields,
    }  # fmt: skip
    return [how, "a", "EndTxn", version, made, saves]


def end5(committed: bool = True, p: str = "p", new: str = "p", **fields: Any) -> Step:
    """EndTxn that gives the next epoch, which becomes $new-e."""
    saves = {new: "producer_id", f"{new}-e": "producer_epoch"}
    return end(5, committed, p, saves=saves, **fields)


def produce(
    version: int = 11, p: str = "p", sequence: int = 0, values: Any = ("x",), how: str = "settled",
    **fields: Any,
) -> Step:  # fmt: skip
    topic = fields.pop("topic", "#@a" if version >= 13 else "@a")
    batch = {
        "batch": list(values), "producer_id": f"${p}", "producer_epoch": f"${p}-e",
        "base_sequence": sequence, **fields.pop("options", {}),
    }  # fmt: skip
    data = {
        ("topic_id" if version >= 13 else "name"): topic,
        "partition_data": [{"index": fields.pop("index", 0), "records": batch}],
    }
    made = {
        "transactional_id": "@t",
        "acks": -1,
        "timeout_ms": 9000,
        "topic_data": [data],
        **fields,
    }
    return [how, "a", "Produce", version, made]


def fetch(isolation: int = 1, topic: str = "@a", offset: int = 0) -> Step:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    made = {
        "max_wait_ms": 100, "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": isolation,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }  # fmt: skip
    return ["send", "a", "Fetch", 11, made]


def offsets(group: str = "@g", stable: bool = False, **fields: Any) -> Step:
    asked = {"group_id": group, "topics": None, **fields}
    made = {"groups": [asked], "require_stable": stable}
    return ["send", "a", "OffsetFetch", 9, made]


def describe(*ids: str) -> Step:
    return ["send", "a", "DescribeTransactions", 0, {"transactional_ids": list(ids) or ["@t"]}]


def described_as(state: str) -> Step:
    """DescribeTransactions until the transaction is in a state."""
    wanted = {"transaction_states.0.transaction_state": state}
    return ["until", "a", "DescribeTransactions", 0, {"transactional_ids": ["@t"]}, wanted]


def listed(version: int = 2, **fields: Any) -> Step:
    return ["send", "a", "ListTransactions", version, fields]


def producers(topic: str = "@a", *indexes: int) -> Step:
    asked = [{"name": topic, "partition_indexes": list(indexes) or [0]}]
    return ["send", "a", "DescribeProducers", 0, {"topics": asked}]


def marker(
    version: int = 1, p: str = "p", committed: bool = True, topic: str = "@a", **fields: Any
) -> Step:
    extra = {"transaction_version": fields.pop("tv", 0)} if version >= 2 else {}
    made = {
        "producer_id": f"${p}", "producer_epoch": f"${p}-e", "transaction_result": committed,
        "coordinator_epoch": 0, "topics": [{"name": topic, "partition_indexes": [0]}],
        **extra, **fields,
    }  # fmt: skip
    return ["send", "a", "WriteTxnMarkers", version, {"markers": [made]}]


TOPIC = ["topic", "@a", 2]
OTHER = ["topic", "@b", 1]
ELSEWHERE = {"producer_id": {"plus": ["p", 1000]}}

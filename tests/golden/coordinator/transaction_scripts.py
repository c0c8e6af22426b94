"""Request scripts of transactions (see tests/support/coordinator_scripts.py for their notation)."""

from __future__ import annotations

from typing import Any

# The broker's configs: every partition is read for its records, time-outs pass within a script.
SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 1000,
    "transactional.id.expiration.ms": 25_000,
    "transaction.max.timeout.ms": 300_000,
}
Step = list[Any]

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


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

# ------------------------------------------------------------------ InitProducerId

for _version in range(6):
    script(
        f"init-v{_version}",
        init(_version, saves={"p": "producer_id", "p-e": "producer_epoch"}),
        init(_version),
        init(_version, transactional_id=""),
        init(_version, transaction_timeout_ms=0),
        init(_version, transaction_timeout_ms=-1),
        init(_version, transaction_timeout_ms=300_001),
        init(_version, transactional_id=None),
        init(_version, transactional_id=None, transaction_timeout_ms=-1),
        describe(),
    )
for _version in (3, 4, 5):
    script(
        f"init-keeps-the-producer-v{_version}",
        begin(),
        init(_version, producer_id="$p", producer_epoch="$p-e"),
        init(_version, producer_id="$p", producer_epoch="$p-e"),
        init(_version, producer_id="$p", producer_epoch={"plus": ["p-e", 1]}),
        init(_version, producer_id="$p", producer_epoch="$p-e"),
        init(_version, producer_id="$p", producer_epoch=9),
        init(_version, producer_id={"plus": ["p", 1000]}, producer_epoch=0),
        init(_version, producer_id="$p", producer_epoch=-1),
        init(_version, producer_id=-1, producer_epoch=3),
        init(_version, transactional_id=None, producer_id="$p", producer_epoch=0),
        init(_version),
        init(_version, producer_id="$p", producer_epoch={"plus": ["p-e", 2]}),
        describe(),
    )
script(
    "init-over-an-open-transaction",
    TOPIC,
    begin(),
    add(),
    produce(),
    init(how="send"),
    begin("q"),
    describe(),
    end(),
    produce(sequence=1),
    add(),
    add_offsets(),
    init(producer_id="$p", producer_epoch="$p-e"),
    fetch(1),
    fetch(0),
    producers(),
)
script(
    "init-over-an-open-transaction-by-its-owner",
    TOPIC,
    begin(),
    add(),
    produce(),
    init(how="send", producer_id="$p", producer_epoch="$p-e"),
    init(producer_id="$p", producer_epoch="$p-e"),
    begin("q"),
    describe(),
)
script(
    "init-when-the-epoch-is-exhausted",
    begin(),
    ["bump", {"transactional_id": "@t", "transaction_timeout_ms": 60_000}, 32_764],
    init(saves={"q": "producer_id", "q-e": "producer_epoch"}),
    init(saves={"r": "producer_id", "r-e": "producer_epoch"}),
    init(producer_id="$q", producer_epoch="$q-e"),
    init(producer_id="$q", producer_epoch=32_765),
    init(producer_id="$r", producer_epoch="$r-e"),
    end(p="q"),
    describe(),
)
script(
    "end-when-the-epoch-is-exhausted",
    TOPIC,
    begin(),
    ["bump", {"transactional_id": "@t", "transaction_timeout_ms": 60_000}, 32_764],
    init(saves={"p": "producer_id", "p-e": "producer_epoch"}),
    produce(12),
    end5(new="q"),
    end5(new="r"),
    produce(12, p="q"),
    end5(p="q"),
    described_as("CompleteCommit"),
    fetch(1),
    producers(),
)
script(
    "owner-continues-with-an-exhausted-epoch",
    begin(),
    ["bump", {"transactional_id": "@t", "transaction_timeout_ms": 60_000}, 32_764],
    init(saves={"q": "producer_id", "q-e": "producer_epoch"}),
    init(producer_id="$q", producer_epoch="$q-e"),
    init(producer_id="$q", producer_epoch="$q-e"),
    describe(),
)
script(
    "fence-when-the-epoch-is-exhausted",
    TOPIC,
    begin(),
    ["bump", {"transactional_id": "@t", "transaction_timeout_ms": 60_000}, 32_764],
    init(saves={"p": "producer_id", "p-e": "producer_epoch"}),
    add(),
    produce(),
    init(),
    describe(),
    fetch(1),
)

# ------------------------------------------------------------------ adding

for _version in range(4):
    script(
        f"add-v{_version}",
        TOPIC,
        OTHER,
        begin(),
        add(_version, topics={"@a": [0, 1], "@b": [0]}),
        add(_version, topics={"@a": [0]}),
        add(_version, topics={"@a": [1, 7], "@none": [0]}),
        add(_version, topics={"__consumer_offsets": [0]}),
        add(_version, topics={"__transaction_state": [0]}),
        add(_version, producer_epoch=5),
        add(_version, **ELSEWHERE),
        add(_version, transactional_id="@unknown"),
        add(_version, transactional_id=""),
        add(_version, topics={"@a": []}),
        describe(),
        end(),
        add(_version),
        end(committed=False),
        described_as("CompleteAbort"),
    )
for _version in (4, 5):
    script(
        f"add-v{_version}",
        TOPIC,
        begin(),
        add(_version, verify_only=True),
        add(_version, topics={"@a": [0, 1]}),
        add(_version, verify_only=True, topics={"@a": [0, 1, 9]}),
        add(_version, verify_only=True, producer_epoch=5),
        add(_version, verify_only=True, **ELSEWHERE),
        add(_version, verify_only=True, transactional_id="@unknown"),
        add(_version, verify_only=True, transactional_id=""),
        add(_version, topics={"@a": [1, 7], "@none": [0]}),
        add(_version, topics={"__transaction_state": [0]}),
        add(_version, topics={"__consumer_offsets": [0], "@a": [0]}),
        add(_version, producer_epoch=5),
        add(_version, transactional_id="@unknown"),
        ["send", "a", "AddPartitionsToTxn", _version, {"transactions": [
            {"transactional_id": name, "producer_id": "$p", "producer_epoch": "$p-e",
             "verify_only": name != "@t", "topics": [{"name": "@a", "partitions": [0]}]}
            for name in ("@t", "@unknown")
        ]}],
        describe(),
        end(),
        add(_version, verify_only=True),
        described_as("CompleteCommit"),
    )  # fmt: skip
for _version in range(5):
    script(
        f"add-offsets-v{_version}",
        TOPIC,
        begin(),
        add_offsets(_version),
        add_offsets(_version),
        add_offsets(_version, group_id=""),
        add_offsets(_version, producer_epoch=5),
        add_offsets(_version, **ELSEWHERE),
        add_offsets(_version, transactional_id="@unknown"),
        add_offsets(_version, transactional_id=""),
        commit(),
        end(),
        add_offsets(_version),
        offsets(),
    )

# ------------------------------------------------------------------ offsets

for _version in range(7):
    script(
        f"offsets-v{_version}",
        TOPIC,
        begin(),
        add_offsets(),
        commit(_version),
        commit(_version, partition=1, offset=8, metadata=None),
        commit(_version, partition=5),
        commit(_version, topic="#none" if _version >= 6 else "@none"),
        commit(_version, metadata="x" * 4097),
        commit(_version, group_id=""),
        commit(_version, producer_epoch=9),
        *([
            commit(_version, generation_id_or_member_epoch=3),
            commit(_version, member_id="nobody"),
            commit(_version, group_id="@h", member_id="nobody", generation_id_or_member_epoch=1),
            commit(_version, group_instance_id="@i"),
        ] if _version >= 3 else []),
        offsets(),
        offsets(stable=True),
        end(),
        described_as("CompleteCommit"),
        offsets(stable=True),
    )  # fmt: skip
    script(
        f"offsets-without-the-group-v{_version}",
        TOPIC,
        begin(),
        commit(_version),
        commit(_version, transactional_id="@unknown"),
        describe(),
        offsets(stable=True),
        end(committed=False),
        offsets(stable=True),
    )
script(
    "offsets-aborted",
    TOPIC,
    begin(),
    add_offsets(),
    commit(offset=1),
    end(),
    described_as("CompleteCommit"),
    add_offsets(),
    commit(offset=2),
    offsets(),
    offsets(stable=True),
    ["send", "a", "OffsetDelete", 0, {"group_id": "@g", "topics": [
        {"name": "@a", "partitions": [{"partition_index": 0}]}]}],
    offsets(stable=True),
    end(committed=False),
    described_as("CompleteAbort"),
    offsets(stable=True),
)  # fmt: skip
script(
    "offsets-plain-commit-meanwhile",
    TOPIC,
    begin(),
    add_offsets(),
    commit(offset=1),
    ["send", "a", "OffsetCommit", 8, {"group_id": "@g", "topics": [{"name": "@a", "partitions": [
        {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]}]}],
    offsets(),
    end(),
    described_as("CompleteCommit"),
    offsets(),
    ["send", "a", "DeleteGroups", 2, {"groups_names": ["@g"]}],
    offsets(),
)  # fmt: skip
script(
    "offsets-of-a-deleted-group",
    TOPIC,
    begin(),
    add_offsets(),
    commit(offset=1),
    ["send", "a", "DeleteGroups", 2, {"groups_names": ["@g"]}],
    offsets(stable=True),
    end(),
    described_as("CompleteCommit"),
    offsets(stable=True),
)

# ------------------------------------------------------------------ ending

for _version in range(6):
    script(
        f"end-v{_version}",
        TOPIC,
        begin(),
        end(_version),
        end(_version, producer_epoch=9),
        end(_version, **ELSEWHERE),
        end(_version, transactional_id="@unknown"),
        end(_version, transactional_id=""),
        add(),
        produce(),
        end(_version, producer_epoch=9),
        end(_version),
        described_as("CompleteCommit"),
        end(_version),
        end(_version, committed=False),
        described_as("CompleteCommit" if _version < 5 else "CompleteAbort"),
        fetch(1),
        begin(),
        end(_version, committed=False),
        add(),
        produce(),
        end(_version, committed=False),
        described_as("CompleteAbort"),
        end(_version, committed=False),
        end(_version),
        fetch(1),
        producers(),
    )
script(
    "end-5-of-nothing",
    begin(),
    end5(committed=False),
    end5(committed=False),
    end5(committed=False, producer_epoch=0),
    end5(committed=True),
    describe(),
)
script(
    "end-5-in-a-row",
    TOPIC,
    begin(),
    produce(12),
    end5(new="q"),
    end5(new="r"),
    end5(committed=False, new="r"),
    produce(12, p="q"),
    end5(p="q", committed=False, new="s"),
    end5(p="q", committed=False, new="r"),
    end5(p="q", committed=True, new="r"),
    end5(p="p", committed=True, new="r"),
    end5(p="s", committed=False, new="u"),
    fetch(1),
    producers(),
    describe(),
)

# ------------------------------------------------------------------ produce

for _version in (3, 9, 10, 11):
    script(
        f"produce-v{_version}",
        TOPIC,
        begin(),
        produce(_version),
        add(),
        produce(_version),
        produce(_version, sequence=1, values=["y", "z"]),
        produce(_version, sequence=1, values=["y", "z"]),
        produce(_version, sequence=9),
        produce(_version, index=1),
        produce(_version, transactional_id=None),
        produce(_version, transactional_id="@unknown", index=1),
        produce(_version, options={"producer_epoch": 7}),
        produce(_version, sequence=3, options={"transactional": False}),
        end(),
        described_as("CompleteCommit"),
        produce(_version, sequence=3),
        add(),
        produce(_version, sequence=3),
        end(committed=False),
        described_as("CompleteAbort"),
        fetch(1),
        fetch(0),
        producers(),
    )
for _version in (12, 13):
    script(
        f"produce-v{_version}",
        TOPIC,
        begin(),
        produce(_version),
        produce(_version, sequence=1),
        produce(_version, index=1),
        produce(_version, index=9),
        produce(_version, transactional_id="@unknown", index=1),
        produce(_version, options={"producer_epoch": 7}),
        produce(_version, sequence=9),
        describe(),
        end5(new="q"),
        described_as("CompleteCommit"),
        produce(_version, sequence=2),
        produce(_version, p="q"),
        produce(_version, p="q", sequence=1),
        end5(p="q", committed=False, new="r"),
        described_as("CompleteAbort"),
        produce(_version, p="q", sequence=2),
        end5(p="p", new="s"),
        fetch(1),
        fetch(0),
        producers(),
        describe(),
    )
script(
    "produce-several-batches",
    TOPIC,
    begin(),
    ["settled", "a", "Produce", 12, {"transactional_id": "@t", "acks": -1, "timeout_ms": 9000,
     "topic_data": [{"name": "@a", "partition_data": [
         {"index": i, "records": {"batch": ["x"], "producer_id": "$p", "producer_epoch": "$p-e",
                                  "base_sequence": 0}} for i in (0, 1)]}]}],
    describe(),
    produce(12, sequence=1, acks=1),
    produce(12, sequence=2, options={"transactional": False}),
    produce(12, sequence=2, transactional_id=None),
    end5(),
    fetch(1),
)  # fmt: skip
script(
    "produce-idempotent-beside",
    TOPIC,
    init(transactional_id=None, saves={"p": "producer_id", "p-e": "producer_epoch"}),
    produce(9, transactional_id=None, options={"transactional": False}),
    produce(9, transactional_id=None, sequence=1, options={"transactional": False}),
    produce(9, transactional_id=None, sequence=1, options={"transactional": False}),
    produce(9, transactional_id=None, sequence=5, options={"transactional": False}),
    produce(9, transactional_id=None, options={"transactional": False, "producer_epoch": 1}),
    produce(
        9, transactional_id=None, sequence=2, options={"transactional": False, "producer_epoch": 0}
    ),
    produce(
        9, transactional_id=None, sequence=4, options={"transactional": False, "producer_epoch": 2}
    ),
    produce(12, sequence=1, options={"producer_epoch": 1}),
    producers(),
)

# ------------------------------------------------------------------ fencing, markers, time

script(
    "fenced-producer",
    TOPIC,
    begin(),
    add(),
    produce(),
    begin("q"),
    *[add(v) for v in (0, 1, 2, 3)],
    *[add_offsets(v) for v in (0, 1, 2, 3, 4)],
    *[end(v) for v in (0, 1, 2, 3, 4, 5)],
    *[produce(v, sequence=1) for v in (9, 11, 12)],
    *[commit(v) for v in (0, 3, 4, 5)],
    *[init(v, producer_id="$p", producer_epoch="$p-e") for v in (3, 4, 5)],
    add(p="q"),
    produce(p="q"),
    end(p="q"),
    described_as("CompleteCommit"),
    fetch(1),
)
for _version in (1, 2):
    script(
        f"markers-v{_version}",
        TOPIC,
        begin(),
        marker(_version),
        add(),
        produce(),
        marker(_version, producer_epoch=9, committed=False),
        fetch(1),
        marker(_version, producer_epoch=3),
        marker(_version, topic="@none"),
        marker(_version, topic="__consumer_offsets"),
        marker(_version, coordinator_epoch=-1, producer_epoch=10),
        marker(_version, coordinator_epoch=5, producer_epoch=10),
        marker(_version, coordinator_epoch=4, producer_epoch=10),
        ["send", "a", "WriteTxnMarkers", _version, {"markers": []}],
        producers(),
        fetch(1),
    )
script(
    "markers-of-transaction-version-2",
    TOPIC,
    begin(),
    produce(12),
    marker(2, tv=2),
    marker(2, tv=2, producer_epoch={"plus": ["p-e", 1]}, committed=False),
    marker(2, tv=2, producer_epoch={"plus": ["p-e", 1]}, committed=False),
    marker(2, tv=2, producer_epoch={"plus": ["p-e", 2]}, committed=False),
    fetch(1),
    producers(),
)
script(
    "transaction-times-out",
    TOPIC,
    begin(transaction_timeout_ms=1500),
    add(),
    produce(),
    add_offsets(),
    commit(),
    described_as("CompleteAbort"),
    fetch(1),
    offsets(stable=True),
    produce(sequence=1),
    add(),
    end(),
    end(5),
    init(producer_id="$p", producer_epoch="$p-e"),
    begin("q"),
    describe(),
)
script(
    "transaction-of-version-2-times-out",
    TOPIC,
    begin(transaction_timeout_ms=1500),
    produce(12),
    described_as("CompleteAbort"),
    produce(12, sequence=1),
    end5(new="q"),
    end5(committed=False, new="q"),
    init(5, producer_id="$p", producer_epoch="$p-e"),
    describe(),
    fetch(1),
)
script(
    "transactional-id-expires",
    begin(),
    describe(),
    ["wait", 28_000],
    describe(),
    init(producer_id="$p", producer_epoch="$p-e"),
    begin("q"),
)

# ------------------------------------------------------------------ describing

script(
    "describe",
    TOPIC,
    OTHER,
    begin(),
    add(topics={"@b": [0], "@a": [1, 0]}),
    describe("@t", "@unknown"),
    describe("", "@t"),
    ["send", "a", "DescribeTransactions", 0, {"transactional_ids": []}],
    end(),
    described_as("CompleteCommit"),
)
script(
    "list",
    TOPIC,
    begin(),
    begin("q", transactional_id="@u"),
    add(),
    *[listed(v) for v in range(3)],
    *[listed(0, state_filters=[s]) for s in ("Ongoing", "ongoing", "Empty", "Bogus", "")],
    listed(0, state_filters=["Empty", "Ongoing", "Bogus"]),
    listed(0, producer_id_filters=["$p"]),
    listed(0, producer_id_filters=["$p", "$q"], state_filters=["Ongoing"]),
    listed(0, producer_id_filters=[{"plus": ["p", 1000]}]),
    listed(1, duration_filter=0),
    listed(1, duration_filter=100_000),
    listed(1, duration_filter=-1),
    listed(1, duration_filter=-5),
    *[
        listed(2, transactional_id_pattern={"pattern": p})
        for p in ("~t", "~[tu]", "~", ".*", "", "[", "(?=x)")
    ],
    listed(2, transactional_id_pattern=None),
    end(),
)
script(
    "describe-producers",
    TOPIC,
    producers("@a", 0, 1, 9),
    producers("@none"),
    begin(),
    add(),
    produce(),
    producers("@a", 0, 1),
    end(),
    described_as("CompleteCommit"),
    producers(),
    ["send", "a", "DescribeProducers", 0, {"topics": []}],
)
script(
    "find-coordinator",
    *[
        ["send", "a", "FindCoordinator", v, {"key": "@t", "key_type": kind}]
        for v in (1, 3)
        for kind in (1, 7)
    ],
    ["send", "a", "FindCoordinator", 4, {"key_type": 1, "coordinator_keys": ["@t", ""]}],
)

#: Those that clusters of transaction version 0 and 1 run, too.
OLDER_VERSIONS = (
    "init-v4", "init-keeps-the-producer-v4", "init-over-an-open-transaction", "add-v3", "add-v5",
    "offsets-v3", "offsets-v5", "offsets-without-the-group-v5", "end-v3", "end-v5",
    "end-5-of-nothing", "end-5-in-a-row", "produce-v11", "produce-v12", "fenced-producer",
    "markers-v2", "transaction-times-out", "transaction-of-version-2-times-out",
)  # fmt: skip

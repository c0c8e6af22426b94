"""Request scripts of transactions (see tests/support/coordinator_scripts.py for their notation)."""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator.transaction_queries import SCRIPTS as QUERIES
from tests.golden.coordinator.transaction_steps import (
    ELSEWHERE,
    OTHER,
    TOPIC,
    add,
    add_offsets,
    begin,
    commit,
    describe,
    described_as,
    end,
    end5,
    fetch,
    init,
    marker,
    offsets,
    produce,
    producers,
)

# The broker's configs: every partition is read for its records, time-outs pass within a script.
SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 1000,
    "transactional.id.expiration.ms": 600_000,
    "transaction.max.timeout.ms": 300_000,
}
#: Of the scripts that wait until a transactional id has expired; others may take their time.
EXPIRY_SETTINGS = {**SETTINGS, "transactional.id.expiration.ms": 25_000}

SCRIPTS: dict[str, list[Any]] = {}


def script(name: str, *steps: Any) -> None:
    SCRIPTS[name] = list(steps)


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

SCRIPTS.update(QUERIES)
EXPIRY_SCRIPTS = {"transactional-id-expires": SCRIPTS.pop("transactional-id-expires")}

#: Those that clusters of transaction version 0 and 1 run, too.
OLDER_VERSIONS = (
    "init-v4", "init-keeps-the-producer-v4", "init-over-an-open-transaction", "add-v3", "add-v5",
    "offsets-v3", "offsets-v5", "offsets-without-the-group-v5", "end-v3", "end-v5",
    "end-5-of-nothing", "end-5-in-a-row", "produce-v11", "produce-v12", "fenced-producer",
    "markers-v2", "transaction-times-out", "transaction-of-version-2-times-out",
)  # fmt: skip

"""Scripts of transactions and consumer groups, run against whole brokers over the wire.

The notation is that of group_scripts.py, with more steps:

    ["settled", connection, api, version, fields, saves]
        "send", again until no answer in it says that a transaction is still completing
    ["until", connection, api, version, fields, {path: value}, saves]
        "send" until the answer is so; the last one
    ["bump", fields, times]
        InitProducerId of the same fields, `times` times, answers unseen

In fields "~name" is a name unique to the run as "@name" is, for topics that patterns match;
{"batch": [values], ...} a record batch with the options of `build_batch`;
{"subscription": [topics]} what a classic member says, {"assigned": {topic: [partitions]}} what its
leader gives it. Producer ids become P1, P2, ... in the order in which a run meets them, times
become "TIME".
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Coroutine
from typing import Any

from kwire.config import BrokerConfig
from kwire.node.node import Node
from kwire.protocol import coordinator_records, frame
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch, iterate_headers, read_batch
from kwire.testing.simulation import Simulation
from tests.support.group_scripts import _KEYS, CLIENT_ID, ScriptRun, Target, build

MODULES = {
    "__consumer_offsets": "group-coordinator",
    "__transaction_state": "transaction-coordinator",
}
PARTITIONS = 4
CONCURRENT_TRANSACTIONS = 51
#: Until a coordinator has its partitions, and until a new topic is everywhere.
PASSING = (3, 14, 15, 16)
#: The epoch that "bump" takes a new producer to.
BUMPED_TO = 32_764
POLL_MS = 60
POLLS_MAX = 300

_PRODUCER_IDS = ("producer_id", "previous_producer_id", "next_producer_id")
_TIMES = (
    "transaction_start_time_ms", "transaction_start_timestamp_ms", "last_timestamp",
    "transaction_last_update_timestamp_ms", "assignment_timestamp", "timestamp",
    "log_append_time_ms", "commit_timestamp", "current_state_timestamp", "expire_timestamp",
)  # fmt: skip
_OPAQUE = {"metadata_hash": "HASH", "client_host": "HOST", "host": "HOST", "port": "PORT"}
_UNORDERED = (
    "results_by_topic_v3_and_below", "results_by_partition", "topic_results",
    "topic_partitions", "subscribed_topic_names", "assigned_partitions", "configs",
    "partitions_pending_revocation", "partitions", "partition_responses", "responses",
    "initializing_topics", "initialized_topics", "deleting_topics",
)  # fmt: skip


class SimulatedBroker:
    """A whole kwire broker in simulated time, as a `Target`."""

    PORT = 9092

    def __init__(self, settings: dict[str, Any]) -> None:
        self._simulation = Simulation(11, keep_transcript=False)
        self._host = self._simulation.host("broker")
        self._client = self._simulation.host("client")
        overrides = {
            "log.dirs": "/data",
            "listeners": f"PLAINTEXT://broker:{self.PORT}",
            **{name: str(value) for name, value in settings.items()},
        }
        config = BrokerConfig.load(
            properties={}, environment={}, overrides=overrides, developer=True
        )
        host = self._host
        self.node = Node(config, host.loop, clock=host.clock, random=host.random, files=host.disk)
        self._simulation.run(host, self.node.start())
        self._connections: dict[str, Any] = {}
        self._sent: dict[str, tuple[int, int]] = {}

    def set_feature(self, name: str, level: int) -> None:
        """Finalize a feature at a level."""
        update = m.UpdateFeaturesRequest.FeatureUpdateKey
        request = m.UpdateFeaturesRequest(
            feature_updates=[update(feature=name, max_version_level=level, upgrade_type=3)]
        )
        self.post("admin", "UpdateFeatures", 1, request)
        answer = self.receive("admin")
        assert answer.error_code == 0, answer
        self.wait(500)

    def take_producer_id(self) -> None:
        """Have the first producer id given away: 0 is what answers say of no producer."""
        request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.post("admin", "InitProducerId", 4, request)
        answer = self.receive("admin")
        assert (answer.error_code, answer.producer_id) == (0, 0), answer

    def bump(self, transactional_id: str, times: int) -> None:
        """Take an idle producer `times` epochs on at once, as so many InitProducerId would."""
        transactions = self.node.coordinators.transactions

        def operation(shard: Any, moment: Any) -> Any:
            current = shard.transactions[transactional_id]
            after = current._replace(producer_epoch=current.producer_epoch + times)
            return shard.change(transactional_id, after, None, last_epoch=-1)

        transactions.runtime.write(transactions.partition_of(transactional_id), operation)
        self.wait(100)

    def _run(self, main: Coroutine[Any, Any, Any]) -> Any:
        return self._simulation.run(self._client, main)

    def create_topic(self, name: str, partitions: int) -> bytes:
        shape = m.CreateTopicsRequest.CreatableTopic
        topic = shape(name=name, num_partitions=partitions, replication_factor=1)
        self.post("admin", "CreateTopics", 7, m.CreateTopicsRequest(topics=[topic]))
        created = self.receive("admin").topics[0]
        assert created.error_code == 0, created
        self.wait(300)
        return bytes(created.topic_id)

    def post(self, connection: str, api: str, version: int, request: Any) -> None:
        self._sent[connection] = (_KEYS[api], version)
        data = b"".join(frame.encode_request(_KEYS[api], version, 1, CLIENT_ID, request))

        async def send() -> None:
            import asyncio

            if connection not in self._connections:
                self._connections[connection] = await asyncio.open_connection("broker", self.PORT)
            self._connections[connection][1].write(data)

        self._run(send())

    def receive(self, connection: str) -> Any:
        reader = self._connections[connection][0]

        async def read() -> bytes:
            size = int.from_bytes(await reader.readexactly(4), "big")
            return bytes(await reader.readexactly(size))

        api_key, version = self._sent[connection]
        return frame.decode_response(api_key, version, self._run(read()))[1]

    def is_quiet(self, connection: str) -> bool:
        self.wait(400)
        return not self._connections[connection][0]._buffer

    def wait(self, ms: int) -> None:
        self._simulation.run_for(ms / 1000)

    def settle(self) -> None:
        self.wait(150)

    def batches(self) -> list[bytes]:
        raise NotImplementedError

    def close(self) -> None:
        for _, writer in self._connections.values():
            writer.close()
        self._connections.clear()

    def stop(self) -> None:
        """Stop the broker."""
        self.close()
        self._simulation.run(self._host, self.node.stop())


def wall_ms(target: Target) -> int:
    """The time on the target's clock."""
    if isinstance(target, SimulatedBroker):
        return target.node.clock.wall_ms()
    return int(time.time() * 1000)


def wait_until_ready(target: Target, transactions: bool = True) -> None:
    """Until every partition of the coordinators' topics answers."""
    kinds = [(0, "OffsetFetch", 7)] + [(1, "EndTxn", 3)] * transactions
    for kind, api, version in kinds:
        for i in range(40):
            for _ in range(POLLS_MAX):
                request: Any = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[f"r-{i}"])
                target.post("admin", "FindCoordinator", 4, request)
                if target.receive("admin").coordinators[0].error_code == 0:
                    if kind == 0:
                        request = m.OffsetFetchRequest(group_id=f"r-{i}", topics=[])
                    else:
                        request = m.EndTxnRequest(
                            transactional_id=f"r-{i}", producer_id=1, producer_epoch=0
                        )
                    target.post("admin", api, version, request)
                    if target.receive("admin").error_code not in PASSING:
                        break
                target.wait(100)


def read_topic(target: Target, topic: str) -> list[bytes]:
    """Every partition of an internal topic, as Fetch gives it."""
    shape = m.FetchRequest
    found = []
    for partition in range(PARTITIONS):
        data = b""
        offset = 0
        while True:
            asked = shape.FetchPartition(
                partition=partition, partition_max_bytes=1 << 28, fetch_offset=offset
            )
            request = shape(
                max_wait_ms=50, min_bytes=1, max_bytes=1 << 28,
                topics=[shape.FetchTopic(topic=topic, partitions=[asked])],
            )  # fmt: skip
            target.post("admin", "Fetch", 12, request)
            answer = target.receive("admin").responses[0].partitions[0]
            assert answer.error_code == 0, answer
            more = bytes(answer.records or b"")
            if not more:
                break
            data += more
            for _, header in iterate_headers(more):
                offset = header.next_offset
        found.append(data)
    return found


class CoordinatorRun(ScriptRun):
    """One run of one script over the wire."""

    def __init__(self, target: Target, name: str, waits_for_markers: bool = True) -> None:
        super().__init__(target, name)
        self._waits_for_markers = waits_for_markers
        self._producers: dict[int, str] = {}
        self._steps: dict[str, Callable[[list[Any]], Any]] = {
            "settled": self._settled,
            "until": self._until,
            "bump": self._bump,
        }

    def run(self, steps: list[Any]) -> list[Any]:
        answers: list[Any] = []
        for step in steps:
            act = self._steps.get(step[0])
            if act is None:
                answers += super().run([step])
            else:
                answer = act(step[1:])
                if answer is not None:
                    answers.append(answer)
            if self._waits_for_markers and len(step) > 2 and step[2] == "EndTxn":
                self._wait_for_markers(self._resolve(step[4])["transactional_id"])
        return answers

    def _wait_for_markers(self, transactional_id: str) -> None:
        """What a script looks at next does not depend on how fast markers are written."""
        if not transactional_id:
            return
        request = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])
        for _ in range(POLLS_MAX):
            self._target.post("markers", "DescribeTransactions", 0, request)
            (found,) = self._target.receive("markers").transaction_states
            if found.error_code or not found.transaction_state.startswith("Prepare"):
                return
            self._target.wait(POLL_MS)

    def _ask(self, connection: str, api: str, version: int, fields: Any) -> Any:
        request = build(m.by_name(f"{api}Request"), self._resolve(fields))
        self._target.post(connection, api, version, request)
        return self._target.receive(connection)

    def _settled(self, arguments: list[Any]) -> Any:
        connection, api, version, fields = arguments[:4]
        for _ in range(POLLS_MAX):
            response = self._ask(connection, api, version, fields)
            if not _codes(response) & {CONCURRENT_TRANSACTIONS, *PASSING[1:]}:
                break
            self._target.wait(POLL_MS)
        self._save(response, arguments[4] if len(arguments) > 4 else {})
        return self._plain(response)

    def _until(self, arguments: list[Any]) -> Any:
        connection, api, version, fields, wanted = arguments[:5]
        for _ in range(POLLS_MAX):
            response = self._ask(connection, api, version, fields)
            if all(self._holds(response, path, value) for path, value in wanted.items()):
                break
            self._target.wait(POLL_MS)
        self._save(response, arguments[5] if len(arguments) > 5 else {})
        return self._plain(response)

    def _holds(self, response: Any, path: str, wanted: Any) -> bool:
        value = response
        for part in path.split("."):
            if value is None or (part.isdigit() and int(part) >= len(value)):
                return False
            value = value[int(part)] if part.isdigit() else getattr(value, part)
        return bool(value is not None if wanted == "any" else value == wanted)

    def _bump(self, arguments: list[Any]) -> None:
        fields, times = arguments
        request = build(m.InitProducerIdRequest, self._resolve(fields))
        if isinstance(self._target, SimulatedBroker):
            self._target.bump(request.transactional_id, times)
            return
        for _ in range(times):
            self._target.post("bump", "InitProducerId", 4, request)
            assert self._target.receive("bump").error_code == 0

    # --- placeholders ---

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, dict) and "batch" in value:
            options = {k: self._resolve(v) for k, v in value.items() if k != "batch"}
            now_ms = wall_ms(self._target)
            records = [
                Record(offset=i, timestamp=now_ms, key=None, value=x.encode(), headers=[])
                for i, x in enumerate(value["batch"])
            ]
            return bytes(build_batch(records, **{"transactional": True, **options}))
        if isinstance(value, dict) and "subscription" in value:
            return self._subscription(value["subscription"], value.get("owned") or {})
        if isinstance(value, dict) and list(value) == ["assigned"]:
            message = m.by_name("ConsumerProtocolAssignment")
            assigned = message(
                assigned_partitions=[
                    message.TopicPartition(topic=self._resolve(x), partitions=indexes)
                    for x, indexes in value["assigned"].items()
                ]
            )
            return b"\x00\x00" + bytes(assigned.encode(0))
        if isinstance(value, dict) and "plus" in value:
            name, more = value["plus"]
            return self._values[name] + more
        if isinstance(value, dict) and "pattern" in value:
            return value["pattern"].replace("~", self._unique.replace(".", r"\.") + r"\.")
        if isinstance(value, str) and value.startswith("~"):
            return f"{self._unique}.{value[1:]}"
        if isinstance(value, str) and value.startswith("#~"):
            return self._topics[value[1:]]
        return super()._resolve(value)

    def _subscription(self, topics: list[str], owned: dict[str, list[int]]) -> bytes:
        """A consumer's subscription, version 1, as the members of classic groups send it."""
        message = m.by_name("ConsumerProtocolSubscription")
        value = message(
            topics=[self._resolve(x) for x in topics],
            owned_partitions=[
                message.TopicPartition(topic=self._resolve(x), partitions=indexes)
                for x, indexes in owned.items()
            ],
        )
        return b"\x00\x01" + bytes(value.encode(1))

    def _name(self, text: str) -> str:
        return f"{self._unique}.{text[1:]}"

    def _plain(self, value: Any, field: str = "") -> Any:
        if field in _PRODUCER_IDS and value >= 0:
            return self._producers.setdefault(value, f"P{len(self._producers) + 1}")
        if field in _TIMES and isinstance(value, int):
            return "TIME" if value > 0 else value
        if field in _OPAQUE and value and value != -1:
            return _OPAQUE[field]
        if field == "producer_id_filters" or (field == "version" and value):
            return "OPAQUE"
        if field == "transaction_states":
            ours = [x for x in value if x.transactional_id.startswith(self._unique)]
            return sorted((self._plain(x) for x in ours), key=_text)
        names = (getattr(value, "topic", None), getattr(value, "name", None))
        indexes = getattr(value, "partitions", None)
        if "__consumer_offsets" in names and indexes and isinstance(indexes[0], int):
            return ["__consumer_offsets", "ANY"]
        if field == "transaction_partitions" and value:
            return sorted((self._partitions(x) for x in value), key=repr)
        if field == "records":
            return None if value is None else plain_batches(bytes(value))
        plain = super()._plain(value, field)
        if field in _UNORDERED and plain:
            plain = sorted(plain, key=_text)
        return plain

    def _partitions(self, value: Any) -> list[Any]:
        """Where a group's offsets are depends on its name, which is another one in each run."""
        offsets = value.topic == "__consumer_offsets"
        return [self._plain_text(value.topic), "ANY" if offsets else sorted(value.partition_ids)]

    def _plain_text(self, text: str) -> str:
        pattern = re.escape(self._unique).replace(r"\-", "-") + r"\."
        return super()._plain_text(text.replace(pattern, "~"))

    def records(self) -> dict[str, list[Any]]:
        """What the script left in the coordinators' topics, by group or transactional id."""
        found: dict[str, list[Any]] = {}
        for topic, module in MODULES.items():
            for data in read_topic(self._target, topic):
                for position, header in iterate_headers(data):
                    if header.is_control:
                        continue
                    for record in read_batch(data, position):
                        self._note(found, module, header, record)
        return {owner: rows[-60:] for owner, rows in found.items()}

    def _note(self, found: dict[str, list[Any]], module: str, header: Any, record: Any) -> None:
        key = coordinator_records.decode_key(module, record.key)
        owner = next(
            (
                getattr(key, name)
                for name in ("group", "group_id", "transactional_id")
                if hasattr(key, name)
            ),
            "",
        )
        if not owner.startswith(self._unique):
            return
        plain: list[Any] = [type(key).__name__, self._plain(key), None, None]
        if record.value is not None:
            plain[2] = coordinator_records.value_version(record.value)
            value = coordinator_records.decode_value(module, key.API_KEY, record.value)
            plain[3] = self._plain(value)
        if header.producer_id >= 0:
            plain += [self._plain(header.producer_id, "producer_id"), header.producer_epoch]
        found.setdefault(self._plain_text(owner), []).append(plain)


def ordered(rows: list[Any]) -> list[Any]:
    """Records with runs of one kind of a consumer or share group's sorted: Kafka's come in the
    order of its hash tables. The rows of "bump" are left out but for the last one."""
    found: list[Any] = []
    for name, run in itertools.groupby(_without_bumps(rows), lambda x: x[0]):
        rows_of = [row for row, _ in itertools.groupby(run)]  # groups may share a partition
        is_unordered = name.startswith(("ConsumerGroup", "ShareGroup"))
        found += sorted(rows_of, key=_text) if is_unordered else rows_of
    return found


def _without_bumps(rows: list[Any]) -> list[Any]:
    """Without the records of "bump", of which a recording keeps but some."""

    def idle_at(row: list[Any]) -> int | None:
        value = row[3] or {}
        return value["producer_epoch"] if value.get("transaction_status") == 0 else None

    if BUMPED_TO not in [idle_at(row) for row in rows]:
        return rows
    return [row for row in rows if (idle_at(row) or 0) >= BUMPED_TO or idle_at(row) is None]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def plain_batches(data: bytes) -> list[Any]:
    """Fetched records: per batch its offset, producer epoch, sequence, kind and values."""
    found: list[Any] = []
    for position, header in iterate_headers(data):
        values = [(x.value or b"").hex() for x in read_batch(data, position)]
        kind = [header.is_transactional, header.is_control]
        found.append(
            [header.base_offset, header.producer_epoch, header.base_sequence, *kind, values]
        )
    return found


def _codes(value: Any) -> set[int]:
    """Every error code anywhere in a response."""
    if hasattr(value, "FIELDS"):
        found: set[int] = set()
        for name in value.FIELDS:
            inner = getattr(value, name)
            if name.endswith("error_code"):
                found.add(int(inner))
            elif isinstance(inner, list) or hasattr(inner, "FIELDS"):
                found |= _codes(inner)
        return found
    if isinstance(value, list):
        return set().union(*[_codes(x) for x in value]) if value else set()
    return set()

"""Asks a broker and its controller everything for every user, and gives the answers as plain data.

    {listener: {"Produce v12": [[answer, [users]], ...]}}

Users that get the same answer stand together; what each cluster gives itself (ids, ports, times)
stands by its kind. Without a tuple of APIs nothing is left out. An answer is "closed" where the
connection ends instead, and "silent" where nothing comes, and the next request is answered.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import UNBUILT
from kwire.protocol.uuids import ZERO
from tests.support.frames import Closed
from tests.support.rights import (
    admin_requests,
    changes,
    controller_requests,
    data_requests,
    later_requests,
)
from tests.support.rights.data_requests import Ask
from tests.support.rights.users import ADMIN, OWNER, USERS
from tests.support.rights.world import NO_ID, OK, SECRET, World, login, prepare, until
from tests.support.wire import WireClient

DATA = pathlib.Path(__file__).parents[2] / "golden" / "data" / "rights_answers.json.gz"
Answers = dict[str, dict[str, list[list[Any]]]]
EVERYBODY = (*USERS, OWNER, ADMIN)
ENVELOPE_USERS = ("none", "cluster-alter", "cluster-cluster_action", "everything", ADMIN)

VOLATILE = frozenset((
    "host", "port", "cluster_id", "rack", "log_dir", "total_bytes", "usable_bytes", "size",
    "token_id", "hmac", "issue_timestamp", "expiry_timestamp", "max_timestamp",
    "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "log_append_time_ms",
    "transaction_start_time_ms", "producer_id", "records", "log_end_offset", "high_watermark",
    "last_fetch_timestamp", "last_caught_up_timestamp", "replica_directory_id", "leader_epoch",
    "topic_configs", "api_keys", "supported_features", "finalized_features",
    "finalized_features_epoch", "base_offset", "last_stable_offset", "last_timestamp",
    "txn_start_offset", "current_txn_start_offset", "broker_epoch", "client_host", "offset_lag",
    "committed_leader_epoch", "low_watermark", "end_offset", "leader_host", "leader_port",
))  # fmt: skip
"""Fields that each cluster fills itself: null where nothing is in them, or their name."""
JAVA_REQUEST = "Request Request("
"""Begins a text in which Kafka quotes a Java object with its address; kwire says what is wrong."""
SILENT, CLOSED = json.dumps("silent"), json.dumps("closed")
LEFT_OUT = frozenset(("throttle_time_ms", "controller_id"))


def play(bootstrap: str, controller: str, kafka: bool = False) -> Answers:
    """All answers. `kafka`: also of the APIs that kwire has not built."""
    world = prepare(bootstrap, kafka)
    return {
        "broker": ask_all(bootstrap, world, _of_broker(world), kafka),
        "controller": ask_all(controller, world, _of_controller(world), kafka),
        "last": ask_all(bootstrap, world, _last(world), kafka),
        "patterns": {"ConsumerGroupHeartbeat by pattern": _by_pattern(bootstrap, world)},
        "changes": {
            step: [[answer, [changes.USER]]]
            for step, answer in changes.play(bootstrap, partial(plain, world=world))
        },
    }


def _by_pattern(bootstrap: str, world: World) -> list[list[Any]]:
    """The topics that a pattern for both comes to, for who may see one and for who sees both."""
    found = []
    for user in ("group-and-topic", "everything"):
        with login(bootstrap, user) as client:
            request = m.ConsumerGroupHeartbeatRequest(
                group_id=f"ok-pattern-of-{user}",
                member_id="member",
                member_epoch=0,
                rebalance_timeout_ms=600_000,
                subscribed_topic_regex=f"{OK}|{SECRET}",
                topic_partitions=[],
            )

            def beat(request: Any = request, client: WireClient = client) -> Any:
                answer = client.call(request, 1)
                request.member_epoch = answer.member_epoch
                return answer

            answer = until(beat, lambda got: got.assignment and got.assignment.topic_partitions)
            names = world.names()
            owned = [names[bytes(each.topic_id)] for each in answer.assignment.topic_partitions]
            found.append([sorted(owned), [user]])
    return found


def _of_broker(world: World) -> Iterator[Ask]:
    yield from data_requests.asks(world)
    yield from admin_requests.of_brokers(world)
    yield from admin_requests.shared(world)
    yield from later_requests.asks(world)


def _of_controller(world: World) -> Iterator[Ask]:
    yield from admin_requests.shared(world)
    yield from controller_requests.asks(world)
    yield from controller_requests.envelopes(world)


def _last(world: World) -> Iterator[Ask]:
    yield from admin_requests.made_tokens(world)
    yield from later_requests.share_deletions(world)
    yield from admin_requests.deletions(world)


def ask_all(
    bootstrap: str, world: World, asks: Iterable[Ask], kafka: bool
) -> dict[str, list[list[Any]]]:
    """Label and version -> [answer, users]."""
    told: dict[str, list[list[Any]]] = {}
    clients: dict[str, WireClient] = {}
    try:
        for ask in asks:
            for version in ask.versions:
                request = ask.build(version)
                if not kafka and type(request).API_KEY in UNBUILT:
                    continue
                known: dict[bytes, str] = {}
                by_answer: dict[str, list[str]] = {}
                for user in _users_of(ask.label):
                    told_user = _answer(bootstrap, clients, user, request, version)
                    answer = told_user if isinstance(told_user, str) else known.get(told_user)
                    if answer is None:
                        assert isinstance(told_user, bytes)
                        answer = json.dumps(plain(_decoded(request, version, told_user), world))
                        known[told_user] = answer
                    by_answer.setdefault(answer, []).append(user)
                told[f"{ask.label} v{version}"] = [
                    [json.loads(answer), users] for answer, users in by_answer.items()
                ]
    finally:
        for client in clients.values():
            client.close()
    return told


def _users_of(label: str) -> tuple[str, ...]:
    if label.startswith("Envelope"):
        return ENVELOPE_USERS
    if label.startswith("DeleteTopics that are"):
        # Whoever may delete `SECRET` would.
        return tuple(user for user in USERS if user != "everything")
    return EVERYBODY


def _answer(
    bootstrap: str, clients: dict[str, WireClient], user: str, request: Any, version: int
) -> str | bytes:
    """A frame, its correlation id zero; or what happens instead, as JSON."""
    client = clients.get(user)
    if client is None:
        client = clients[user] = login(bootstrap, user)
    try:
        if isinstance(request, m.ProduceRequest) and request.acks == 0:
            client.pipeline([(request, version), (m.ApiVersionsRequest(), 0)])
            return SILENT
        return bytes(4) + client.call_frame(request, version)[4:]
    except (Closed, ConnectionError):
        clients.pop(user).close()
        return CLOSED


def plain(value: Any, world: World, key: str = "") -> Any:
    """A response as plain data, lists in no order, without internal topics."""
    if isinstance(value, list):
        items = [plain(item, world, key) for item in value if not _is_internal(item)]
        return sorted(items, key=repr)
    if hasattr(value, "unknown_tags"):
        default = type(value)()
        return {
            field: _field(field, getattr(value, field, None), getattr(default, field, None), world)
            for field in value.FIELDS
            if field not in LEFT_OUT
        }
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    if isinstance(value, str):
        return value.replace(world.cluster_id, "CLUSTER")
    return "infinity" if value == float("inf") else value


def _field(field: str, value: Any, default: Any, world: World) -> Any:
    if field == "topic_id" and value is not None:
        known = {NO_ID: "nobody's", ZERO: "", **world.names()}
        return known.get(bytes(value), "new")
    if isinstance(value, str) and value.startswith(JAVA_REQUEST):
        return "Cluster authorization failed."
    if field in VOLATILE:
        return None if value in (None, default, [], b"", "", -1) else field
    if field == "configs" and len(value or ()) > 5:
        return "configs"
    if field == "value" and value in ("INFO", "WARN"):
        return "level"
    return plain(value, world, field)


def _decoded(request: Any, version: int, body: bytes) -> Any:
    """A response; of an Envelope that was executed, the response to what is in it."""
    response = frame.decode_response(type(request).API_KEY, version, body)[1]
    if isinstance(response, m.EnvelopeResponse) and response.response_data is not None:
        key, inner_version = struct.unpack(">hh", bytes(request.request_data)[:4])
        return frame.decode_response(key, inner_version, bytes(response.response_data))[1]
    return response


def _is_internal(item: Any) -> bool:
    for field in ("name", "topic", "topic_name"):
        name = getattr(item, field, None)
        if isinstance(name, str) and name.startswith("__") and name != "__cluster_metadata":
            return True
    return False


def differences(told: Answers, recorded: Answers) -> dict[str, Any]:
    """listener, label and user -> (what it was told, what was recorded), where they differ."""
    found: dict[str, Any] = {}
    for listener, asked in told.items():
        for label, answers in asked.items():
            expected = _by_user(recorded[listener][label])
            for user, answer in _by_user(answers).items():
                if answer != expected[user]:
                    found[f"{listener} {label} {user}"] = (answer, expected[user])
    return found


def labels_without_answers(told: Answers, recorded: Answers) -> list[str]:
    """What was recorded, and not asked now."""
    return [
        label
        for listener in recorded
        for label in recorded[listener]
        if label not in told[listener]
    ]


def read() -> Answers:
    """What Apache Kafka answered."""
    recorded: Answers = json.loads(gzip.decompress(DATA.read_bytes()))
    return recorded


def write(answers: Answers) -> None:
    """Keep what Apache Kafka answers."""
    with gzip.GzipFile(DATA, "wb", mtime=0) as file:
        file.write(json.dumps(answers, separators=(",", ":")).encode())


def _by_user(answers: list[list[Any]]) -> dict[str, Any]:
    return {user: answer for answer, users in answers for user in users}

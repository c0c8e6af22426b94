"""Scripts of group requests, run against a broker over TCP or against the handlers in this process.

A script is a list of steps; the answers become plain values with placeholders for what differs from
run to run, so that two runs can be compared.

    ["topic", name, partitions]                   make a topic
    ["send", connection, api, version, fields, saves]   a request and its answer
    ["post", connection, api, version, fields]    a request only
    ["recv", connection, saves]                   the answer of the last post
    ["quiet", connection]                         the last post has no answer yet
    ["wait", ms]                                  let time pass

In `fields`, "@name" at the start of a string is a name unique to the run (group, instance), "$name"
a value saved from an answer, "#topic" a topic's id, "hex:.." bytes,
{"subscribe": "@topic"} a subscription. `saves` maps names to paths.
"""

from __future__ import annotations

import itertools
import re
import socket
import struct
import time
from types import SimpleNamespace
from typing import Any, Protocol

from kwire.clock import SeededRandom
from kwire.coordinator.group.coordinator import GroupCoordinator
from kwire.coordinator.group.settings import GroupSettings
from kwire.coordinator.partitioner import partition_for
from kwire.kraft.images.topics import PartitionImage, TopicImage, TopicsImage
from kwire.pending import Pending
from kwire.protocol import coordinator_records, frame, uuids
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.records import iterate_headers, read_batch
from kwire.server.context import RequestContext
from kwire.server.dispatch import Dispatcher
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog
from tests.support.parts import made_parts

CLIENT_ID = "checks"
#: Of the brokers that are probed; how long they may take; who has no consumer groups.
OFFSETS_PARTITIONS = 4
KNOWN_WITHIN_S = 30
UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42
_MEMBER_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_KEYS = {info.name: key for key, info in API_KEYS.items()}
_ORDERED = ("members", "groups", "topics", "results")


class Target(Protocol):
    """Who answers the requests of a script."""

    def create_topic(self, name: str, partitions: int) -> bytes: ...

    def post(self, connection: str, api: str, version: int, request: Any) -> None: ...

    def receive(self, connection: str) -> Any: ...

    def is_quiet(self, connection: str) -> bool: ...

    def wait(self, ms: int) -> None: ...

    def settle(self) -> None:
        """What was posted has taken effect before the next step."""
        ...

    def batches(self) -> list[bytes]:
        """Everything in __consumer_offsets, partition by partition."""
        ...


class OverTcp:
    """A broker at HOST:PORT. With `probes` a new topic counts as made when all of the group
    coordinators know it."""

    def __init__(self, address: str, probes: bool = False) -> None:
        self._probes = probes
        host, port = address.rsplit(":", 1)
        self._address = (host, int(port))
        self._connections: dict[str, socket.socket] = {}
        self._sent: dict[str, tuple[int, int]] = {}

    def _connection(self, name: str) -> socket.socket:
        if name not in self._connections:
            self._connections[name] = socket.create_connection(self._address, timeout=40)
        return self._connections[name]

    def create_topic(self, name: str, partitions: int) -> bytes:
        shape = m.CreateTopicsRequest.CreatableTopic
        topic = shape(name=name, num_partitions=partitions, replication_factor=1)
        self.post(
            "admin", "CreateTopics", 7, m.CreateTopicsRequest(topics=[topic], timeout_ms=9000)
        )
        created = self.receive("admin").topics[0]
        assert created.error_code == 0, created
        if self._probes:
            self._until_known(name)
        else:
            time.sleep(0.3)
        return bytes(created.topic_id)

    def _until_known(self, topic: str) -> None:
        """Until every group coordinator has heard of a topic: members of groups of their own, one
        on each partition of `__consumer_offsets`, are assigned its partitions."""
        shape = m.ConsumerGroupHeartbeatRequest
        for partition in range(OFFSETS_PARTITIONS):
            names = (f"probe-{topic}-{i}" for i in itertools.count())
            group = next(x for x in names if partition_for(x, OFFSETS_PARTITIONS) == partition)
            member, epoch = "probe", 0
            deadline = time.monotonic() + KNOWN_WITHIN_S
            while time.monotonic() < deadline:
                request = shape(
                    group_id=group, member_id=member, member_epoch=epoch,
                    rebalance_timeout_ms=60_000, subscribed_topic_names=[topic],
                    topic_partitions=[],
                )  # fmt: skip
                self.post("probe", "ConsumerGroupHeartbeat", 1, request)
                answer = self.receive("probe")
                if answer.error_code in (UNSUPPORTED_VERSION, INVALID_REQUEST):
                    time.sleep(0.3)  # a broker without such groups
                    return
                epoch = answer.member_epoch if answer.error_code == 0 else 0
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    break
                time.sleep(0.02)
            leave = shape(group_id=group, member_id=member, member_epoch=-1)
            self.post("probe", "ConsumerGroupHeartbeat", 1, leave)
            self.receive("probe")

    def post(self, connection: str, api: str, version: int, request: Any) -> None:
        data = b"".join(frame.encode_request(_KEYS[api], version, 1, CLIENT_ID, request))
        self._sent[connection] = (_KEYS[api], version)
        self._connection(connection).sendall(data)

    def receive(self, connection: str) -> Any:
        sock = self._connection(connection)
        size = int.from_bytes(self._exactly(sock, 4), "big")
        api_key, version = self._sent[connection]
        return frame.decode_response(api_key, version, self._exactly(sock, size))[1]

    def _exactly(self, sock: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = sock.recv(size - len(data))
            if not more:
                raise ConnectionError("closed by the broker")
            data += more
        return data

    def is_quiet(self, connection: str) -> bool:
        sock = self._connection(connection)
        sock.settimeout(0.4)
        try:
            return not sock.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            sock.settimeout(40)

    def wait(self, ms: int) -> None:
        time.sleep(ms / 1000)

    def settle(self) -> None:
        time.sleep(0.15)

    def batches(self) -> list[bytes]:
        shape = m.FetchRequest
        found = []
        for partition in range(4):
            asked = shape.FetchPartition(partition=partition, partition_max_bytes=1 << 28)
            topic = shape.FetchTopic(topic="__consumer_offsets", partitions=[asked])
            request = shape(max_wait_ms=100, min_bytes=1, max_bytes=1 << 28, topics=[topic])
            self.post("admin", "Fetch", 12, request)
            answer = self.receive("admin").responses[0].partitions[0]
            assert answer.error_code == 0, answer
            found.append(bytes(answer.records or b""))
        return found

    def close(self) -> None:
        for sock in self._connections.values():
            sock.close()
        self._connections.clear()


PARTITION = PartitionImage(
    replicas=(1,),
    directories=(bytes(16),),
    isr=(1,),
    removing=(),
    adding=(),
    elr=(),
    last_known_elr=(),
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
    leader_recovery_state=0,
)


class _Image:
    def __init__(self) -> None:
        self.topics = TopicsImage()
        self.brokers: dict[int, Any] = {}


class InProcess:
    """The handlers over a group coordinator with a log in memory."""

    def __init__(self, **settings: Any) -> None:
        self.loop = ManualLoop()
        self.log = MemoryLog()
        settings.setdefault("initial_rebalance_delay_ms", 0)
        self.groups = GroupCoordinator(
            settings=GroupSettings(offsets_topic_partitions=4, **settings),
            partition_log=self.log,
            loop=self.loop,
            clock=ManualClock(self.loop),
            random=SeededRandom(7),
        )
        self.log.listener = self.groups.runtime.high_watermark_advanced
        for partition in range(4):
            self.groups.runtime.load(partition, 0)
        self.loop.run()
        self.image: Any = _Image()
        self.parts = made_parts(
            coordinators=SimpleNamespace(groups=self.groups), loop=self.loop, image=self.image
        )
        self._dispatcher = Dispatcher({key: info.name for key, info in API_KEYS.items()})
        self._answers: dict[str, tuple[str, int, Any]] = {}

    def create_topic(self, name: str, partitions: int) -> bytes:
        topic_id = uuids.random_uuid(SeededRandom(len(self.image.topics.by_name) + 1))
        topic = TopicImage(name, topic_id)
        topic.partitions = dict.fromkeys(range(partitions), PARTITION)
        self.image.topics.by_name[name] = topic
        self.image.topics.by_id[topic_id] = topic
        return topic_id

    def post(self, connection: str, api: str, version: int, request: Any) -> None:
        key = _KEYS[api]
        decoded = m.request_class(key).decode(request.encode(version), version)
        route = self._dispatcher.route(key, version)
        context = RequestContext(self.parts, None, key, version, 1, CLIENT_ID)
        self._answers[connection] = (api, version, route.execute(context, decoded))
        self.loop.run()

    def receive(self, connection: str) -> Any:
        api, version, answer = self._answers.pop(connection)
        if isinstance(answer, Pending):
            for _ in range(200):
                if answer.done:
                    break
                self.loop.advance(200)
            assert answer.done, f"{api} is still not answered"
            answer = answer.result()
        return m.response_class(_KEYS[api]).decode(answer.encode(version), version)

    def is_quiet(self, connection: str) -> bool:
        answer = self._answers[connection][2]
        return isinstance(answer, Pending) and not answer.done

    def wait(self, ms: int) -> None:
        self.loop.advance(ms)

    def settle(self) -> None:
        self.loop.run()

    def batches(self) -> list[bytes]:
        return [b"".join(x) for x in self.log.batches.values()]


_runs = itertools.count(int(time.time()) % 100_000)


class ScriptRun:
    """One run of one script."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self._unique = f"{name}-{next(_runs) % 100_000:05}"
        self._values: dict[str, Any] = {}
        self._topics: dict[str, bytes] = {}

    def run(self, steps: list[Any]) -> list[Any]:
        """The plain answers, one for each step that has one."""
        answers = []
        for step in steps:
            kind, arguments = step[0], step[1:]
            if kind == "topic":
                name = self._name(arguments[0])
                self._topics[arguments[0]] = self._target.create_topic(name, arguments[1])
            elif kind == "wait":
                self._target.wait(arguments[0])
            elif kind == "quiet":
                answers.append(self._target.is_quiet(arguments[0]))
            else:
                if kind in ("send", "post"):
                    connection, api, version, fields = arguments[:4]
                    request = build(m.by_name(f"{api}Request"), self._resolve(fields))
                    self._target.post(connection, api, version, request)
                if kind == "post":
                    self._target.settle()
                if kind in ("send", "recv"):
                    response = self._target.receive(arguments[0])
                    has_saves = len(arguments) > (4 if kind == "send" else 1)
                    self._save(response, arguments[-1] if has_saves else {})
                    answers.append(self._plain(response))
        return answers

    def records(self) -> dict[str, list[Any]]:
        """What the script left in __consumer_offsets: group -> [[record type, key, version, value]]
        in the order of the log, with placeholders as in the answers."""
        found: dict[str, list[Any]] = {}
        for data in self._target.batches():
            for position, header in iterate_headers(data):
                for record in [] if header.is_control else read_batch(data, position):
                    assert record.key is not None
                    key = coordinator_records.decode_key("group-coordinator", record.key)
                    group: str = getattr(key, "group", None) or getattr(key, "group_id", None) or ""
                    if not group.startswith(self._unique):
                        continue
                    plain: list[Any] = [int(key.API_KEY), self._plain(key), None, None]
                    if record.value is not None:
                        plain[2] = coordinator_records.value_version(record.value)
                        value = coordinator_records.decode_value(
                            "group-coordinator", key.API_KEY, record.value
                        )
                        plain[3] = self._without_times(self._plain(value))
                    found.setdefault(self._plain_text(group), []).append(plain)
        return found

    def _without_times(self, value: dict[str, Any]) -> dict[str, Any]:
        times = ("commit_timestamp", "current_state_timestamp", "expire_timestamp")
        return {k: "TIME" if k in times and v > 0 else v for k, v in value.items()}

    def _name(self, text: str) -> str:
        return f"{self._unique}.{text[1:]}"

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, dict):
            if list(value) == ["subscribe"]:
                return _subscription(self._name(value["subscribe"]))
            return {k: self._resolve(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._resolve(v) for v in value]
        if isinstance(value, str):
            if value.startswith("@"):
                return self._name(value)
            if value.startswith("$"):
                return self._values[value[1:]]
            if value.startswith("#"):
                return self._topics[value[1:]] if value != "#none" else b"\x07" * 16
            if value.startswith("hex:"):
                return bytes.fromhex(value[4:])
        return value

    def _save(self, response: Any, saves: dict[str, str]) -> None:
        for name, path in saves.items():
            value = response
            for part in path.split("."):
                value = value[int(part)] if part.isdigit() else getattr(value, part)
            self._values[name] = value

    def _plain(self, value: Any, field: str = "") -> Any:
        if hasattr(value, "FIELDS"):
            return {
                name: self._plain(getattr(value, name), name)
                for name in value.FIELDS
                if name != "throttle_time_ms"
            }
        if isinstance(value, list):
            found = [self._plain(x) for x in value]
            if field == "groups":
                found = [x for x in found if not self._foreign(x)]
            return sorted(found, key=repr) if field in _ORDERED else found
        if isinstance(value, str):
            return self._plain_text(value)
        if isinstance(value, bytes | memoryview):
            raw = bytes(value).replace(self._unique.encode(), b"RUN")
            for name, topic_id in self._topics.items():
                if raw == topic_id:
                    return f"#{name}"
            return f"hex:{raw.hex()}"
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def _foreign(self, group: dict[str, Any]) -> bool:
        """A listed group that is not of this run (a broker has others)."""
        return "group_type" in group and not str(group["group_id"]).startswith("@")

    def _plain_text(self, text: str) -> str:
        for name, value in self._values.items():
            if isinstance(value, str) and value:
                text = text.replace(value, f"${name}")
        text = text.replace(f"{self._unique}.", "@")
        return _MEMBER_ID.sub("UUID", text)


def _subscription(topic: str) -> bytes:
    """A consumer's subscription (version 0) to one topic."""
    name = topic.encode()
    return struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)


def build(cls: Any, fields: Any) -> Any:
    """A message of class `cls` from plain values; structs are found by what fits the field."""
    made = cls()
    for name, value in fields.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            struct = _struct_for(cls, name, value[0])
            value = [build(struct, x) for x in value]
        assert name in made.FIELDS, f"{cls.__name__} has no field {name}"
        setattr(made, name, value)
    return made


def _struct_for(cls: Any, field: str, fields: dict[str, Any]) -> Any:
    """The struct class of an array field: the one of the message that has all these fields, by
    preference the one named like the field."""
    root = _roots.get(cls, cls)
    fitting = []
    for name in dir(root):
        struct = getattr(root, name)
        if not (isinstance(struct, type) and name[0].isupper() and hasattr(struct, "FIELDS")):
            continue
        if struct.FIELDS and set(fields) <= set(struct.FIELDS):
            fitting.append(struct)
    assert fitting, f"no struct of {root} has {sorted(fields)}"
    struct = min(
        fitting, key=lambda x: (field[:-1].lower() not in x.__name__.lower(), len(x.FIELDS))
    )
    _roots[struct] = root
    return struct


_roots: dict[Any, Any] = {}

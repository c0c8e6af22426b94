"""What a job asks a cluster about: topics, offsets, groups. Runs in the driver, before Spark too.

A thin face of confluent-kafka's AdminClient: plain values go in and out, errors are JobError lines.
"""

from __future__ import annotations

import concurrent.futures
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kwire.spark.client_settings import client_config
from kwire.spark.usage import JobError, UsageError

TIMEOUT_S = 30.0
TELL_AFTER_S = 3.0
# What is left to a cluster that has never answered and whose connections fail.
FIRST_ANSWER_S = 5.0
# librdkafka ends a request itself; this is for a future that it forgets.
FUTURE_TIMEOUT_S = TIMEOUT_S + 10
# What is left to a cluster that does not answer once the job is to stop.
STOPPING_S = 5.0
LOOK_S = 0.2
LEADERS_PAUSE_S = 0.05
EARLIEST = "earliest"
MESSAGE_LIMIT = "max.message.bytes"
LATEST = "latest"
GROUPS_IN_FLIGHT = 50

# librdkafka's note of how long a connection had been in which state.
_STATE = re.compile(r" \(after \d+ms in state [^)]*\)")

Partition = tuple[str, int]
T = TypeVar("T")


class TopicInfo(NamedTuple):
    """A topic as it is now; `topic_id` is opaque text, another one after a recreation."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


class UnreachedError(TimeoutError):
    """No broker of a cluster can be reached: the text says why, and what to look at."""


def unreached_text(bootstrap: str, trouble: str) -> str:
    """What to tell of a cluster that has never answered, by librdkafka's word on a connection.

    >>> unreached_text("kafka:9092", "kafka:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: "
    ...     "Connection refused (after 0ms in state CONNECT)")
    'no broker at kafka:9092: connection refused (is it running, is --bootstrap its address?)'
    """
    if "refused" in trouble:
        why = "connection refused (is it running, is --bootstrap its address?)"
    elif "resolve" in trouble:
        why = "the host's name is unknown (is --bootstrap its address?)"
    else:
        _, _, told = trouble.partition(": ")
        why = _STATE.sub("", told or trouble)
    return f"no broker at {bootstrap}: {why}"


class Cluster:
    """A cluster by its bootstrap address and settings (Kafka's names).

    `say` is given a line when a cluster does not answer soon. Once `stopping` says so an answer is
    not waited for any longer than a moment.
    """

    def __init__(
        self,
        bootstrap: str,
        settings: Mapping[str, str] | None = None,
        say: Callable[[str], None] = lambda line: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        self.bootstrap = bootstrap
        self.settings = dict(settings or {})
        self.trouble = ""
        self._has_answered = False
        self._say = say
        self._stopping = stopping
        config: dict[str, Any] = client_config(bootstrap, self.settings)
        try:
            self._admin = AdminClient({**config, "log_level": 0, "error_cb": self._note})
        except KafkaException as error:
            raise UsageError(f"client settings for {bootstrap}: {_reason(error)}") from None

    def _note(self, error: Any) -> None:
        """What librdkafka tells of connections: the reason, where an answer does not come."""
        from confluent_kafka import KafkaError

        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.trouble = str(error.str())

    def _reason(self, error: BaseException) -> str:
        """Why a request failed, and what is wrong with the connections where it got no answer."""
        reason = _reason(error)
        if isinstance(error, UnreachedError):
            return reason
        self._admin.poll(0)
        return f"{reason} ({self.trouble})" if self.trouble and _is_silence(error) else reason

    def _result(self, future: concurrent.futures.Future[T]) -> T:
        """What a request brings, and a line where that takes long.

        Raises KafkaException, TimeoutError without an answer, and UnreachedError where there has
        never been one and connections fail.
        """
        began_s = time.monotonic()
        deadline_s = began_s + FUTURE_TIMEOUT_S
        is_stopping = is_told = False
        while True:
            if not is_stopping and self._stopping():
                is_stopping = True
                deadline_s = min(deadline_s, time.monotonic() + STOPPING_S)
            left_s = max(0.0, deadline_s - time.monotonic())
            if concurrent.futures.wait([future], min(left_s, LOOK_S)).done:
                found = future.result()
                self._has_answered = True
                return found
            if not left_s:
                raise TimeoutError("it is to stop" if is_stopping else "")
            waited_s = time.monotonic() - began_s
            if not self._has_answered and waited_s >= FIRST_ANSWER_S:
                self._admin.poll(0)
                if self.trouble:
                    raise UnreachedError(unreached_text(self.bootstrap, self.trouble))
            if not is_told and waited_s >= TELL_AFTER_S:
                is_told = True
                self._say(
                    f"no answer of {self.bootstrap} yet, waiting for {TIMEOUT_S:.0f} s at most"
                )

    def _in_thread(self, call: Callable[[], T]) -> T:
        """The result of a call of librdkafka that no signal would end."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=run, name="librdkafka", daemon=True).start()
        return self._result(future)

    def topic_names(self) -> list[str]:
        """All topics but the internal ones; JobError when no broker answers."""
        from confluent_kafka import KafkaException

        try:
            metadata = self._in_thread(lambda: self._admin.list_topics(timeout=TIMEOUT_S))
        except (KafkaException, TimeoutError) as error:
            raise JobError(f"{self.bootstrap}: {self._reason(error)}") from None
        return sorted(name for name in metadata.topics if not name.startswith("__"))

    def matching(self, topics: Iterable[str], pattern: str | None) -> list[str]:
        """The named topics, or those whose whole name matches."""
        if pattern is None:
            return sorted(topics)
        return [name for name in self.topic_names() if re.fullmatch(pattern, name)]

    def describe(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """The topics that exist, by name."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        wanted = list(names)
        if not wanted:
            return {}
        futures = self._admin.describe_topics(TopicCollection(wanted), request_timeout=TIMEOUT_S)
        found: dict[str, TopicInfo] = {}
        for name, future in futures.items():
            try:
                described = self._result(future)
            except (KafkaException, TimeoutError) as error:
                if _code(error) == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise JobError(f"topic {name}: {self._reason(error)}") from None
            numbers = tuple(sorted(partition.id for partition in described.partitions))
            found[name] = TopicInfo(name, str(described.topic_id), numbers)
        return found

    def offsets(
        self,
        partitions: Iterable[Partition],
        at: str | int,
        *,
        committed: bool = False,
    ) -> dict[Partition, int]:
        """Earliest or latest offsets, or the first at or after a timestamp (ms; -1: none).

        With `committed` the latest is the last stable offset.
        """
        from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        if at == EARLIEST:
            spec = OffsetSpec.earliest()
        elif at == LATEST:
            spec = OffsetSpec.latest()
        else:
            spec = OffsetSpec.for_timestamp(int(at))
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        request = {TopicPartition(topic, number): spec for topic, number in partitions}
        found: dict[Partition, int] = {}
        asked = "partitions"

        def ask() -> None:
            """Those that have not been told yet."""
            nonlocal asked
            futures = self._admin.list_offsets(
                request, isolation_level=isolation, request_timeout=TIMEOUT_S
            )
            for partition, future in futures.items():
                asked = f"{partition.topic}-{partition.partition}"
                offset = int(self._result(future).offset)
                found[partition.topic, partition.partition] = offset
                del request[partition]

        try:
            if request:
                self._asked(ask)
        except (KafkaException, TimeoutError) as error:
            raise JobError(f"offsets of {asked}: {self._reason(error)}") from None
        return found

    def largest_times(self, partitions: Iterable[Partition]) -> dict[Partition, tuple[int, int]]:
        """{partition: (the largest timestamp, ms, the offset of a record that has it)}."""
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        request = {TopicPartition(*key): OffsetSpec.max_timestamp() for key in partitions}
        futures = self._admin.list_offsets(request, request_timeout=TIMEOUT_S)
        found: dict[Partition, tuple[int, int]] = {}
        for partition, future in futures.items():
            try:
                answer = self._result(future)
            except (KafkaException, TimeoutError):
                continue
            found[partition.topic, partition.partition] = (answer.timestamp, answer.offset)
        return found

    def _asked(self, ask: Callable[[], T]) -> T:
        """The answer; as long as leaders and coordinators move it is asked again.

        Raises KafkaException and TimeoutError.
        """
        from confluent_kafka import KafkaException

        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return ask()
            except (KafkaException, TimeoutError) as error:
                if not _is_moving(error) or time.monotonic() > deadline_s:
                    raise
            time.sleep(LEADERS_PAUSE_S)

    def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with the cluster's default replication; no error when it is there.

        Returns when all partitions have leaders: other brokers hear of a topic a moment later.
        """
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import NewTopic

        topic = NewTopic(name, partitions, -1, config=dict(configs or {}))
        try:
            self._result(self._admin.create_topics([topic], request_timeout=TIMEOUT_S)[name])
        except (KafkaException, TimeoutError) as error:
            if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise JobError(f"creating {name}: {self._reason(error)}") from None
        self._await_leaders(name, 1)

    def _await_leaders(self, name: str, partitions: int) -> None:
        """Wait until a topic has at least so many partitions, and a leader for each."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            leaders = self._leaders(name)
            if len(leaders) >= partitions and all(leaders):
                return
            if time.monotonic() > deadline_s:
                raise JobError(f"topic {name}: partitions without leaders for {TIMEOUT_S:.0f} s")
            time.sleep(LEADERS_PAUSE_S)

    def _leaders(self, name: str) -> list[bool]:
        """Whether each partition of a topic has a leader; [] as long as the topic is unknown."""
        from confluent_kafka import KafkaException, TopicCollection

        futures = self._admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)
        try:
            described = self._result(futures[name])
        except (KafkaException, TimeoutError):
            return []
        return [partition.leader is not None for partition in described.partitions]

    def add_partitions(self, name: str, count: int) -> None:
        """Let a topic have so many partitions."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewPartitions

        futures = self._admin.create_partitions(
            [NewPartitions(name, count)], request_timeout=TIMEOUT_S
        )
        try:
            self._result(futures[name])
        except (KafkaException, TimeoutError) as error:
            raise JobError(f"partitions of {name}: {self._reason(error)}") from None
        self._await_leaders(name, count)

    def topic_configs(self, name: str) -> dict[str, str]:
        """The configs that were set for the topic itself."""
        from confluent_kafka.admin import ConfigSource

        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        entries = self._configs(name).items()
        return {key: e.value for key, e in entries if e.source == own and e.value}

    def message_limit(self, name: str) -> int | None:
        """`max.message.bytes` of a topic; None where the cluster does not tell."""
        try:
            found = self._configs(name).get(MESSAGE_LIMIT)
        except JobError:
            return None
        return int(found.value) if found is not None and found.value else None

    def _configs(self, name: str) -> dict[str, Any]:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.TOPIC, name)
        futures = self._admin.describe_configs([resource], request_timeout=TIMEOUT_S)
        try:
            return dict(self._result(futures[resource]))
        except (KafkaException, TimeoutError) as error:
            raise JobError(f"configs of {name}: {self._reason(error)}") from None

    def groups(self, pattern: str) -> dict[str, bool]:
        """{group: whether it has members} of the consumer groups whose name matches.

        Those of a broker that does not answer are left out: their coordinators move.
        """
        from confluent_kafka import ConsumerGroupState, KafkaException

        def ask() -> Any:
            listed = self._result(self._admin.list_consumer_groups(request_timeout=TIMEOUT_S))
            for error in map(_exception, listed.errors):
                if _is_moving(error):
                    raise error
            return listed

        try:
            listed = self._asked(ask)
        except (KafkaException, TimeoutError) as error:
            raise JobError(f"groups of {self.bootstrap}: {self._reason(error)}") from None
        idle = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
        return {
            group.group_id: group.state not in idle
            for group in sorted(listed.valid, key=lambda group: str(group.group_id))
            if re.fullmatch(pattern, group.group_id)
        }

    def group_offsets(self, group: str) -> dict[Partition, int]:
        """What a group has committed; {} for a group that is not there."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

        request = [ConsumerGroupTopicPartitions(group)]

        def ask() -> Any:
            futures = self._admin.list_consumer_group_offsets(request, request_timeout=TIMEOUT_S)
            return _without_errors(self._result(futures[group]).topic_partitions)

        try:
            found = self._asked(ask)
        except (KafkaException, TimeoutError) as error:
            raise JobError(f"offsets of group {group}: {self._reason(error)}") from None
        return {(p.topic, p.partition): p.offset for p in found if p.offset >= 0}

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> str | None:
        """Commit offsets for a group without members; what stood in the way, or None."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        wanted = [TopicPartition(topic, n, offset) for (topic, n), offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, wanted)]

        def ask() -> None:
            futures = self._admin.alter_consumer_group_offsets(request, request_timeout=TIMEOUT_S)
            _without_errors(self._result(futures[group]).topic_partitions)

        try:
            self._asked(ask)
        except (KafkaException, TimeoutError) as error:
            return self._reason(error)
        return None


def _code(error: BaseException) -> int | None:
    """librdkafka's error code; None for a wait that ended."""
    found: Any = error.args[0] if error.args else None
    return int(found.code()) if hasattr(found, "code") else None


def _exception(error: Any) -> BaseException:
    """An error of a list of them, as it would be raised."""
    from confluent_kafka import KafkaException

    return error if isinstance(error, BaseException) else KafkaException(error)


def _without_errors(partitions: list[Any]) -> list[Any]:
    """An answer's partitions. Raises KafkaException with the error of one of them."""
    for partition in partitions:
        if partition.error is not None:
            raise _exception(partition.error)
    return partitions


def _is_moving(error: BaseException) -> bool:
    """Whether a broker says that it is not, or not yet, whom to ask: soon another one is."""
    from confluent_kafka import KafkaError

    return _code(error) in (
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,  # of a transaction that is about to end
    )


def _is_silence(error: BaseException) -> bool:
    from confluent_kafka import KafkaError

    silent = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, None)
    return _code(error) in silent


def _reason(error: BaseException) -> str:
    found: Any = error.args[0] if error.args else None
    if hasattr(found, "str"):
        return str(found.str())
    if isinstance(error, UnreachedError):
        return str(error)
    return f"no answer, and {found}" if found else f"no answer in {FUTURE_TIMEOUT_S:.0f} s"


def partitions_of(topics: Mapping[str, TopicInfo]) -> list[Partition]:
    """(topic, partition) of all of them in order."""
    return [(name, n) for name, info in sorted(topics.items()) for n in info.partitions]

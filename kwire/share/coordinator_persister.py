"""The persister of a broker: asks the share coordinators, wherever they are.

The coordinator of a share partition is the leader of the partition of `__share_group_state` that
its key falls on. What the same coordinator is asked about a group while a request to it is under
way goes out in one request when that is answered; the coordinator of this broker is asked without
a request. What passes is tried again, after a pause that doubles, and earlier when the leaders of
the state's topic change: at most ATTEMPTS_MAX times. Source: KIP-932; attempts and pauses of Apache
Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from kwire.pending import Pending, after, gather
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Request
from kwire.share import messages
from kwire.share.backoff import ATTEMPTS_MAX, pause_ms
from kwire.share.keys import SharePartitionKey
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    PartitionState,
    PartitionSummary,
    Persister,
    WritePartition,
)

# Partitions of one request.
PARTITIONS_MAX = 1_000

_PASSING_ANSWERS = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
_PASSING_FAILURES = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})


class Asked(Protocol):
    """What is asked about one partition."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partition(self) -> int: ...


class Answered(Protocol):
    """What is said of one partition."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partition(self) -> int: ...

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


A = TypeVar("A", bound=Asked)
R = TypeVar("R", bound=Answered)
# Requests and responses of the five kinds, each pair known to its `_Kind` alone.
_AnyRequest: TypeAlias = Request[Any]
Send: TypeAlias = Callable[[int, _AnyRequest], Pending[Any]]


class Timer(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """The part of an event loop that the persister uses."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer: ...


class Coordinators(Protocol):
    """Where share coordinators are."""

    @property
    def node_id(self) -> int:
        """This broker."""
        ...

    @property
    def local(self) -> Persister:
        """The share coordinator of this broker."""
        ...

    def find(self, key: SharePartitionKey) -> int | None:
        """The broker that coordinates a share partition. None while nobody does: a topic that is
        missing is created."""
        ...


class _Kind(NamedTuple, Generic[A, R]):
    """One of the five requests."""

    name: str
    request: Callable[[str, Sequence[A]], _AnyRequest]
    results: Callable[[Any], list[R]]
    local: Callable[[Persister, str, Sequence[A]], Pending[list[R]]]
    refuse: Callable[[bytes, int, int, str | None], R]


_INITIALIZE: _Kind[InitializePartition, PartitionResult] = _Kind(
    "initialize state",
    messages.initialize_request,
    messages.initialize_results,
    lambda local, group_id, asked: local.initialize(group_id, asked),
    PartitionResult,
)
_READ: _Kind[PartitionEpoch, PartitionState] = _Kind(
    "read state",
    messages.read_request,
    messages.read_results,
    lambda local, group_id, asked: local.read(group_id, asked),
    PartitionState,
)
_WRITE: _Kind[WritePartition, PartitionResult] = _Kind(
    "write state",
    messages.write_request,
    messages.write_results,
    lambda local, group_id, asked: local.write(group_id, asked),
    PartitionResult,
)
_DELETE: _Kind[PartitionId, PartitionResult] = _Kind(
    "delete state",
    messages.delete_request,
    messages.delete_results,
    lambda local, group_id, asked: local.delete(group_id, asked),
    PartitionResult,
)
_SUMMARY: _Kind[PartitionEpoch, PartitionSummary] = _Kind(
    "read state summary",
    messages.summary_request,
    messages.summary_results,
    lambda local, group_id, asked: local.read_summary(group_id, asked),
    PartitionSummary,
)


class _Question(Generic[A, R]):
    """One partition of one call."""

    __slots__ = ("answer", "asked", "attempts", "finds", "group_id", "kind", "node_id", "timer")

    def __init__(self, kind: _Kind[A, R], group_id: str, asked: A) -> None:
        self.kind = kind
        self.group_id = group_id
        self.asked = asked
        self.answer: Pending[R] = Pending()
        self.attempts = 0
        self.finds = 0
        self.timer: Timer | None = None
        self.node_id: int | None = None  # who was asked last

    @property
    def key(self) -> SharePartitionKey:
        return SharePartitionKey(self.group_id, self.asked.topic_id, self.asked.partition)

    def refuse(self, code: int, message: str) -> None:
        asked = self.asked
        self.answer.complete(self.kind.refuse(asked.topic_id, asked.partition, code, message))


_AnyQuestion: TypeAlias = _Question[Any, Any]
# A node, the name of a kind, a group: one request at a time.
_Way: TypeAlias = tuple[int, str, str]


class CoordinatorPersister:
    """Implements `kwire.share.persister.Persister` by asking coordinators.

    `send(node_id, request)` asks another broker; `draw()` gives a number from 0 to 1, for pauses
    that are not all the same. `replaced(group id, topic id, partition)` hears of states that were
    deleted or begin anew.
    """

    def __init__(
        self,
        *,
        loop: Loop,
        coordinators: Coordinators,
        send: Send,
        draw: Callable[[], float],
        replaced: Callable[[str, bytes, int], None] = lambda group_id, topic_id, index: None,
    ) -> None:
        self._loop = loop
        self._coordinators = coordinators
        self._send = send
        self._draw = draw
        self._replaced = replaced
        self._queued: dict[_Way, list[_AnyQuestion]] = {}
        self._under_way: dict[_Way, list[_AnyQuestion]] = {}
        self._pausing: dict[_AnyQuestion, None] = {}
        self._written_here: dict[SharePartitionKey, Pending[list[PartitionResult]]] = {}
        self._closed = False

    def initialize(
        self, group_id: str, partitions: Sequence[InitializePartition]
    ) -> Pending[list[PartitionResult]]:
        """See `Persister`."""
        return self._ask(_INITIALIZE, group_id, partitions)

    def read(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionState]]:
        """See `Persister`."""
        return self._ask(_READ, group_id, partitions)

    def write(
        self, group_id: str, partitions: Sequence[WritePartition]
    ) -> Pending[list[PartitionResult]]:
        """See `Persister`. One share partition whose coordinator is this broker waits for no other:
        what is written in one turn of the loop is one write to the log."""
        if len(partitions) == 1 and not self._closed:
            asked = partitions[0]
            key = SharePartitionKey(group_id, asked.topic_id, asked.partition)
            here = self._coordinators.node_id
            if key not in self._written_here and self._coordinators.find(key) == here:
                return self._write_here(key, asked)
        return self._ask(_WRITE, group_id, partitions)

    def delete(
        self, group_id: str, partitions: Sequence[PartitionId]
    ) -> Pending[list[PartitionResult]]:
        """See `Persister`."""
        return self._ask(_DELETE, group_id, partitions)

    def read_summary(
        self, group_id: str, partitions: Sequence[PartitionEpoch]
    ) -> Pending[list[PartitionSummary]]:
        """See `Persister`."""
        return self._ask(_SUMMARY, group_id, partitions)

    def coordinators_changed(self) -> None:
        """Other brokers may lead partitions of the state's topic: what pauses and has another
        coordinator by now is tried at once."""
        moved = []
        for question in self._pausing:
            node_id = self._coordinators.find(question.key)
            if node_id is not None and node_id != question.node_id:
                moved.append(question)
        for question in moved:
            del self._pausing[question]
            if question.timer is not None:
                question.timer.cancel()
        self._route(moved)

    def close(self) -> None:
        """Answer everything that is open with COORDINATOR_NOT_AVAILABLE; ask no more."""
        self._closed = True
        here = list(self._written_here.values())
        self._written_here.clear()
        for pending in here:
            pending.fail(_closed_error())
        left = list(self._pausing)
        for questions in (*self._queued.values(), *self._under_way.values()):
            left += questions
        self._queued.clear()
        self._under_way.clear()
        self._pausing.clear()
        for question in left:
            if question.timer is not None:
                question.timer.cancel()
            question.answer.fail(_closed_error())

    # ------------------------------------------------------------------

    def _ask(self, kind: _Kind[A, R], group_id: str, asked: Sequence[A]) -> Pending[list[R]]:
        if self._closed:
            return Pending.failed(_closed_error())
        questions = [_Question(kind, group_id, each) for each in asked]
        answers = gather([question.answer for question in questions])
        self._route(questions)
        return after(answers, lambda done: [answer.result() for answer in done.result()])

    def _write_here(
        self, key: SharePartitionKey, asked: WritePartition
    ) -> Pending[list[PartitionResult]]:
        outcome = self._written_here[key] = Pending()
        answered = self._coordinators.local.write(key.group_id, [asked])
        answered.add_done_callback(partial(self._answered_here, key, asked, outcome))
        return outcome

    def _answered_here(
        self,
        key: SharePartitionKey,
        asked: WritePartition,
        outcome: Pending[list[PartitionResult]],
        done: Pending[list[PartitionResult]],
    ) -> None:
        if self._closed:
            return
        del self._written_here[key]
        error = done.error()
        results = [] if error is not None else done.result()
        if results and not results[0].error_code:
            outcome.complete(results)
            return
        question = _Question(_WRITE, key.group_id, asked)
        question.node_id = self._coordinators.node_id
        question.answer.add_done_callback(partial(_pass_on, outcome))
        if error is not None:
            self._failed(question, error)
        else:
            self._settle(question, results[0] if results else None)

    def _route(self, questions: Sequence[_AnyQuestion]) -> None:
        """To each question's coordinator, or a pause where there is none."""
        touched: dict[_Way, None] = {}
        for question in questions:
            question.timer = None
            if question.answer.done:
                continue
            node_id = self._coordinators.find(question.key)
            if node_id is None:
                question.finds += 1
                self._pause(
                    question,
                    question.finds,
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    "Error in find coordinator. The coordinator is not available.",
                )
                continue
            question.finds = 0
            question.node_id = node_id
            way = (node_id, question.kind.name, question.group_id)
            self._queued.setdefault(way, []).append(question)
            touched[way] = None
        for way in touched:
            self._send_next(way)

    def _send_next(self, way: _Way) -> None:
        """Send what is queued for a coordinator unless it has to answer first."""
        while not self._closed and way in self._queued and way not in self._under_way:
            sent, left = _without_repeats(self._queued.pop(way))
            if left:
                self._queued[way] = left
            if not sent:
                continue
            self._under_way[way] = sent
            node_id, _, group_id = way
            kind = sent[0].kind
            asked = [question.asked for question in sent]
            if node_id == self._coordinators.node_id:
                answered = kind.local(self._coordinators.local, group_id, asked)
            else:
                answered = after(
                    self._send(node_id, kind.request(group_id, asked)),
                    partial(_results_of, kind),
                )
            answered.add_done_callback(partial(self._answered, way, sent))

    def _answered(self, way: _Way, sent: list[_AnyQuestion], done: Pending[list[Any]]) -> None:
        if self._closed:
            return
        self._under_way.pop(way, None)
        error = done.error()
        if error is not None:
            for question in sent:
                self._failed(question, error)
        else:
            found = {(each.topic_id, each.partition): each for each in done.result()}
            for question in sent:
                asked = question.asked
                self._settle(question, found.get((asked.topic_id, asked.partition)))
        self._send_next(way)

    def _settle(self, question: _AnyQuestion, result: Answered | None) -> None:
        name = question.kind.name
        if result is None:
            question.refuse(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Error in {name} RPC. The answer has no result."
            )
        elif result.error_code in _PASSING_ANSWERS:
            question.attempts += 1
            self._pause(question, question.attempts, result.error_code, _text(question, result))
        elif result.error_code:
            question.refuse(result.error_code, _text(question, result))
        else:
            if question.kind is _DELETE or question.kind is _INITIALIZE:
                self._replaced(question.group_id, result.topic_id, result.partition)
            question.answer.complete(result)

    def _failed(self, question: _AnyQuestion, error: Exception) -> None:
        """The request had no answer."""
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        message = f"Error in {question.kind.name} RPC. {error}"
        if code in _PASSING_FAILURES:
            question.attempts += 1
            self._pause(question, question.attempts, code, message)
        else:
            question.refuse(code, message)

    def _pause(self, question: _AnyQuestion, attempts: int, code: int, message: str) -> None:
        """Ask again later, or answer with this error when that was the last attempt."""
        if attempts >= ATTEMPTS_MAX:
            question.refuse(code, message)
            return
        self._pausing[question] = None
        question.timer = self._loop.call_at(
            self._loop.time() + pause_ms(attempts, self._draw()) / 1000,
            partial(self._paused, question),
        )

    def _paused(self, question: _AnyQuestion) -> None:
        self._pausing.pop(question, None)
        self._route([question])


def _without_repeats(
    questions: list[_AnyQuestion],
) -> tuple[list[_AnyQuestion], list[_AnyQuestion]]:
    """What one request may ask, each partition once, and what is left for the next ones."""
    asked: dict[SharePartitionKey, _AnyQuestion] = {}
    left: list[_AnyQuestion] = []
    for question in questions:
        if question.answer.done:
            continue
        if len(asked) < PARTITIONS_MAX and question.key not in asked:
            asked[question.key] = question
        else:
            left.append(question)
    return list(asked.values()), left


def _pass_on(outcome: Pending[list[R]], answer: Pending[R]) -> None:
    error = answer.error()
    if error is not None:
        outcome.fail(error)
    else:
        outcome.complete([answer.result()])


def _results_of(kind: _Kind[A, R], done: Pending[Any]) -> list[R]:
    return kind.results(done.result())


def _text(question: _AnyQuestion, result: Answered) -> str:
    text = result.error_message or KafkaError(ErrorCode(result.error_code)).code.name
    return f"Error in {question.kind.name} RPC. {text}"


def _closed_error() -> KafkaError:
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker is stopping")

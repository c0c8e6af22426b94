"""A commit of many partitions: records and answer are made in slices, then it is decided (ADR 52).

Serves OffsetCommit and TxnOffsetCommit. The next request of the connection waits until it is
decided, and what was sent is committed also when its client has gone meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from kwire.coordinator.group.made_offsets import Asked, MadeOffsets, T
from kwire.pending import Answer, Pending, as_pending
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

ResponseT = TypeVar("ResponseT")
AskedT = TypeVar(
    "AskedT",
    "m.OffsetCommitRequest.OffsetCommitRequestTopic",
    "m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic",
)


class AskedPartitions(Generic[AskedT]):
    """The topics of a request as it came: those that it may not commit to are taken out of it."""

    __slots__ = ("_partitions", "_topics")

    def __init__(self, topics: Sequence[AskedT]) -> None:
        self._topics: list[AskedT] = list(topics)
        self._partitions: list[Any] = [topic.partitions for topic in topics]

    def restored(self) -> list[AskedT]:
        """The same again."""
        for topic, partitions in zip(self._topics, self._partitions, strict=True):
            topic.partitions = partitions
        return self._topics


def commit_in_slices(
    context: RequestContext,
    topics: Sequence[Asked],
    made: MadeOffsets[T],
    decide: Callable[[], Answer[ResponseT]],
    ask_again: Callable[[], Answer[ResponseT]],
) -> Pending[ResponseT]:
    """`decide()` once `made` is made of `topics`; `ask_again()` if one of these is gone by then, of
    which nobody would forget the offsets."""
    # Not by `then`: who gives the answer up gives up no commit.
    answer: Pending[ResponseT] = Pending()

    def go_on() -> Answer[ResponseT]:
        known = context.parts.metadata.image.topics.by_name
        for topic in topics:
            found = known.get(topic.name)
            if found is None or found.topic_id != topic.topic_id:
                return ask_again()
        return decide()

    def made_all(done: Pending[Answer[ResponseT]]) -> None:
        error = done.error()
        if error is not None:
            answer.fail(error)
        else:
            as_pending(done.result()).add_done_callback(answered)

    def answered(done: Pending[ResponseT]) -> None:
        error = done.error()
        if error is not None:
            answer.fail(error)
        else:
            answer.complete(done.result())

    context.slices.run(made.steps(), go_on).add_done_callback(made_all)
    return answer

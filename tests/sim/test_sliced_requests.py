"""Requests in slices keep every promise, whatever comes between two slices; faults are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from kwire.api import produce
from kwire.api.shared.fetched_topics import FetchedTopics
from kwire.api.shared.produce_verification import name_of
from kwire.server.described_topics import DescribedTopics
from tests.sim.slices import KINDS, Fault, SlicedHistory
from tests.support.effort import seeds

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS_OF_A_MUTATION = 6


def test_requests_in_slices_keep_every_promise() -> None:
    between: Counter[str] = Counter()
    for seed in seeds(2):
        history = SlicedHistory(seed)
        history.run()
        between += history.between
    assert set(between) == set(KINDS), between


# -- faults that have to be found


def goes_on_behind_a_deleted_topic(patch: pytest.MonkeyPatch) -> None:
    """Topics are looked up by the names that their ids had when the request came."""
    original, partition = produce._Append._append_in_slices, produce._Append._partition
    names: dict[tuple[int, bytes], str | None] = {}

    def append_in_slices(self: produce._Append, by_id: bool) -> Iterator[None]:
        if by_id:
            for topic in self._request.topic_data:
                names[id(self), topic.topic_id] = name_of(self._context, topic)
        return original(self, by_id)

    def of_the_name(
        self: produce._Append, topic: str | None, topic_id: bytes | None, data: produce.Data
    ) -> produce.Result:
        if topic_id is not None:
            topic = names.get((id(self), topic_id), topic)
        return partition(self, topic, None, data)

    patch.setattr(produce._Append, "_append_in_slices", append_in_slices)
    patch.setattr(produce._Append, "_partition", of_the_name)


def answers_without_a_partition(patch: pytest.MonkeyPatch) -> None:
    """What is appended to last in a slice is not in the answer."""
    original = produce._Append._append_in_slices

    def append_in_slices(self: produce._Append, by_id: bool) -> Iterator[None]:
        for _ in original(self, by_id):
            self._response.responses[-1].partition_responses[-1:] = []
            yield

    patch.setattr(produce._Append, "_append_in_slices", append_in_slices)


def fetches_without_a_partition(patch: pytest.MonkeyPatch) -> None:
    """Of a topic that goes on in the next slice only the last part is in the answer."""

    def end_slice(self: FetchedTopics) -> None:
        self._add_whole()
        if self._topic is not None:
            self._topic.partitions = []

    patch.setattr(FetchedTopics, "end_slice", end_slice)


def is_overtaken(patch: pytest.MonkeyPatch) -> None:
    """The connection's next request starts at once."""
    original = produce._Append._promise

    def promise(self: produce._Append) -> None:
        original(self)
        self._context.let_next_start()

    patch.setattr(produce._Append, "_promise", promise)


def ends_with_its_client(patch: pytest.MonkeyPatch) -> None:
    """What is not appended when the client goes never is."""
    patch.setattr(produce._Append, "_promise", lambda self: None)


def tells_what_was(patch: pytest.MonkeyPatch) -> None:
    """Topics that are encoded stay so."""
    patch.setattr(DescribedTopics, "applied", lambda self, delta: None)


SEEDS = {
    goes_on_behind_a_deleted_topic: 1,
    answers_without_a_partition: 0,
    fetches_without_a_partition: 0,
    is_overtaken: 1,
    ends_with_its_client: 2,
    tells_what_was: 0,
}
"""By which seed each is found, or one of the next: any change of the code changes every history."""


def _search(first: int) -> None:
    for seed in range(first, first + SEEDS_OF_A_MUTATION):
        SlicedHistory(seed).run()


@pytest.mark.parametrize("mutation", SEEDS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(Fault):
        _search(SEEDS[mutation])

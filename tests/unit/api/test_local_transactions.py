"""Markers that this broker writes to partitions of its own, and what waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.api.shared.local_transactions import LocalTransactions
from kwire.pending import Pending
from tests.golden.coordinator import transaction_steps as scripts
from tests.golden.coordinator.transaction_scripts import SETTINGS
from tests.support.coordinator_scripts import CoordinatorRun, SimulatedBroker, wait_until_ready


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    target = SimulatedBroker(SETTINGS)
    wait_until_ready(target)
    yield target
    target.stop()


def code_of(answer: Any) -> int:
    return int(answer["responses"][0]["partition_responses"][0]["error_code"])


def hold_markers(monkeypatch: pytest.MonkeyPatch, target: SimulatedBroker, for_ms: int) -> None:
    """Markers reach their partitions after a while."""
    original = LocalTransactions.write

    def later(self: LocalTransactions, owed: Any) -> Any:
        answers: list[list[Pending[int]]] = [[Pending() for _ in x.partitions] for x in owed]

        def write() -> None:
            for waiting, writes in zip(answers, original(self, owed), strict=True):
                for answer, written in zip(waiting, writes, strict=True):
                    written.add_done_callback(
                        lambda done, answer=answer: answer.complete(done.result())  # type: ignore[misc]
                    )

        target.node.loop.call_later(for_ms / 1000, write)
        return answers

    monkeypatch.setattr(LocalTransactions, "write", later)


BEGUN = [["topic", "@a", 2], scripts.begin(), scripts.produce(12), scripts.end5()]


def test_the_next_transaction_waits_a_moment_for_the_markers_of_the_last(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its verification begins anew then: the marker has voided what the log was told before."""
    run = CoordinatorRun(broker, "waits", waits_for_markers=False)
    hold_markers(monkeypatch, broker, 50)
    answers = run.run([*BEGUN, scripts.produce(12, how="send"), scripts.end5()])
    assert code_of(answers[-2]) == 0
    assert run.run([scripts.described_as("CompleteCommit"), scripts.fetch(1)])


def test_the_client_is_told_when_it_takes_longer(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = CoordinatorRun(broker, "longer", waits_for_markers=False)
    hold_markers(monkeypatch, broker, 400)
    answers = run.run([*BEGUN, scripts.produce(12, how="send")])
    assert code_of(answers[-1]) == 51
    assert code_of(run.run([scripts.produce(12)])[-1]) == 0


def test_an_older_client_is_told_at_once(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partitions are only verified; it is the client's add that meets the markers."""
    run = CoordinatorRun(broker, "older", waits_for_markers=False)
    hold_markers(monkeypatch, broker, 50)
    answers = run.run([*BEGUN, scripts.add(3, how="send")])
    assert (
        answers[-1]["results_by_topic_v3_and_below"][0]["results_by_partition"][0][
            "partition_error_code"
        ]
        == 51
    )


def test_nothing_of_a_transaction_is_owed_in_the_turn_after_its_answer(
    broker: SimulatedBroker,
) -> None:
    """On one broker the markers are written before a client can have its answer."""
    run = CoordinatorRun(broker, "at-once", waits_for_markers=False)
    run.run(BEGUN)
    for _ in range(3):
        answers = run.run([scripts.produce(12, how="send"), scripts.end5(how="send")])
        assert code_of(answers[0]) == 0

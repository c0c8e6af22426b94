"""So many calls a turn of the loop; the others follow in the order in which they came."""

from __future__ import annotations

from kwire.turn_budget import TurnBudget
from tests.support.connections import TurningLoop


class Calls:
    """Calls of a budget of three a turn, by number."""

    def __init__(self) -> None:
        self.loop = TurningLoop()
        self.budget = TurnBudget(self.loop.call_soon, 3)
        self.done: list[int] = []

    def do(self, *numbers: int) -> None:
        for number in numbers:
            if self.budget.take():
                self.done.append(number)
            else:
                self.budget.wait(lambda number=number: self.done.append(number))  # type: ignore[misc]


def test_a_turn_does_as_many_as_the_budget_has() -> None:
    calls = Calls()
    calls.do(*range(8))
    told = [list(calls.done)]
    while calls.loop.soon:
        calls.loop.turn()
        told.append(list(calls.done))
    assert [len(each) for each in told] == [3, 6, 8, 8]
    assert calls.done == list(range(8))


def test_who_comes_later_does_not_overtake() -> None:
    calls = Calls()
    calls.do(0, 1, 2, 3)
    calls.loop.turn()
    calls.do(4, 5, 6)
    assert calls.done == [0, 1, 2, 3, 4, 5]
    calls.loop.turn()
    assert calls.done == list(range(7))


def test_a_turn_without_calls_gives_the_whole_budget_back() -> None:
    calls = Calls()
    calls.do(0, 1, 2)
    calls.loop.turn()
    assert not calls.loop.soon
    calls.do(3, 4, 5)
    assert calls.done == list(range(6))


def test_a_call_may_do_all_that_waits() -> None:
    """What is released has closed the runtime that shares out the budget."""
    calls = Calls()
    calls.do(0, 1, 2)
    calls.budget.wait(calls.budget.do_all)
    calls.do(3, 4, 5)
    calls.loop.turn()
    assert calls.done == list(range(6))

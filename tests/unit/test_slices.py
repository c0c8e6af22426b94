"""Long work of requests: one slice a turn of the loop, of the works in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.pending import Pending
from kwire.slices import Slices
from tests.support.connections import TurningLoop


class Works:
    """Works whose slices are noted."""

    def __init__(self) -> None:
        self.loop = TurningLoop()
        self.slices = Slices(self.loop.call_soon)
        self.done: list[str] = []

    def begin(self, name: str, count: int, error: Exception | None = None) -> Pending[str]:
        return self.slices.run(self._work(name, count, error), lambda: name)

    def _work(self, name: str, count: int, error: Exception | None) -> Iterator[None]:
        for number in range(count):
            if number:
                yield
            self.done.append(f"{name}{number}")
        if error is not None:
            raise error

    def turns(self) -> int:
        """How many turns there were until all is done; one slice in each."""
        turns = 0
        while self.loop.soon:
            before = len(self.done)
            self.loop.turn()
            assert len(self.done) <= before + 1
            turns += 1
        return turns


def test_works_take_turns_and_a_turn_does_one_slice() -> None:
    works = Works()
    first, second = works.begin("a", 3), works.begin("b", 1)
    assert works.done == []
    assert works.turns() == 4
    assert works.done == ["a0", "b0", "a1", "a2"]
    assert (first.result(), second.result()) == ("a", "b")


def test_work_that_comes_while_one_goes_on_begins_no_second_slice_in_a_turn() -> None:
    works = Works()
    last: list[Pending[str]] = []
    first = works.begin("a", 2)
    first.add_done_callback(lambda _: last.append(works.begin("c", 2)))
    works.turns()
    assert works.done == ["a0", "a1", "c0", "c1"]
    assert last[0].result() == "c"
    assert works.begin("d", 1).done is False
    works.turns()
    assert works.done[-1] == "d0"


def test_work_of_a_client_that_has_gone_ends_where_it_is() -> None:
    works = Works()
    gone, other = works.begin("a", 5), works.begin("b", 2)
    works.loop.turn()
    gone.cancel()
    works.turns()
    assert works.done == ["a0", "b0", "b1"]
    assert other.result() == "b"


@pytest.mark.parametrize("where", ["work", "result"])
def test_work_that_fails_fails_its_request_alone(where: str) -> None:
    works = Works()
    if where == "work":
        failing: Pending[Any] = works.begin("a", 2, ValueError("x"))
    else:
        failing = works.slices.run(iter(()), lambda: 1 // 0)
    other = works.begin("b", 2)
    works.turns()
    assert isinstance(failing.error(), ValueError if where == "work" else ZeroDivisionError)
    assert other.result() == "b"


def test_works_go_on_when_whoever_takes_a_result_fails() -> None:
    works = Works()

    def fail(_: object) -> None:
        raise ValueError("x")

    works.begin("a", 1).add_done_callback(fail)
    other = works.begin("b", 2)
    with pytest.raises(ValueError, match="x"):
        works.turns()
    later = works.begin("c", 1)
    works.turns()
    assert (other.result(), later.result()) == ("b", "c")


class Noted:
    """Notes when slices begin and end among what is done in them."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def begin(self) -> None:
        self._done.append("(")

    def end(self) -> None:
        self._done.append(")")


def test_of_works_whose_time_is_measured_each_slice_is_to_what_it_completes() -> None:
    works = Works()
    other = works.begin("b", 2)
    measured = works.slices.measured_by(Noted(works.done))
    one = measured.run(works._work("a", 2, None), lambda: "a")
    one.add_done_callback(lambda _: works.done.append("answered"))
    failing = measured.run(works._work("f", 1, ValueError("x")), lambda: "f")
    while works.loop.soon:
        works.loop.turn()
    assert "".join(works.done).split("b") == ["", "0(a0)(f0)", "1(a1answered)"]
    assert (one.result(), other.result()) == ("a", "b")
    assert isinstance(failing.error(), ValueError)

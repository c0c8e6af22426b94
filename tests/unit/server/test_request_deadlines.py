"""The heap of deadlines, on a loop whose time is set by the test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.server.deadlines import COMPACT_AT, DeadlineHeap


class Handle:
    def __init__(self, at_s: float, callback: Callable[[], None]) -> None:
        self.at_s, self.callback, self.cancelled = at_s, callback, False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """`advance` runs the timers that are due."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.handles: list[Handle] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, at_s: float, callback: Callable[[], None]) -> Handle:
        handle = Handle(at_s, callback)
        self.handles.append(handle)
        return handle

    def open(self) -> list[Handle]:
        return [handle for handle in self.handles if not handle.cancelled]

    def advance(self, to_s: float) -> None:
        self.now_s = to_s
        while due := [h for h in self.open() if h.at_s <= to_s]:
            self.handles.remove(due[0])
            due[0].callback()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def heap(loop: Any) -> DeadlineHeap:
    return DeadlineHeap(loop)


def test_deadlines_fire_in_order_of_time_then_of_adding(loop: Loop, heap: DeadlineHeap) -> None:
    fired: list[str] = []
    heap.add(20, lambda: fired.append("c"))
    heap.add(10, lambda: fired.append("a"))
    heap.add(10, lambda: fired.append("b"))
    assert len(loop.open()) == 1, "one timer for all"
    loop.advance(0.0099)
    assert fired == []
    loop.advance(0.010)
    assert fired == ["a", "b"]
    loop.advance(1)
    assert fired == ["a", "b", "c"]
    assert len(heap) == 0
    assert loop.open() == []


def test_a_cancelled_deadline_never_fires(loop: Loop, heap: DeadlineHeap) -> None:
    fired: list[str] = []
    first = heap.add(10, lambda: fired.append("a"))
    second = heap.add(20, lambda: fired.append("b"))
    first.cancel()
    first.cancel()
    assert len(heap) == 1
    loop.advance(1)
    assert fired == ["b"]
    second.cancel()
    assert len(heap) == 0


def test_callbacks_may_add_and_cancel(loop: Loop, heap: DeadlineHeap) -> None:
    fired: list[str] = []
    later = heap.add(10, lambda: fired.append("never"))

    def first() -> None:
        later.cancel()
        heap.add(5, lambda: fired.append("second"))
        fired.append("first")

    heap.add(9, first)
    loop.advance(0.009)
    loop.advance(0.020)
    assert fired == ["first", "second"]
    assert len(heap) == 0


def test_an_earlier_deadline_moves_the_timer(loop: Loop, heap: DeadlineHeap) -> None:
    heap.add(1000, lambda: None)
    heap.add(10, lambda: None)
    assert [handle.at_s for handle in loop.open()] == [0.010]


def test_cancelled_deadlines_do_not_pile_up(heap: DeadlineHeap) -> None:
    kept = heap.add(1_000_000, lambda: None)
    for _ in range(20 * COMPACT_AT):
        heap.add(500_000, lambda: None).cancel()
    assert len(heap._heap) <= 2 * COMPACT_AT + 2
    assert len(heap) == 1
    kept.cancel()


def test_closing_forgets_everything(loop: Loop, heap: DeadlineHeap) -> None:
    fired: list[str] = []
    heap.add(10, lambda: fired.append("a"))
    heap.close()
    loop.advance(1)
    assert fired == []

"""Deadlines against a plain model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kwire.coordinator.deadlines import Deadlines

KEYS = st.integers(0, 6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), KEYS, st.integers(0, 100)),
        st.tuples(st.just("cancel"), KEYS, st.just(0)),
        st.tuples(st.just("pop"), st.just(0), st.integers(0, 100)),
    ),
    max_size=200,
)


@given(STEPS)
def test_behaves_as_a_sorted_list(steps: list[tuple[str, int, int]]) -> None:
    deadlines: Deadlines[int] = Deadlines()
    model: dict[int, tuple[int, int]] = {}
    for order, (kind, key, value) in enumerate(steps):
        if kind == "schedule":
            deadlines.schedule(key, value)
            model[key] = (value, order)
        elif kind == "cancel":
            deadlines.cancel(key)
            model.pop(key, None)
        else:
            due = sorted((x, k) for k, x in model.items() if x[0] <= value)
            assert deadlines.pop_due(value) == (due[0][1] if due else None)
            if due:
                del model[due[0][1]]
        assert deadlines.next_deadline() == min((x[0] for x in model.values()), default=None)
        assert len(deadlines) == len(model)
        assert deadlines.deadline(key) == (model[key][0] if key in model else None)


def test_a_deadline_that_moves_back_all_the_time_costs_no_memory() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for now in range(100_000):
        deadlines.schedule("a", now + 45_000)
        if now % 1000 == 0:
            assert deadlines.pop_due(now) is None
    assert len(deadlines._heap) < 100
    assert deadlines.pop_due(99_999 + 44_999) is None
    assert deadlines.pop_due(99_999 + 45_000) == "a"
    assert "a" not in deadlines
    assert deadlines.next_deadline() is None


def test_equal_deadlines_in_the_order_in_which_they_were_set() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key in "cab":
        deadlines.schedule(key, 10)
    deadlines.schedule("c", 10)
    assert [deadlines.pop_due(10) for _ in range(4)] == ["a", "b", "c", None]

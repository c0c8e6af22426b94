"""Lag in seconds is made of ends that were seen one after the other."""

from __future__ import annotations

from kwire.metrics.lag import POINTS_MAX, LagHistory


def test_a_group_at_the_end_is_not_behind() -> None:
    history = LagHistory()
    history.saw("orders", "0", 100, 10.0)
    assert history.seconds("orders", "0", 100, 60.0) == 0
    assert history.seconds("orders", "0", 120, 60.0) == 0


def test_the_time_between_two_points_is_shared_by_offsets() -> None:
    history = LagHistory()
    history.saw("orders", "0", 100, 10.0)
    history.saw("orders", "0", 200, 20.0)
    assert history.seconds("orders", "0", 100, 30.0) == 20
    assert history.seconds("orders", "0", 150, 30.0) == 15


def test_what_was_there_before_the_first_reading_is_at_least_as_old() -> None:
    history = LagHistory()
    assert history.seconds("orders", "0", 5, 10.0) is None
    history.saw("orders", "0", 100, 10.0)
    assert history.seconds("orders", "0", 5, 10.0) == 0, "at the first scrape, too, it is told"
    assert history.seconds("orders", "0", 5, 40.0) == 30
    assert history.seconds("orders", "0", 5, 40.0, 20.0) == 30
    assert history.seconds("orders", "0", 5, 40.0, 300.0) == 300, "no record is younger"
    assert history.seconds("orders", "0", 100, 40.0, 300.0) == 0


def test_an_end_that_stands_still_is_one_point() -> None:
    history = LagHistory()
    for now_s in range(1000):
        history.saw("orders", "0", 100, float(now_s))
    history.saw("orders", "0", 110, 1000.0)
    assert history.seconds("orders", "0", 105, 1000.0) == 0.5, "it stood until 999"


def test_a_log_that_was_cut_begins_anew() -> None:
    history = LagHistory()
    history.saw("orders", "0", 100, 10.0)
    history.saw("orders", "0", 50, 20.0)
    assert history.seconds("orders", "0", 50, 20.0) == 0
    assert history.seconds("orders", "0", 10, 25.0) == 5


def test_old_points_are_thinned_out_and_reach_back_all_the_same() -> None:
    history = LagHistory()
    for now_s in range(POINTS_MAX * 20):
        history.saw("orders", "0", now_s * 10, float(now_s))
    assert len(history._points["orders", "0"][0]) <= POINTS_MAX
    end_s = POINTS_MAX * 20 - 1.0
    for offset in (0, 100, 5000, 20_000):
        found = history.seconds("orders", "0", offset, end_s)
        assert found is not None
        assert abs(found - (end_s - offset / 10)) < 1

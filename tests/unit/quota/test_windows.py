"""Rates against a model that keeps every single use, and against each other."""

from __future__ import annotations

import random

import pytest

from kwire.quota.sensor import Sensor
from kwire.quota.windows import THROTTLE_MS_MAX, Rate, TokenBucket, throttle_ms, token_throttle_ms


class BruteForce:
    """A rate that keeps every window with every use, as KIP-13 describes it.

    A window begins with a use behind the end of the one before. Windows in which the last use is
    `count` windows ago are empty and begin now.
    """

    def __init__(self, count: int, window_ms: int) -> None:
        self.count, self.window_ms = count, window_ms
        self.windows: list[tuple[int, list[tuple[int, float]]]] = []

    def record(self, value: float, now_ms: int) -> None:
        if not self.windows or now_ms - self.windows[-1][0] >= self.window_ms:
            self.windows = [*self.windows, (now_ms, [])][-(self.count + 1) :]
        self.windows[-1][1].append((now_ms, value))

    def measure(self, now_ms: int) -> float:
        limit_ms = self.count * self.window_ms
        self.windows = [
            (start_ms, uses)
            if now_ms - (uses[-1][0] if uses else start_ms) < limit_ms
            else (now_ms, [])
            for start_ms, uses in self.windows
        ]
        oldest_ms = min(start_ms for start_ms, _ in self.windows)
        elapsed_ms = now_ms - oldest_ms
        missing = max(0, self.count - 1 - elapsed_ms // self.window_ms)
        span_ms = max(1, elapsed_ms + missing * self.window_ms)
        return sum(value for _, uses in self.windows for _, value in uses) * 1000 / span_ms


@pytest.mark.parametrize("seed", range(30))
def test_a_rate_is_that_of_every_single_use(seed: int) -> None:
    rng = random.Random(seed)
    count, window_ms = rng.randrange(1, 12), rng.choice([10, 1000, 3000])
    rate, model = Rate(count, window_ms), BruteForce(count, window_ms)
    now_ms = rng.randrange(10**6)
    for _ in range(400):
        now_ms += rng.choice([0, 1, rng.randrange(window_ms), rng.randrange(count * window_ms * 2)])
        value = rng.randrange(-5, 1000)
        rate.record(value, now_ms)
        model.record(value, now_ms)
        if rng.random() < 0.7:
            assert rate.measure(now_ms) == pytest.approx(model.measure(now_ms), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_only_summed_up_decides_as_if_each_use_were_measured(seed: int) -> None:
    rng = random.Random(seed)
    count, window_ms = rng.randrange(1, 12), rng.choice([10, 1000])
    bound = rng.choice([50.0, 100.0, 10**6])
    sensor = Sensor(("u", "c"), bound, Rate(count, window_ms), THROTTLE_MS_MAX)
    measured = Rate(count, window_ms)
    now_ms = summed_up = 0
    for _ in range(500):
        now_ms += rng.choice([0, 1, rng.randrange(window_ms), rng.randrange(count * window_ms * 2)])
        value = float(rng.randrange(int(bound * window_ms / 500) + 1))
        measured.record(value, now_ms)
        expected, rate = 0, measured.measure(now_ms)
        if rate > bound:
            expected = throttle_ms(rate, bound, measured.span_ms(now_ms))
        if sensor.count(value, now_ms / 1000):
            summed_up += 1
            assert expected == 0
        else:
            assert sensor.record_and_wait_ms(value, now_ms) == expected
        if rng.random() < 0.05:
            measured.record(-value, now_ms)
            sensor.record(-value, now_ms)
        if rng.random() < 0.05:
            bound *= rng.choice([0.5, 2])
            sensor.set_bound(bound)
    assert summed_up > 5


def test_a_burst_of_one_window_is_free_and_twice_that_waits_for_it() -> None:
    sensor = Sensor(("", "q"), 100_000, Rate(), THROTTLE_MS_MAX)
    assert sensor.record_and_wait_ms(1_000_000, 5_000) == 0
    assert sensor.record_and_wait_ms(200_000, 5_000) == 2_000


def test_a_new_bound_counts_what_was_used_before() -> None:
    sensor = Sensor(("", "q"), 1_000, Rate(), THROTTLE_MS_MAX)
    assert sensor.record_and_wait_ms(9_000, 5_000) == 0
    sensor.set_bound(100)
    assert sensor.record_and_wait_ms(0, 5_000) == 80_000
    sensor.set_bound(10_000)
    assert sensor.record_and_wait_ms(0, 5_000) == 0


def test_what_is_taken_back_does_not_count() -> None:
    sensor = Sensor(("", "q"), 100, Rate(), THROTTLE_MS_MAX)
    assert sensor.record_and_wait_ms(5_000, 5_000) == 40_000
    sensor.record(-5_000, 5_000)
    assert sensor.record_and_wait_ms(1_000, 5_000) == 0


def test_a_wait_has_room_in_a_response() -> None:
    assert throttle_ms(1e300, 1e-300, 10**6) == THROTTLE_MS_MAX
    assert token_throttle_ms(-1e300, 1e-300) == THROTTLE_MS_MAX
    assert Sensor(("", "q"), 1, Rate(), 1000).record_and_wait_ms(10**9, 0) == 1000


def test_a_bucket_begins_full_and_pays_its_debt() -> None:
    bucket = TokenBucket(11, 1000)
    assert bucket.tokens(2.0, 500) == 22
    bucket.record(30, 2.0, 500)
    assert bucket.tokens(2.0, 500) == -8
    assert token_throttle_ms(-8, 2.0) == 4_000
    assert bucket.tokens(2.0, 4_500) == 0
    assert bucket.tokens(2.0, 10**9) == 22
    assert bucket.tokens(1.0, 10**9) == 11, "a lower bound makes it smaller"

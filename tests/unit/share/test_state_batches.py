"""State batches over others: by every offset, what Kafka's rule gives, and nothing twice."""

from __future__ import annotations

import itertools
import random

import pytest

from kwire.share.persister import StateBatch
from kwire.share.state_batches import combine, combine_valid, is_backward

LAST_OFFSET = (1 << 63) - 1


def by_offset(batches: list[StateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    """offset -> (delivery count, delivery state), the plain way."""
    found: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            if start_offset == -1 or offset >= start_offset:
                priority = batch.delivery_count, batch.delivery_state
                found[offset] = max(found.get(offset, priority), priority)
    return found


def drawn(rng: random.Random, count: int) -> list[StateBatch]:
    batches = []
    for _ in range(count):
        first = rng.randrange(60)
        batches.append(
            StateBatch(first, first + rng.randrange(12), rng.choice((0, 2, 3, 4)), rng.randrange(4))
        )
    return batches


@pytest.mark.parametrize("seed", range(60))
def test_every_offset_has_the_state_of_the_highest_count(seed: int) -> None:
    rng = random.Random(seed)
    known: list[StateBatch] = []
    for _ in range(30):
        new = drawn(rng, rng.randrange(5))
        start_offset = rng.choice((-1, 0, rng.randrange(70)))
        combined = combine(known, new, start_offset)
        assert by_offset(combined, -1) == by_offset([*known, *new], start_offset)
        for before, after in itertools.pairwise(combined):
            assert before.last_offset < after.first_offset
            if len(known) + len(new) > 1 and before.last_offset + 1 == after.first_offset:
                assert before[2:] != after[2:]
        assert combine(combined, [], -1) == combined
        known = combined if rng.random() < 0.9 else []


@pytest.mark.parametrize("seed", range(10))
def test_long_lists_are_combined_as_short_ones(seed: int) -> None:
    """Only what a new batch touches is worked out anew; the outcome is that of all of them."""
    rng = random.Random(seed)
    known: list[StateBatch] = []
    for step in range(300):
        first = rng.randrange(1500)
        new = [StateBatch(first, first + rng.randrange(3), rng.choice((0, 2)), rng.randrange(3))]
        start_offset = step if rng.random() < 0.1 else -1
        combined = combine(known, new, start_offset)
        swept = combine((), [*known, *new], start_offset)
        assert combined == swept
        known = combined
    assert len(known) > 100


def test_a_batch_that_ends_before_it_begins_is_kept_alone_and_combined_with_none() -> None:
    backward = StateBatch(9, 5, 0, 1)
    assert is_backward(backward)
    assert is_backward(StateBatch(5, LAST_OFFSET, 0, 1))
    assert combine([], [backward], 0) == [backward]
    assert combine([backward], [], 6) == []
    with pytest.raises(ValueError, match="from 9 to 5"):
        combine([StateBatch(0, 3, 0, 1)], [backward], 0)
    assert combine_valid([StateBatch(0, 3, 0, 1)], [backward], 0) == [StateBatch(0, 3, 0, 1)]


def test_many_short_batches_under_a_long_one_take_no_longer_than_many_beside_it() -> None:
    """Each batch that is open is looked at a few times, not once for each that begins."""
    short = [StateBatch(2 * n, 2 * n, 0, 1) for n in range(20_000)]
    over = StateBatch(0, 40_000, 2, 5)
    compared = 0

    class Counted(int):
        def __lt__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int.__lt__(self, int(other))  # type: ignore[call-overload]

    counted = [x._replace(delivery_count=Counted(1)) for x in short]
    assert combine([over], counted, 0) == [StateBatch(0, 40_000, 2, 5)]
    assert compared < 40 * len(short)

"""The table of states of a record in a share group."""

from __future__ import annotations

import itertools

import pytest

from kwire.share.in_flight import RecordStatus
from kwire.share.states import ACKNOWLEDGED, ARCHIVED, FINAL, TRANSITIONS, RecordState


@pytest.mark.parametrize(("state", "following"), [*itertools.product(RecordState, RecordState)])
def test_a_record_takes_only_the_ways_of_the_table(
    state: RecordState, following: RecordState
) -> None:
    status = RecordStatus(state, 1, "member")
    if following in TRANSITIONS[state]:
        status.settle(following)
        assert (status.state, status.member_id) == (following, "")
    else:
        with pytest.raises(AssertionError):
            status.settle(following)


def test_nothing_follows_a_final_state() -> None:
    assert {ACKNOWLEDGED, ARCHIVED} == FINAL

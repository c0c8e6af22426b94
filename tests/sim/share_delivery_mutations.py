"""Faults of share partitions put into the code on purpose, to show that `share_deliveries.py` finds
them."""

from __future__ import annotations

from typing import Any

from kwire.pending import Pending
from kwire.share import acquisition
from kwire.share.in_flight import RecordStatus
from kwire.share.led_partition import LedPartition
from kwire.share.partition import SharePartition
from kwire.share.states import ACKNOWLEDGED, ARCHIVED, AVAILABLE
from tests.sim.mutations import Mutation


def answered_before_it_is_written(replace: Any) -> None:
    """Nothing is written at all, and acknowledgements are answered."""

    def write(self: Any, change: Any) -> Pending[None]:
        self.state.written(change, True)
        return Pending.completed(None)

    replace(LedPartition, "_write", write)


def accepted_is_written_as_free(replace: Any) -> None:
    """What was accepted is free for the next leader."""
    original = SharePartition.begin

    def begin(self: Any, first: int, last: int, status: Any, state: Any) -> Any:
        transition = original(self, first, last, status, state)
        is_accepted = transition.state is ACKNOWLEDGED
        return transition._replace(state=AVAILABLE) if is_accepted else transition

    replace(SharePartition, "begin", begin)


def locks_never_run_out(replace: Any) -> None:
    """What a member holds stays its own."""
    replace(SharePartition, "next_deadline_ms", lambda self: None)


def released_is_forgotten(replace: Any) -> None:
    """Nobody looks for what was given back."""
    original = SharePartition.next_fetch_offset

    def next_fetch_offset(self: Any) -> int:
        self.has_free = False
        return original(self)

    replace(SharePartition, "next_fetch_offset", next_fetch_offset)


def deliveries_are_not_counted(replace: Any) -> None:
    """A record that is delivered again and again counts as new."""
    original = RecordStatus.acquire

    def acquire(self: Any, member_id: str) -> None:
        original(self, member_id)
        self.delivery_count = max(1, self.delivery_count - 1)

    replace(RecordStatus, "acquire", acquire)


def one_delivery_too_many(replace: Any) -> None:
    """The limit is looked at one delivery too late."""

    def settled(self: Any, status: Any, state: Any) -> Any:
        is_spent = status.delivery_count > self.settings.delivery_count_limit
        return ARCHIVED if state is AVAILABLE and is_spent else state

    replace(SharePartition, "_settled", settled)


def one_delivery_too_few(replace: Any) -> None:
    """The limit is looked at one delivery too early."""

    def settled(self: Any, status: Any, state: Any) -> Any:
        is_spent = status.delivery_count >= self.settings.delivery_count_limit - 1
        return ARCHIVED if state is AVAILABLE and is_spent else state

    replace(SharePartition, "_settled", settled)


def the_start_goes_too_far(replace: Any) -> None:
    """Records behind the start that are not done with are left behind."""
    original = SharePartition.move_start

    def move_start(self: Any) -> None:
        original(self)
        if self.in_flight > 3 and self.batches and self.batches[0].offsets is not None:
            self._begin_at(self.start_offset + 1)

    replace(SharePartition, "move_start", move_start)


def new_records_are_skipped(replace: Any) -> None:
    """Each range that is acquired leaves out the record behind it."""
    original = acquisition._Acquisition._take_new

    def take_new(self: Any, first: int, last: int, at: int) -> None:
        original(self, first, last, at)
        self._partition.end_offset += 1

    replace(acquisition._Acquisition, "_take_new", take_new)


def gaps_count_as_done(replace: Any) -> None:
    """A leader takes what it knows nothing of for accepted."""
    original = SharePartition.opened

    def opened(self: Any, start_offset: int, state_epoch: int, batches: Any) -> Any:
        waiting = original(self, start_offset, state_epoch, batches)
        for batch in self.batches:
            if batch.status.state is AVAILABLE and not batch.status.delivery_count:
                batch.status.state = ACKNOWLEDGED
        self.move_start()
        return waiting

    replace(SharePartition, "opened", opened)


def rejected_comes_again(replace: Any) -> None:
    """A rejection is taken for a release."""
    from kwire.share import acknowledgement

    replace(acknowledgement, "ACKNOWLEDGED_AS", {**acknowledgement.ACKNOWLEDGED_AS, 3: AVAILABLE})


def members_that_go_keep_what_they_have(replace: Any) -> None:
    """Nothing is given back when a session closes, and no lock is kept."""

    def release(self: Any, member_id: str) -> Pending[None]:
        for batch in self.state.batches:
            for _, _, status in batch.statuses():
                if status.member_id == member_id:
                    status.lock = None
        return Pending.completed(None)

    replace(LedPartition, "release", release)


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        answered_before_it_is_written,
        accepted_is_written_as_free,
        locks_never_run_out,
        released_is_forgotten,
        deliveries_are_not_counted,
        one_delivery_too_many,
        one_delivery_too_few,
        the_start_goes_too_far,
        new_records_are_skipped,
        gaps_count_as_done,
        rejected_comes_again,
        members_that_go_keep_what_they_have,
    )
}

"""Assignments that take several turns of the loop: computed and encoded in slices.

What is computed is soft state, and dropped when the group's epoch has moved on meanwhile. When the
log refuses it, it is computed anew after a pause: a part may be written, and members may be others.
The pause grows where the log has no room for it: only a change of a setting helps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import islice
from typing import NamedTuple

from kwire.coordinator import batches
from kwire.coordinator.group.assignors.spec import Assigning, Assignment, TopicPartitions
from kwire.coordinator.group.kinds import GroupDeadlines
from kwire.coordinator.open_batch import Encoded
from kwire.coordinator.repeated_writes import RETRY_MS
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

#: Partitions, and MEMBER_SIZE for each member, up to which an assignment is computed within one
#: heartbeat: about 3 ms. A member counts for more than its share of that, as each that joins has it
#: computed anew.
INLINE_SIZE_MAX = 2000
MEMBER_SIZE = 10
#: Targets that a slice encodes.
SLICE_RECORDS = 200
#: The pause where an assignment is too large becomes twice as long each time, up to this.
RETRY_MS_MAX = 60_000
#: Members of a large group that come within this time are assigned to together.
BEGIN_AFTER_MS = 20


class Job(NamedTuple):
    """An assignment that is being computed, or has been and waits to be written."""

    epoch: int
    begin: Callable[[], Assigning]
    # member in the assignment -> the id that it has by now
    renamed: dict[str, str]
    # None until the first slice
    steps: Assigning | None = None
    result: Assignment | None = None
    # member -> the record of its target, and key and value of that
    written: dict[str, tuple[CoordinatorRecord, Encoded]] | None = None
    # how often it was too large for the log
    too_large: int = 0


def finish(steps: Assigning) -> Assignment:
    """The whole assignment at once."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: Assignment = finished.value
            return result


class AssignmentJobs:
    """The running assignments of one kind of group. `timer` names its deadlines; the other two
    make records: of a member's target, and of the epoch of the targets with the time."""

    def __init__(
        self,
        deadlines: GroupDeadlines,
        timer: str,
        target_record: Callable[[str, str, TopicPartitions], CoordinatorRecord],
        epoch_record: Callable[[str, int, int], CoordinatorRecord],
    ) -> None:
        self._deadlines = deadlines
        self._timer = timer
        self._target_record = target_record
        self._epoch_record = epoch_record
        self._jobs: dict[str, Job] = {}

    def is_running(self, group_id: str, epoch: int) -> bool:
        """Whether the assignment of that epoch is on its way."""
        job = self._jobs.get(group_id)
        return job is not None and job.epoch == epoch

    def start(
        self, group_id: str, epoch: int, begin: Callable[[], Assigning], moment: Moment
    ) -> None:
        """Compute in slices, BEGIN_AFTER_MS from now or from an earlier epoch that has not begun.
        Only then does `begin` look at the group."""
        if self.is_running(group_id, epoch):
            return
        waiting = self._jobs.get(group_id)
        self._jobs[group_id] = Job(epoch, begin, {})
        if waiting is None or waiting.steps is not None:
            self._deadlines.schedule((self._timer, group_id), moment.now_ms + BEGIN_AFTER_MS)

    def rename(self, group_id: str, before: str, after: str) -> None:
        """A static member came back as another one, which changes no epoch: what is assigned to its
        predecessor is its own."""
        job = self._jobs.get(group_id)
        if job is None or job.steps is None:
            return
        for member_id, present in job.renamed.items():
            if present == before:
                job.renamed[member_id] = after
        job.renamed[before] = after

    def _begin_anew(self, group_id: str, job: Job, at_ms: int) -> None:
        self._jobs[group_id] = Job(job.epoch, job.begin, {}, too_large=job.too_large)
        self._deadlines.schedule((self._timer, group_id), at_ms)

    def forget(self, group_id: str) -> None:
        self._jobs.pop(group_id, None)
        self._deadlines.cancel((self._timer, group_id))

    def slice_of(
        self,
        group_id: str,
        group_epoch: int | None,
        targets: Mapping[str, TopicPartitions],
        moment: Moment,
    ) -> Result[None]:
        """One slice; with the last one, the records of what has changed to `targets`. A group
        that is gone has no epoch."""
        job = self._jobs.get(group_id)
        if job is None or job.epoch != group_epoch:
            self._jobs.pop(group_id, None)
            return Result()
        if job.result is not None:
            return self._write_slice(group_id, targets, job, moment)
        at_ms = moment.now_ms
        steps = job.steps
        if steps is None:
            steps = job.begin()
            job = self._jobs[group_id] = job._replace(steps=steps)
        try:
            next(steps)
        except StopIteration as finished:
            # Thousands of records take turns of the loop for themselves.
            self._jobs[group_id] = job._replace(result=finished.value, written={})
            at_ms += 1
        self._deadlines.schedule((self._timer, group_id), at_ms)
        return Result()

    def _write_slice(
        self, group_id: str, targets: Mapping[str, TopicPartitions], job: Job, moment: Moment
    ) -> Result[None]:
        """Encode the targets of some members ahead; when all are, the records of the assignment."""
        result, written = job.result, job.written
        assert result is not None
        assert written is not None
        if len(written) < len(result):
            for member_id in list(islice(result, len(written), len(written) + SLICE_RECORDS)):
                record = self._target_record(group_id, member_id, result[member_id])
                written[member_id] = record, batches.encode(record)
            # The last slice does not share a turn with the append.
            at_ms = moment.now_ms + int(len(written) == len(result))
            self._deadlines.schedule((self._timer, group_id), at_ms)
            return Result()
        changed: list[tuple[CoordinatorRecord, Encoded]] = []
        for member_id, partitions in result.items():
            present = job.renamed.get(member_id, member_id)
            if targets.get(present) == partitions:
                continue
            if present == member_id:
                changed.append(written[member_id])
            else:
                record = self._target_record(group_id, present, partitions)
                changed.append((record, batches.encode(record)))
        epoch = self._epoch_record(group_id, job.epoch, moment.wall_ms)

        def appended() -> None:
            self._jobs.pop(group_id, None)

        def refused(error: KafkaError) -> None:
            if error.code != ErrorCode.MESSAGE_TOO_LARGE:
                self._begin_anew(group_id, job, moment.now_ms + RETRY_MS)
                return
            too_large = job.too_large + 1
            pause_ms = min(RETRY_MS << min(job.too_large, 16), RETRY_MS_MAX)
            self._begin_anew(group_id, job._replace(too_large=too_large), moment.now_ms + pause_ms)
            if too_large == 1:
                logger.warning(
                    "the assignment of group %r at epoch %d is not stored, of one member it is "
                    "larger than a batch of __consumer_offsets may be: %s",
                    *(group_id, job.epoch, error),
                )

        return Result(
            [*(record for record, _ in changed), epoch],
            None,
            appended,
            refused,
            atomic=False,
            encoded=[*(encoded for _, encoded in changed), batches.encode(epoch)],
        )

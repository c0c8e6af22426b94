"""Faults put into the code on purpose, to show that `group_refusals.py` finds them."""

from __future__ import annotations

from typing import Any

from tests.sim.mutations import Mutation


def refused_assignments_stay_jobs(replace: Any) -> None:
    """The job of an assignment that was refused waits for nothing."""
    from kwire.coordinator.group.assignment_jobs import AssignmentJobs

    original = AssignmentJobs._write_slice

    def write_slice(self: Any, *given: Any) -> Any:
        result = original(self, *given)
        return result._replace(refused=lambda error: None) if result.records else result

    replace(AssignmentJobs, "_write_slice", write_slice)


def refused_deadlines_are_over(replace: Any) -> None:
    """A deadline acts once, whether what it decides is written or not."""
    from kwire.coordinator.group import retries

    replace(retries, "_again_if_refused", lambda deadlines, action: action)


def jobs_keep_ids_of_predecessors(replace: Any) -> None:
    """An assignment that is computed is for the members of its beginning."""
    from kwire.coordinator.group.assignment_jobs import AssignmentJobs

    replace(AssignmentJobs, "rename", lambda self, group_id, before, after: None)


def refused_deletions_of_offsets_are_over(replace: Any) -> None:
    """Offsets of a deleted topic are looked for once."""
    from kwire.coordinator.group.expiry import Expiry

    original = Expiry.delete

    def delete(self: Any, moment: Any) -> Any:
        return original(self, moment)._replace(refused=None)

    replace(Expiry, "delete", delete)


def writes_are_not_repeated(replace: Any) -> None:
    """What follows from a deleted topic is written once."""
    from kwire.coordinator.repeated_writes import RepeatedWrites

    replace(RepeatedWrites, "_written", lambda self, partition, operation, done: None)


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        refused_assignments_stay_jobs,
        refused_deadlines_are_over,
        jobs_keep_ids_of_predecessors,
        refused_deletions_of_offsets_are_over,
        writes_are_not_repeated,
    )
}

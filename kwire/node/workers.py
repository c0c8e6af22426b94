"""Threads of a node: one for each kind of job, started at its first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from kwire.log.kernel_syncs import KernelSyncs
from kwire.log.partition.deferred_checks import Checks
from kwire.log.scheduling import LoopScheduler
from kwire.pending import Pending

NewExecutor = Callable[[str], Executor]
"""`new_executor(name)` makes what runs the jobs of one kind."""


def one_thread(name: str) -> Executor:
    """An executor with one thread, started at its first job."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, thread_name_prefix=name)


class Workers:
    """Makes schedulers, and ends what they run. `syncs` let the kernel sync files, where there are
    real ones."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        new_executor: NewExecutor,
        syncs: KernelSyncs | None = None,
    ) -> None:
        self.syncs = syncs
        self._loop = loop
        self._new_executor = new_executor
        self._schedulers: list[LoopScheduler] = []
        self._checks: Checks | None = None

    def scheduler(self, name: str) -> LoopScheduler:
        """Timers of the loop, and jobs of a worker of their own, one at a time."""
        scheduler = LoopScheduler(self._loop, self._new_executor(name))
        self._schedulers.append(scheduler)
        return scheduler

    @property
    def checks(self) -> Checks:
        """Checks batches that would hold up the loop."""
        if self._checks is None:
            self._checks = Checks(self.scheduler("kwire-check"))
        return self._checks

    def checks_ended(self) -> Pending[None] | None:
        """No more checks; done when those under way are. None where there were none."""
        return None if self._checks is None else self._checks.close()

    def close(self) -> None:
        """Jobs under way end, no other begins."""
        if self.syncs is not None:
            self.syncs.close()
        for scheduler in self._schedulers:
            scheduler.close()


def workers_of(
    loop: asyncio.AbstractEventLoop, new_executor: NewExecutor | None, *, is_real: bool
) -> Workers:
    """The workers of a node. `is_real`: its files are those of this machine."""
    syncs = KernelSyncs(loop) if is_real and new_executor is None else None
    return Workers(loop, new_executor or one_thread, syncs)

"""The process that made a broker. A fork of it (`os.fork`, `multiprocessing`) has its objects and
none of its threads."""

from __future__ import annotations

import os

from kwire.testing.brokers.runner import BrokerFailed


class Owner:
    """Of `what`: the process in which it is made."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is the process, and no fork of it."""
        return os.getpid() == self._pid

    def check(self) -> None:
        """BrokerFailed, at once, in a fork: nothing would answer there."""
        if not self.is_here:
            raise BrokerFailed(
                f"{self._what} belongs to process {self._pid}, of which this one is a fork: it is "
                "started, ended and changed there, and clients reach it from everywhere"
            )

"""A note in a data directory while it is made another: what ends within leaves half of it, on which
no broker may start as if nothing were missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kwire.testing.brokers.runner import BrokerFailed

NOTE = ".kwire-unfinished"


@contextmanager
def unfinished(data: Path) -> Iterator[None]:
    """The directory, made where it is not there, is nobody's until this has ended well; OSError.

    A process that is killed leaves the note too. It is not synced: what loses power is no test.
    """
    os.makedirs(data, exist_ok=True)
    (data / NOTE).touch()
    yield
    os.unlink(data / NOTE)


def check_finished(data: str | Path) -> None:
    """BrokerFailed, one line: a directory is half of what a restore or a reset makes of it."""
    if os.path.lexists(os.path.join(data, NOTE)):
        raise BrokerFailed(
            f"{data} is half of what it was to be: a restore or reset of it has failed or was "
            "killed; restore(snapshot) or reset() makes it whole"
        )

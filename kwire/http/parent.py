"""A process that does not outlive the one that has started it."""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> bool:
    """Have the kernel end this process with its parent, where it can (Linux). Whether the parent
    is still there."""
    if sys.platform.startswith("linux"):
        import ctypes

        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        except (AttributeError, OSError):
            pass
    return os.getppid() == parent

"""The command line of a module of kwire's own, for processes that a process of it starts."""

from __future__ import annotations

import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def python_module(name: str) -> list[str]:
    """`python -m NAME`, without the directory that this process happens to run in.

    `-m` alone looks there first: a file `json.py` or `http.py` that lies about, or that somebody
    has put there, would be executed in the place of Python's own. Where kwire itself is imported
    from that directory (a source tree that is not installed) it stays.
    """
    return [sys.executable, *([] if _is_run_from_its_source() else ["-P"]), "-m", name]


def _is_run_from_its_source() -> bool:
    try:
        return os.path.samefile(_ROOT, os.getcwd())
    except OSError:  # the directory is gone
        return False

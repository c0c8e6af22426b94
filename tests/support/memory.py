"""Whether what a process has resident says something of kwire."""

from __future__ import annotations

import os


def is_memory_its_own() -> bool:
    """False under `tools/asan.py`, where each object has borders and is kept when it is freed."""
    return "libasan" not in os.environ.get("LD_PRELOAD", "")

"""Ask again until the answer is the one that is waited for."""

from __future__ import annotations

import time

from tests.support.frames import WireError
from tests.wire.connection import Conn


def retry(fn, ok, seconds: float = 15.0, pause: float = 0.1):
    """Call fn until ok(result); returns the last result (also when time ran out)."""
    end = time.monotonic() + seconds
    while True:
        r = fn()
        if ok(r) or time.monotonic() > end:
            return r
        time.sleep(pause)


def wait_up(bootstrap: str, seconds: float = 60.0):
    """Wait until the broker at this address answers ApiVersions and Metadata."""
    end, err = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            with Conn(bootstrap, timeout=3) as c:
                if (
                    c.send("api_versions", 0).error_code == 0
                    and c.send("metadata", 1, topics=[]).brokers
                ):
                    return
        except (OSError, WireError) as e:
            err = e
        time.sleep(0.3)
    raise AssertionError(f"broker {bootstrap} not up within {seconds} s: {err!r}")

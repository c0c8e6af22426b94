"""What limits cost a new connection, and the audit log a denial: microseconds of CPU each.

python bench/admission.py
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import Callable

from kwire.clock import SystemClock
from kwire.config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.log.scheduling import ImmediateScheduler
from kwire.node.audit import Audit, AuditFile
from kwire.security.acl import Operation, ResourceType
from kwire.server.connection_admission import ConnectionAdmission
from kwire.server.connection_limits import ConnectionLimits

ROUNDS, COUNT = 5, 2000


class Connection:
    """Ends as soon as it was served."""

    listener_name = "A"
    client_host = "/10.0.0.1"
    last_active_s = 0.0
    principal = "User:alice"
    client_id = "bench"

    def hold(self, is_held: bool) -> None:
        pass

    def close(self, reason: str, level: int = logging.INFO) -> None:
        pass


def least_us(act: Callable[[], None]) -> float:
    """Of one act, the least of all rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(COUNT):
            act()
        found.append((time.process_time() - start) / COUNT * 1e6)
    return min(found)


def admission_us(settings: dict[str, str], loop: asyncio.AbstractEventLoop) -> float:
    limits = ConnectionLimits(DynamicConfig(BrokerConfig.load(overrides=settings)), ["A"], "A")
    if settings:
        limits.set_address_rates({None: 10**9 - 1})
    admission = ConnectionAdmission(loop, limits)

    def one() -> None:
        connection = Connection()
        admission.opened(connection)
        admission.closed(connection)

    return least_us(one)


def audit_us(lines_per_second: int, loop: asyncio.AbstractEventLoop, path: str) -> float:
    file = AuditFile(path)
    events = frozenset(["denied"])
    audit = Audit(loop, SystemClock(), ImmediateScheduler(), file, events, lines_per_second)
    audit.start()
    asker = Connection()

    def one() -> None:
        audit.denied(asker, Operation.READ, ResourceType.TOPIC, "orders")

    found = least_us(one)
    audit.close()
    return found


def main() -> None:
    loop = asyncio.new_event_loop()
    limits = {
        "max.connections": "100000",
        "max.connections.per.ip": "100000",
        "max.connection.creation.rate": "1000000000",
    }
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "audit.log")
        print(f"a connection without limits      {admission_us({}, loop):6.2f} us")
        print(f"a connection with all limits     {admission_us(limits, loop):6.2f} us")
        print(f"a denial that is written         {audit_us(10**9, loop, path):6.2f} us")
        print(f"a denial that is left out        {audit_us(1, loop, path):6.2f} us")
    loop.close()


if __name__ == "__main__":
    main()

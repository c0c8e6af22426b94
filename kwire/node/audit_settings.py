"""Whether a node has an audit log; the code of one is loaded only then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.clock import Clock
from kwire.config.node_settings import NodeSettings
from kwire.log.scheduling import Scheduler

if TYPE_CHECKING:
    from kwire.node.audit import Audit


def audit_of(
    settings: NodeSettings,
    loop: asyncio.AbstractEventLoop,
    clock: Clock,
    new_worker: Callable[[str], Scheduler],
) -> Audit | None:
    """The audit log that the settings ask for (`kwire/node/audit.py`)."""
    if not settings["kwire.audit.log"]:
        return None
    from kwire.node.audit import make_audit

    return make_audit(settings, loop, clock, new_worker)

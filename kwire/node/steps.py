"""What every request of a node passes (`kwire/server/request_steps.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.clock import Clock, SystemClock, ticks_ns
from kwire.config.node_settings import NodeSettings
from kwire.server.request_steps import RequestSteps

if TYPE_CHECKING:
    from kwire.node.audit import Audit


def steps_of(
    settings: NodeSettings,
    loop: asyncio.AbstractEventLoop,
    clock: Clock,
    audit: Audit | None,
    has_authorizer: Callable[[], bool],
) -> RequestSteps:
    """The steps as the settings ask for them. `audit` hears of clients that do not prove who they
    are; under a simulated clock the work of a request takes no time."""
    ticks = ticks_ns if isinstance(clock, SystemClock) else lambda: int(loop.time() * 1e9)
    steps = RequestSteps(has_authorizer, ticks, settings["kwire.plain.requests.enable"])
    if audit is not None:
        steps.authentication_failed = audit.authentication_failed
    return steps

"""Whether a node writes an audit log, and what writes to it. Without one nothing is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.clock import Clock
from kwire.config.broker_config import BrokerConfig
from kwire.log.scheduling import Scheduler
from kwire.security.authorizer import AuditedAuthorizer, Authorizer

if TYPE_CHECKING:
    from kwire.node.audit import Audit


def audit_of(
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    clock: Clock,
    new_scheduler: Callable[[str], Scheduler],
) -> Audit | None:
    """What `kwire.audit.log` asks for."""
    if not config["kwire.audit.log"]:
        return None
    from kwire.node.audit import make_audit

    return make_audit(config, loop, clock, new_scheduler)


def audited(authorizer: Authorizer | None, audit: Audit | None) -> Authorizer | None:
    """The authorizer whose refusals are in the audit log, where there are both."""
    if authorizer is None or audit is None:
        return authorizer
    return AuditedAuthorizer(authorizer, audit)

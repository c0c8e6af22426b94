"""A share worker that decodes: who answers slowly holds up no lock."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

from kwire.cli.records import Consumed
from kwire.cli.share_worker import Work, take
from kwire.protocol.records import Record


def test_locks_are_renewed_while_a_registry_is_asked() -> None:
    """The request held up the worker's loop, for up to 30 s, the time that a lock lasts."""
    renewed, said = threading.Event(), []

    async def renew(*held: object) -> None:
        said.append(len(held))
        renewed.set()

    def decode(consumed: Consumed) -> Consumed:
        assert renewed.wait(20), "the loop does not go on meanwhile"
        return consumed._replace(record=consumed.record._replace(value=b"shown"))

    shown = []

    def show(consumed: Consumed) -> bytes:
        shown.append(consumed.record.value)
        return b""

    consumer = SimpleNamespace(lock_s=0.01, renew=renew, accept=said.append)
    held = [
        SimpleNamespace(topic="t", partition=0, record=Record(at, 0, None, b"bytes", []))
        for at in range(2)
    ]
    work = Work("t", "g", None, show, 0, 0, decode)
    asyncio.run(take(consumer, held, work))  # type: ignore[arg-type]
    assert shown == [b"shown"]
    assert said[0] == 2
    assert said[-1] is held[0]

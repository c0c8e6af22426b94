"""The audit log of a node: decisions that matter, to a file or the standard output.

    kwire.audit.log                `stdout`, or the path of a file that lines are added to; empty:
                                   no audit log, and no code of it is loaded
    kwire.audit.events             which events are written (`kwire/security/audit.py`)
    kwire.audit.lines.per.second   how many lines a second at most; what is left out is counted

Lines are written by a thread of their own, the loop never waits for them. A file that was moved
away (logrotate) is opened anew before the next lines. What cannot be written is left out, and the
log says so once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

from kwire.clock import Clock
from kwire.config.values import TypedValue
from kwire.node.start_error import StartError
from kwire.pending import Pending
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.structs import Message
from kwire.security import audit
from kwire.security.acl import Operation, ResourceType
from kwire.security.audit_changes import change_of
from kwire.security.authorizer import Requester

T = TypeVar("T")
logger = logging.getLogger(__name__)

LOG, EVENTS, LINES = "kwire.audit.log", "kwire.audit.events", "kwire.audit.lines.per.second"
STDOUT = "stdout"
LINES_HELD_MAX = 10_000
"""While the thread writes; what comes beyond is left out."""
LEFT_OUT_S = 1.0
PIPE_FULL_S = 1.0
"""So long whoever reads a pipe has time to make room."""


class Settings(Protocol):
    """The node's own settings."""

    def __getitem__(self, name: str) -> TypedValue: ...


class Worker(Protocol):
    """Runs jobs one at a time, off the loop."""

    def run(self, job: Callable[[], T]) -> Pending[T]: ...


class Asker(Requester, Protocol):
    """Who has sent a request, and what it was (`kwire.server.context.RequestContext`)."""

    @property
    def client_id(self) -> str | None: ...

    @property
    def listener_name(self) -> str: ...


class AuditFile:
    """Where the lines go. Used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self._is_torn = False
        """The file ends within a line: the disk was full, or a process was killed."""

    def open(self) -> None:
        """OSError if that cannot be. A pipe waits for nobody who reads it."""
        if self.path == STDOUT:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(self.path, flags, 0o640)
        self._is_torn = _ends_within_a_line(self.path)

    def write(self, text: str) -> None:
        """Add lines. OSError if they cannot be written."""
        if self.path == STDOUT:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        if self._descriptor >= 0 and self._is_moved():
            moved, self._descriptor = self._descriptor, -1  # the number is another file's soon
            os.close(moved)
        if self._descriptor < 0:
            self.open()
        data = ("\n" + text if self._is_torn else text).encode()
        written = 0
        try:
            while written < len(data):
                written += self._write_some(data[written:])
        finally:
            if written:
                self._is_torn = data[written - 1 : written] != b"\n"

    def _write_some(self, data: bytes) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # a pipe that is full
            select.select((), (self._descriptor,), (), PIPE_FULL_S)
            return os.write(self._descriptor, data)

    def _is_moved(self) -> bool:
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return True
        except OSError:  # its directory may not be looked into any more: the open file is there
            return False
        ours = os.fstat(self._descriptor)
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)


def _ends_within_a_line(path: str) -> bool:
    """Whether a file has a beginning of a line at its end; False where it cannot be read."""
    try:
        with open(path, "rb", opener=_opened_at_once) as file:
            return (
                file.seek(0, os.SEEK_END) > 0
                and file.seek(-1, os.SEEK_END) >= 0
                and (file.read(1) != b"\n")
            )
    except OSError:
        return False


def _opened_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


class Audit:
    """See the module. Nothing is written before `start`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        worker: Worker,
        file: AuditFile,
        events: frozenset[str],
        lines_per_second: int,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._worker = worker
        self._file = file
        self._events = events
        self._rate = audit.LineRate(lines_per_second)
        self._held: list[str] = []
        self._is_writing = True  # not until it is open
        self._has_failed = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Open the file; StartError where that cannot be."""
        try:
            self._file.open()
        except OSError as error:
            path, why = self._file.path, error.strerror or error
            raise StartError(f"{LOG}={path} cannot be opened: {why}") from None
        self._is_writing = False
        if self._held:
            self._begin()

    # -- events

    def denied(
        self, requester: Requester, operation: int, resource_type: int, resource_name: str, /
    ) -> None:
        """A client lacks a right."""
        if audit.DENIED in self._events:
            self._tell(
                audit.DENIED,
                {
                    **_who(requester),
                    "operation": _name(Operation, operation),
                    "resource_type": _name(ResourceType, resource_type),
                    "resource": resource_name,
                },
            )

    def executed(self, asker: Asker, request: Message, response: Message) -> None:
        """The controller has answered a request; what it changed is committed."""
        change = change_of(request, response)
        if change is not None and change.event in self._events:
            self._tell(change.event, {**_who(asker), "changes": change.names})

    def authentication_failed(
        self, client_host: str, listener_name: str, mechanism: str, reason: str
    ) -> None:
        """A client has not proved who it is. No part of what it sent for a proof is told."""
        if audit.AUTHENTICATION_FAILURE in self._events:
            self._tell(
                audit.AUTHENTICATION_FAILURE,
                {
                    "client_host": client_host.removeprefix("/"),
                    "listener": listener_name,
                    "mechanism": mechanism or None,
                    "reason": reason,
                },
            )

    # -- writing

    def _tell(self, event: str, fields: audit.Fields) -> None:
        if not self._rate.admits(event, int(self._loop.time() * 1000)):
            self._arm()
        elif len(self._held) >= LINES_HELD_MAX:
            self._rate.leave_out(event)
            self._arm()
        else:
            self._write(audit.line(event, fields, self._clock.wall_ms()))

    def _arm(self) -> None:
        """Something was left out: say so in a second."""
        if self._timer is None:
            self._timer = self._loop.call_later(LEFT_OUT_S, self._tell_left_out)

    def _tell_left_out(self) -> None:
        self._timer = None
        for event, count in self._rate.take_left_out().items():
            fields: audit.Fields = {"left_out": event, "count": count}
            self._write(audit.line(audit.LEFT_OUT, fields, self._clock.wall_ms()))

    def _write(self, line: str) -> None:
        self._held.append(line)
        if not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._is_writing = True
        text, self._held = "".join(self._held), []
        self._worker.run(lambda: self._file.write(text)).add_done_callback(self._written)

    def _written(self, done: Pending[None]) -> None:
        self._is_writing = False
        error = done.error()
        if error is not None and not self._has_failed:
            logger.error("the audit log cannot be written, events are lost: %s", error)
        self._has_failed = error is not None
        if self._held:
            self._begin()

    def close(self) -> None:
        """The node stops: what is held is written now."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell_left_out()
        text, self._held = "".join(self._held), []
        if text:
            try:
                self._file.write(text)
            except OSError as error:
                logger.error("the audit log cannot be written, events are lost: %s", error)


def make_audit(
    settings: Settings,
    loop: asyncio.AbstractEventLoop,
    clock: Clock,
    new_worker: Callable[[str], Worker],
) -> Audit:
    """The audit log that the settings ask for."""
    events, lines = frozenset(settings[EVENTS]), settings[LINES]
    return Audit(loop, clock, new_worker("kwire-audit"), AuditFile(settings[LOG]), events, lines)


def _who(requester: Requester) -> dict[str, str | None]:
    api_key = getattr(requester, "api_key", None)
    info = None if api_key is None else API_KEYS.get(api_key)
    return {
        "principal": requester.principal,
        "client_host": requester.client_host.removeprefix("/"),
        "client_id": getattr(requester, "client_id", None),
        "listener": getattr(requester, "listener_name", None),
        "api": None if info is None else info.name,
    }


def _name(kind: type[Operation] | type[ResourceType], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return str(number)

"""Syncs that the kernel makes by itself: Linux AIO's IOCB_CMD_FDSYNC, reported by an eventfd.

A thread that calls `fdatasync` needs the interpreter's lock before and after, which a busy loop
hands over late (up to the switch interval of 5 ms each time). Here the loop submits, the kernel
syncs all files of a submission at the same time, and the loop hears of it like of a socket.

    struct iocb      u64 data, u32 key, i32 rw_flags, u16 opcode, i16 priority, u32 descriptor,
                     u64 buffer, u64 size, i64 offset, u64 reserved, u32 flags, u32 eventfd
    struct io_event  u64 data, u64 iocb, i64 result (0 or -errno), i64 result2

Source: Linux's include/uapi/linux/aio_abi.h; FDSYNC works from Linux 4.18 on. Where it does not
(another system, a container that forbids it) `is_available` is false and threads do it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Sequence
from struct import Struct

from kwire.log.files import PASSING, NotBegunError
from kwire.pending import Pending

logger = logging.getLogger(__name__)

IOCB = Struct("QIiHhIQQqQII")
EVENT = Struct("QQqq")
FDSYNC = 3
HAS_EVENTFD = 1
IN_FLIGHT_MAX = 128  # what is more waits here
# By machine: io_setup, io_destroy, io_submit, io_getevents.
SYSCALLS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4), "riscv64": (0, 1, 2, 4)}


class KernelSyncs:
    """Submits syncs of open files to the kernel; used by the loop's thread only.

    What it needs of the kernel it asks for at the first sync.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._state: _Context | None = None
        self._is_missing = not hasattr(os, "eventfd") or os.uname().machine not in SYSCALLS
        self._number = 0
        self._in_flight: dict[int, _Group] = {}
        self._backlog: list[tuple[int, _Group]] = []

    @property
    def is_available(self) -> bool:
        """Whether the kernel does this for us."""
        if self._state is None and not self._is_missing:
            try:
                self._state = _Context()
            except (OSError, AttributeError) as error:
                logger.info("syncs are made by threads: %s", error)
                self._is_missing = True
            else:
                self._loop.add_reader(self._state.eventfd, self._ready)
        return self._state is not None

    def sync(self, handles: list[int]) -> Pending[None]:
        """fdatasync all of these; fails with the OSError of one when all are over."""
        group = _Group(len(handles))
        if not handles:
            group.pending.complete(None)
        self._backlog += [(handle, group) for handle in handles]
        self._begin()
        return group.pending

    def close(self) -> None:
        """Wait for what is under way, and let go of the kernel's part."""
        self._is_missing = True
        state, self._state = self._state, None
        if state is not None:
            self._loop.remove_reader(state.eventfd)
            state.close()

    def _begin(self) -> None:
        """Submit as many as there is room for."""
        while self._backlog and len(self._in_flight) < IN_FLIGHT_MAX:
            if self._state is None:
                raise AssertionError("a sync without is_available")
            room = IN_FLIGHT_MAX - len(self._in_flight)
            chosen = self._backlog[:room]
            first = self._number + 1
            taken, number = self._state.submit([handle for handle, _ in chosen], first)
            self._number += taken
            for at in range(taken):
                self._in_flight[first + at] = chosen[at][1]
            self._backlog = self._backlog[taken:]
            if taken:
                continue
            if number == errno.EAGAIN and self._in_flight:
                return  # again when one of those is over
            # This one cannot be submitted: it counts as not synced, or is tried again later.
            _, group = self._backlog.pop(0)
            kind = NotBegunError if number in PASSING else OSError
            group.settle(kind(number, os.strerror(number)))

    def _ready(self) -> None:
        """Some are over."""
        if self._state is None:
            return
        for number, result in self._state.finished():
            group = self._in_flight.pop(number)
            group.settle(OSError(-result, os.strerror(-result)) if result < 0 else None)
        self._begin()


class _Context:
    """The kernel's queue. Raises OSError where it has none that syncs."""

    def __init__(self) -> None:
        import ctypes

        setup, *others = SYSCALLS[os.uname().machine]
        self._destroy, self._submit, self._get_events = map(ctypes.c_long, others)
        self._long, self._errno = ctypes.c_long, ctypes.get_errno
        self._call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
        self._context = ctypes.c_ulong(0)
        count = ctypes.c_long(IN_FLIGHT_MAX)
        if self._call(ctypes.c_long(setup), count, ctypes.byref(self._context)) < 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        self._count, self._no_wait = count, ctypes.c_long(0)
        self._blocks = ctypes.create_string_buffer(IOCB.size * IN_FLIGHT_MAX)
        start = ctypes.addressof(self._blocks)
        self._pointers = (ctypes.c_void_p * IN_FLIGHT_MAX)(
            *(start + at * IOCB.size for at in range(IN_FLIGHT_MAX))
        )
        self._events = ctypes.create_string_buffer(EVENT.size * IN_FLIGHT_MAX)
        self.eventfd = os.eventfd(0, os.EFD_CLOEXEC)
        try:
            self._probe()
        except OSError:
            self.close()
            raise
        os.set_blocking(self.eventfd, False)

    def _probe(self) -> None:
        """Sync a file in memory: kernels before 4.18 have the call, but no syncs."""
        handle = os.memfd_create("probe", os.MFD_CLOEXEC)
        try:
            taken, number = self.submit([handle], 0)
        finally:
            os.close(handle)
        if not taken:
            raise OSError(number, "io_submit")
        self.finished()

    def submit(self, handles: Sequence[int], first: int) -> tuple[int, int]:
        """Begin syncs, numbered from `first`; how many were taken, and an errno when none."""
        for at, handle in enumerate(handles):
            IOCB.pack_into(
                self._blocks, at * IOCB.size,
                first + at, 0, 0, FDSYNC, 0, handle, 0, 0, 0, 0, HAS_EVENTFD, self.eventfd,
            )  # fmt: skip
        count = self._long(len(handles))
        taken = self._call(self._submit, self._context, count, self._pointers)
        return max(taken, 0), self._errno() if taken < 0 else errno.EAGAIN

    def finished(self) -> list[tuple[int, int]]:
        """(number, 0 or -errno) of syncs that are over."""
        try:
            os.eventfd_read(self.eventfd)
        except BlockingIOError:
            return []
        count = self._call(
            self._get_events, self._context, self._no_wait, self._count, self._events, None
        )
        return [EVENT.unpack_from(self._events, at * EVENT.size)[::2] for at in range(count)]

    def close(self) -> None:
        self._call(self._destroy, self._context)
        os.close(self.eventfd)


class _Group:
    """The files of one call of `sync`."""

    __slots__ = ("_error", "_open_count", "pending")

    def __init__(self, count: int) -> None:
        self.pending: Pending[None] = Pending()
        self._open_count = count
        self._error: OSError | None = None

    def settle(self, error: OSError | None) -> None:
        """One of the files is synced, or has failed."""
        if self._error is None or isinstance(self._error, NotBegunError):
            self._error = error or self._error
        self._open_count -= 1
        if self._open_count:
            return
        if self._error is not None:
            self.pending.fail(self._error)
        else:
            self.pending.complete(None)

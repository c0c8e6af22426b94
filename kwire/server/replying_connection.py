"""What a connection sends: replies that leave together, and the end of it.

Replies of one read leave in one write, and so do those that come one behind the other otherwise.
What was read of a file is handed on as it is where the transport can send files.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial

from kwire.log.types import FileSlice
from kwire.network.buffers import BufferPool
from kwire.network.frames import Buffer
from kwire.pending import Pending
from kwire.server.context import Response
from kwire.server.paused_connection import PausedConnection
from kwire.server.request_counts import Timed
from kwire.server.slots import Buffers, Slot
from kwire.turn_budget import TurnBudget

logger = logging.getLogger(__name__)

OUTPUT_BYTES_MAX = 64 * 1024
CLOSE_S = 10.0


class ReplyingConnection(PausedConnection):
    """See the module. A subclass has the replies in order (`_slots`)."""

    __slots__ = (
        "_in_batch",
        "_output",
        "_output_bytes",
        "_slots",
        "client_host",
        "client_port",
        "sends_files",
    )

    def __init__(
        self,
        pool: BufferPool,
        frame_bytes_max: int,
        loop: asyncio.AbstractEventLoop,
        turns: TurnBudget,
    ) -> None:
        super().__init__(pool, frame_bytes_max, loop, turns)
        self.client_host = ""
        self.client_port = 0
        self._slots: deque[Slot] = deque()
        self._output: list[Buffer] = []
        self._output_bytes = 0
        self.sends_files = False
        self._in_batch = False  # of requests that were read at once

    def close(self, reason: str, level: int = logging.INFO) -> None:
        """Close from our side, with one line in the log; unsent replies are still sent."""
        if not self._closed and not self.transport.is_closing():
            where = self.client_host, self.client_port
            logger.log(level, "closing the connection from %s:%d: %s", *where, reason)
            self.stop_cutting()
            self._send_output()
            self.transport.close()
            if self._writing_paused:
                # The client does not read: it gets a while, then what is unsent is dropped.
                self._loop.call_later(CLOSE_S, self.transport.abort)

    def _emit(self, parts: Buffers) -> None:
        """Send a reply; small ones of one read leave together."""
        if len(parts) > 1 and self.sends_files:
            try:
                parts = [part.view() if type(part) is FileSlice else part for part in parts]
            except OSError as error:
                self.close(f"a response cannot be sent: {error}")
                return
        if (first := not self._in_batch and not self._output) and not self._slots:
            self.write_frames(parts)
            return
        self._output.extend(parts)
        self._output_bytes += sum(map(len, parts))
        if self._output_bytes >= OUTPUT_BYTES_MAX:
            self._send_output()
        elif first:
            # The client has more on their way: what one commit answers leaves together.
            self._loop.call_soon(self._send_output)

    # -- places that plain roads hold

    def take_place(self, place: Slot) -> None:
        """The answer of the newest request will leave behind all that were in front of it."""
        self._slots.append(place)

    def block_with(self, place: Slot) -> None:
        """As `take_place`, and the next request starts when this one is answered."""
        self._slots.append(place)
        self._blocking = place

    def answered(self, place: Slot) -> bool:
        """What a place has in its `parts` may leave; whether anybody gets it."""
        slots = self._slots
        if self._closed:
            return False
        if len(slots) == 1 and place.parts is not None:
            slots.clear()
            self._emit(place.parts)
        else:
            place.done = True
            self._flush_slots()
        if self._blocking is place:
            self._blocking = None
            self._run_queue()
        self._replied()
        return True

    def answer_generally(self, place: Slot, timed: Timed | None, answer: Pending[Response]) -> None:
        """A place, which has its `context` by now, gets another answer."""
        if self._closed:
            answer.cancel()  # nobody gets it, and nobody else would free what waits for it
            return
        place.pending = answer
        answer.add_done_callback(partial(self._pending_done, place, timed))

    def _pending_done(self, slot: Slot, timed: Timed | None, pending: Pending[Response]) -> None:
        """A place has its answer."""
        raise NotImplementedError

    def _flush_slots(self) -> None:
        """Send what is in turn."""
        raise NotImplementedError

    def _replied(self) -> None:
        """One answer less is awaited."""
        raise NotImplementedError

    def _send_output(self) -> None:
        output, self._output = self._output, []
        self._output_bytes = 0
        if output:
            self.write_frames(output)

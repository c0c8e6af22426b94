"""What is to be done to one request: the effects of all faults that meet it."""

from __future__ import annotations

from typing import NamedTuple

from kwire.faults.answers import Chosen
from kwire.faults.places import Place
from kwire.protocol.errors import ErrorCode


class Refused(NamedTuple):
    """The chosen entries are answered with `code`; `after`: the request is executed all the
    same."""

    place: Place
    code: ErrorCode
    chosen: Chosen
    after: bool


class Plan:
    """In the order in which it happens. `drops` and `drops_reply` say how, None not at all; a
    reply is cut behind `cut_at` bytes (-1: half). A Fetch whose partitions its session has is asked
    to name them (`asks_for_names`); one that names them opens no session (`has_names`)."""

    def __init__(self) -> None:
        self.delay_ms = 0
        self.asks_for_names = False
        self.has_names = False
        self.drops: str | None = None
        self.refused: list[Refused] = []
        self.hidden: list[tuple[Place, Chosen]] = []
        self.corrupted: list[Chosen] = []
        self.throttle_ms = 0
        self.reply_delay_ms = 0
        self.drops_reply: str | None = None
        self.cut_at: int | None = None

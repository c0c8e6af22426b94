"""What was asked of one API and how it was answered, in plain integers.

A request is counted when it is answered, as Apache Kafka does: by version, and by the error codes
in its response. Nearly every code is NONE: those that are not are counted each for itself, and of
NONE how many codes there were. Nearly every response has as many codes as is usual for its API; the
encoder tells so on its way (`kwire/protocol/answer_encoder.py`), and then its version is put down:
an addition makes a number and frees one, which takes three times as long. Those are added up before
anything is read, and with the first request that is begun in ten milliseconds, so that they stay
few. For all others a function is written for each API, because the way through attributes and a
walk over fields would cost more than all the rest. What a request touches for its counts is in no
cache of the processor when the next one comes, and costs more than the additions: it is one list
for all of an API.

Times and sizes are kept of the last `RECENT_MAX` requests that were timed, of which quantiles are
taken: of an API one in ten milliseconds at most, the first that is begun then. So readings of the
clock do not add up where requests are many, and what is kept is of ten seconds at least. Only
`kwire/metrics` reads these numbers (ADR 30).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from functools import cache
from types import MethodType
from typing import TypeAlias

from kwire.clock import ticks_ns
from kwire.protocol import messages as m
from kwire.protocol.structs import Message
from kwire.server.context import DISCONNECT, NO_REPLY, Disconnect, NoReply
from kwire.server.error_codes import CODES, error_lines, usual_codes
from kwire.server.sliced_response import SlicedResponse

RECENT_MAX = 1024
TIMED_S = 0.01
"""From one request of an API that is timed to the next."""
VERSIONS_MAX = 64
SEEN = VERSIONS_MAX
"""The place of `numbers` behind those of the versions: how many more codes there were than are
usual (`usual_codes`)."""
REFUSED = SEEN + 2
"""The place of code 0; -1 is in front of it. There are those that are not NONE."""
PLAIN = REFUSED + CODES
"""The place of how many took a plain road (`plain_requests.py`)."""
OF_EACH = 3  # numbers that are kept of a request that was timed

Answer: TypeAlias = Message | NoReply | Disconnect
Count: TypeAlias = Callable[[int, Answer], None]
"""(version, answer): a request is answered."""


class Timed:
    """A request that is timed: its size, when it was begun, and when its handler returned; 0 for
    one that is answered at once."""

    __slots__ = ("executed_ns", "request_bytes", "started_ns")

    def __init__(self, request_bytes: int) -> None:
        self.request_bytes = request_bytes
        self.started_ns = ticks_ns()
        self.executed_ns = 0

    def executed(self) -> None:
        """Its handler has returned; the answer comes later, or behind others."""
        self.executed_ns = ticks_ns()


_SOURCE = """\
def count(numbers, version, response):
    numbers[version] += 1
    {errors}
def count_any(numbers, version, response):
    if 0 <= version < VERSIONS_MAX:
        numbers[version] += 1
        numbers[SEEN] -= {usual}
    if response is not NO_REPLY and response is not DISCONNECT:
        numbers[SEEN] += {usual}
        {errors}
"""
_NAMES = {"DISCONNECT": DISCONNECT, "NO_REPLY": NO_REPLY, "VERSIONS_MAX": VERSIONS_MAX}


class RequestCounts:
    """The counts of one API.

    `count` is for a response to a request whose version is known (`count_unusual` where the encoder
    was asked), `count_any` for all others: one that is refused before its handler may be of any
    version. `due_s` is the loop's time from which on a request is timed again. `throttled_ms` is
    (how often, for how long) its clients were made to wait by quotas. `numbers` is how many were
    answered by version, `SEEN`, and how often there was which code (`REFUSED`); those that were
    usual and are not added there yet stand in `usual` with their versions.
    """

    __slots__ = (
        "_api_key",
        "_at",
        "_followers",
        "_recent",
        "_throttles",
        "count",
        "count_any",
        "due_s",
        "numbers",
        "throttled_ms",
        "usual",
    )

    def __init__(self, api_key: int) -> None:
        self._api_key = api_key
        self._followers: RequestCounts | None = None
        self.numbers = [0] * (PLAIN + 1)
        self.usual: list[int] = []
        self.throttled_ms = (0, 0)
        self._throttles: deque[tuple[int, int]] = deque(maxlen=RECENT_MAX)
        count, count_any = _functions(api_key)
        self.count: Count = MethodType(count, self.numbers)
        self.count_any: Count = MethodType(count_any, self.numbers)
        self.due_s = 0.0
        self._recent = array("q")  # written round about, where it has its full length
        self._at = 0

    def count_unusual(self, version: int, response: Answer | SlicedResponse) -> None:
        """Count an answer that is another than most are (see `AnswerCounts`)."""
        if not isinstance(response, SlicedResponse):
            self.count(version, response)
            return
        numbers = self.numbers
        self.count(version, response.message)
        for code, count in response.errors.items():
            numbers[SEEN] += count
            if code:
                numbers[REFUSED + code] += count

    def _add_up(self) -> None:
        """Add those that were usual to `numbers`."""
        usual, numbers = self.usual, self.numbers
        for version in dict.fromkeys(usual):
            numbers[version] += usual.count(version)
        usual.clear()
        if self._followers is not None:
            self._followers._add_up()

    @property
    def by_version(self) -> list[int]:
        """How many requests were answered, by version."""
        self._add_up()
        return self.numbers[:VERSIONS_MAX]

    @property
    def errors(self) -> list[int]:
        """How often an answer had which error code."""
        found = self.numbers[REFUSED:PLAIN]
        found[-1] += self.numbers[REFUSED - 1]
        all_codes = self.numbers[SEEN] + self.total * usual_codes(self._api_key)
        found[0] = all_codes - sum(found)
        return found

    @property
    def plain(self) -> int:
        """How many of them took a plain road."""
        return self.numbers[PLAIN]

    @property
    def total(self) -> int:
        """How many requests were answered."""
        return sum(self.by_version)

    def begun(self, turn_s: float, request_bytes: int) -> Timed:
        """A request that is timed is begun, in a turn of the loop at `turn_s`."""
        self.due_s = turn_s + TIMED_S
        self._add_up()
        return Timed(request_bytes)

    def begun_at(self, turn_s: float, started_ns: int, request_bytes: int) -> Timed:
        """As `begun`, of a request that a plain road has executed since `started_ns`."""
        timed = self.begun(turn_s, request_bytes)
        timed.started_ns, timed.executed_ns = started_ns, ticks_ns()
        return timed

    def answered_at_once(self, turn_s: float, started_ns: int, request_bytes: int) -> None:
        """A request that was to be timed, begun at `started_ns`, was answered by a plain road."""
        self.due_s = turn_s + TIMED_S
        self._add_up()
        self._keep(ticks_ns() - started_ns, 0, request_bytes)

    def answered_plainly(self, version: int, codes: int, timed: Timed | None) -> None:
        """A plain road has answered: no error, and `codes` more codes than are usual."""
        numbers = self.numbers
        numbers[version] += 1
        numbers[PLAIN] += 1
        if codes:
            numbers[SEEN] += codes
        if timed is not None:
            self.ended(timed)

    def ended(self, timed: Timed) -> None:
        """It is answered."""
        now_ns = ticks_ns()
        executed_ns = timed.executed_ns or now_ns
        self._keep(executed_ns - timed.started_ns, now_ns - executed_ns, timed.request_bytes)

    def _keep(self, local_ns: int, remote_ns: int, request_bytes: int) -> None:
        recent, at = self._recent, self._at
        if len(recent) < RECENT_MAX * OF_EACH:
            recent.extend((local_ns, remote_ns, request_bytes))
            return
        recent[at] = local_ns
        recent[at + 1] = remote_ns
        recent[at + 2] = request_bytes
        self._at = (at + OF_EACH) % len(recent)

    @property
    def recent(self) -> list[tuple[int, int, int]]:
        """Of the last requests that were timed, the oldest first: (ns in the handler, ns from then
        until the answer, bytes of the request)."""
        ordered = self._recent[self._at :] + self._recent[: self._at]
        return list(zip(*(ordered[at::OF_EACH] for at in range(OF_EACH)), strict=True))

    @property
    def recent_bytes(self) -> bytes:
        """`recent` as int64 of the machine, in no order."""
        return self._recent.tobytes()

    @property
    def followers(self) -> RequestCounts | None:
        """`of_followers`, if there were any."""
        return self._followers

    @property
    def of_followers(self) -> RequestCounts:
        """The same of requests by followers, which Apache Kafka has apart for Fetch."""
        if self._followers is None:
            self._followers = RequestCounts(self._api_key)
        return self._followers

    def throttled(self, wait_ms: int) -> None:
        """The client of a request is made to wait."""
        times, all_ms = self.throttled_ms
        self.throttled_ms = times + 1, all_ms + wait_ms
        self._throttles.append((self.total, wait_ms))

    def recent_throttles_ms(self) -> list[int]:
        """How long those of the last `RECENT_MAX` requests were made to wait that were."""
        first = self.total - RECENT_MAX
        return [wait_ms for number, wait_ms in self._throttles if number >= first]


def unusual_codes(response: Message) -> int | None:
    """What counting a response adds at `SEEN`; None for one with a code that is not NONE."""
    numbers = [0] * (PLAIN + 1)
    count, _ = _functions(response.API_KEY)
    count(numbers, 0, response)
    return None if any(numbers[SEEN + 1 :]) else numbers[SEEN]


CountOf: TypeAlias = Callable[[list[int], int, Answer], None]


@cache
def _functions(api_key: int) -> tuple[CountOf, CountOf]:
    """`count` and `count_any` of `_SOURCE` with the lines of an API, compiled."""
    response_class = m.response_class(api_key)
    errors = error_lines(response_class)
    lines: list[str] = []
    for line in _SOURCE.splitlines():
        if line.strip() == "{errors}":
            lines += [line.replace("{errors}", each) for each in errors]
        else:
            lines.append(line.replace("{usual}", str(usual_codes(api_key))))
    text = "\n".join(lines).replace("SEEN", str(SEEN)).replace("REFUSED", str(REFUSED))
    names: dict[str, CountOf] = {}
    exec(compile(text, f"<counts of {response_class.NAME}>", "exec"), _NAMES, names)
    return names["count"], names["count_any"]

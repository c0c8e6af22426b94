"""What was asked of one API and how it was answered, in plain integers.

A request is counted when it is answered, as Apache Kafka does: by version, by the error codes in
its response, and with its times and its size among the last `RECENT_MAX`, of which quantiles are
taken. What is answered within the call of its handler (nearly everything) costs one call of
`prompt`, what waits one of `late`; these functions are written for each API, because the way
through attributes and a walk over the fields of a response would cost more than all the rest. Only
`kwire/metrics` reads these numbers (ADR 30).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Protocol, TypeAlias

from kwire.clock import ticks_ns
from kwire.protocol import messages as m
from kwire.protocol import schema
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.structs import Message
from kwire.server.context import DISCONNECT, NO_REPLY, Disconnect, NoReply

RECENT_MAX = 1024  # a power of two
VERSIONS_MAX = 64
CODES = 256  # by error code; -1 is the last

Answer: TypeAlias = Message | NoReply | Disconnect
Prompt: TypeAlias = Callable[[int, int, Answer, int], int]
"""(version, size of the request, answer, when it was begun in ns) -> now: a request is answered,
and has not waited."""
Late: TypeAlias = Callable[["Waited", int, Answer], None]
"""(when it waited, version, answer): a request is answered after its handler had returned, or
behind others. One that is refused before its handler may be of any version."""


class Waited(Protocol):
    """A request that is not answered at once: when it was begun, and when its handler returned."""

    started_ns: int
    executed_ns: int
    request_bytes: int


_SOURCE = """\
def make(by_version, errors):
    times, sizes, at = [None] * RECENT_MAX, [0] * RECENT_MAX, 0
    def recent():
        return times[at:] + times[:at], sizes[at:] + sizes[:at]
    def late(waited, version, response):
        nonlocal at
        executed_ns = waited.executed_ns
        times[at] = executed_ns - waited.started_ns, ticks_ns() - executed_ns
        sizes[at] = waited.request_bytes
        at = (at + 1) & LAST
        if 0 <= version < VERSIONS_MAX:
            by_version[version] += 1
        if response is not NO_REPLY and response is not DISCONNECT:
            {errors}
    def prompt(version, request_bytes, response, started_ns):
        nonlocal at
        now_ns = ticks_ns()
        by_version[version] += 1
        times[at] = now_ns - started_ns
        sizes[at] = request_bytes
        at = (at + 1) & LAST
        if response is not NO_REPLY:
            {errors}
        return now_ns
    return late, prompt, recent
"""
"""Lists of numbers that are written round about: tuples in a deque touch three times the memory."""
_NAMES = {
    "DISCONNECT": DISCONNECT,
    "LAST": RECENT_MAX - 1,
    "NO_REPLY": NO_REPLY,
    "RECENT_MAX": RECENT_MAX,
    "VERSIONS_MAX": VERSIONS_MAX,
    "ticks_ns": ticks_ns,
}


class RequestCounts:
    """The counts of one API.

    `throttled_ms` is (how often, for how long) its clients were made to wait by quotas.
    """

    __slots__ = (
        "_api_key",
        "_followers",
        "_recent",
        "_throttles",
        "by_version",
        "errors",
        "late",
        "prompt",
        "throttled_ms",
    )

    def __init__(self, api_key: int) -> None:
        self._api_key = api_key
        self._followers: RequestCounts | None = None
        self.by_version = [0] * VERSIONS_MAX
        self.errors = [0] * CODES
        self.throttled_ms = (0, 0)
        self._throttles: deque[tuple[int, int]] = deque(maxlen=RECENT_MAX)
        self.late, self.prompt, self._recent = _maker(api_key)(self.by_version, self.errors)

    @property
    def total(self) -> int:
        """How many requests were answered."""
        return sum(self.by_version)

    @property
    def recent(self) -> list[tuple[int, int, int]]:
        """Of the last requests, the oldest first: (ns in the handler, ns from then until the
        answer, bytes of the request)."""
        return [
            (*times, size) if isinstance(times, tuple) else (times, 0, size)
            for times, size in zip(*self._recent(), strict=True)
            if times is not None
        ]

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


Times: TypeAlias = tuple[int, int] | int | None
Recent: TypeAlias = Callable[[], tuple[list[Times], list[int]]]
Maker: TypeAlias = Callable[[list[int], list[int]], tuple[Late, Prompt, Recent]]


@cache
def _maker(api_key: int) -> Maker:
    """`_SOURCE` with the lines of an API, compiled."""
    response_class = m.response_class(api_key)
    errors = error_lines(response_class)
    lines: list[str] = []
    for line in _SOURCE.splitlines():
        if line.strip() == "{errors}":
            lines += [line.replace("{errors}", each) for each in errors]
        else:
            lines.append(line)
    names: dict[str, Maker] = {}
    exec(compile("\n".join(lines), f"<counts of {response_class.NAME}>", "exec"), _NAMES, names)
    return names["make"]


# -- the error codes of a response

CODE_FIELDS = ("error_code", "partition_error_code")
NEVER_AT_TOP = frozenset({ApiKey.METADATA})
AT_TOP_WITHOUT = {
    ApiKey.FIND_COORDINATOR: "coordinators",
    ApiKey.OFFSET_FETCH: "groups",
    ApiKey.ADD_PARTITIONS_TO_TXN: "results_by_topic_v3_and_below",
}
"""The error at the top counts only where this list is empty."""


def error_lines(response_class: type[Message]) -> list[str]:
    """The lines that count the error codes of a `response` in `errors`, as Apache Kafka 4.4 counts
    them (`errorCounts` of its classes): one at the top, and those of the structs inside."""
    root, key = response_class.SCHEMA.root, response_class.API_KEY
    lines: list[str] = []
    if key in AT_TOP_WITHOUT:
        lines.append(f"if not response.{AT_TOP_WITHOUT[ApiKey(key)]}:")
        lines.append("    errors[response.error_code] += 1")
    elif key not in NEVER_AT_TOP and _has_code(root):
        lines.append("errors[response.error_code] += 1")
    _write_inner(root, "response", "", lines)
    return lines or ["pass"]


def _has_code(struct: schema.Struct) -> bool:
    return any(field.name in CODE_FIELDS for field in struct.fields)


def _write_inner(struct: schema.Struct, name: str, indent: str, lines: list[str]) -> None:
    """The lines that count the codes in the structs of a struct."""
    for field in struct.fields:
        inner = field.struct
        if inner is None or not _holds_code(inner):
            continue
        each = f"{name}_"
        if field.is_array:
            or_none = " or ()" if field.nullable != schema.NONE else ""
            lines.append(f"{indent}for {each} in {name}.{field.name}{or_none}:")
        else:
            lines.append(f"{indent}{each} = {name}.{field.name}")
            lines.append(f"{indent}if {each} is not None:")
        for code in inner.fields:
            if code.name in CODE_FIELDS:
                lines.append(f"{indent}    errors[{each}.{code.name}] += 1")
        _write_inner(inner, each, indent + "    ", lines)


def _holds_code(struct: schema.Struct) -> bool:
    return _has_code(struct) or any(
        field.struct is not None and _holds_code(field.struct) for field in struct.fields
    )

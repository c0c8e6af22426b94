"""The list of faults: what each is called, what it needs, what it does. docs/FAULTS.md shows it."""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from kwire.faults.errors import FaultError, quoted

OptionType: TypeAlias = Literal["int", "bool", "text"]
Value: TypeAlias = int | float | bool | str
Given: TypeAlias = Value | None


class Acts(Enum):
    """Where a fault acts."""

    REQUEST = "on requests"
    DISK = "on the disk"
    CLOCK = "on the clock"
    ONCE = "once, when it is added"


class Option(NamedTuple):
    """`choices` are the texts that are accepted, `least` and `most` the bounds of a number. Without
    a default it has to be given."""

    name: str
    type: OptionType
    default: Value | None
    text: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 3_600_000


class Kind(NamedTuple):
    """`selectors` are accepted beside those of all requests, `needs` have to be given. `apis` are
    those that it can meet, all where there are none; of those a rule may pick one."""

    name: str
    acts: Acts
    text: str
    looks: str
    options: tuple[Option, ...] = ()
    selectors: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()


REQUEST_SELECTORS = (
    "api",
    "client_id",
    "principal",
    "topic",
    "partition",
    "group",
    "transactional_id",
)
"""What picks requests."""
COUNTS = ("times", "skip", "probability", "seed")
"""How many of the picked ones a fault meets."""

_WAYS = ("close", "silence")
_HOW = Option(
    "how",
    "text",
    "close",
    "`close`: the connection is closed; `silence`: it stays, and nothing is answered any more",
    _WAYS,
)
_MS = Option("ms", "int", None, "milliseconds", least=1)

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "error",
            Acts.REQUEST,
            "answers with an error code, in each place of the response that may carry it",
            "a broker that refuses",
            (
                Option("code", "text", None, "name of an error code that the API may carry"),
                Option("after", "bool", False, "the request is executed, then refused"),
            ),
            REQUEST_SELECTORS,
        ),
        Kind(
            "leader-moved",
            Acts.REQUEST,
            "NOT_LEADER_OR_FOLLOWER for partitions, as a broker answers that leads them no more",
            "a leader that has just moved, while metadata still names it",
            selectors=REQUEST_SELECTORS,
        ),
        Kind(
            "coordinator-loading",
            Acts.REQUEST,
            "COORDINATOR_LOAD_IN_PROGRESS for requests to coordinators, lists among them; a "
            "Heartbeat has no error",
            "a coordinator that loads its partition after a move",
            selectors=REQUEST_SELECTORS,
        ),
        Kind(
            "coordinator-moved",
            Acts.REQUEST,
            "NOT_COORDINATOR for requests to coordinators",
            "a coordinator that has just moved",
            selectors=REQUEST_SELECTORS,
        ),
        Kind(
            "delay",
            Acts.REQUEST,
            "lets requests wait before they are executed, or their replies before they are sent",
            "a broker that is slow; what comes behind on the connection waits too",
            (
                _MS,
                Option("after", "bool", False, "the reply waits, not the request"),
            ),
            REQUEST_SELECTORS,
        ),
        Kind(
            "drop-request",
            Acts.REQUEST,
            "loses requests before they are executed",
            "a connection that breaks on the way there",
            (_HOW,),
            REQUEST_SELECTORS,
        ),
        Kind(
            "drop-reply",
            Acts.REQUEST,
            "executes requests and loses their replies",
            "a connection that breaks on the way back",
            (_HOW,),
            REQUEST_SELECTORS,
        ),
        Kind(
            "cut-reply",
            Acts.REQUEST,
            "executes requests and closes the connection in the middle of the reply's frame",
            "a broker that dies while it sends",
            (
                Option(
                    "at",
                    "int",
                    -1,
                    "bytes of the frame that are sent; -1: half of it",
                    least=-1,
                    most=1 << 30,
                ),
            ),
            REQUEST_SELECTORS,
        ),
        Kind(
            "corrupt-records",
            Acts.REQUEST,
            "makes the CRC of the first batch that a Fetch returns wrong; the disk keeps it whole",
            "a record batch whose CRC is wrong",
            selectors=REQUEST_SELECTORS,
            apis=("Fetch", "ShareFetch"),
        ),
        Kind(
            "throttle",
            Acts.REQUEST,
            "a throttle time in the response; the connection is muted for so long (KIP-219)",
            "a client over its quota",
            (_MS,),
            REQUEST_SELECTORS,
        ),
        Kind(
            "isr-shrink",
            Acts.REQUEST,
            "hides a partition from followers that fetch it, until replica.lag.time.max.ms puts "
            "them out of the ISR; those of a partition that nobody writes to stay in it",
            "followers that lag",
            (Option("replica", "int", -1, "broker id of one follower; -1: all", least=-1),),
            ("topic", "partition"),
            ("topic",),
            ("Fetch",),
        ),
        Kind(
            "move-leader",
            Acts.ONCE,
            "makes another replica the leader of a partition",
            "the move itself",
            (Option("to", "int", None, "broker id"),),
            ("topic", "partition"),
            ("topic", "partition"),
        ),
        Kind(
            "fence-producer",
            Acts.ONCE,
            "a second producer takes the transactional id over (InitProducerId)",
            "the first one is fenced, and its open transaction aborted",
            selectors=("transactional_id",),
            needs=("transactional_id",),
        ),
        Kind(
            "fence-member",
            Acts.ONCE,
            "removes a member from its group, of any kind; `member` left out: all members",
            "a member whose session has ended: its next request is answered UNKNOWN_MEMBER_ID",
            (Option("member", "text", "", "member id"),),
            ("group",),
            ("group",),
        ),
        Kind(
            "rebalance",
            Acts.ONCE,
            "a member joins a classic group and leaves it at once",
            "a rebalance of all members",
            selectors=("group",),
            needs=("group",),
        ),
        Kind(
            "disk-full",
            Acts.DISK,
            "writes to partitions' files fail with ENOSPC",
            "a full disk",
        ),
        Kind(
            "disk-slow",
            Acts.DISK,
            "each sync of a file takes so much longer, and with `writes` each write to a "
            "partition; other requests are answered meanwhile",
            "a disk that is busy or fails",
            (
                Option("ms", "int", None, "milliseconds", least=1, most=60_000),
                Option("writes", "bool", False, "writes to partitions too"),
            ),
        ),
        Kind(
            "clock-skew",
            Acts.CLOCK,
            "the broker's wall clock is so far ahead, or behind below 0",
            "a machine without time synchronisation",
            (
                Option(
                    "ms",
                    "int",
                    None,
                    "milliseconds",
                    least=-(10**12),
                    most=10**12,
                ),
            ),
        ),
        Kind(
            "power-loss",
            Acts.ONCE,
            "ends the broker as SIGKILL does, and takes back what was written and not synced",
            "a machine that loses power",
        ),
    )
}


def kind_named(name: Given) -> Kind:
    """The kind of this name; FaultError names all there are."""
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise FaultError(f"there is no fault {quoted(name)}; accepted: {', '.join(KINDS)}")
    return kind

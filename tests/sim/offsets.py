"""What the committed offset of a group may be, as its members know it.

An `OffsetLedger` holds the attempts to commit one partition's offset. Members own a partition one
after the other; each time is a `tenure`. An attempt without an answer may take effect at any later
time while its tenure lasts (its request may still be under way), and not once another tenure has
committed: the coordinator fences it. Whatever is fetched must be an attempt that nothing
acknowledged has replaced for certain.

`Owners` watches that a partition has one owner at a time: it goes to another member only when the
last one gave it up, has not been heard of for a session, or may have been told to give it up a
rebalance time-out ago, in an answer that was lost.

`Coordinators` knows which node coordinates a group. One that was frozen and has been replaced may
still answer what came before it hears of that: the new one has not heard of the member then, whose
session there began when it had loaded the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.sim.model import Violation

NOTHING = -1


@dataclass(slots=True)
class Attempt:
    """One attempt to commit. `ended` is None while it is under way; `acknowledged` is None for
    one whose outcome nobody knows; from `replaced` on it is not the committed offset any more."""

    offset: int
    tenure: int
    begun: int
    ended: int | None = None
    acknowledged: bool | None = None
    replaced: int | None = None


@dataclass
class OffsetLedger:
    """The attempts for one partition of one group, in order."""

    name: str
    attempts: list[Attempt] = field(default_factory=list)
    tenure: int = 0
    seen: bool = False  # an offset has been fetched: it does not go away again
    _now: int = 0

    def tick(self) -> int:
        """The next moment; moments order what begins and ends."""
        self._now += 1
        return self._now

    def acquired(self) -> int:
        """A member owns the partition from now on; its tenure."""
        self.tenure += 1
        return self.tenure

    def begin(self, offset: int, tenure: int) -> Attempt:
        attempt = Attempt(offset, tenure, self.tick())
        self.attempts.append(attempt)
        return attempt

    def end(self, attempt: Attempt, acknowledged: bool | None) -> None:
        """An answer came (True: committed, False: refused), or none will (None)."""
        attempt.ended, attempt.acknowledged = self.tick(), acknowledged
        if acknowledged is False:
            self.attempts.remove(attempt)
        elif acknowledged:
            for other in self.attempts:
                if other.replaced is None and _replaced(other, attempt):
                    other.replaced = attempt.ended

    def check(self, offset: int, asked: int, who: str) -> None:
        """`offset` was fetched; the question was asked at that moment, the answer is here now.

        What is fetched is committed: from now on it counts as acknowledged.
        """
        self.attempts = [a for a in self.attempts if a.replaced is None or a.replaced > asked]
        allowed = [a.offset for a in self.attempts]
        if not self.seen and not any(
            a.acknowledged and a.ended is not None and a.ended < asked for a in self.attempts
        ):
            allowed.append(NOTHING)
        if offset not in allowed:
            raise Violation(
                f"{who}: the committed offset of {self.name} is {offset}, it can be one of "
                f"{allowed}: an acknowledged commit is lost, or one goes back"
            )
        fetched = [a for a in self.attempts if a.offset == offset]
        if fetched:
            self.seen = True
            moment = self.tick()
            for other in self.attempts:
                if other.replaced is None and all(_replaced(other, a) for a in fetched):
                    other.replaced = moment


def _replaced(old: Attempt, new: Attempt) -> bool:
    """Whether `old` is not the committed offset any more once `new` is acknowledged."""
    if old is new or old.ended is None or old.ended > new.begun:
        return False
    return bool(old.acknowledged) or old.tenure < new.tenure


@dataclass(slots=True)
class Owner:
    """A member that owns a partition, when it was surely heard last (simulated seconds), and since
    when an answer may be lost that told it to give the partition up."""

    member: str
    heard_s: float
    unanswered_s: float | None = None


class Owners:
    """Who owns each partition of one group; `session_s` is how long a silent member keeps it,
    `rebalance_s` how long one that was told to give it up."""

    def __init__(self, group: str, session_s: float, rebalance_s: float) -> None:
        self.group = group
        self.session_s = session_s
        self.rebalance_s = rebalance_s
        self.owners: dict[tuple[str, int], Owner] = {}

    def acquire(self, partition: tuple[str, int], member: str, heard_s: float, now: float) -> None:
        known = self.owners.get(partition)
        if known is not None and known.member != member and not self._is_over(known, now):
            raise Violation(
                f"{self.group}: {member} is given {partition[0]}-{partition[1]}, which "
                f"{known.member} owns and has not given up (heard of {now - known.heard_s:.3f} s "
                f"ago, a session is {self.session_s} s)"
            )
        self.owners[partition] = Owner(member, heard_s)

    def _is_over(self, owner: Owner, now: float) -> bool:
        since = owner.unanswered_s
        told = since is not None and now >= since + self.rebalance_s
        return told or now >= owner.heard_s + self.session_s

    def unanswered(self, member: str, sent_s: float) -> None:
        """No answer came to what the member sent at that time."""
        for owner in self.owners.values():
            if owner.member == member and owner.unanswered_s is None:
                owner.unanswered_s = sent_s

    def settled(self, member: str) -> None:
        """A later answer says that the member keeps what it owns."""
        for owner in self.owners.values():
            if owner.member == member:
                owner.unanswered_s = None

    def release(self, partition: tuple[str, int], member: str) -> None:
        known = self.owners.get(partition)
        if known is not None and known.member == member:
            del self.owners[partition]

    def heard(self, member: str, sent_s: float) -> None:
        """An answer came to what the member sent at that time."""
        for owner in self.owners.values():
            if owner.member == member:
                owner.heard_s = max(owner.heard_s, sent_s)


@dataclass
class Coordinators:
    """Who coordinates the groups of each partition of __consumer_offsets, at the newest epoch."""

    newest: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    """Partition -> (leader epoch, node id, since when: simulated seconds)."""

    def loaded(self, partition: int, epoch: int, node_id: int, now_s: float) -> None:
        """A node has loaded the groups of a partition, or leads it on at another epoch."""
        if epoch > self.newest.get(partition, (-1, -1, 0.0))[0]:
            self.newest[partition] = epoch, node_id, now_s

    def heard_s(self, partition: int, node_id: int, sent_s: float) -> float:
        """From when on the session of a member counts whose request, sent at that time, a node has
        answered."""
        _, newest_id, since_s = self.newest.get(partition, (-1, node_id, 0.0))
        return sent_s if newest_id == node_id else min(sent_s, since_s)

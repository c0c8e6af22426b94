"""Why groups rebalance, in words; see `explaining.py`. Groups of both protocols."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.trace.bounded import BoundedMap
from kwire.trace.error_counts import name_of
from kwire.trace.events import Event
from kwire.trace.json_values import Json, JsonObject, number_of, objects_of, text_of
from kwire.trace.record_summaries import content_of

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2
MEMBERS_MAX = 10_000
TOLD_LATER_MS = 600_000.0
"""For so long a cause may have its effects on other members."""
HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")


class _Member:
    """What is known of a member; `epoch` is its generation, or its epoch."""

    def __init__(self, who: str, ms: float) -> None:
        self.who = who
        self.heard_ms = ms
        self.session_timeout_ms = 0
        self.subscription: Json = None
        self.epoch = -1


class _Group:
    def __init__(self) -> None:
        self.members: BoundedMap[str, _Member] = BoundedMap(MEMBERS_MAX)
        self.generation = -1
        self.is_rebalancing = False
        self.cause = ""
        self.cause_ms = 0.0
        self.left: BoundedMap[str, float] = BoundedMap(MEMBERS_MAX)


class Groups:
    """What the requests of members say."""

    def __init__(self) -> None:
        self._groups: BoundedMap[str, _Group] = BoundedMap()

    def _group(self, body: JsonObject) -> tuple[str, _Group]:
        name = text_of(body, "group_id")
        group = self._groups.get(name)
        if group is None:
            group = _Group()
            self._groups.put(name, group)
        return name, group

    # -- requests

    def asked(self, event: Event, body: JsonObject, who: str) -> Iterator[str]:
        """A request; only those of groups say something."""
        if "group_id" not in body:
            return
        name, group = self._group(body)
        if event.api == "JoinGroup":
            yield from self._joins(name, group, event, body, who)
        elif event.api == "LeaveGroup":
            yield from self._leaves(name, group, event, body)
        elif event.api in HEARTBEATS:
            yield from self._heartbeat(name, group, event, body, who)
        if event.api not in ("JoinGroup", "LeaveGroup"):
            return
        member = group.members.get(text_of(body, "member_id"))
        if member is not None:
            member.heard_ms = event.ms

    def _joins(
        self, name: str, group: _Group, event: Event, body: JsonObject, who: str
    ) -> Iterator[str]:
        member_id = text_of(body, "member_id")
        known = group.members.get(member_id)
        reason = text_of(body, "reason")
        said = f" ({reason})" if reason else ""
        subscription = _subscription(body)
        if not member_id or known is None:
            cause = f"{who} joins"
        elif known.subscription is not None and known.subscription != subscription:
            cause = f"{who} subscribes to other topics"
        elif group.is_rebalancing:
            cause = ""
        else:
            cause = f"{who} joins anew{said}"
        if known is None and member_id:
            known = _Member(who, event.ms)
            group.members.put(member_id, known)
        if known is not None:
            known.subscription = subscription
            known.session_timeout_ms = number_of(body, "session_timeout_ms")
        if cause and not group.is_rebalancing:
            group.is_rebalancing = True
            group.cause, group.cause_ms = cause, event.ms
            yield f"group {name} rebalances: {cause}{said if said not in cause else ''}"

    def _leaves(self, name: str, group: _Group, event: Event, body: JsonObject) -> Iterator[str]:
        rows = objects_of(body, "members") or [body]
        for row in rows:
            member_id = text_of(row, "member_id")
            member = group.members.pop(member_id)
            group.left.put(member_id, event.ms)
            who = (
                member.who if member is not None else member_id or text_of(row, "group_instance_id")
            )
            reason = text_of(row, "reason")
            group.cause, group.cause_ms = f"{who} leaves", event.ms
            yield f"leaves group {name}" + (f": {reason}" if reason else "")

    def _heartbeat(
        self, name: str, group: _Group, event: Event, body: JsonObject, who: str
    ) -> Iterator[str]:
        """KIP-848, and those made after it: one request joins, leaves and stays."""
        epoch, member_id = number_of(body, "member_epoch"), text_of(body, "member_id")
        if epoch == JOIN_EPOCH:
            group.cause, group.cause_ms = f"{who} joins", event.ms
            yield f"joins group {name}"
        elif epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            group.members.pop(member_id)
            group.left.put(member_id, event.ms)
            group.cause, group.cause_ms = f"{who} leaves", event.ms
            stays = " for a while, as a static member" if epoch == LEAVE_STATIC_EPOCH else ""
            yield f"leaves group {name}{stays}"
        else:
            member = group.members.get(member_id)
            topics = body.get("subscribed_topic_names")
            if member is not None and topics is not None and member.subscription != topics:
                group.cause, group.cause_ms = f"{who} subscribes to other topics", event.ms
                yield f"subscribes to other topics in group {name}"

    # -- replies

    def answered(self, request: Event, reply: Event, who: str) -> Iterator[str]:
        """A reply; only those of groups say something."""
        asked, body = request.body, reply.body
        if asked is None or body is None or "group_id" not in asked:
            return
        name, group = self._group(asked)
        code = body.get("error_code")
        error = name_of(code) if isinstance(code, int) and code else ""
        error = error or next((each for each in reply.errors if each in _OF_MEMBERS), "")
        member_id = text_of(asked, "member_id")
        if error:
            yield from self._refused(name, group, reply, error, member_id, who)
        elif reply.api == "JoinGroup":
            yield from self._joined(name, group, reply, body, who)
        elif reply.api == "SyncGroup":
            group.is_rebalancing = False
            assigned = _assignment(body.get("assignment"))
            if assigned is not None:
                yield f"gets of group {name}: {assigned or 'no partition'}"
        elif reply.api in HEARTBEATS:
            yield from self._epoch(name, group, request, body, who)
        member = group.members.get(member_id)
        if member is not None and not error:
            member.heard_ms = reply.ms

    def _refused(
        self, name: str, group: _Group, reply: Event, error: str, member_id: str, who: str
    ) -> Iterator[str]:
        member = group.members.get(member_id)
        if error == "REBALANCE_IN_PROGRESS":
            yield (
                f"is told by {reply.api} that group {name} rebalances"
                f"{self._because(group, reply)}; it joins anew"
            )
        elif error == "MEMBER_ID_REQUIRED":
            yield f"gets an id as a member of group {name} first (KIP-394), and joins with it"
        elif error in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"):
            why = self._removed(group, reply, member, member_id)
            group.members.pop(member_id)
            yield f"is no member of group {name} any more ({error} of {reply.api}): {why}"
        elif error == "ILLEGAL_GENERATION":
            yield (
                f"belongs to an older generation of group {name} ({reply.api}): the group, at "
                f"generation {group.generation}, has gone on{self._because(group, reply)}; "
                "it joins anew"
            )
        elif error == "FENCED_INSTANCE_ID":
            yield f"is fenced in group {name}: another member came with its group.instance.id"

    def _removed(self, group: _Group, reply: Event, member: _Member | None, member_id: str) -> str:
        if member_id in group.left:
            return "it had left"
        if member is None:
            return "nothing was heard of it here before; its session may have expired"
        silent_ms = reply.ms - reply.took_ms - member.heard_ms
        timeout_ms = member.session_timeout_ms
        if timeout_ms and silent_ms > timeout_ms:
            return (
                f"its session has expired: nothing was heard of it for {silent_ms:.0f} ms, its "
                f"session timeout is {timeout_ms} ms"
            )
        if not timeout_ms:
            return f"it was removed; it was last heard of {silent_ms:.0f} ms before"
        return (
            f"it was heard of {silent_ms:.0f} ms before (session timeout {timeout_ms} ms): it did "
            "not join anew in time, was removed by an administrator, or the group was lost"
        )

    def _because(self, group: _Group, reply: Event) -> str:
        if not group.cause or reply.ms - group.cause_ms > TOLD_LATER_MS:
            return ""
        return f", as {group.cause} {reply.ms - group.cause_ms:.0f} ms before"

    def _joined(
        self, name: str, group: _Group, reply: Event, body: JsonObject, who: str
    ) -> Iterator[str]:
        generation, member_id = number_of(body, "generation_id"), text_of(body, "member_id")
        member = group.members.get(member_id)
        if member is None:
            member = _Member(who, reply.ms)
            group.members.put(member_id, member)
        member.epoch, member.heard_ms = generation, reply.ms
        rows = objects_of(body, "members")
        if not rows and generation <= group.generation:
            return
        is_new = generation > group.generation
        group.generation = max(generation, group.generation)
        if not rows:
            return
        now = {text_of(row, "member_id") for row in rows}
        gone = [known for known in group.members.keys() if known not in now]  # noqa: SIM118
        lost = []
        for known in gone:
            of = group.members.pop(known)
            if of is not None and is_new and of.epoch >= 0:
                lost.append(of.who)
        protocol = text_of(body, "protocol_name")
        without = f", without {', '.join(sorted(lost))}" if lost else ""
        yield (
            f"leads group {name} at generation {generation}: {len(rows)} members{without}, "
            f"assignor {protocol}; its JoinGroup waited {reply.took_ms:.0f} ms for the others"
        )

    def _epoch(
        self, name: str, group: _Group, request: Event, body: JsonObject, who: str
    ) -> Iterator[str]:
        assert request.body is not None
        asked_epoch = number_of(request.body, "member_epoch")
        if asked_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return
        epoch = number_of(body, "member_epoch")
        member_id = text_of(body, "member_id") or text_of(request.body, "member_id")
        member = group.members.get(member_id)
        if member is None:
            member = _Member(who, request.ms)
            group.members.put(member_id, member)
        if request.body.get("subscribed_topic_names") is not None:
            member.subscription = request.body["subscribed_topic_names"]
        if epoch != member.epoch:
            group.generation = max(group.generation, epoch)
            because = "" if asked_epoch == JOIN_EPOCH else self._because(group, request)
            yield f"is in group {name} at epoch {epoch}{because}"
        member.epoch = epoch


_OF_MEMBERS = frozenset(
    ("REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID")
)


def _subscription(body: JsonObject) -> Json:
    """The topics of a JoinGroup of consumers: what else a subscription says changes with every
    generation."""
    found: list[Json] = []
    for protocol in objects_of(body, "protocols"):
        try:
            data = content_of(protocol.get("metadata")) or b""
            version = int.from_bytes(data[:2], "big")
            kind = m.ConsumerProtocolSubscription
            parsed, _ = kind.decode_from(data, 2, max(0, min(version, kind.MAX_VERSION)))
            topics: list[Json] = [*sorted(parsed.topics)]
            found.append(topics)
        except (ValueError, MalformedError):
            return None
    return found


def _assignment(shown: Json) -> str | None:
    """The partitions of a consumer's assignment; None for what is none."""
    try:
        data = content_of(shown) or b""
        if not data:
            return ""
        version = int.from_bytes(data[:2], "big")
        kind = m.ConsumerProtocolAssignment
        parsed, _ = kind.decode_from(data, 2, max(0, min(version, kind.MAX_VERSION)))
    except (ValueError, MalformedError):
        return None
    return ", ".join(
        f"{topic.topic}-{','.join(map(str, topic.partitions))}"
        for topic in parsed.assigned_partitions
    )

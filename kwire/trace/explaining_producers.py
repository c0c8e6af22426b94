"""What producers send again and who fences whom, in words; see `explaining.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwire.trace.bounded import BoundedMap
from kwire.trace.error_counts import name_of
from kwire.trace.events import Event
from kwire.trace.json_values import JsonObject, number_of, objects_of, text_of

FENCED = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")


class _Owner(NamedTuple):
    """Who has a producer id, since when."""

    epoch: int
    who: str
    ms: float
    transactional_id: str


class _Sent(NamedTuple):
    """A batch that was sent, and how it was answered; empty: not yet, or well."""

    ms: float
    outcome: str


class Producers:
    """What the requests of producers say. `topic_of(id)` names a topic."""

    def __init__(self, topic_of: Callable[[str], str]) -> None:
        self._topic_of = topic_of
        self._owners: BoundedMap[int, _Owner] = BoundedMap()
        self._ids: BoundedMap[str, int] = BoundedMap()
        self._sent: BoundedMap[tuple[str, int, int, int], _Sent] = BoundedMap()

    def asked(self, event: Event, body: JsonObject, who: str) -> Iterator[str]:
        """A request; batches with a sequence are remembered."""
        if event.api == "EndTxn":
            verb = "commits" if body.get("committed") else "aborts"
            yield f"{verb} the transaction of {text_of(body, 'transactional_id')}"
        if event.api != "Produce":
            return
        for label, batch in self._batches(body):
            key = _key(label, batch)
            before = self._sent.get(key)
            self._sent.put(key, _Sent(event.ms, ""))
            if before is not None:
                outcome = before.outcome or "no reply to it was seen"
                yield (
                    f"sends {number_of(batch, 'count')} records of {label} again (sequence "
                    f"{number_of(batch, 'base_sequence')}), {event.ms - before.ms:.0f} ms after "
                    f"the first time: {outcome}"
                )

    def _batches(self, body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
        """(partition, batch) of those with a sequence."""
        for topic in objects_of(body, "topic_data"):
            name = text_of(topic, "name") or self._topic_of(text_of(topic, "topic_id"))
            for partition in objects_of(topic, "partition_data"):
                records = partition.get("records")
                if isinstance(records, dict):
                    for batch in objects_of(records, "batches"):
                        if "producer_id" in batch and number_of(batch, "base_sequence", -1) >= 0:
                            yield f"{name}-{number_of(partition, 'index')}", batch

    def answered(self, request: Event, reply: Event, who: str) -> Iterator[str]:
        """A reply."""
        asked, body = request.body, reply.body
        assert asked is not None
        assert body is not None
        if reply.api == "InitProducerId" and not body.get("error_code"):
            yield from self._begun(asked, body, reply, who)
        elif reply.api == "EndTxn" and not body.get("error_code"):
            self._next_epoch(asked, body, reply, who)
        elif reply.api == "Produce":
            self._produced(asked, body)
        if any(error in FENCED for error in reply.errors):
            yield from self._fenced(asked, reply, who)

    def _begun(self, asked: JsonObject, body: JsonObject, reply: Event, who: str) -> Iterator[str]:
        producer_id, epoch = number_of(body, "producer_id"), number_of(body, "producer_epoch")
        transactional_id = text_of(asked, "transactional_id")
        before = self._owners.get(producer_id)
        self._owners.put(producer_id, _Owner(epoch, who, reply.ms, transactional_id))
        if transactional_id:
            self._ids.put(transactional_id, producer_id)
            fences = ""
            if before is not None:
                of = "its own" if before.who == who else f"{before.who}, whose"
                fences = f"; {of} epoch {before.epoch} is fenced from now on"
            yield (
                f"takes transactional id {transactional_id}: producer id {producer_id} at epoch "
                f"{epoch}{fences}"
            )

    def _next_epoch(self, asked: JsonObject, body: JsonObject, reply: Event, who: str) -> None:
        """Since KIP-890 a producer gets a new epoch with each end of a transaction."""
        producer_id = number_of(body, "producer_id", -1)
        if producer_id >= 0:
            name = text_of(asked, "transactional_id")
            epoch = number_of(body, "producer_epoch")
            self._owners.put(producer_id, _Owner(epoch, who, reply.ms, name))

    def _produced(self, asked: JsonObject, body: JsonObject) -> None:
        codes = {}
        for topic in objects_of(body, "responses"):
            name = text_of(topic, "name") or self._topic_of(text_of(topic, "topic_id"))
            for partition in objects_of(topic, "partition_responses"):
                label = f"{name}-{number_of(partition, 'index')}"
                codes[label] = number_of(partition, "error_code")
        for label, batch in self._batches(asked):
            code = codes.get(label, 0)
            sent = self._sent.get(_key(label, batch))
            if sent is not None:
                outcome = f"it was answered with {name_of(code)}" if code else "it had been written"
                self._sent.put(_key(label, batch), sent._replace(outcome=outcome))

    def _fenced(self, asked: JsonObject, reply: Event, who: str) -> Iterator[str]:
        producer_id, epoch = self._producer_of(asked)
        owner = self._owners.get(producer_id)
        text = f"is fenced ({reply.api}): producer id {producer_id} at epoch {epoch} is out of date"
        if owner is None or (owner.who == who and owner.epoch == epoch):
            yield f"{text}; who has taken over was not seen here"
            return
        of = f" with transactional id {owner.transactional_id}" if owner.transactional_id else ""
        yield (
            f"{text}; {owner.who} has it at epoch {owner.epoch}{of} since "
            f"{reply.ms - owner.ms:.0f} ms"
        )

    def _producer_of(self, asked: JsonObject) -> tuple[int, int]:
        for row in (asked, *objects_of(asked, "transactions")):
            for prefix in ("", "v3_and_below_"):
                if f"{prefix}producer_id" in row:
                    return (
                        number_of(row, f"{prefix}producer_id"),
                        number_of(row, f"{prefix}producer_epoch"),
                    )
        for _, batch in self._batches(asked):
            return number_of(batch, "producer_id"), number_of(batch, "producer_epoch")
        return self._ids.get(text_of(asked, "transactional_id")) or -1, -1


def _key(label: str, batch: JsonObject) -> tuple[str, int, int, int]:
    return (
        label,
        number_of(batch, "producer_id"),
        number_of(batch, "producer_epoch"),
        number_of(batch, "base_sequence"),
    )

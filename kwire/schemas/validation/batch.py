"""The records of one batch against what their topic asks of them.

A pass over a batch says which records are at fault, or what has to be known first: some may name
schemas that were registered a moment ago, others need theirs to be parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import kernel
from kwire.protocol.records.compression import Job
from kwire.protocol.records.header import BatchHeader, Buffer
from kwire.protocol.records.reading import Steps, failure, payload_steps
from kwire.protocol.records.validation import InvalidRecordsError, RecordError
from kwire.schemas.registry.names import DEFAULT
from kwire.schemas.registry.state import State
from kwire.schemas.registry.version import Version
from kwire.schemas.validation.allowance import Allowance, AllowanceSpentError, of_record
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.prepared import Decode, Prepared
from kwire.schemas.validation.rules import TOPIC_NAME, SideRules, TopicRules
from kwire.schemas.validation.schema_ids import Headers, Told, guid_of, id_of, shown, told

FAULTS_MAX = 100
SLICE_RECORDS = 200  # of one turn of the loop
SLICE_BYTES = 32 * 1024  # the same, where they are decoded
LARGE_BYTES = 16 * 1024  # what a worker decodes
TURN_STEPS = 5000
WORKER_STEPS_MAX = 20_000_000
"""Of a batch, by the worker: with all of them it has some twenty seconds."""
UNCOMPRESSED_BYTES_MAX = 128 * 1024 * 1024
PreparedOrFault = Prepared | str
Schema = tuple[int, str]
"""An id and the GUID that it has: a schema, for as long as it is registered."""


@dataclass
class Outcome:
    """What a pass found. `unprepared` are schemas by one of their versions."""

    faults: list[RecordError] = field(default_factory=list)
    is_unknown: bool = False
    unprepared: dict[Schema, Version] = field(default_factory=dict)

    def error(self) -> InvalidRecordsError:
        """INVALID_RECORD, with the records that are at fault."""
        listed = ", ".join(f"record {at}: {why}" for at, why in self.faults[:3])
        message = f"One or more records have no schema that their topic accepts: {listed}"
        return InvalidRecordsError(ErrorCode.INVALID_RECORD, message, self.faults)


def versions_of(state: State, head: bytes) -> list[Version]:
    """Where the schema that a head names is registered, and not deleted."""
    found = id_of(head)
    if found is None:
        found = state.id_of_guid(DEFAULT, guid_of(head))
    if found is None:
        return []
    return [version for version in state.of_id(DEFAULT, found) if not version.is_deleted]


def pass_over(
    rules: TopicRules,
    records: Buffer,
    header: BatchHeader,
    state: State,
    prepared: Mapping[Schema, PreparedOrFault],
    is_fresh: bool,
) -> Steps[Outcome]:
    """Look at every record. `is_fresh`: what `state` does not know is not registered. Raises
    KafkaError as `payload_steps`, and INVALID_RECORD for records that cannot be read."""
    text, start, end = yield from payload_steps(records, 0, header, UNCOMPRESSED_BYTES_MAX)
    walk = kernel.RecordWalk(text, start, end, header.record_count)
    one = _Pass(rules, state, prepared, is_fresh)
    slice_records = SLICE_RECORDS
    if rules.is_deep:
        average = max(1, (end - start) // max(1, header.record_count))
        slice_records = max(1, min(SLICE_RECORDS, SLICE_BYTES // average))
    status, index = kernel.RUNNING, 0
    while status == kernel.RUNNING:
        if index:
            yield None
        status, rows = walk.read(slice_records)
        if status < 0:
            raise failure(status, walk.index)
        for _, _, key, value, headers in rows:
            one.record(index, key, value, headers)
            index += 1
            if one.steps_taken >= TURN_STEPS:
                one.steps_taken = 0
                yield None
        while one.large:
            at, side, large = one.large.pop()
            job = Job(partial(one.checked_by_worker, large))
            yield job
            if job.result:
                one.refuse(at, side, job.result)
        if len(one.outcome.faults) >= FAULTS_MAX:
            break
    if index == 0 and header.record_count:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "The batch has no records")
    one.outcome.faults.sort()
    return one.outcome


class _Large(NamedTuple):
    """What a worker decodes."""

    data: bytes
    told: Told
    decode: Decode


def _fault(data: bytes, found: Told, decode: Decode, allowance: Allowance) -> str:
    """Why it does not decode; empty where it does. Raises AllowanceSpentError."""
    try:
        decode(data, found.start, allowance)
    except UndecodableError as error:
        return f"it does not decode by {shown(found.head)}: {error}"
    return ""


class _Pass:
    def __init__(
        self,
        rules: TopicRules,
        state: State,
        prepared: Mapping[Schema, PreparedOrFault],
        is_fresh: bool,
    ) -> None:
        self._rules = rules
        self._state = state
        self._prepared = prepared
        self._is_fresh = is_fresh
        # What is left to be done for a head whose subject is right, whatever the bytes are.
        self._accepted: dict[tuple[SideRules, bytes], Decode | None] = {}
        self.outcome = Outcome()
        self.large: list[tuple[int, SideRules, _Large]] = []
        """What is to be decoded beside the loop."""
        self.steps_taken = 0
        """In this turn of the loop."""
        self._worker_steps_left = WORKER_STEPS_MAX

    def record(self, index: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        rules = self._rules
        if rules.key is not None and key is not None:
            self._side(index, rules.key, key, headers)
        if rules.value is not None and value is not None:
            self._side(index, rules.value, value, headers)

    def _side(self, index: int, side: SideRules, data: bytes, headers: Headers) -> None:
        found = told(data, headers, side.header)
        if found is None:
            header = side.header.decode()
            self.refuse(index, side, f"it names no schema, by its first bytes or header {header}")
            return
        known = side, found.head
        if known not in self._accepted:
            self._look(index, side, data, found)
        else:
            decode = self._accepted[known]
            if decode is not None:
                self._decode(index, side, data, found, decode)

    def _decode(
        self, index: int, side: SideRules, data: bytes, found: Told, decode: Decode
    ) -> None:
        why = ""
        is_large = len(data) > LARGE_BYTES
        if not is_large:
            allowance = Allowance(TURN_STEPS, is_of_loop=True)
            try:
                why = _fault(data, found, decode, allowance)
            except AllowanceSpentError:
                is_large = True
            self.steps_taken += TURN_STEPS - max(0, allowance.left)
        if is_large:
            self.large.append((index, side, _Large(data, found, decode)))
        elif why:
            self.refuse(index, side, why)

    def checked_by_worker(self, large: _Large) -> str:
        """Why it does not decode; empty where it does."""
        given = min(of_record(len(large.data)), self._worker_steps_left)
        allowance = Allowance(given)
        try:
            return _fault(large.data, large.told, large.decode, allowance)
        except AllowanceSpentError:
            head = shown(large.told.head)
            if given < of_record(len(large.data)):
                return f"the batch takes too long to check by {head}: send fewer records in one"
            size = len(large.data)
            steps = f"its {size} bytes have {given} steps"
            return f"it takes too long to check by {head}: {steps}"
        finally:
            self._worker_steps_left -= given - max(0, allowance.left)

    def _look(self, index: int, side: SideRules, data: bytes, found: Told) -> None:
        head = found.head
        versions = versions_of(self._state, head)
        rules = self._rules
        is_plain = side.strategy == TOPIC_NAME and not rules.is_deep
        if not versions:
            self._not_registered(index, side, f"{shown(head)} is not registered")
            return
        schema = versions[0].id, versions[0].guid
        prepared = None if is_plain else self._prepared.get(schema)
        if prepared is None and not is_plain:
            self.outcome.unprepared[schema] = versions[0]
            return
        if isinstance(prepared, str):
            self.refuse(index, side, f"{shown(head)}: {prepared}")
            return
        name = None if prepared is None else prepared.name(data, found.start)
        subject = side.subject(rules.topic, name)
        if all(version.subject != subject for version in versions):
            where = f"under the subject {subject}" if subject else "by the name of a record"
            self._not_registered(index, side, f"{shown(head)} is not registered {where}")
        else:
            decode = prepared.decode if prepared is not None and rules.is_deep else None
            if side.strategy == TOPIC_NAME or (prepared is not None and prepared.has_one_name):
                self._accepted[side, head] = decode
            if decode is not None:
                self._decode(index, side, data, found, decode)

    def _not_registered(self, index: int, side: SideRules, why: str) -> None:
        if self._is_fresh:
            self.refuse(index, side, why)
        else:
            self.outcome.is_unknown = True

    def refuse(self, index: int, side: SideRules, why: str) -> None:
        faults = self.outcome.faults
        if len(faults) < FAULTS_MAX:
            faults.append(RecordError(index, f"{side.side}: {why}"))

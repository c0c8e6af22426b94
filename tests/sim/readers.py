"""Consumers of single partitions, of both isolation levels; records are compared with the model."""

from __future__ import annotations

from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import iterate_headers, read_batch
from kwire.testing.simulation import SimulatedHost
from tests.sim.checkers import Checkers
from tests.sim.client import Retry
from tests.sim.model import CommittedLog
from tests.sim.workload import THINK_S, Actor

UNCOMMITTED, COMMITTED = 0, 1
LATEST = -1


class Reader(Actor):
    """Reads a partition from its beginning and goes on; compares each record with the model."""

    def __init__(
        self,
        host: SimulatedHost,
        name: str,
        checkers: Checkers,
        topic: str,
        index: int,
        isolation: int,
    ) -> None:
        super().__init__(host, name, checkers)
        self.topic, self.index, self.isolation = topic, index, isolation
        self.offset = 0
        self.seen = 0
        self.asks_for_ends = False

    async def run(self) -> None:
        while not self.stop:
            try:
                if self.asks_for_ends and self.draw(3) == 0:
                    await self.ask_for_end()
                found = await self.fetch()
            except Retry:
                await self.client.pause()
                continue
            if found:
                self.operations += 1
                await self.client.pause(THINK_S)

    async def ask_for_end(self) -> None:
        """ListOffsets: the end for this isolation level is committed, or stable."""
        address, epoch = await self.client.leader(self.topic, self.index)
        request = m.ListOffsetsRequest
        partition = request.ListOffsetsPartition(
            partition_index=self.index, current_leader_epoch=epoch, timestamp=LATEST
        )
        topic = request.ListOffsetsTopic(name=self.topic, partitions=[partition])
        message = request(replica_id=-1, isolation_level=self.isolation, topics=[topic])
        try:
            response = await self.client.ask(address, message, 7)
        except Retry:
            self.client.forget_leader(self.topic, self.index)
            raise
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            self.client.forget_leader(self.topic, self.index)
            raise Retry(ErrorCode(answer.error_code).name)
        self.end_known(answer.offset)

    def end_known(self, offset: int) -> None:
        """The answer to `ask_for_end`."""
        log = self.log_of(self.topic, self.index)
        end = 0 if log is None else log.end
        if log is not None and self.isolation == COMMITTED:
            end = log.last_stable_offset
        if offset > end:
            self.checkers.fail(
                f"{self.name}: {self.topic}-{self.index} is said to end at {offset}, "
                f"{'stable' if self.isolation == COMMITTED else 'committed'} is up to {end}"
            )

    async def fetch(self) -> int:
        """One fetch; the number of records that it brought."""
        address, epoch = await self.client.leader(self.topic, self.index)
        request = m.FetchRequest
        message = request(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=self.isolation,
            topics=[
                request.FetchTopic(
                    topic=self.topic,
                    partitions=[
                        request.FetchPartition(
                            partition=self.index,
                            fetch_offset=self.offset,
                            current_leader_epoch=epoch,
                            partition_max_bytes=200 + self.draw(2000),
                        )
                    ],
                )
            ],
        )
        try:
            response = await self.client.ask(address, message, 12)
        except Retry:
            self.client.forget_leader(self.topic, self.index)
            raise
        if response.error_code or not response.responses:
            raise Retry("no answer for the partition")
        answer = response.responses[0].partitions[0]
        if answer.error_code:
            self.client.forget_leader(self.topic, self.index)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._out_of_range(answer)
            raise Retry(ErrorCode(answer.error_code).name)
        return self._take(answer)

    def _out_of_range(self, answer: Any) -> None:
        log = self.log_of(self.topic, self.index)
        end = 0 if log is None else log.end
        self.client.note(f"{self.offset} is out of range, committed is up to {end}")

    def _take(self, answer: Any) -> int:
        log = self.log_of(self.topic, self.index)
        end = 0 if log is None else log.end
        if answer.high_watermark > end:
            self.checkers.fail(
                f"{self.name}: {self.topic}-{self.index} is said to be committed up to "
                f"{answer.high_watermark}, no leader is past {end}"
            )
        data = answer.records
        if not data or log is None:
            return 0
        aborted = sorted(
            (entry.first_offset, entry.producer_id) for entry in answer.aborted_transactions or []
        )
        count = 0
        skipping: dict[int, None] = {}
        for position, header in iterate_headers(data):
            if header.last_offset < self.offset:
                continue
            while aborted and aborted[0][0] <= header.last_offset:
                skipping[aborted.pop(0)[1]] = None
            if header.is_control:
                # An abort marker ends what is skipped of this producer, a commit has nothing.
                skipping.pop(header.producer_id, None)
            elif not (header.is_transactional and header.producer_id in skipping):
                for record in read_batch(data, position):
                    if record.offset >= self.offset:
                        self._see(log, record.offset, bytes(record.value or b""))
                        count += 1
            self.offset = header.last_offset + 1
        return count

    def _see(self, log: CommittedLog, offset: int, value: bytes) -> None:
        if self.isolation == COMMITTED:
            expected = log.visible[self.seen] if self.seen < len(log.visible) else None
            if expected is None or expected != (offset, value):
                self.checkers.fail(
                    f"{self.name} (read_committed) got {value!r} at {offset} of {log.name} as its "
                    f"record {self.seen}, to be seen is {expected}; stable up to "
                    f"{log.last_stable_offset}"
                )
        elif log.values.get(offset) != value:
            self.checkers.fail(
                f"{self.name} got {value!r} at {offset} of {log.name}, committed there is "
                f"{log.values.get(offset)!r}, up to {log.end}"
            )
        self.seen += 1

"""One partition of `__transaction_state`: the transactional ids whose hash falls on it.

Hard state is `transactions`, a value per transactional id, changed by `replay` alone. Beside it
the shard keeps, as soft state, the epochs that a producer may repeat an InitProducerId with and
the transactions whose markers were announced. What an operation decides lives in the files
beside this one: `init_producer.py`, `partitions.py`, `end.py`, `queries.py`.

The markers of a prepared transaction are still to be written. The shard announces it to
`on_prepared` when the record is committed, and again at the next scan for as long as it stays
prepared and nobody works on it. Sources: KIP-98, KIP-360, KIP-890; expiry and time-outs measured
on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kwire.coordinator.shard_interface import (
    AnyReply,
    AnyResponse,
    CoordinatorRecord,
    Moment,
    Result,
)
from kwire.coordinator.transaction import end
from kwire.coordinator.transaction.metadata import (
    Prepared,
    TransactionMetadata,
    check,
    from_record,
    key_of,
    to_record,
)
from kwire.coordinator.transaction.states import (
    COMPLETED_BY,
    EXPIRABLE,
    TransactionState,
    may_follow,
)
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.structs import Message

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The configs that a shard obeys, by Kafka's names with dots as underscores."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000


class TransactionShard:
    """The state of one partition. `transaction_version` gives the finalized feature level."""

    def __init__(
        self,
        settings: TransactionSettings,
        transaction_version: Callable[[], int],
        on_prepared: Callable[[Prepared], None],
    ) -> None:
        self.settings = settings
        self.transaction_version = transaction_version
        # hard state
        self.transactions: dict[str, TransactionMetadata] = {}
        # indexes of it, kept by replay
        self.ongoing: dict[str, None] = {}
        self.prepared: dict[str, None] = {}
        # soft state
        self.last_epochs: dict[str, int] = {}
        self._announced: dict[str, Pending[None]] = {}
        self._in_flight: dict[str, None] = {}
        self._on_prepared = on_prepared
        self._replies: list[tuple[AnyReply, AnyResponse]] = []
        self._scan_at_ms: int | None = None
        self._expire_at_ms: int | None = None
        self._due: deque[str] = deque()
        self._decided: tuple[Message | None, TransactionMetadata | None] = None, None

    # --- what the runtime asks ---

    def replay(
        self,
        key: Message,
        value: Message | None,
        offset: int,
        producer_id: int,
        producer_epoch: int,
    ) -> None:
        """Apply one record of the log."""
        assert isinstance(key, m.TransactionLogKey)
        transactional_id = key.transactional_id
        self.ongoing.pop(transactional_id, None)
        self.prepared.pop(transactional_id, None)
        if value is None:
            self.transactions.pop(transactional_id, None)
            self.last_epochs.pop(transactional_id, None)
            return
        assert isinstance(value, m.TransactionLogValue)
        decided, known = self._decided
        after = known if value is decided and known is not None else from_record(value)
        self.transactions[transactional_id] = after
        if after.state == TransactionState.ONGOING:
            self.ongoing[transactional_id] = None
        elif after.state in COMPLETED_BY:
            self.prepared[transactional_id] = None

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """`__transaction_state` itself is not written in transactions."""

    def loaded(self, moment: Moment) -> Result[None]:
        """Start the scans, and announce the transactions that were prepared before."""
        self._scan_at_ms = moment.now_ms + self.settings.abort_timed_out_interval_ms
        self._expire_at_ms = moment.now_ms + self.settings.remove_expired_interval_ms
        for transactional_id in list(self.prepared):
            self.announce(transactional_id)
        return Result()

    def timers(self) -> int | None:
        if self._due:
            return 0
        scan_at_ms, expire_at_ms = self._scan_at_ms, self._expire_at_ms
        if scan_at_ms is None or expire_at_ms is None:
            return expire_at_ms if scan_at_ms is None else scan_at_ms
        return scan_at_ms if scan_at_ms < expire_at_ms else expire_at_ms

    def expire(self, moment: Moment) -> Result[None] | None:
        """Abort one transaction that ran out of time, or forget ids that were idle too long."""
        if self._scan_at_ms is not None and moment.now_ms >= self._scan_at_ms:
            self._scan_at_ms = moment.now_ms + self.settings.abort_timed_out_interval_ms
            self._due.extend(self.ongoing)
            for transactional_id in list(self.prepared):
                self.announce(transactional_id)
            if self._replies:
                return Result()  # without one nobody would take the announcements
        while self._due:
            result = end.abort_timed_out(self, self._due.popleft(), moment)
            if result is not None:
                return result
        if self._expire_at_ms is not None and moment.now_ms >= self._expire_at_ms:
            self._expire_at_ms = moment.now_ms + self.settings.remove_expired_interval_ms
            return self._forget_idle(moment)
        return None

    def take_replies(self) -> list[tuple[AnyReply, AnyResponse]]:
        replies, self._replies = self._replies, []
        return replies

    def discard(self) -> list[AnyReply]:
        """The announcements that were not committed; they fail."""
        waiting: list[AnyReply] = list(self._announced.values())
        self._announced.clear()
        self._in_flight.clear()
        return waiting

    # --- what operations use ---

    def change(
        self,
        transactional_id: str,
        after: TransactionMetadata,
        response: R,
        *,
        last_epoch: int | None = None,
    ) -> Result[R]:
        """The result of an operation that moves one transaction to `after`; `last_epoch` is the
        epoch that an InitProducerId may repeat itself with from now on, None for as before."""
        before = self.transactions.get(transactional_id)
        before_state = None if before is None else before.state
        if not may_follow(before_state, after.state):
            check(False, f"{transactional_id}: {before_state} may not become {after.state}")
        version = 1 if self.transaction_version() >= 1 else 0
        key, encoded_key = key_of(transactional_id)
        value = to_record(after, version)
        if version and len(after.partitions) < 2 and after.state != TransactionState.EMPTY:
            # What `from_record` makes of it, which has not to be made again: more partitions come
            # in the order of their topics, and what is empty or of version 0 says less.
            self._decided = value, after
        record = CoordinatorRecord(key, value, version, encoded_key)

        def after_append() -> Pending[None] | None:
            if last_epoch is not None:
                self.last_epochs[transactional_id] = last_epoch
            return self._announcement(transactional_id) if after.state in COMPLETED_BY else None

        return Result((record,), response, appended=after_append)

    def announce(self, transactional_id: str) -> None:
        """Tell `on_prepared` of a prepared transaction once all that was appended is committed:
        of many of them some a turn of the loop."""
        pending = self._announcement(transactional_id)
        if pending is not None:
            self._replies.append((pending, None))

    def _announcement(self, transactional_id: str) -> Pending[None] | None:
        """What tells `on_prepared`, once it is completed; None where that is under way. Of a
        transaction that ends now it follows on the producer's answer, in the same turn: a producer
        that has its answer begins the next transaction."""
        if transactional_id in self._announced or transactional_id in self._in_flight:
            return None
        pending: Pending[None] = Pending()
        self._announced[transactional_id] = pending
        pending.add_done_callback(lambda done: self._committed(transactional_id, done))
        return pending

    def markers_given_up(self, transactional_id: str) -> None:
        """Nobody works on this transaction's markers any more; the next scan announces it."""
        self._in_flight.pop(transactional_id, None)

    def _committed(self, transactional_id: str, done: Pending[None]) -> None:
        if self._announced.get(transactional_id) is not done:
            return
        del self._announced[transactional_id]
        metadata = self.transactions.get(transactional_id)
        if done.error() is not None or metadata is None or transactional_id not in self.prepared:
            return
        self._in_flight[transactional_id] = None
        self._on_prepared(
            Prepared(
                transactional_id=transactional_id,
                producer_id=metadata.producer_id,
                producer_epoch=metadata.producer_epoch,
                commit=metadata.state == TransactionState.PREPARE_COMMIT,
                partitions=metadata.partitions,
                transaction_version=metadata.client_transaction_version,
            )
        )

    def _forget_idle(self, moment: Moment) -> Result[None]:
        limit_ms = moment.wall_ms - self.settings.transactional_id_expiration_ms
        records = [
            CoordinatorRecord(m.TransactionLogKey(transactional_id=transactional_id), None)
            for transactional_id, metadata in self.transactions.items()
            if metadata.state in EXPIRABLE and metadata.last_update_ms <= limit_ms
        ]
        return Result(records, atomic=False)

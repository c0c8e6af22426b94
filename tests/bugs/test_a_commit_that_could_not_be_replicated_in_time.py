"""A transaction that was prepared while nothing could be replicated was never completed.

The coordinator announces a prepared transaction once its record is committed. With its followers
out of reach for five seconds the announcement ran out of time; the scan that makes it again
changed no record, and nobody took the announcement from the shard: until the coordinator moved,
every request for the transactional id got CONCURRENT_TRANSACTIONS and its markers were not
written (simulation, seed 8, brokers cut off from each other).
"""

from __future__ import annotations

from kwire.coordinator.shard_interface import Moment
from kwire.coordinator.transaction.metadata import TransactionMetadata, to_record
from kwire.coordinator.transaction.shard import Prepared, TransactionSettings, TransactionShard
from kwire.coordinator.transaction.states import TransactionState
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

PREPARED = TransactionMetadata(
    producer_id=7,
    previous_producer_id=-1,
    next_producer_id=-1,
    producer_epoch=3,
    next_producer_epoch=-1,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=(("ledger", 0),),
    start_ms=1,
    last_update_ms=2,
    client_transaction_version=2,
)


def test_an_announcement_that_ran_out_of_time_is_made_again_by_the_next_scan() -> None:
    told: list[Prepared] = []
    settings = TransactionSettings()
    shard = TransactionShard(settings, lambda: 2, told.append)
    shard.replay(m.TransactionLogKey(transactional_id="t"), to_record(PREPARED), 0, -1, -1)
    shard.loaded(Moment(0, 0))
    [(announcement, _)] = shard.take_replies()
    announcement.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    assert not told

    scan = Moment(settings.abort_timed_out_interval_ms, 0)
    assert shard.expire(scan) is not None, "the runtime takes what a result comes with"
    [(again, _)] = shard.take_replies()
    again.complete(None)
    assert [prepared.transactional_id for prepared in told] == ["t"]
    assert shard.expire(scan) is None

"""Share groups: the share partitions that this node leads, their sessions, their states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from kwire.coordinator.share.service import ShareCoordinator
from kwire.metrics.blocks import Row, encoded, in_blocks, label, single
from kwire.metrics.cluster import average_and_max_ms
from kwire.metrics.groups import LAG, OFFSETS_SHOWN_MAX, SHARD_STATES, Ages
from kwire.metrics.quantiles import quantiles
from kwire.share.led_partition import LedPartition
from kwire.share.manager import SharePartitionManager
from kwire.share.states import AcknowledgeType

GROUPS = "kafka_server_sharegroupmetrics_"
PARTITIONS = "kafka_server_sharepartitionmetrics_"
SESSIONS = "kafka_server_sharesessioncache_"
PURGATORY = "kafka_server_delayedoperationpurgatory_"
COORDINATOR = "kafka_server_share_coordinator_metrics_"
TYPES = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)
SESSIONS_A_TURN = 100


def read_shares(
    shares: SharePartitionManager | None, coordinator: ShareCoordinator | None, ages: Ages
) -> Iterator[bytes]:
    """See the module; either is None as long as nobody has asked for it."""
    if shares is not None:
        yield from _read_counts(shares)
        yield from _read_partitions(shares, ages)
    if coordinator is not None:
        yield from _read_coordinator(coordinator)


def _read_counts(shares: SharePartitionManager) -> Iterator[bytes]:
    counts = shares.counts
    in_sessions = 0
    for at, session in enumerate(shares.sessions):
        in_sessions += len(session.partitions)
        if at % SESSIONS_A_TURN == SESSIONS_A_TURN - 1:
            yield b""
    yield single(
        {
            f"{SESSIONS}sharesessionscount": len(shares.sessions),
            f"{SESSIONS}sharepartitionscount": in_sessions,
            f"{SESSIONS}sharesessionevictions_total": counts.disconnected_sessions,
            f"{GROUPS}partitionloadtimems": quantiles(counts.loads, list(counts.load_times_ms)),
            "kafka_server_delayedsharefetchmetrics_expires_total": counts.expired_fetches,
        }
    )
    yield encoded(
        ("ackType",),
        (f"{GROUPS}recordacknowledgements_total",),
        [(kind.name.capitalize(), counts.acknowledgements[kind]) for kind in TYPES],
    )


def _read_partitions(shares: SharePartitionManager, ages: Ages) -> Iterator[bytes]:
    """How many records are in flight, and what is behind them."""
    waiting: dict[object, None] = {}
    labels = ("group", "topic", "partition")
    names = ("inflightmessagecount", "inflightbatchcount", "acquisitionlocktimeout_total")
    yield from in_blocks(
        labels,
        [PARTITIONS + name for name in names],
        (_in_flight(led, waiting) for led in shares),
    )
    yield from in_blocks(
        labels, LAG, (_lag(led, ages) for led in islice(shares, OFFSETS_SHOWN_MAX))
    )
    yield encoded(
        ("delayedOperation",),
        (f"{PURGATORY}numdelayedoperations", f"{PURGATORY}purgatorysize"),
        [("ShareFetch", len(waiting), len(waiting))],
    )


def _in_flight(led: LedPartition, waiting: dict[object, None]) -> Row:
    waiting.update(dict.fromkeys(led.waiters))
    state, partition = led.state, led.partition
    key = label(led.group_id), partition.topic, str(partition.index)
    return *key, state.in_flight, len(state.batches), led.expired_locks


def _lag(led: LedPartition, ages: Ages) -> Row:
    """As `kafka-share-groups --describe` shows it: records that are done with do not count."""
    state, partition = led.state, led.partition
    key = label(led.group_id), partition.topic, str(partition.index)
    log = partition.log
    if log is None or not state.is_active:
        return *key, None, None, None, None
    end = log.high_watermark
    lag = max(0, end - state.start_offset - state.delivery_complete_count)
    return *key, state.start_offset, lag, ages.of_newest(log) if lag else None, end


def _read_coordinator(coordinator: ShareCoordinator) -> Iterator[bytes]:
    runtime = coordinator.runtime
    states: Counter[str] = Counter()
    for index in runtime.partitions():
        state = runtime.state(index)
        states[SHARD_STATES.get(state, "") if state is not None else ""] += 1
    yield encoded(
        ("state",),
        (f"{COORDINATOR}num_partitions",),
        [(name, states[name]) for name in ("active", "loading", "failed")],
    )
    load_average, load_longest = average_and_max_ms(runtime.reloads.times_s)
    write_average, write_longest = average_and_max_ms(coordinator.write_times_s)
    yield single(
        {
            f"{COORDINATOR}write_total": coordinator.writes,
            f"{COORDINATOR}write_latency_avg": write_average,
            f"{COORDINATOR}write_latency_max": write_longest,
            f"{COORDINATOR}partition_load_time_avg": load_average,
            f"{COORDINATOR}partition_load_time_max": load_longest,
        }
    )

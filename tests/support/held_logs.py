"""All that a log holds in memory, to compare two that should be the same."""

from __future__ import annotations

from kwire.log.partition.partition_log import PartitionLog


def held(log: PartitionLog) -> dict[str, object]:
    """What a log holds that was just opened, then what its parts load."""
    local, producers = log.local, log.producers
    found: dict[str, object] = {
        "offsets": (
            log.log_start_offset,
            log.local_log_start_offset,
            log.next_offset,
            log.log_end_offset,
            log.high_watermark,
            log.last_stable_offset,
        ),
        "id": log.topic_id,
        "written": (local.written_offset, local.recovery_point, local.truncations),
        "to sync": (
            local.has_new_files,
            local.unsynced_segments,
            local.unfinished,
            local.epoch_file.is_unsynced,
            log._promised_end,
        ),
        "epochs": (log.leader_epochs.entries, log.leader_epochs.latest_saved),
        "snapshots": local.snapshots.offsets,
        "jitter": local.jitter_share,
        "producers": [
            (
                one.producer_id,
                one.epoch,
                one.batches,
                one.coordinator_epoch,
                one.last_timestamp,
                one.transaction_first_offset,
            )
            for one in producers.entries.values()
        ],
        "unstable": (producers.first_unstable_offset, producers._ongoing, producers._unreplicated),
    }
    for one in log.segments:
        found[f"segment {one.base_offset}"] = (
            one.size_bytes,
            one.assigned_bytes,
            one.created_ms,
            one.is_sealed,
            one.is_full,
            one.bytes_since_index,
            one.has_transaction_index,
            one._max_timestamp,
            one._offset_of_max_timestamp,
            one._allocated_bytes,
        )
    for one in log.segments:
        found[f"loaded {one.base_offset}"] = (
            list(one.index.offsets),
            list(one.index.positions),
            one.index._persisted,
            one.index._exact,
            one.index._allocated,
            one.time_index.last_timestamp,
            one.max_timestamp,
            one.offset_of_max_timestamp,
            one.aborted_transactions(),
        )
    return found

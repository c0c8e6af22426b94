"""The log of one partition.

    partition_log.py     PartitionLog: what others see of it, its offsets, truncation, retention
    appender.py          batches get their places; append_checks.py, batch_rules.py: may they?
    deferred_checks.py   checks that take long, beside the loop
    write_buffer.py      placed batches, written at the end of the loop's turn
    reader.py            batches for a reader; lookups.py: by timestamp; reported_damages.py
    local_log.py         LocalLog: the segments and small files, and what of them is durable
    shortage.py          appends refused for want of something, and how they are resumed
    rolling.py, retention.py   rules: when a segment ends, which old ones go
    producers.py, producer_snapshots.py, leader_epochs.py   what a log knows of its batches
    replay.py            the same, read from the batches again

An append goes appender -> write buffer -> segment, and is seen by readers once it is written.
"""

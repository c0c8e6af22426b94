"""Partition logs in Kafka's files: the only package that touches them (DESIGN.md, decision 1).

    partition/    the log of one partition: appends, reads, offsets, producers, leader epochs
    segment/      the files of one segment, and how batches are read from them
    recovery/     opening a partition's files after a stop or a crash
    compaction/   the log cleaner
    directories/  the log directories of a node and all logs in them
    tools/        looking at the files without a broker

`files.py` is the seam to the disk, and has the only fsync; `flushing.py` and `kernel_syncs.py`
group syncs, `scheduling.py` is what the log asks of a loop, `config_values.py` how it reads
configs, `types.py` what goes in and out.

    append: node -> directories -> partition -> segment -> files
    start:  directories -> recovery -> segment -> partition
"""

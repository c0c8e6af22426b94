"""Group and transaction coordinators: pure shards over a partition of an internal topic.

`runtime.py` owns the partitions (load, append, replies that wait for the high watermark, timers);
`group/` and `transaction/` decide. The rules are in docs/adr/0006-coordinator-runtime.md.
"""

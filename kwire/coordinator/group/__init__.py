"""The group coordinator: classic groups and offsets; groups of other kinds are carried.

Hard state (what the log says) lives in `storage.py` and changes in `replay` only; soft state
(who waits for a rebalance, session deadlines) in `classic/group.py`. `shard.py` puts the parts of
one partition together, `coordinator.py` is what the broker talks to.
"""

"""The group coordinator: classic and consumer groups, and the offsets of groups of any kind.

`kinds.py` is what a kind of group is to the rest: `classic/`, `consumer/` and `carried/` (kinds
that are not coordinated here: their records are kept) each have one. Hard state (what the log
says) lives in `storage.py` and what it is made of, and changes in `replay` only; soft state (who
waits for a rebalance, session deadlines) with its kind. `shard.py` puts the parts of one partition
together, `coordinator.py` is what the broker talks to.
"""

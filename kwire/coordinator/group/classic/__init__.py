"""Groups of the classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup; KIP-62, 345, 394).

`group.py` is one group's soft state, `rebalance.py` what all groups of a shard share.
"""

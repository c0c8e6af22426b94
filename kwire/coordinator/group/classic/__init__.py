"""Groups of the classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup; KIP-62, 345, 394).

`stored.py` is what the records say, `group.py` one group while it is coordinated here and
`rebalance.py` what all groups of a shard share; `join.py` and `membership.py` are the operations.
"""

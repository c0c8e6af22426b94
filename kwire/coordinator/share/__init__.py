"""The share coordinator: what share groups have of partitions, kept in `__share_group_state`.

`shard.py` holds the state and its rules of time, `states.py` a share partition's state,
`operations.py` what each request decides, `service.py` the shards of a broker, `pruning.py` the
deletion of records that nobody needs any more.
"""

"""Consumer groups of KIP-848: the coordinator assigns, members reconcile by heartbeats.

`state.py` is what the records say and `reconcile.py` how one member gets from what it has to its
target; `heartbeat.py`, `leaving.py` and `assigning.py` are the operations, `subscriptions.py`
which topics a group reads, `describe.py` what it shows.
"""

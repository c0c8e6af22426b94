"""Kafka's KRaft consensus as a pure state machine (KIP-595, KIP-630, KIP-853, KIP-996).

The contract of this package:

- `RaftState(config, random, log, voters, election, now_ms)` is one replica of the metadata log.
- `step(message, now_ms) -> list[Effect]` is the only way in: a request of another node, the
  response to one of ours, a batch to append, the news that something was flushed, or just the
  passing of time (`Tick`). It returns what must happen, in order.
- Whoever runs it performs the effects strictly in that order. `PersistElection` must be durable
  before a later effect is visible to anybody; a `Flush` may run beside the following effects and
  its end is reported with `Flushed`. Until then neither the leader counts its own records towards
  the high watermark nor does a voting follower acknowledge them by its next Fetch.
- `deadline_ms` says when `step(Tick())` is due at the latest.
- Nothing here reads a clock, a file or a socket. Election time-outs come from the injected
  `Random`. What the log holds is known by its bookkeeping alone (`log_state.py`).

One file per role in `roles/`, one file per group of requests in `handlers/`; `quorum.py` is the
arithmetic and knows nothing but sets and offsets.
"""

from __future__ import annotations

from kwire.kraft.raft.config import RaftConfig
from kwire.kraft.raft.state import RaftState

__all__ = ["RaftConfig", "RaftState"]

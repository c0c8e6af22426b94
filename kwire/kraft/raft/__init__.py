"""Kafka's KRaft consensus as a pure state machine (KIP-595, KIP-630, KIP-853, KIP-996).

The contract of this package:

- `RaftState(config, random, log, voters, election)` is one replica of the metadata log.
- `step(raft, message, now_ms) -> list[Effect]`, after one `start(raft, now_ms)`, is the only way
  in: a request of another node, the response to one of ours, a batch to append, the news that
  something was flushed, or just the passing of time (`Tick`). It returns what must happen, in
  order.
- Whoever runs it performs the effects strictly in that order. `PersistElection` must be durable
  before a later effect is visible to anybody; a `Flush` may run beside the following effects and
  its end is reported with `Flushed`. Until then neither the leader counts its own records towards
  the high watermark nor does a voting follower acknowledge them by its next Fetch.
- `deadline_ms` says when `step(raft, Tick(), now_ms)` is due at the latest.
- Nothing here reads a clock, a file or a socket. Election time-outs come from the injected
  `Random`. What the log holds is known by its bookkeeping alone (`log_state.py`).

The layers, each knowing those above it in this list:

    types, quorum, voters, log_state, ...   nouns and arithmetic: sets, offsets, epochs
    messages, effects                       what goes in and comes out
    roles/        one file per role: what it remembers and grants, what it wants next (`Intent`)
    state         the replica: its log, its voters, its role and the changes of role, its requests
    handlers/     one file per group of requests: what a message does to the replica
    machine       the tables: message -> handler, intent -> function; `start` and `step`
"""

from __future__ import annotations

from kwire.kraft.raft.config import RaftConfig
from kwire.kraft.raft.machine import start, step
from kwire.kraft.raft.state import RaftState

__all__ = ["RaftConfig", "RaftState", "start", "step"]

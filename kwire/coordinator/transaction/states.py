"""The states of a transaction and the legal moves between them: the one table.

```
          init         add partitions           end (commit)        markers written
(none) ---------> EMPTY ---------> ONGOING ----------> PREPARE_COMMIT ------> COMPLETE_COMMIT
                    ^                 |   end (abort), fence,                         |
                    |                 +----------------> PREPARE_ABORT ----> COMPLETE_ABORT
                    |                     time-out                                    |
                    +----------------------------- init <-----------------------------+
```

With transaction version 2 an abort is also legal where nothing was begun (EMPTY, COMPLETE_*): the
producer asks for a new epoch. PREPARE_EPOCH_FENCE exists in Kafka only between deciding to fence
and appending PREPARE_ABORT; here the two are one record, so no transaction is ever in it. DEAD is
the moment of expiry: it is written as a tombstone. Sources: KIP-98, KIP-360, KIP-890, and measured
on Apache Kafka 4.4.
"""

from __future__ import annotations

import enum


class TransactionState(enum.IntEnum):
    """A state, with its number in TransactionLogValue."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """The name that DescribeTransactions and ListTransactions show."""
        return _TEXTS[self]


_TEXTS = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

BY_TEXT = {text: state for state, text in _TEXTS.items()}

_EMPTY = TransactionState.EMPTY
_ONGOING = TransactionState.ONGOING
_PREPARE_COMMIT = TransactionState.PREPARE_COMMIT
_PREPARE_ABORT = TransactionState.PREPARE_ABORT
_COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
_COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

#: What each state may follow. `None` stands for a transactional id that was not known.
PREDECESSORS: dict[TransactionState, tuple[TransactionState | None, ...]] = {
    _EMPTY: (None, _EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT),
    _ONGOING: (_ONGOING, _EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT),
    _PREPARE_COMMIT: (_ONGOING,),
    _PREPARE_ABORT: (_ONGOING, _EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT),
    _COMPLETE_COMMIT: (_PREPARE_COMMIT,),
    _COMPLETE_ABORT: (_PREPARE_ABORT,),
    TransactionState.DEAD: (_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT),
    TransactionState.PREPARE_EPOCH_FENCE: (),
}

#: The states in which markers are missing, and what each becomes when all of them are written.
COMPLETED_BY: dict[TransactionState, TransactionState] = {
    _PREPARE_COMMIT: _COMPLETE_COMMIT,
    _PREPARE_ABORT: _COMPLETE_ABORT,
}

#: The states in which an idle transactional id may expire.
EXPIRABLE = (_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT)


def may_follow(before: TransactionState | None, after: TransactionState) -> bool:
    """Whether a transaction in state `before` (None: not known) may move to `after`."""
    return before in PREDECESSORS[after]

"""What the records of one partition of `__kwire_idempotency_keys` say of one principal's keys.

Records are read as they stand in the log, with the ends of transactions between them: a record
counts once its producer's COMMIT has been read. So an open transaction of somebody else holds
nobody up, which reading up to the last stable offset would. `replay` and `replay_end` are the only
things that change this state.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.client.idempotency.key_records import KeyRecord, UnreadableRecord, decoded, encoded

KEYS_MAX = 100_000
"""Of one principal in one partition, within the retention."""


class Known(NamedTuple):
    """A key's record, and when it was written."""

    value: bytes
    timestamp_ms: int

    def record(self) -> KeyRecord:
        """What it says."""
        return decoded(self.value)


class KnownKeys:
    """See the module. `position` is the offset to read on from."""

    def __init__(self, retention_ms: int) -> None:
        self.position = 0
        self.retention_ms = retention_ms
        self._decided: dict[bytes, Known] = {}
        self._pending: dict[int, dict[bytes, Known]] = {}
        """By producer id: what its open transaction has."""

    def __len__(self) -> int:
        return len(self._decided)

    def find(self, key: bytes, now_ms: int) -> Known | None:
        """What is known of a key within the retention."""
        found = self._decided.get(key)
        if found is None or found.timestamp_ms + self.retention_ms <= now_ms:
            return None
        return found

    def is_full(self, now_ms: int) -> bool:
        """Whether no more keys can be kept before some are too old."""
        self._forget_old(now_ms)
        return len(self._decided) >= KEYS_MAX

    # -- the only things that change it

    def restart(self, position: int) -> None:
        """Read from here on; what was known before is gone from the log as well."""
        self.position = position
        self._decided.clear()
        self._pending.clear()

    def replay(self, producer_id: int, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        """A record of a transaction. One that is none of this principal's is left out by whoever
        reads; one that cannot be read says nothing of its key."""
        if value is None:
            return
        try:
            decoded(value)
        except UnreadableRecord:
            return
        self._pending.setdefault(producer_id, {})[key] = Known(value, timestamp_ms)

    def replay_end(self, producer_id: int, is_committed: bool) -> None:
        """The end of a producer's transaction. The first record of a key within the retention
        stays: nobody who has read it writes a second."""
        pending = self._pending.pop(producer_id, {})
        if not is_committed:
            return
        for key, known in pending.items():
            self._decided.pop(key, None)
            self._decided[key] = known

    def replay_own(self, key: bytes, record: KeyRecord, timestamp_ms: int) -> None:
        """A record of a transaction that this process has committed. The coordinator says so
        before the end of the transaction is in the log: reading on may not show it yet."""
        self._decided.pop(key, None)
        self._decided[key] = Known(encoded(record), timestamp_ms)

    def moved_to(self, position: int) -> None:
        """All in front of this offset has been read."""
        self.position = max(self.position, position)

    def _forget_old(self, now_ms: int) -> None:
        """They are in the order of their times, more or less: the first one that is not too old
        ends it."""
        old: list[bytes] = []
        for key, known in self._decided.items():
            if known.timestamp_ms + self.retention_ms > now_ms:
                break
            old.append(key)
        for key in old:
            del self._decided[key]

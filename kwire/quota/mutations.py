"""How many partitions clients may create and delete: controller_mutation_rate (KIP-599).

Partitions are paid for with tokens, which come back at the rate that is set. Who has none left is
refused with THROTTLING_QUOTA_EXCEEDED by newer versions of a request; older versions do not know
that code, they are served. Both are told how long it takes until the debt is paid.

The active controller counts, for the whole cluster, by the name and the client id of whoever asks,
wherever the request came in. Another controller begins anew. Source: ControllerMutationQuotaManager
and its strict and permissive quotas; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.quota.entities import QuotaTable, Tags
from kwire.quota.windows import TokenBucket, token_throttle_ms

STRICT_FROM = {ApiKey.CREATE_TOPICS: 6, ApiKey.CREATE_PARTITIONS: 3, ApiKey.DELETE_TOPICS: 5}
"""API -> from which version on it is refused; no other API pays."""
BUCKETS_MAX = 10_000
"""Of so many clients the buckets are known; who did nothing for longest begins with a full one."""


class MutationQuotas:
    """The buckets of all clients; `table` has what is set for them."""

    def __init__(self, table: QuotaTable, window_count: int, window_ms: int) -> None:
        self._table = table
        self._window_count = window_count
        self._window_ms = window_ms
        self._buckets: dict[Tags, TokenBucket] = {}

    def of(
        self, user: str, client_id: str | None, api_key: int, api_version: int
    ) -> MutationQuota | None:
        """What one request pays from; None where it need not."""
        strict_from = STRICT_FROM.get(ApiKey(api_key))
        if strict_from is None:
            return None
        tags = self._table.tags(user, client_id)
        rate = self._table.bound(tags)
        if rate is None:
            return None
        bucket = self._buckets.pop(tags, None)
        if bucket is None:
            bucket = TokenBucket(self._window_count, self._window_ms)
            if len(self._buckets) >= BUCKETS_MAX:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[tags] = bucket  # behind all others
        return MutationQuota(bucket, rate, is_strict=api_version >= strict_from)


class MutationQuota:
    """The bucket of one request's client, and how long the client has to wait by now.

    All mutations of a request count at its own time, `now_ms`.
    """

    __slots__ = ("_bucket", "_is_strict", "_rate", "_wait_ms", "_waits_from_ms")

    def __init__(self, bucket: TokenBucket, rate: float, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._rate = rate
        self._is_strict = is_strict
        self._wait_ms = 0
        self._waits_from_ms = 0

    def pay(self, partitions: int, now_ms: int) -> None:
        """Pay for so many partitions. Raises KafkaError(THROTTLING_QUOTA_EXCEEDED) where the
        client has no tokens left and its request is of a version that knows the code."""
        if self._is_strict:
            self._look(now_ms)
            if self._wait_ms:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._bucket.record(partitions, self._rate, now_ms)
        if not self._is_strict:
            self._look(now_ms)

    def _look(self, now_ms: int) -> None:
        tokens = self._bucket.tokens(self._rate, now_ms)
        if tokens < 0:
            self._wait_ms = token_throttle_ms(tokens, self._rate)
            self._waits_from_ms = now_ms

    def throttle_ms(self, now_ms: int) -> int:
        """How long the client has to wait from now on."""
        return max(0, self._wait_ms - (now_ms - self._waits_from_ms))

"""What clients pay for partitions, who is refused, and how long who has paid too much waits
(KIP-599)."""

from __future__ import annotations

import pytest

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.quota import mutations
from kwire.quota.entities import ABSENT, DEFAULT, QuotaTable
from kwire.quota.mutations import STRICT_FROM, MutationQuota, MutationQuotas

CREATE = ApiKey.CREATE_TOPICS


def quotas(rate: float = 2.0) -> tuple[MutationQuotas, QuotaTable]:
    """Everybody may make `rate` partitions a second; eleven windows of a second."""
    table = QuotaTable()
    table.set((DEFAULT, ABSENT), rate)
    return MutationQuotas(table, 11, 1000), table


def of(of_all: MutationQuotas, user: str = "alice", version: int = 7) -> MutationQuota:
    quota = of_all.of(user, "c", CREATE, version)
    assert quota is not None
    return quota


def refused(quota: MutationQuota, partitions: int, now_ms: int) -> bool:
    try:
        quota.pay(partitions, now_ms)
    except KafkaError as error:
        return error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    return False


def test_a_full_bucket_may_be_overdrawn_once_and_the_debt_is_waited_for() -> None:
    of_all, _ = quotas()
    first = of(of_all)
    assert not refused(first, 30, 0), "22 tokens are there, and that is asked before they are taken"
    assert first.throttle_ms(0) == 0, "a strict request that was served has not waited"
    second = of(of_all)
    assert refused(second, 1, 1000)
    assert second.throttle_ms(1000) == 3000
    assert second.throttle_ms(2500) == 1500
    assert not refused(of(of_all), 1, 4000)


def test_an_older_request_is_served_and_waits() -> None:
    of_all, _ = quotas()
    old = of(of_all, version=5)
    assert not refused(old, 30, 0)
    assert old.throttle_ms(0) == 4000
    assert not refused(old, 2, 0)
    assert old.throttle_ms(1000) == 4000
    assert old.throttle_ms(5000) == 0


@pytest.mark.parametrize(("api_key", "version"), sorted(STRICT_FROM.items()))
def test_from_which_version_on_a_request_is_refused(api_key: ApiKey, version: int) -> None:
    of_all, _ = quotas()
    of(of_all).pay(100, 0)
    for tried, expected in ((version - 1, False), (version, True)):
        quota = of_all.of("alice", "c", api_key, tried)
        assert quota is not None
        assert refused(quota, 1, 0) is expected


def test_other_requests_and_clients_without_a_quota_do_not_pay() -> None:
    of_all, table = quotas()
    assert of_all.of("alice", "c", ApiKey.ALTER_CONFIGS, 0) is None
    table.set((DEFAULT, ABSENT), None)
    assert of_all.of("alice", "c", CREATE, 7) is None


def test_users_do_not_pay_for_each_other() -> None:
    of_all, _ = quotas()
    of(of_all).pay(100, 0)
    assert refused(of(of_all), 1, 0)
    assert not refused(of(of_all, "bob"), 1, 0)


def test_a_changed_rate_holds_at_once_and_the_debt_stays() -> None:
    of_all, table = quotas()
    of(of_all).pay(32, 0)
    table.set((DEFAULT, ABSENT), 10.0)
    quota = of(of_all)
    assert refused(quota, 1, 0)
    assert quota.throttle_ms(0) == 1000
    assert not refused(of(of_all), 1, 1000)


def test_known_clients_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutations, "BUCKETS_MAX", 2)
    of_all, _ = quotas()
    for user in ("a", "b", "a", "c"):
        refused(of(of_all, user), 100, 0)
    assert refused(of(of_all, "a"), 1, 0)
    assert refused(of(of_all, "c"), 1, 0)
    assert not refused(of(of_all, "b"), 1, 0), "who did nothing for longest is forgotten"

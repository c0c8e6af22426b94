"""Quotas that change under crashes hold a client to what is committed; faults of it are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.quota.client_quotas import ClientQuotas, KnownClients
from kwire.quota.entities import QuotaTable
from kwire.quota.sensor import Sensor
from kwire.quota.windows import Rate
from kwire.server.connection import BrokerConnection
from tests.sim.quotas import QuotaHistory
from tests.support.effort import seeds

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS_OF_A_MUTATION = 6


@pytest.mark.parametrize("seed", seeds(6))
def test_a_client_gets_what_its_quota_allows(seed: int) -> None:
    QuotaHistory(seed).run()


def test_clients_are_throttled_in_these_histories() -> None:
    history = QuotaHistory(0)
    history.run()
    assert history.throttled > 5


def precedence_swapped(patch: Any) -> None:
    """The quota for all counts before that of one."""
    first = QuotaTable._first
    patch(QuotaTable, "_first", lambda self, *keys: first(self, *keys[::-1]))


def never_unmuted(patch: Any) -> None:
    """The throttle time never ends."""
    patch(BrokerConnection, "_throttle_ended", lambda self: None)


def not_muted(patch: Any) -> None:
    """The client is told to wait, and not held to it."""
    patch(BrokerConnection, "_throttle", lambda self, wait_ms: None)


def window_not_rolled(patch: Any) -> None:
    """What was used in the first window counts forever."""
    patch(Rate, "purge", lambda self, now_ms: None)
    begin = Rate._begin

    def same(self: Any, now_ms: int) -> Any:
        if self._current is None:
            return begin(self, now_ms)
        return self._current

    patch(Rate, "_begin", same)
    patch(Rate, "span_ms", lambda self, now_ms: 10_000)


def stale_rates(patch: Any) -> None:
    """A change of quotas is not seen by who has one already."""
    patch(Sensor, "set_bound", _once(Sensor.set_bound))


def known_clients_stay(patch: Any) -> None:
    """Who had no quota, or one, is taken to have the same for good."""
    patch(KnownClients, "clear", lambda self: None)


def kept_clients_stay(patch: Any) -> None:
    """A connection goes on with what bound its client before."""
    patch(KnownClients, "clear", dict.clear)


def _once(original: Callable[..., Any]) -> Callable[..., Any]:
    def set_bound(self: Any, bound: float) -> None:
        if not hasattr(self, "bound"):
            original(self, bound)

    return set_bound


def produces_not_counted(patch: Any) -> None:
    """What is within the quota for certain is forgotten."""

    def settle(self: Any) -> None:
        self.pending, self.counted_s = 0.0, -1.0

    patch(Sensor, "_settle", settle)


def removed_quota_stays(patch: Any) -> None:
    """A quota that is taken away still holds."""
    put = QuotaTable.set
    patch(QuotaTable, "set", lambda self, key, bound: bound is not None and put(self, key, bound))


def change_lost(patch: Any) -> None:
    """Of what was changed only what comes first counts."""
    changed = ClientQuotas.changed

    def once(self: Any, entity: Any, values: Any) -> list[str]:
        return [] if self.generation else changed(self, entity, values)

    patch(ClientQuotas, "changed", once)


MUTATIONS = (
    precedence_swapped,
    never_unmuted,
    not_muted,
    window_not_rolled,
    stale_rates,
    known_clients_stay,
    kept_clients_stay,
    produces_not_counted,
    removed_quota_stays,
    change_lost,
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_is_found(mutation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch.setattr)
    found = []
    for seed in range(SEEDS_OF_A_MUTATION):
        try:
            QuotaHistory(seed).run()
        except Exception as error:  # whatever it shows in
            found.append(f"{seed}: {error}")
            break
    assert found

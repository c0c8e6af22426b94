"""A request may name very many things: what is done for each does not go through all others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import (
    describe_delegation_token,
    describe_user_scram_credentials,
    list_transactions,
)
from kwire.api.shared.described_groups import told_apart
from kwire.kraft.images.security import DelegationTokenImage
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.server.context import RequestContext
from tests.support.parts import made_parts

NAMED = 400


class Compared:
    """How often values were compared."""

    def __init__(self) -> None:
        self.count = 0

    def text(self, value: str) -> str:
        return _Text(value, self)


class _Text(str):
    __slots__ = ("compared",)
    __hash__ = str.__hash__

    def __new__(cls, value: str, compared: Compared) -> _Text:
        made = super().__new__(cls, value)
        made.compared = compared  # type: ignore[attr-defined]
        return made

    def __eq__(self, other: object) -> bool:
        self.compared.count += 1  # type: ignore[attr-defined]
        return str.__eq__(self, other)


class Denies:
    def authorize(self, *_: Any) -> bool:
        return False


def asked(api_key: int, version: int, **parts: Any) -> RequestContext:
    return RequestContext(made_parts(**parts), None, api_key, version, 1, "many")


def test_groups_that_may_not_be_described_are_not_compared_with_each_other() -> None:
    compared = Compared()
    names = [compared.text(f"group-{number}") for number in range(NAMED)]
    allowed, denied = told_apart(asked(69, 1, authorizer=Denies()), names)
    assert (allowed, len(denied)) == ([], NAMED)
    assert compared.count == 0


def test_owners_of_tokens_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_delegation_token, "may_ask", lambda context: True)
    compared = Compared()
    tokens = {
        f"t{number}": DelegationTokenImage(
            f"t{number}", compared.text(f"User:{number}"), compared.text("User:r"), (), 0, 0, 0
        )
        for number in range(20)
    }
    context = asked(
        41,
        3,
        image=SimpleNamespace(delegation_tokens=tokens),
        config={"delegation.token.secret.key": "s"},
    )
    owner = m.DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    owners = [
        owner(principal_type="User", principal_name=str(number)) for number in range(10, NAMED)
    ]
    response: Any = describe_delegation_token.handle(
        context, m.DescribeDelegationTokenRequest(owners=owners)
    )
    assert [token.token_id for token in response.tokens] == [f"t{n}" for n in range(10, 20)]
    assert compared.count <= 10 * len(tokens)


def test_credentials_are_gone_through_once_for_all_users() -> None:
    compared = Compared()
    scram = {
        (mechanism, compared.text(f"user{number}")): SimpleNamespace(iterations=4096)
        for number in range(NAMED)
        for mechanism in (2, 1)
    }
    context = asked(50, 0, image=SimpleNamespace(scram=scram))
    response: Any = describe_user_scram_credentials.handle(
        context, m.DescribeUserScramCredentialsRequest(users=None)
    )
    assert len(response.results) == NAMED
    assert all(
        [info.mechanism for info in result.credential_infos] == [1, 2]
        for result in response.results
    )
    assert compared.count <= 100 * NAMED


def test_what_transactions_are_filtered_by_is_looked_up() -> None:
    seen: list[Any] = []

    def listed(wanted: Any) -> list[Pending[Any]]:
        seen.append(wanted)
        return []

    coordinators = SimpleNamespace(transactions=SimpleNamespace(list_transactions=listed))
    context = asked(66, 1, coordinators=coordinators)
    request = m.ListTransactionsRequest(
        state_filters=["Ongoing", "Empty"], producer_id_filters=list(range(NAMED))
    )
    list_transactions.handle(context, request)
    (wanted,) = seen
    assert isinstance(wanted.producer_ids, frozenset)
    assert isinstance(wanted.states, frozenset)
    assert (len(wanted.producer_ids), len(wanted.states)) == (NAMED, 2)

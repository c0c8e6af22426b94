"""The table of states: every pair, and what no order of requests may do."""

from __future__ import annotations

import itertools

import pytest

from kwire.security.sasl.states import TRANSITIONS, Event, State, following

EXCHANGE = (State.TOKENS, State.RAW_TOKENS)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_what_the_table_does_not_have_is_the_end(state: State, event: Event) -> None:
    assert following(state, event) is TRANSITIONS.get((state, event), State.FAILED)


def test_only_the_last_token_of_an_exchange_authenticates() -> None:
    ways = [pair for pair, state in TRANSITIONS.items() if state is State.AUTHENTICATED]
    ways = [(state, event) for state, event in ways if state is not State.AUTHENTICATED]
    assert ways == [(state, Event.LAST_TOKEN) for state in EXCHANGE]


def test_nothing_leads_out_of_the_end() -> None:
    assert all(following(State.FAILED, event) is State.FAILED for event in Event)


def test_what_is_refused_is_the_end_wherever_it_comes() -> None:
    assert all(following(state, Event.REFUSED) is State.FAILED for state in State)


def test_an_exchange_begins_with_a_handshake() -> None:
    for state, event in itertools.product(State, Event):
        if state not in EXCHANGE and following(state, event) in EXCHANGE:
            assert event in (Event.HANDSHAKE, Event.RAW_HANDSHAKE)

"""A model of a client's authentication, told as a story instead of a table; every order of frames
is played at both. Faults put into the table, one at a time, are all found by it.

The model knows a listener without sessions and one whose sessions end, and says what each frame
comes to: "executed", "answered", "identity", or "end" (with or without a last word).
"""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.errors import KafkaError
from kwire.protocol.structs import Message
from kwire.security.sasl import server as server_module
from kwire.security.sasl import states
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.server import SaslServer, SaslSettings, Step
from kwire.security.sasl.states import TRANSITIONS, Event, State
from tests.support.login_frames import (
    METADATA,
    RIGHT,
    TOO_HIGH,
    UNNAMED,
    VERSIONS,
    WRONG,
    TwoSteps,
    handshake,
    token,
)

PASSWORDS = Passwords({"alice": "hunter2", "bob": "hunter4"})
FRAMES = {
    "versions": VERSIONS,
    "unnamed": UNNAMED,
    "too high": TOO_HIGH,
    "metadata": METADATA,
    "handshake": handshake(),
    "raw handshake": handshake(version=0),
    "handshake of two": handshake("TWO"),
    "raw handshake of two": handshake("TWO", 0),
    "no mechanism": handshake("FOO"),
    "right": token(RIGHT),
    "wrong": token(WRONG),
    "bob": token(b"\0bob\0hunter4"),
    "raw right": memoryview(RIGHT),
    "raw wrong": memoryview(WRONG),
    "garbage": memoryview(b"\x7f\xff\0\0"),
}


class Model:
    """One connection."""

    def __init__(self) -> None:
        self.phase = "new"
        self.raw = False
        self.mechanism = ""
        self.tokens = 0
        self.who = ""

    def hears(self, name: str) -> str:
        """What becomes of a frame."""
        what = self._hears(name)
        if what == "end":
            self.phase = "over"
        return what

    def _hears(self, name: str) -> str:
        if self.phase == "over":
            return "end"
        if self.phase == "exchange":
            return self._hears_in_exchange(name)
        if self.phase == "in" and "handshake" not in name:
            return "not for it"  # the connection does not ask the machine
        if name in ("versions", "unnamed", "too high"):
            if self.phase == "asked":
                return "end"
            if self.phase == "new" and name == "versions":
                self.phase = "asked"
            return "executed"
        if "handshake" not in name:
            return "end"
        mechanism = "TWO" if name.endswith("of two") else "PLAIN"
        self.phase, self.raw, self.tokens = "exchange", name.startswith("raw"), 0
        if self.who and mechanism != self.mechanism:
            self.tokens = -1  # whatever comes is the end
            return "answered"
        self.mechanism = mechanism
        return "answered"

    def _hears_in_exchange(self, name: str) -> str:
        is_raw_token = name.startswith("raw ") and "handshake" not in name
        data = name.removeprefix("raw ")
        if self.raw:
            if self.mechanism == "TWO" or not is_raw_token:
                data = "wrong"
        elif is_raw_token or data not in ("right", "wrong", "bob"):
            return "end"
        if self.tokens < 0:
            return "end"
        if self.mechanism == "TWO":
            self.tokens += 1
            if self.tokens == 1:
                return "answered"
            data = "right"
        who = {"right": "alice", "bob": "bob"}.get(data, "")
        if not who or (self.who and self.who != who):
            return "end"
        self.phase, self.who = "in", who
        return "identity"


def machine() -> SaslServer:
    mechanisms = {"PLAIN": partial(PlainServer, PASSWORDS), "TWO": TwoSteps}
    settings = SaslSettings(mechanisms, dict.fromkeys(mechanisms, 5000))
    return SaslServer(settings, nothing)


def nothing(key: int, version: int, body: memoryview, error: KafkaError) -> Message | None:
    return None


def became(step: Step) -> str:
    if step.failure is not None:
        return "end"
    if step.identity is not None:
        return "identity"
    return "executed" if step.executes else "answered"


def difference(names: list[str]) -> str | None:
    """Where the machine does something else than the model; None where it does not."""
    model, server = Model(), machine()
    for at, name in enumerate(names):
        expected = model.hears(name)
        if expected == "not for it":
            continue
        found = became(server.receive(FRAMES[name], 0))
        if found != expected:
            return f"{names[: at + 1]}: {found} instead of {expected}"
        if server.is_complete != (model.phase == "in"):
            return f"{names[: at + 1]}: is it complete?"
        if expected == "end" and server.state is not State.FAILED:
            return f"{names[: at + 1]}: an end in {server.state}"
    return None


@given(st.lists(st.sampled_from(sorted(FRAMES)), max_size=14))
def test_any_order_of_frames_is_what_the_model_says(names: list[str]) -> None:
    assert difference(names) is None


WAYS = {
    State.HANDSHAKE_OR_VERSIONS: [[], ["unnamed"]],
    State.HANDSHAKE: [["versions"]],
    State.TOKENS: [["handshake"], ["handshake of two"], ["handshake of two", "right"]],
    State.RAW_TOKENS: [
        *(["raw handshake"], ["raw handshake of two"]),
        ["raw handshake of two", "raw right"],
    ],
    State.AUTHENTICATED: [["handshake", "right"], ["raw handshake", "raw right"]],
    State.FAILED: [["garbage"], ["handshake", "wrong"], ["no mechanism"]],
}
ENDINGS = [[], ["handshake", "right"], ["right"], ["versions"], ["raw right"], ["metadata"]]
PLAYED = [
    [*way, name, *ending]
    for ways in WAYS.values()
    for way in ways
    for name in FRAMES
    for ending in ENDINGS
]


def test_the_model_and_the_table_agree_on_each_frame_in_each_state() -> None:
    assert [found for found in map(difference, PLAYED) if found is not None] == []


def test_every_fault_of_the_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair of a state and an event that arises is sent to each state that is not the right
    one: the model tells the difference."""
    arisen: dict[tuple[State, Event], list[list[str]]] = {}
    with monkeypatch.context() as patch:
        names: list[str] = []

        def recording(state: State, event: Event) -> State:
            plays = arisen.setdefault((state, event), [])
            if not plays or plays[-1] is not names:
                plays.append(names)
            return states.following(state, event)

        patch.setattr(server_module, "following", recording)
        for names in PLAYED:
            difference(names)
    assert set(TRANSITIONS) - set(arisen) <= ONLY_IN_CONNECTIONS
    survived = []
    for pair, plays in arisen.items():
        for state in set(State) - {TRANSITIONS.get(pair, State.FAILED)}:
            with monkeypatch.context() as patch:
                patch.setitem(states.TRANSITIONS, pair, state)
                if all(difference(names) is None for names in plays):
                    survived.append((pair, state))
    assert survived == []


ONLY_IN_CONNECTIONS = {
    (State.AUTHENTICATED, event) for event in (Event.VERSIONS, Event.VERSIONS_REFUSED, Event.OTHER)
}
"""A connection gives the machine of a client that has authenticated nothing but handshakes."""

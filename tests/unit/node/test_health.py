"""Why a node is not ready, in the words of `/health/ready` and `kwire info`."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.membership.lifecycle import State
from kwire.node.health import REASONS_MAX, Health


def health(
    *,
    state: State = State.RUNNING,
    is_caught_up: bool = True,
    refused: dict[tuple[str, int], str] | None = None,
    offline: tuple[str, ...] = (),
    waits_for: str = "",
    is_broker: bool = True,
    has_controller: bool = True,
    silence_ms: int = 0,
) -> Health:
    shortages = SimpleNamespace(
        refused={name: SimpleNamespace(reason=why) for name, why in (refused or {}).items()}
    )
    directories = [SimpleNamespace(path=path, error="gone") for path in offline]
    directories.append(SimpleNamespace(path="/fine", error=None))
    logs: Any = SimpleNamespace(shortages=shortages, directories=directories, logs=list)
    return Health(
        SimpleNamespace(state=state, is_caught_up=is_caught_up, silence_ms=silence_ms),
        SimpleNamespace(waits_for=waits_for),
        logs,
        name="node 1",
        is_broker=is_broker,
        session_timeout_ms=9000,
        has_controller=lambda: has_controller,
    )


def told(one: Health) -> list[str]:
    (answer,) = one.answer({})
    reasons: list[str] = json.loads(answer)["reasons"]
    return reasons


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ({}, []),
        ({"state": State.FENCED}, ["node 1: fenced"]),
        ({"state": State.REGISTERING}, ["node 1: registering"]),
        ({"state": State.STOPPING}, ["node 1: stopping"]),
        ({"is_caught_up": False}, ["node 1: it has not caught up with the metadata"]),
        ({"silence_ms": 9001}, ["node 1: no controller answers its heartbeats"]),
        ({"silence_ms": 9001, "is_broker": False}, []),
        ({"has_controller": False}, ["node 1: no active controller is known"]),
        ({"state": State.NEW, "is_broker": False}, []),
        ({"waits_for": "No space left"}, ["__cluster_metadata-0: No space left"]),
        ({"refused": {("t", 0): "No space left"}}, ["t-0: No space left"]),
        ({"offline": ("/a",)}, ["/a: the log directory is offline"]),
    ],
)
def test_what_keeps_a_node_from_being_ready(given: dict[str, Any], reasons: list[str]) -> None:
    assert told(health(**given)) == reasons


def test_a_long_list_is_cut() -> None:
    refused = {("t", index): "No space left" for index in range(REASONS_MAX + 7)}
    reasons = told(health(refused=refused))
    assert len(reasons) == REASONS_MAX + 1
    assert reasons[-1] == "7 more"

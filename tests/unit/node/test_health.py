"""Why a node is not ready, in the words of `/health/ready` and `kwire info`."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.membership.lifecycle import State
from kwire.node.health import REASONS_MAX, Health, health_of


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


@pytest.mark.parametrize(
    ("is_broker", "reasons"), [(False, ["node 1: no active controller is known"]), (True, [])]
)
def test_a_controller_whose_quorum_is_lost_is_not_ready(
    is_broker: bool, reasons: list[str]
) -> None:
    """It still knows the last leader. A broker hears of it by its heartbeats."""
    controller = {
        "process.roles": "controller",
        "listeners": "CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    }
    config = BrokerConfig.load(overrides={"node.id": "1", **({} if is_broker else controller)})
    quorum: Any = SimpleNamespace(driver=object(), leader_id=2, is_led=False, waits_for="")
    lifecycle = SimpleNamespace(state=State.RUNNING, is_caught_up=True, silence_ms=0)
    logs: Any = SimpleNamespace(shortages=SimpleNamespace(refused={}), directories=[], logs=list)
    one = health_of(config, lifecycle, quorum, logs)
    one.serving()
    assert told(one) == reasons
    quorum.is_led = True
    assert told(one) == []

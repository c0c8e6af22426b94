"""A fault that cannot be right is refused in one line that names what is wrong and what is
accepted."""

from __future__ import annotations

import pytest

from kwire.faults.errors import FaultError
from kwire.faults.kinds import KINDS, Acts, Given
from kwire.faults.rules import accepted_names, parse_rule

WRONG: list[tuple[dict[str, Given], str, str]] = [
    ({}, "None", "drop-reply"),
    ({"kind": "drop"}, "'drop'", "drop-reply"),
    ({"kind": 3}, "3", "drop-reply"),
    ({"kind": "delay"}, "ms", "milliseconds"),
    ({"kind": "delay", "ms": 0}, "ms=0", "1 to 3600000"),
    ({"kind": "delay", "ms": "soon"}, "ms='soon'", "whole numbers"),
    ({"kind": "delay", "ms": True}, "ms=True", "whole numbers"),
    ({"kind": "delay", "ms": 5, "colour": "red"}, "colour", "client_id"),
    ({"kind": "delay", "ms": 5, "after": "maybe"}, "after='maybe'", "true, false"),
    ({"kind": "delay", "ms": 5, "api": "Produced"}, "api=Produced", "Produce"),
    ({"kind": "delay", "ms": 5, "times": 0}, "times=0", "1 to"),
    ({"kind": "delay", "ms": 5, "skip": -1}, "skip=-1", "0 to"),
    ({"kind": "delay", "ms": 5, "probability": 0}, "probability=0", "up to 1"),
    ({"kind": "delay", "ms": 5, "probability": "nan"}, "probability='nan'", "up to 1"),
    ({"kind": "delay", "ms": 5, "partition": 1}, "partition=1", "topic"),
    ({"kind": "delay", "ms": 5, "topic": ""}, "topic=''", "1 to 32767"),
    ({"kind": "delay", "ms": 5, "principal": "alice"}, "principal=alice", "User:alice"),
    ({"kind": "drop-reply", "how": "loudly"}, "how='loudly'", "close, silence"),
    ({"kind": "error", "api": "Produce"}, "code", "error code"),
    ({"kind": "error", "code": "OUT_OF_CHEESE"}, "OUT_OF_CHEESE", "NOT_COORDINATOR"),
    (
        {"kind": "error", "api": "Produce", "code": "REBALANCE_IN_PROGRESS"},
        "Produce cannot carry code=REBALANCE_IN_PROGRESS",
        "NOT_ENOUGH_REPLICAS",
    ),
    (
        {"kind": "error", "api": "JoinGroup", "code": "MEMBER_ID_REQUIRED", "topic": "t"},
        "topic=t",
        "leave topic out",
    ),
    ({"kind": "corrupt-records", "api": "Produce"}, "api=Produce", "Fetch, ShareFetch"),
    ({"kind": "isr-shrink"}, "topic", "partition"),
    ({"kind": "move-leader", "topic": "t", "partition": 0}, "to", "broker id"),
    ({"kind": "disk-full", "times": 2}, "times", "broker"),
    ({"kind": "clock-skew", "ms": 10**13}, "ms=10000000000000", "whole numbers"),
]


@pytest.mark.parametrize(("given", "named", "accepted"), WRONG, ids=lambda one: str(one)[:60])
def test_what_cannot_be_right_is_refused(
    given: dict[str, Given], named: str, accepted: str
) -> None:
    with pytest.raises(FaultError) as refused:
        parse_rule(given)
    text = str(refused.value)
    assert named in text
    assert accepted in text
    assert "\n" not in text


def test_texts_of_a_command_line_are_read() -> None:
    texts: dict[str, Given] = {
        "kind": "delay",
        "ms": "250",
        "after": "true",
        "api": "fetch",
        "times": "3",
        "probability": "0.5",
        "seed": "-1"[1:],
    }
    rule = parse_rule(texts)
    assert (rule.api, rule.times, rule.probability, rule.seed) == (1, 3, 0.5, 1)
    assert (rule.number("ms"), rule.is_on("after")) == (250, True)


def example(name: str) -> dict[str, Given]:
    """The least that a kind needs."""
    values: dict[str, Given] = {"topic": "t", "partition": 0, "transactional_id": "x", "group": "g"}
    kind = KINDS[name]
    given: dict[str, Given] = {"kind": name, **{need: values[need] for need in kind.needs}}
    for option in kind.options:
        if option.default is None:
            given[option.name] = "REQUEST_TIMED_OUT" if option.name == "code" else 1
    return given


@pytest.mark.parametrize("name", KINDS)
def test_a_rule_is_told_as_it_was_asked_for(name: str) -> None:
    rule = parse_rule(example(name))
    assert parse_rule(rule.described()) == rule
    assert set(rule.described()) <= {"kind", *accepted_names(rule.kind)}


def test_every_kind_says_what_it_does() -> None:
    for kind in KINDS.values():
        assert kind.text
        assert kind.looks
        assert kind.acts in Acts
        names = accepted_names(kind)
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"topic": "a\nb"}, r"topic='a\nb' is no topic's name; accepted: letters"),
        ({"topic": ".."}, "topic=.. is no topic's name"),
        ({"topic": "x" * 250}, "is no topic's name"),
        ({"client_id": "\ud800"}, "is no text of 1 to"),
        ({"probability": 10**400}, "probability=1000"),
        ({"a\nb": 1}, r"delay takes no 'a\nb'"),
        ({"api": "Fe\ntch"}, r"meets no api='Fe\ntch'"),
        ({"principal": "al\nice"}, r"principal='al\nice' has no type"),
    ],
)
def test_what_is_refused_is_one_line_of_bounded_length(given: dict[str, Given], told: str) -> None:
    with pytest.raises(FaultError) as refused:
        parse_rule({"kind": "delay", "ms": 5, **given})
    line = str(refused.value)
    assert told in line
    assert line.isprintable()
    values = [str(value) for value in given.values()]
    assert all(len(value) < 100 or value not in line for value in values)

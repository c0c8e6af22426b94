"""What somebody asks for, checked: a kind of fault, whom it meets, how often, and its options."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from kwire.faults.errors import FaultError, quoted, shown
from kwire.faults.kinds import (
    COUNTS,
    REQUEST_SELECTORS,
    Acts,
    Given,
    Kind,
    Option,
    Value,
    kind_named,
)
from kwire.faults.places import ALL_VERSIONS, API_BY_NAME, apis_with, code_named, places
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.errors import ErrorCode

TEXT_MAX = 32_767
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
NUMBER_MAX = 2**31 - 1
PROBABILITY = "above 0 up to 1"
SEED_MAX = 2**63 - 1


class Rule(NamedTuple):
    """One fault. A selector that is None picks everything. The first `skip` requests that it picks
    pass, of the others each is met with `probability` (drawn from `seed`), `times` in all."""

    kind: Kind
    api: int | None = None
    client_id: str | None = None
    principal: str | None = None
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    broker: int | None = None
    times: int | None = None
    skip: int = 0
    probability: float = 1.0
    seed: int = 0
    options: Mapping[str, Value] = {}

    @property
    def code(self) -> ErrorCode:
        """Of the kind `error`."""
        return ErrorCode[str(self.options["code"])]

    def number(self, name: str) -> int:
        """An option that is a number."""
        return int(self.options[name])

    def is_on(self, name: str) -> bool:
        """An option that is on or off; off where the kind has none of the name."""
        return self.options.get(name) is True

    def described(self) -> dict[str, Given]:
        """As it was asked for, defaults left out: `parse_rule` makes the same of it."""
        told: dict[str, Given] = {"kind": self.kind.name}
        for name in (*_SELECTORS, *COUNTS):
            value = getattr(self, name)
            if name == "api" and len(self.kind.apis) == 1:
                continue  # it goes without saying
            if value is not None and value != Rule._field_defaults[name]:
                told[name] = API_KEYS[_KEYS[value]].name if name == "api" else value
        for option in self.kind.options:
            if self.options[option.name] != option.default:
                told[option.name] = self.options[option.name]
        return told


_KEYS = {int(key): key for key in API_KEYS}
_SELECTORS = (*REQUEST_SELECTORS, "broker")


def parse_rule(given: Mapping[str, Given]) -> Rule:
    """A rule out of names and values, texts of a command line among them. FaultError."""
    kind = kind_named(given.get("kind"))
    accepted = accepted_names(kind)
    for name in given:
        if name != "kind" and name not in accepted:
            raise FaultError(f"{kind.name} takes no {shown(name)}; accepted: {', '.join(accepted)}")
    known = {name: value for name, value in given.items() if value is not None}
    for name in kind.needs:
        if name not in known:
            raise FaultError(f"{kind.name} needs {name}; accepted: {', '.join(accepted)}")
    if "partition" in known and "topic" not in known:
        raise FaultError(f"partition={known['partition']} needs topic, the name of its topic")
    api = _api(kind, known.get("api"))
    options = {one.name: _option(kind, one, known.get(one.name)) for one in kind.options}
    if "code" in options:
        options["code"] = code_named(options["code"], api).name
    rule = Rule(
        kind=kind,
        api=api,
        client_id=_text(known, "client_id"),
        principal=_text(known, "principal"),
        topic=_topic(known),
        partition=_number(known, "partition"),
        group=_text(known, "group"),
        transactional_id=_text(known, "transactional_id"),
        broker=_number(known, "broker"),
        times=_number(known, "times", least=1),
        skip=_number(known, "skip") or 0,
        probability=_probability(known.get("probability")),
        seed=_number(known, "seed", most=SEED_MAX) or 0,
        options=options,
    )
    _check_principal(rule.principal)
    _check_place(rule)
    return rule


def accepted_names(kind: Kind) -> list[str]:
    """The selectors and options of a kind."""
    counts = COUNTS if kind.acts is Acts.REQUEST else ()
    return [*kind.selectors, "broker", *counts, *(option.name for option in kind.options)]


def _api(kind: Kind, given: Given) -> int | None:
    if given is None:
        return API_BY_NAME[kind.apis[0]] if len(kind.apis) == 1 else None
    known = {name.lower(): name for name in (kind.apis or API_BY_NAME)}
    name = known.get(str(given).lower())
    if name is None:
        names = ", ".join(kind.apis or sorted(API_BY_NAME))
        raise FaultError(f"{kind.name} meets no api={shown(given)}; accepted: {names}")
    return API_BY_NAME[name]


def _check_principal(principal: str | None) -> None:
    if principal is not None and ":" not in principal:
        raise FaultError(f"principal={shown(principal)} has no type; accepted: such as User:alice")


def _check_place(rule: Rule) -> None:
    """Whether an error may stand for the partition or topic that is picked."""
    if rule.kind.name != "error" or rule.topic is None:
        return
    keys = [rule.api] if rule.api is not None else apis_with(rule.code)
    found = (place for key in keys for place in places().get(key, ()) if rule.code in place.codes)
    if not any(place.asked and place.versions == ALL_VERSIONS for place in found):
        raise FaultError(
            f"topic={rule.topic}: {rule.code.name} stands for the whole request there, not for a "
            "topic; leave topic out"
        )


def _text(given: Mapping[str, Given], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > TEXT_MAX or not _is_unicode(value):
        raise FaultError(f"{name}={quoted(value)} is no text of 1 to {TEXT_MAX} characters")
    return value


def _is_unicode(text: str) -> bool:
    """Whether any client can send it."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _topic(given: Mapping[str, Given]) -> str | None:
    name = _text(given, "topic")
    if name is not None and (not TOPIC.fullmatch(name) or name in (".", "..")):
        raise FaultError(
            f"topic={shown(name)} is no topic's name; accepted: letters, digits, '.', '_' and '-', "
            "at most 249"
        )
    return name


def _number(
    given: Mapping[str, Given], name: str, *, least: int = 0, most: int = NUMBER_MAX
) -> int | None:
    value = given.get(name)
    return None if value is None else _whole(name, value, least, most)


def _whole(name: str, value: Value, least: int, most: int) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdecimal() and len(digits) < 20:
            value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise FaultError(f"{name}={quoted(value)}: accepted are whole numbers {least} to {most}")
    return value


def _probability(value: Given) -> float:
    if value is None:
        return 1.0
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not 0 < number <= 1:
        raise FaultError(f"probability={quoted(value)}: accepted are numbers {PROBABILITY}")
    return number


def _option(kind: Kind, option: Option, value: Given) -> Value:
    if value is None:
        if option.default is None:
            raise FaultError(f"{kind.name} needs {option.name}: {option.text}")
        return option.default
    if option.type == "bool":
        return _bool(option.name, value)
    if option.type == "int":
        return _whole(option.name, value, option.least, option.most)
    if option.choices and value not in option.choices:
        raise FaultError(f"{option.name}={quoted(value)}: accepted: {', '.join(option.choices)}")
    if isinstance(value, ErrorCode):
        return value.name
    if not isinstance(value, str):
        raise FaultError(f"{option.name}={quoted(value)} is no text: {option.text}")
    return value


def _bool(name: str, value: Value) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower(), value)
    if not isinstance(value, bool):
        raise FaultError(f"{name}={quoted(value)}: accepted: true, false")
    return value

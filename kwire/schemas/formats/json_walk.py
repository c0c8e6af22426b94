"""What the comparison of two JSON Schemas keeps on its way, and how it says what it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, Protocol

from kwire.schemas.formats.json_patterns import UNITS_MAX, units
from kwire.schemas.formats.json_schema import Place
from kwire.schemas.formats.parsed import STEPS_MAX, InvalidSchema, Sides

# How the name of a kind of change ends -> what it says of both schemas.
TOLD = (
    ("_ADDED", "the {reader} schema has a rule that the {writer} schema lacks"),
    ("_INCREASED", "the {reader} schema has a higher value than the {writer} schema"),
    ("_DECREASED", "the {reader} schema has a lower value than the {writer} schema"),
    ("_EXPANDED", "the {reader} schema has a multiple of the value of the {writer} schema"),
    (
        "_TO_OPEN_CONTENT_MODEL",
        "the {reader} schema describes what the {writer} schema leaves open",
    ),
    (
        "_TO_UNOPEN_CONTENT_MODEL",
        "the {reader} schema requires what the {writer} schema lacks",
    ),
    (
        "_FROM_CLOSED_CONTENT_MODEL",
        "the {reader} schema is closed and lacks what the {writer} schema has",
    ),
    (
        "ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "the {reader} schema describes what the {writer} schema describes otherwise",
    ),
    (
        "REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "the {reader} schema describes otherwise what the {writer} schema has",
    ),
    ("_REMOVED", "the {reader} schema does not accept what the {writer} schema leaves open"),
    ("_NARROWED", "the {reader} schema accepts less than the {writer} schema"),
    ("_EXTENDED", "the {reader} schema requires more than the {writer} schema"),
    ("_CHANGED", "the {reader} schema does not accept what the {writer} schema accepts"),
)

UNITS_PER_STEP = 4


@dataclass(frozen=True)
class Reason:
    """A kind of change, and where: `#/properties/name`."""

    kind: str
    path: str

    def told(self, sides: Sides) -> str:
        told = next((told for end, told in TOLD if self.kind.endswith(end)), TOLD[-1][1])
        told = told.format(reader=sides.reader, writer=sides.writer)
        return f"{{errorType:'{self.kind}', description:'At path '{self.path}' {told}'}}"


class Compares(Protocol):
    def step(self) -> None: ...

    def pattern(self, pattern: str) -> None: ...

    def reasons(self, reader: Place, writer: tuple[Place, ...], path: str) -> list[Reason]: ...


class Walk:
    """Counts steps, and knows the pairs that were compared by their addresses."""

    def __init__(self) -> None:
        self.steps = 0
        self.patterns: dict[str, None] = {}
        self.decided: dict[tuple[str, tuple[str, ...]], list[Reason]] = {}

    def step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            self.give_up()

    def pattern(self, pattern: str) -> None:
        """A step, and more for one that is to be made ready."""
        if pattern not in self.patterns:
            self.patterns[pattern] = None
            self.steps += min(units(pattern), UNITS_MAX) // UNITS_PER_STEP
        self.step()

    def give_up(self) -> NoReturn:
        raise InvalidSchema("The schemas are too large to compare")

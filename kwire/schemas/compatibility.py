"""The seven compatibility modes: which earlier versions a schema is compared with, and which way.

Source: Confluent's documentation, "Schema Evolution and Compatibility".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from kwire.schemas.formats import Parsed, Sides, incompatibilities

NEW_READS_OLD = Sides(reader="new", writer="old")
OLD_READS_NEW = Sides(reader="old", writer="new")


class Compatibility(Enum):
    """By the names that registries have for them."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        """The new schema has to read what earlier ones wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """Earlier schemas have to read what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


def reasons_against(
    mode: Compatibility, new: Parsed, earlier: Sequence[Parsed]
) -> tuple[list[str], int | None]:
    """(why `new` may not follow `earlier`, the index of the version that it does not fit).

    `earlier` is in the order of its versions, the oldest first; without a transitive mode the last
    counts alone. ([], None) when it may. The newest version that does not fit is the one told.
    Raises InvalidSchema where two schemas are too large to compare.
    """
    compared = range(len(earlier)) if mode.is_transitive else range(len(earlier))[-1:]
    for at in reversed(compared):
        old = earlier[at]
        reasons: list[str] = []
        if mode.is_backward:
            reasons += incompatibilities(new, old, NEW_READS_OLD)
        if mode.is_forward:
            reasons += incompatibilities(old, new, OLD_READS_NEW)
        if reasons:
            return reasons, at
    return [], None

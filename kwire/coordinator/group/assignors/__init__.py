"""Server-side assignors of consumer groups (KIP-848), by the name that members ask for.

An assignor is a generator: it yields between steps of bounded work, so that whoever runs it can
let the event loop turn, and returns the assignment. It works on a snapshot (`GroupSpec`) that
nobody changes meanwhile and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.coordinator.group.assignors.range import assign_range
from kwire.coordinator.group.assignors.spec import Assigning, GroupSpec
from kwire.coordinator.group.assignors.uniform import assign_uniform

ASSIGNORS: dict[str, Callable[[GroupSpec], Assigning]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}

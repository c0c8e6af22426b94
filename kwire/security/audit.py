"""What an audit log says: one JSON object a line, of decisions that matter.

    denied                   a client asked for what it has no right to: operation and resource
    authentication_failure   somebody did not prove who it is
    acl_change               ACLs were made or removed
    config_change            configs, quotas or credentials were changed: their names, no values
    topic_deletion           topics were deleted
    left_out                 how many events were not written, because too many came in a second

Every line has `time` (UTC), `event`, and who, as far as it is known: `principal`, `client_host`,
`client_id`, `listener`, `api`. Texts are cut at `TEXT_MAX` characters, lists at `NAMES_MAX`
entries; `count` says how many there were. Secrets are in none of what is told here.

Pure: time comes as an argument. `kwire/node/audit.py` writes the lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

Fields: TypeAlias = Mapping[str, "str | int | Sequence[str] | None"]

DENIED: Final = "denied"
AUTHENTICATION_FAILURE: Final = "authentication_failure"
ACL_CHANGE: Final = "acl_change"
CONFIG_CHANGE: Final = "config_change"
TOPIC_DELETION: Final = "topic_deletion"
LEFT_OUT: Final = "left_out"
EVENTS = (DENIED, AUTHENTICATION_FAILURE, ACL_CHANGE, CONFIG_CHANGE, TOPIC_DELETION)
"""What can be asked for."""
CHANGES = (ACL_CHANGE, CONFIG_CHANGE, TOPIC_DELETION)
"""Of who has the right to. The others anybody can cause, as often as he likes."""
TEXT_MAX = 512
NAMES_MAX = 100
SECOND_MS = 1000


def line(event: str, fields: Fields, wall_ms: int) -> str:
    """One event, with a newline behind it. Fields that are None are left out."""
    time = datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds")
    shown: dict[str, str | int | list[str]] = {
        "time": time.removesuffix("+00:00") + "Z",
        "event": event,
    }
    for name, value in fields.items():
        if isinstance(value, str):
            shown[name] = _cut(value)
        elif isinstance(value, int):
            shown[name] = value
        elif value is not None:
            shown[name] = [_cut(one) for one in value[:NAMES_MAX]]
            if len(value) > NAMES_MAX:
                shown["count"] = len(value)
    return json.dumps(shown, ensure_ascii=True, separators=(",", ":")) + "\n"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "\N{HORIZONTAL ELLIPSIS}"


class LineRate:
    """At most so many lines a second of changes, and as many of all others, so that nobody hides a
    change behind what he is denied. What is beyond is counted, by event."""

    def __init__(self, lines_max: int) -> None:
        self._lines_max = lines_max
        self._second = -1
        self._lines = {True: 0, False: 0}  # of changes, of others
        self._left_out: dict[str, int] = {}

    def admits(self, event: str, now_ms: int) -> bool:
        """Whether an event may be written; one that may not is counted."""
        second = now_ms // SECOND_MS
        if second != self._second:
            self._second, self._lines = second, {True: 0, False: 0}
        is_change = event in CHANGES
        self._lines[is_change] += 1
        if self._lines[is_change] <= self._lines_max:
            return True
        self.leave_out(event)
        return False

    def leave_out(self, event: str) -> None:
        """An event is not written."""
        self._left_out[event] = self._left_out.get(event, 0) + 1

    @property
    def has_left_out(self) -> bool:
        return bool(self._left_out)

    def take_left_out(self) -> dict[str, int]:
        """How many of each event were not written since this was asked last."""
        left_out, self._left_out = self._left_out, {}
        return left_out

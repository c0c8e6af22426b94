"""Deadlines whose action the log refused: they come again after a pause.

Nobody asks for what a timer decides, so nobody would ask again. As the timers of Apache Kafka 4.4's
coordinators.
"""

from __future__ import annotations

from collections.abc import Mapping

from kwire.coordinator.group.kinds import GroupDeadlines, TimerAction, TimerKey
from kwire.coordinator.repeated_writes import RETRY_MS
from kwire.coordinator.shard_interface import Moment, Result
from kwire.protocol.errors import KafkaError


def again_if_refused(
    deadlines: GroupDeadlines, timers: Mapping[str, TimerAction]
) -> dict[str, TimerAction]:
    """The same actions, by the same names; where the log refuses the records of one its deadline is
    set again, unless the result has a `refused` of its own. Each looks at the state anew."""
    return {name: _again_if_refused(deadlines, action) for name, action in timers.items()}


def _again_if_refused(deadlines: GroupDeadlines, action: TimerAction) -> TimerAction:

    def act(key: TimerKey, moment: Moment) -> Result[None]:
        result = action(key, moment)
        if not result.records or result.refused is not None:
            return result

        def refused(error: KafkaError) -> None:
            deadlines.schedule(key, moment.now_ms + RETRY_MS)

        return result._replace(refused=refused)

    return act

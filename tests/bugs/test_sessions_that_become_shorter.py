"""A consumer group's session timeout is made shorter while its members heartbeat.

The short way of a heartbeat moved the member's deadline to the front of the shard's timer, which
stayed where it was: a member that fell silent then was taken out only with the next deadline of
the shard.
"""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode
from tests.golden.coordinator.consumer_scripts import TOPIC, beat, configure, join
from tests.golden.coordinator.sets import SETS
from tests.support.coordinator_scripts import CoordinatorRun, SimulatedBroker, wait_until_ready

SHORT_MS = 2000


def test_a_member_that_falls_silent_goes_when_the_shorter_session_ends() -> None:
    broker = SimulatedBroker(SETS["consumer-groups"][0])
    try:
        wait_until_ready(broker)
        run = CoordinatorRun(broker, "shorter")
        answers = run.run(
            [
                TOPIC,
                join("m1"),
                configure(
                    consumer_heartbeat_interval_ms="1000",
                    consumer_session_timeout_ms=f"{SHORT_MS}",
                ),
                ["wait", 400],
                beat("m1", 2),
                ["wait", SHORT_MS + 100],
                beat("m1", 2),
            ]
        )
    finally:
        broker.stop()
    codes = [answer["error_code"] for answer in (answers[0], answers[-2], answers[-1])]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]

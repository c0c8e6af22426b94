"""A controller that had been stopped for seconds said that a topic was created, and it was not.

The first thing that the process did when it went on was a request that had arrived meanwhile. It
was appended, and by the same step the node learned that it had lost its majority; the answer was
then given as one of a controller that does not lead, at once, instead of NOT_CONTROLLER
(simulation, a frozen process, seed 22).
"""

from __future__ import annotations

from pathlib import Path

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.driver_cluster import IDS, Cluster


def test_a_request_whose_append_ends_the_leadership_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.start(*IDS)
    node = cluster.wait_active()
    cluster.loop.now_ms += 60_000  # none of its timers has run
    reply = node.write("lost")
    assert not node.driver.is_active
    assert reply.done
    error = reply.error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.NOT_CONTROLLER


def test_records_that_no_request_asked_for_are_refused_too(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.start(*IDS)
    node = cluster.wait_active()
    runner = node.driver.runner
    assert runner is not None
    cluster.loop.now_ms += 60_000
    done = runner.append([(m.NoOpRecord(), 0)])
    assert done.done
    assert isinstance(done.error(), KafkaError)

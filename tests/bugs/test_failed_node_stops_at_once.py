"""A node whose metadata log cannot be written stopped only after six seconds of asking its own,
failed controller to let it go.

Source: own work, on a full disk.
"""

from __future__ import annotations

import resource
from pathlib import Path

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker
from tests.support.wire import WireClient


def test_a_node_that_cannot_write_its_metadata_ends_with_one(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        # Files may not grow any more; the process ignores the signal that goes with it.
        size = (tmp_path / "__cluster_metadata-0" / f"{0:020}.log").stat().st_size
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size, size))
        with WireClient(broker.bootstrap) as client:
            shape = m.CreateTopicsRequest
            topic = shape.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            client.send(shape(timeout_ms=1000, topics=[topic]), 7)
            assert broker.process.wait(30) == 1
        assert "no controller lets us go" not in broker.log_text()
        assert "Traceback" not in broker.log_text()

"""Requests made of the OpenAPI document by Schemathesis: nothing is a fault of the broker's, and
every answer is one that the document promises. `make stress` has 10,000 of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from kwire.testing.cluster import Broker
from tests.support.effort import effort
from tests.support.rest import Rest, text64
from tests.support.wire import WireClient
from tests.system.test_http import port_of

COMMAND = Path(sys.executable).with_name("schemathesis")
LEAST = 200
AN_EFFORT = 1000
UNCHECKED = "positive_data_acceptance"
"""What is refused beyond what a schema can say: 1.0 for 1, a timestamp that the topic does not
take, a partition that is named twice."""

STREAM = "text/event-stream"
OF_TOPICS = [
    "post_v3_clusters_cluster_id_topics",
    "patch_v3_clusters_cluster_id_topics_topic_name",
    "delete_v3_clusters_cluster_id_topics_topic_name",
]
"""They make as many partitions as a number says, which takes as long as it takes, and delete the
topic that the others are about."""
CONFIGURATION = """
[parameters]
"query.wait_ms" = 1
{pinned}
[[operations]]
include-operation-id = "post_v3_clusters_cluster_id_topics_topic_name_records"
checks.negative_data_rejection.enabled = false
"""
"""Nobody waits for what does not come. A body of records is answered with a report for each of its
documents: 200, also where one of them is refused."""

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="needs schemathesis")


@pytest.fixture(scope="module")
def rest() -> Iterator[Rest]:
    with Broker(options={"http.listeners": "http://127.0.0.1:0"}) as broker:
        rest = Rest(port_of(broker))
        with WireClient(broker.bootstrap) as root:
            root.create_topic("0")  # the shortest name is the first that is tried
        assert rest.publish("0", {"value": text64("v")}).status == 200
        yield rest


def test_requests_made_of_the_document(rest: Rest, tmp_path: Path) -> None:
    paths = rest.ask("GET", "/openapi.json").told["paths"]
    operations = [operation for path in paths.values() for operation in path.values()]
    endless = [one["operationId"] for one in operations if STREAM in json.dumps(one["responses"])]
    left_out = [*endless, *OF_TOPICS]
    wanted = LEAST if effort() == 1 else AN_EFFORT * effort()
    (cluster,) = rest.ask("GET", "/v3/clusters").told["data"]
    known = f'"path.cluster_id" = "{cluster["cluster_id"]}"\n'
    # Cases of the coverage phase are about one value each, which may be the cluster's id.
    pinned = {"fuzzing": known} if effort() == 1 else {"coverage": "", "fuzzing": known}
    count = 0
    for phase, pin in pinned.items():
        (tmp_path / "schemathesis.toml").write_text(CONFIGURATION.format(pinned=pin))
        command = [
            *(str(COMMAND), "run", f"http://127.0.0.1:{rest.port}/openapi.json", "--seed", "1"),
            *("--phases", phase),
            *("--max-examples", str(-(-wanted // (len(operations) - len(left_out))))),
            *("--exclude-checks", UNCHECKED, "--continue-on-failure", "--workers", "2"),
            *(part for name in left_out for part in ("--exclude-operation-id", name)),
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
        generated = re.search(r"(\d[\d,]*) generated", done.stdout)
        assert generated is not None, done.stdout[-2000:]
        count += int(generated.group(1).replace(",", ""))
    assert count >= wanted
    assert rest.ask("GET", "/topics/0/metadata").status == 200

"""Record what a broker answers to the group scripts: `python -m tests.golden.coordinator.record
HOST:PORT SET [NAME...]` writes tests/golden/data/group_answers.json.gz (names: only those).

For the set `default` the broker needs group.initial.rebalance.delay.ms=0, for `limited` the
LIMITED_CONFIGS of timed_scripts.py; for both replication factor 1 for its internal topics, and
otherwise Kafka's defaults.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path

from kwire.protocol import messages as m
from tests.golden.coordinator.scripts import LIMITED, SCRIPTS
from tests.support.group_scripts import OverTcp, ScriptRun

DATA = Path(__file__).resolve().parents[1] / "data" / "group_answers.json.gz"


def wait_until_ready(target: OverTcp) -> None:
    """Until every partition of __consumer_offsets answers."""
    for i in range(40):
        for _ in range(100):
            group_id = f"ready-{i}"
            target.post(
                "admin", "FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=[group_id])
            )
            if target.receive("admin").coordinators[0].error_code == 0:
                request = m.OffsetFetchRequest(group_id=group_id, topics=[])
                target.post("admin", "OffsetFetch", 7, request)
                if target.receive("admin").error_code == 0:
                    break
            time.sleep(0.2)


def main() -> None:
    address, which, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    scripts = {"default": SCRIPTS, "limited": LIMITED}[which]
    answers = json.loads(gzip.decompress(DATA.read_bytes())) if DATA.exists() else {}
    target = OverTcp(address)
    wait_until_ready(target)
    for name, steps in scripts.items():
        if not names or name in names:
            run = ScriptRun(target, name)
            answers[name] = {"answers": run.run(steps), "records": run.records()}
            target.close()
            print(name, file=sys.stderr)
    answers = {name: answers[name] for name in (*SCRIPTS, *LIMITED) if name in answers}
    text = json.dumps(answers, indent=0, sort_keys=True, ensure_ascii=False)
    DATA.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()

"""`python -m tests.support.machine.record`: what Apache Kafka tells on a machine that fails."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile

from tests.support.machine.kafka_machine import kafka_machine
from tests.support.machine.loading import loading_answers
from tests.support.machine.scenes import SCENES, Told
from tests.support.machine.worlds import SETTINGS, RealMachine

GOLDEN = pathlib.Path(__file__).parents[2] / "golden/data"
OUTCOMES = GOLDEN / "machine_outcomes.json"
LOADING = GOLDEN / "loading_answers.json"


def recorded(directory: pathlib.Path) -> tuple[dict[str, Told], dict[str, str]]:
    """By scene, and of coordinators that load: of one node that is started three times."""
    with kafka_machine(directory, SETTINGS) as machine:
        world = RealMachine(machine)
        return {name: scene(world) for name, scene in SCENES.items()}, loading_answers(machine)


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        outcomes, loading = recorded(pathlib.Path(directory))
    OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n")
    LOADING.write_text(json.dumps(loading, indent=0) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

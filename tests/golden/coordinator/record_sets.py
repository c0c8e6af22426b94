"""Record what Apache Kafka answers to the scripts of sets.py:
`python -m tests.golden.coordinator.record_sets [SET[:SCRIPT]...]`
writes tests/golden/data/coordinator_answers.json.gz (only what is named, if something is)."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.coordinator.sets import FEATURE, SETS
from tests.support.coordinator_scripts import CoordinatorRun, wait_until_ready
from tests.support.group_scripts import OverTcp
from tests.support.kafka import running_kafka

DATA = Path(__file__).resolve().parents[1] / "data" / "coordinator_answers.json.gz"
Recorded = dict[str, dict[str, Any]]


BY_TOPIC_ID = ("share-session-ends",)
"""Where two members share a topic, which of them has which partition is drawn with its id."""


def counted(found: Any) -> Any:
    """How many partitions, in the place of which."""
    if isinstance(found, list):
        return [counted(each) for each in found]
    if not isinstance(found, dict):
        return found
    return {
        name: len(value) if name == "partitions" else counted(value)
        for name, value in found.items()
    }


def load() -> Recorded:
    """Set -> script -> answers and records."""
    if not DATA.exists():
        return {}
    found: Recorded = json.loads(gzip.decompress(DATA.read_bytes()))
    return found


#: Scripts whose outcome depends on the random ids of members: which of two classic members comes
#: first in Kafka's hash tables, and so what each of them gets. One of the outcomes is recorded.
BY_CHANCE = ("upgrade-while-rebalancing", "upgrade-while-syncing")
TOSSES_MAX = 12


def ask_kafka(
    set_name: str,
    names: list[str],
    directory: Path,
    show: Callable[[str], None],
    expected: Callable[[str, Any], bool] = lambda name, found: True,
    attempts: int = 1,
) -> dict[str, Any]:
    """What a live Kafka answers to the named scripts of a set (all of them for none). What comes
    by chance is asked again until it is as expected, for a while; the others `attempts` times: on
    a busy machine a member may be silent for longer than its session."""
    settings, scripts = SETS[set_name]
    properties = {name: str(value) for name, value in settings.items() if name != FEATURE}
    level = settings.get(FEATURE)
    arguments = "" if level is None else f"--feature {FEATURE}={level}"
    found: dict[str, Any] = {}
    with running_kafka(directory, properties, format_arguments=arguments) as bootstrap:
        target = OverTcp(bootstrap, probes=True)
        wait_until_ready(target)
        for name, steps in scripts.items():
            if not names or name in names:
                show(f"{set_name} {name}")
                for _ in range(TOSSES_MAX if name in BY_CHANCE else attempts):
                    try:
                        run = CoordinatorRun(target, name)
                        outcome = {"answers": run.run(steps), "records": run.records()}
                        found[name] = json.loads(json.dumps(outcome))
                        if expected(name, found[name]):
                            break
                    except (TimeoutError, ConnectionError) as error:
                        show(f"   Kafka gives no answer: {error!r}")
                    except AssertionError as error:
                        show(f"   not a script: {error!r}")
                    finally:
                        target.close()
    return found


def main() -> None:
    wanted: dict[str, list[str]] = {}
    for argument in sys.argv[1:] or list(SETS):
        set_name, _, script = argument.partition(":")
        names = wanted.setdefault(set_name, [])
        if script:
            names.append(script)
    for set_name, names in wanted.items():
        with tempfile.TemporaryDirectory() as directory:
            found = ask_kafka(
                set_name, names, Path(directory), lambda text: print(text, file=sys.stderr)
            )
        recorded = load()
        kept = recorded.setdefault(set_name, {})
        kept.update(found)
        recorded[set_name] = {x: kept[x] for x in SETS[set_name][1] if x in kept}
        text = json.dumps(recorded, indent=0, sort_keys=True, ensure_ascii=False)
        DATA.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()

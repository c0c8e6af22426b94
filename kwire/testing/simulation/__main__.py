"""`python -m kwire.testing.simulation replay FILE::TEST --seed N`, and `run FILE::TEST`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from kwire.testing.simulation.stand_ins import StandIns

HASH_SEED = "0"


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 when a run fails, 2 for what cannot be."""
    if list(arguments) == ["worker"]:
        StandIns.replace_for_good()
        from kwire.testing.simulation.workers import work

        work()
        return 0
    parser = argparse.ArgumentParser(prog="python -m kwire.testing.simulation")
    commands = parser.add_subparsers(dest="command", required=True)
    replay = commands.add_parser("replay", help="run one seed and print its history")
    replay.add_argument("--seed", required=True)
    replay.add_argument("--faults", help="the numbers of those that happen: 0-4,9 or none")
    replay.add_argument("--operations", help="the numbers of those that are done")
    run = commands.add_parser("run", help="run a test over seeds")
    run.add_argument("--seeds", help="how many")
    run.add_argument("--processes", help="side by side")
    for command in (replay, run):
        command.add_argument("test", help="FILE::TEST")
        command.add_argument("--arguments", default="{}", help="of a parametrized test, as JSON")
    told = parser.parse_args(arguments)
    from kwire.testing.simulation.loading import NotFound

    try:
        return _replay(told) if told.command == "replay" else _run(told)
    except (NotFound, ValueError) as error:
        print(f"kwire.testing.simulation: {error}", file=sys.stderr)
        return 2


def _variables(told: argparse.Namespace, names: Sequence[str]) -> dict[str, str]:
    from kwire.testing.simulation.simulated_test import PREFIX

    given = {name: getattr(told, name) for name in names}
    return {PREFIX + name.upper(): text for name, text in given.items() if text is not None}


def _arguments(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"--arguments {text!r}: accepted is a JSON object")
    return found


def _replay(told: argparse.Namespace) -> int:
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:  # sets have the order of the failing run
        environment = {**os.environ, "PYTHONHASHSEED": HASH_SEED}
        command = [sys.executable, "-m", "kwire.testing.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)
    StandIns.replace_for_good()
    from kwire.testing.simulation.loading import load
    from kwire.testing.simulation.outcomes import outcome_of

    path, _, name = told.test.partition("::")
    test = load(path, name)
    test = test.told_by_environment(_variables(told, ("seed", "faults", "operations")))
    outcome = outcome_of(test.function, _arguments(told.arguments), test.options)
    print(outcome.history)
    print()
    print(outcome.failure or "nothing fails")
    print(f"seed {outcome.seed}, {outcome.simulated_s:.3f} s, fingerprint {outcome.fingerprint}")
    return 1 if outcome.failure else 0


def _run(told: argparse.Namespace) -> int:
    from kwire.testing.simulation.loading import load
    from kwire.testing.simulation.search import Search, SimulationFailed

    path, _, name = told.test.partition("::")
    test = load(path, name).told_by_environment(_variables(told, ("seeds", "processes")))
    try:
        outcomes = Search(test, _arguments(told.arguments)).run()
    except SimulationFailed as failure:
        print(failure)
        return 1
    print(f"{len(outcomes)} seeds, nothing fails")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

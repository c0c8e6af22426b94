"""`python -m kwire.testing.simulation` and the KWIRE_SIMULATION variables, as people run them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.testing.simulation import SimulationFailed
from kwire.testing.simulation.loading import NotFound, load
from kwire.testing.simulation.search import Search
from kwire.testing.simulation.simulated_test import PREFIX, parsed_numbers, shown_numbers

pytest.importorskip("aiokafka")
ROOT = Path(__file__).parents[2]
SHOP = """
import asyncio
from kwire.testing.simulation import simulate

KINDS = ["network slow", "broker's clock wrong"]

@simulate(seeds=2, minutes=0.2, brokers=1, processes=1, faults=KINDS)
async def test_of_nine(cluster, most: int = 9):
    sold = []
    for number in cluster.operations(12):
        await asyncio.sleep(1)
        sold.append(number)
        cluster.note(f"sold {number}")
    assert len(sold) <= most, f"{len(sold)} sold"

@simulate(seeds=1, minutes=0, brokers=1, processes=1)
async def test_of_the_fifth(cluster):
    numbers = list(cluster.operations(8))
    if 5 not in numbers:
        raise RuntimeError("nothing to be seen")
    raise ValueError(f"{len(numbers)} numbers")

@simulate(seeds=1, minutes=0, brokers=1, processes=1)
async def test_of_none(cluster):
    for number in cluster.operations(3):
        cluster.note(f"sold {number}")
    raise ValueError("closed")

@simulate(seeds=3, minutes=0, brokers=1)
async def test_all_well(cluster):
    cluster.note(f"seed {cluster.seed}")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "test_shop.py"
    path.write_text(SHOP)
    return path


def run(arguments: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if "HASHSEED" not in name}
    return subprocess.run(
        arguments,
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def command(arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "kwire.testing.simulation", *shlex.split(arguments)]
    return run(words, folder, **variables)


def test_the_commands_of_a_report_fail_as_the_run_did(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.parent)
    with pytest.raises(SimulationFailed) as caught:
        Search(load(str(shop), "test_of_nine"), {}).run()
    report = str(caught.value)
    assert "seed 0 fails: AssertionError: 12 sold" in report
    assert re.search(r"made smaller: 0 of \d faults, 10 of 12 operations: .*: 10 sold", report)
    replay, by_variables = (line.strip() for line in report.splitlines()[-2:])
    left = re.search(r"--operations (\S+)", replay)
    assert left is not None

    assert replay.startswith("python -m kwire.testing.simulation replay test_shop.py::test_of_nine")
    done = command(replay.split("simulation ", 1)[1], shop.parent)
    assert done.returncode == 1, done.stderr
    assert "AssertionError: 10 sold" in done.stdout
    sold = re.findall(r"app: sold (\d+)$", done.stdout, re.M)
    assert len(sold) == 10
    assert not re.search(r"fault \d", done.stdout)
    again = command(replay.split("simulation ", 1)[1], shop.parent, PYTHONHASHSEED="7")
    assert again.stdout == done.stdout

    words = shlex.split(by_variables)
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    assert variables == {
        "KWIRE_SIMULATION_SEED": "0",
        "KWIRE_SIMULATION_FAULTS": "none",
        "KWIRE_SIMULATION_OPERATIONS": left[1],
    }
    words = [sys.executable, *words[len(variables) + 1 :], "-p", "no:cacheprovider"]
    tested = run(words, shop.parent, **variables)
    assert tested.returncode == 1, tested.stderr
    assert "seed 0 fails: AssertionError: 10 sold" in tested.stdout
    assert "made smaller" not in tested.stdout


def test_what_was_made_smaller_is_replayed_as_it_is(shop: Path) -> None:
    test = load(str(shop), "test_of_none")
    variables = {"SEED": "0", "FAULTS": "none", "OPERATIONS": "0,2"}
    test = test.told_by_environment({PREFIX + name: text for name, text in variables.items()})
    with pytest.raises(SimulationFailed) as found:
        Search(test, {}).run()
    assert "made smaller" not in str(found.value)
    assert "--faults none --operations 0,2\n" in str(found.value)


def test_a_run_is_made_smaller_as_long_as_it_fails_with_the_same_error(shop: Path) -> None:
    with pytest.raises(SimulationFailed, match="1 of 8 operations: ValueError: 1 numbers") as found:
        Search(load(str(shop), "test_of_the_fifth"), {}).run()
    assert "--operations 5\n" in str(found.value)


def test_a_run_that_fails_without_operations_is_replayed_without(shop: Path) -> None:
    with pytest.raises(SimulationFailed, match="0 of 3 operations") as found:
        Search(load(str(shop), "test_of_none"), {}).run()
    assert "--operations none\n" in str(found.value)
    assert "KWIRE_SIMULATION_OPERATIONS=none " in str(found.value)
    replay = str(found.value).partition("simulation replay ")[2].splitlines()[0]
    done = command(f"replay {replay}", shop.parent)
    assert done.returncode == 1
    assert "sold" not in done.stdout


def test_replay_tells_the_whole_history_and_the_fingerprint_of_a_seed_that_is_well(
    shop: Path,
) -> None:
    done = command(f"replay {shop}::test_all_well --seed 11", shop.parent)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^00:\d\d\.\d{6} app: seed 11$", done.stdout, re.M)
    assert re.search(r"nothing fails\nseed 11, [\d.]+ s, fingerprint [0-9a-f]{8,}$", done.stdout)


def test_replay_leaves_out_faults_and_gives_arguments(shop: Path) -> None:
    told = "--seed 1 --arguments '{\"most\": 20}'"
    every = command(f"replay {shop}::test_of_nine {told}", shop.parent)
    assert every.returncode == 0, every.stdout + every.stderr
    numbers = [int(number) for number in re.findall(r"fault (\d+):", every.stdout)]
    assert numbers
    one = command(f"replay {shop}::test_of_nine {told} --faults {numbers[0]}", shop.parent)
    assert re.findall(r"fault (\d+):", one.stdout) == [str(numbers[0])]


def test_run_goes_over_seeds(shop: Path) -> None:
    done = command(f"run {shop}::test_all_well --processes 1", shop.parent)
    assert (done.returncode, done.stdout) == (0, "3 seeds, nothing fails\n"), done.stderr
    more = command(f"run {shop}::test_all_well --seeds 5 --processes 1", shop.parent)
    assert more.stdout == "5 seeds, nothing fails\n"
    failing = command(f"run {shop}::test_of_nine --seeds 1 --processes 1", shop.parent)
    assert failing.returncode == 1
    assert "seed 0 fails: AssertionError: 12 sold" in failing.stdout


REFUSED = {
    "replay test_none.py::test_it --seed 1": "'test_none.py' is no file; accepted is FILE::TEST",
    "replay test_shop.py::test_all_well --seed 1 --faults 9-": "KWIRE_SIMULATION_FAULTS='9-'",
    "run test_shop.py::test_all_well --seeds 0": "KWIRE_SIMULATION_SEEDS='0': accepted are whole",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_cannot_be_is_told_in_one_line(shop: Path, arguments: str) -> None:
    done = command(arguments, shop.parent)
    assert done.returncode == 2
    assert REFUSED[arguments] in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["9-", "4-2", "-1", "1,,2", "a", "1-2-3", "0-9999999", "9" * 30])
def test_numbers_that_cannot_be_are_named(text: str) -> None:
    with pytest.raises(ValueError, match=f"--faults='{text}': accepted are"):
        parsed_numbers("--faults", text)


@pytest.mark.parametrize("text", ["none", "7", "0-4,9", "0,2,4-5"])
def test_numbers_are_shown_as_they_are_read(text: str) -> None:
    assert shown_numbers(parsed_numbers("--faults", text)) == text


@pytest.mark.parametrize("name", ["", "test_it", "asyncio", "test_of_nine.code"])
def test_what_is_no_test_is_named(shop: Path, name: str) -> None:
    with pytest.raises(NotFound, match=f"'{name}' of .* is no test; accepted are those with"):
        load(str(shop), name)


def test_variables_say_how_many_seeds_and_one_that_does_not_exist_is_named(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = load(str(shop), "test_of_nine")
    told = test.told_by_environment(
        {"KWIRE_SIMULATION_SEEDS": "7", "KWIRE_SIMULATION_PROCESSES": "2", "HOME": "x"}
    )
    assert (told.seeds, told.processes) == (7, 2)
    one = test.told_by_environment(
        {
            "KWIRE_SIMULATION_SEED": "4",
            "KWIRE_SIMULATION_FAULTS": "0-2,5",
            "KWIRE_SIMULATION_OPERATIONS": "none",
        }
    )
    assert (one.seeds, one.options.seed) == (1, 4)
    assert one.options.faults == {0, 1, 2, 5}
    assert one.options.operations == frozenset()
    with pytest.raises(ValueError, match="KWIRE_SIMULATION_SEDE is no variable; accepted are"):
        test.told_by_environment({"KWIRE_SIMULATION_SEDE": "4"})
    with pytest.raises(ValueError, match="KWIRE_SIMULATION_PROCESSES='999': accepted are whole"):
        test.told_by_environment({"KWIRE_SIMULATION_PROCESSES": "999"})

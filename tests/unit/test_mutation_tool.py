"""The mutation tool: its operators, what it leaves in place, and that it finds and spares."""

from __future__ import annotations

import ast

from tests.mutation.operators import Mutant, mutants_of, mutated
from tests.mutation.run import SURVIVED, drawn, survivor_lines, table
from tests.mutation.trial import Covered, touching, within

SOURCE = '''
"""A docstring is no code."""
LIMIT = 3

def admits(count: int, open: bool) -> bool:
    """Nor is this one, with its 7."""
    if count < LIMIT and not open:
        note(count, open)
        return True
    return any(n > 1 for n in range(count) if n != 2)

class Box:
    def put(self, item: int = 5) -> None:
        self.item = item + 1
'''


def found(operator: str) -> list[tuple[str, str]]:
    return [(m.before, m.after) for m in mutants_of("a.py", SOURCE) if m.operator == operator]


def test_every_operator_has_its_places() -> None:
    assert ("count < LIMIT", "count <= LIMIT") in found("compare")
    assert ("count < LIMIT", "count >= LIMIT") in found("compare")
    assert ("not open", "open") in found("boolean")
    assert ("count < LIMIT and (not open)", "not open") in found("boolean")
    assert ("count < LIMIT and (not open)", "count < LIMIT or not open") in found("boolean")
    assert ("3", "4") in found("constant")
    assert ("True", "False") in found("constant")
    assert ("5", "4") in found("constant"), "a default is code"
    assert ("item + 1", "item - 1") in found("arithmetic")
    assert any(after.startswith("all(") for _, after in found("arithmetic"))
    assert ("self.item = item + 1", "pass") in found("statement")
    assert ("note(count, open)", "pass") in found("statement")
    assert ("note(count, open)", "note(open, count)") in found("arguments")
    assert ("return True", "return None") in found("return")
    assert ("def put", "def put: return at once") in found("return")
    assert len(found("negate")) == 2, "an if and a comprehension"
    assert not any(before == "7" for before, _ in found("constant"))


def test_a_mutant_is_the_source_with_one_change_on_the_same_lines() -> None:
    original = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants_of("a.py", SOURCE):
        tree = mutated(mutant, SOURCE)
        changed = ast.unparse(tree).splitlines()
        assert changed != original, mutant
        if mutant.after != "def put: return at once" and not mutant.after.startswith("def "):
            assert len(changed) == len(original), mutant
            assert sum(a != b for a, b in zip(original, changed)) == 1, mutant
        compile(tree, "a.py", "exec")


def test_which_function_holds_it() -> None:
    holders = {m.function for m in mutants_of("a.py", SOURCE)}
    assert holders == {None, "admits", "Box.put"}, "a default is made at import"


def test_one_seed_draws_the_same() -> None:
    mutants, total = drawn(7, 20)
    assert mutants == drawn(7, 20)[0]
    assert len(mutants) == 20 < total
    assert mutants != drawn(8, 20)[0]


def mutant(line: int, function: str | None = "f") -> Mutant:
    return Mutant("kwire/replica/state.py", line, line, "compare", "a", "b", line, 0, function, 1)


def test_only_what_runs_its_lines_is_run_and_the_quick_first() -> None:
    path = "kwire/replica/state.py"
    covered = Covered(
        tests={"slow": (2.0, {(path, 5)}), "quick": (0.1, {(path, 5)}), "other": (0.1, {(path, 6)})}
    )
    assert touching(covered.tests, mutant(5)) == ["quick", "slow"]
    assert touching(covered.tests, mutant(7)) == []
    assert touching(covered.tests, mutant(7, None)) == ["other", "quick", "slow"], "at import"
    assert within(covered.tests, ["quick", "slow"], 1.0) == ["quick"]
    assert within(covered.tests, ["slow"], 1.0) == ["slow"], "at least one"


def test_one_that_was_not_run_survives() -> None:
    mutants = [mutant(5), mutant(6), mutant(7)]
    results = {mutants[0].name: ["tests", "t", 0.1], mutants[1].name: ["time-out", "tests", 9.0]}
    rows = [line.split() for line in table(mutants, results)]
    assert rows[-1] == ["all", "3", "1", "0", "1", "1"]
    lines = survivor_lines(mutants, results)
    assert lines[0] == f"{mutants[2].name} [f; not run]"
    assert results.get(mutants[2].name, [SURVIVED])[0] == SURVIVED

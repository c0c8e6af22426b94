"""Upkeep of a lake beside another's: whose commit comes second looks again. Old lakes that lack
something."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import pytest

from kwire.spark import convert
from kwire.spark.delta import ConflictError, DeltaTable
from kwire.spark.job import Progress
from kwire.spark.lake_files import LocalLakeFiles
from kwire.spark.maintenance import ATTEMPTS, _adder, _beside_others
from kwire.spark.usage import UsageError
from tests.support import old_lakes

pytest.importorskip("pyspark")

GONE = (
    "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file f. File does not exist"
)


@pytest.mark.parametrize("conflicts", [0, 1, ATTEMPTS - 1])
def test_upkeep_whose_commit_comes_second_looks_again(
    conflicts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job ended with status 3, though the other one had done what was to be done; and an
    archive that had archived everything did so too."""
    left = conflicts
    done = {"files": 0}
    add = _adder(done, "files")

    def step() -> None:
        nonlocal left
        add(2)
        if left:
            left -= 1
            raise ConflictError("/lake/topic.t: another commit came first")

    _beside_others(step, Progress("archive"))
    assert left == 0
    assert done["files"] == 2 * (conflicts + 1)
    told = capsys.readouterr().err
    line = "archive: /lake/topic.t: another commit came first; looking again\n"
    assert told == line * conflicts


def test_upkeep_that_is_always_second_ends() -> None:
    times = 0

    def step() -> None:
        nonlocal times
        times += 1
        raise ConflictError("another commit came first")

    with pytest.raises(ConflictError):
        _beside_others(step, Progress("archive", quiet=True))
    assert times == ATTEMPTS


@pytest.mark.parametrize(
    ("text", "versions", "expected"),
    [
        (GONE, (4, 5), ConflictError),
        # Nobody was there: the table is damaged, and looking again does not help.
        (GONE, (4, 4), RuntimeError),
        ("Job aborted: no space left on device", (4, 5), RuntimeError),
    ],
)
def test_files_that_another_upkeep_deletes_while_they_are_joined(
    text: str, versions: tuple[int, int], expected: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--keep-replaced 0` the other one deletes what it has replaced at once: the job ended
    with status 3."""
    table = DeltaTable(MagicMock(), "/lake/topic.t")
    found = iter(versions)
    monkeypatch.setattr(table, "snapshot", lambda: MagicMock(version=lambda: next(found)))
    public = MagicMock()
    public.optimize().where().executeCompaction.side_effect = RuntimeError(text)
    monkeypatch.setattr(table, "_public", lambda: public)
    with pytest.raises(expected):
        table.optimize("partition = 0", {})


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_conversion_of_a_lake_that_lacks_a_file_does_nothing(tmp_path: Path, damage: str) -> None:
    """The topics before it were converted, and the line was one of Python."""
    old_lakes.write_lake(tmp_path, {"a": "id a", "b": "id b"}, partitions=1, batches=1)
    chosen = next(tmp_path.glob("topic=b/*/*/*.parquet"))
    if damage == "missing":
        chosen.unlink()
    else:
        chosen.write_bytes(chosen.read_bytes()[:-1])
    before = sorted(tmp_path.rglob("*"))
    one = convert.Conversion(
        MagicMock(), LocalLakeFiles(str(tmp_path)), Progress("lake", quiet=True)
    )
    with pytest.raises(
        UsageError, match=f"{chosen.name} (is missing|has .* bytes), the lake's log"
    ):
        one.run()
    assert sorted(tmp_path.rglob("*")) == before

"""What benchmarks rely on of the source they measure, and of the programs they build."""

from __future__ import annotations

import os
import pathlib

from bench import build, counting, small


def test_every_line_that_counts_is_found_where_the_benchmark_takes_it_out() -> None:
    """A table that names lines the source does not have ended `bench/counting.py` unseen."""
    exchanged = counting.exchanges()
    assert len(exchanged) == len(counting.COUNTING)
    for each in exchanged:
        assert each.counting.co_code != each.silent.co_code, each.function.__qualname__


def test_a_program_whose_library_is_gone_is_built_anew(tmp_path: pathlib.Path) -> None:
    """The programs are kept outside of the environment whose library they load."""
    source, program, library = tmp_path / "rklat.c", tmp_path / "rklat", tmp_path / "lib.so"
    for file in (source, program, library):
        file.write_text("")
    os.utime(source, (0, 0))
    assert build.is_built(program, source, needs_library=False)
    assert not build.is_built(program, source, needs_library=True)  # nobody knows its library
    build.library_path(program).write_text(f"{library}\n")
    assert build.is_built(program, source, needs_library=True)
    library.unlink()
    assert not build.is_built(program, source, needs_library=True)
    os.utime(source, None)
    os.utime(program, (0, 0))
    assert not build.is_built(program, source, needs_library=False)


def test_a_broker_is_warm_when_two_runs_in_a_row_were_no_faster() -> None:
    rising = [27_580.0, 41_749.0, 70_956.0, 80_458.0]
    assert not any(small.is_warm(rising[:count]) for count in range(len(rising) + 1))
    assert not small.is_warm([*rising, 80_900.0]), "one run may have been disturbed"
    assert small.is_warm([*rising, 80_900.0, 79_000.0])
    assert not small.is_warm([49_000.0, 48_000.0, 60_000.0])

"""What the build of an interpreter says about PGO and LTO."""

from __future__ import annotations

import sys
import sysconfig

import pytest

from kwire.cli import interpreter
from kwire.cli.interpreter import advice, missing_optimisations

PREFIX = "/opt/python"
# As 3.11 and 3.13 have it that were built by `configure --enable-shared` alone.
PLAIN = "'--prefix=/opt/python' '--enable-shared' 'LDFLAGS=-L/opt/python/lib -Wl,-rpath,/opt/lib'"
# As Debian's 3.11 has it, which is built with PGO all the same.
DEBIAN = "'--enable-shared' '--prefix=/usr' '--with-dtrace' 'CFLAGS=-g   -Wformat ' 'LDFLAGS=  -O2'"


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"CONFIG_ARGS": PLAIN}, ["PGO", "LTO"]),
        ({"CONFIG_ARGS": ""}, ["PGO", "LTO"]),
        ({"CONFIG_ARGS": PLAIN + " '--enable-optimizations'"}, ["LTO"]),
        ({"CONFIG_ARGS": PLAIN + " '--with-lto'"}, ["PGO"]),
        ({"CONFIG_ARGS": PLAIN + " '--with-lto=no' '--enable-optimizations'"}, ["LTO"]),
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}, []),
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto=thin'"}, []),
        # made by `make profile-opt`, or by a build that hands the compiler its options itself
        ({"CONFIG_ARGS": PLAIN, "PY_CFLAGS_NODIST": "-O3 -fprofile-use -flto"}, []),
        (
            {"CONFIG_ARGS": PLAIN, "PY_CFLAGS_NODIST": "-fprofile-instr-use=code.profclangd"},
            ["LTO"],
        ),
        ({"CONFIG_ARGS": PLAIN, "PGO_PROF_USE_FLAG": "-fprofile-use"}, ["PGO", "LTO"]),
        # Windows, and what nobody can read
        ({}, []),
        ({"CONFIG_ARGS": None}, []),
        ({"CONFIG_ARGS": "'--enable-shared"}, []),
    ],
)
def test_what_is_missing(variables: dict[str, object], missing: list[str]) -> None:
    assert missing_optimisations(variables, PREFIX) == missing


def test_builds_of_distributions_say_nothing() -> None:
    assert missing_optimisations({"CONFIG_ARGS": DEBIAN}, "/usr") == []


def test_the_advice_is_one_line_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    variables: dict[str, object] = {"CONFIG_ARGS": PLAIN}
    monkeypatch.setattr(sysconfig, "get_config_vars", lambda: variables)
    monkeypatch.setattr(interpreter.sys, "base_prefix", PREFIX)
    told = advice()
    assert told is not None
    assert "\n" not in told
    for part in (PREFIX, sys.version.split()[0], "PGO and LTO", "15 %", "--enable-optimizations"):
        assert part in told
    variables["CONFIG_ARGS"] = "'--enable-optimizations' '--with-lto'"
    assert advice() is None

"""Whether Python itself is built to be fast: with PGO and LTO.

|     | options of configure, in CONFIG_ARGS | what the compiler gets, in `FLAGS`  |
|-----|--------------------------------------|-------------------------------------|
| PGO | --enable-optimizations               | -fprofile-use, -fprofile-instr-use  |
| LTO | --with-lto, also with =full, =thin   | -flto, -flto=thin                   |

CONFIG_ARGS has the options as they were given (measured on 3.10 to 3.13); the compiler's are those
that CPython's own `test.support.check_cflags_pgo` looks for. Builds without CONFIG_ARGS, as on
Windows, tell nothing. Neither do those of distributions, below /usr: Debian's has no such option
and is as fast as one that has them (measured: 0.72 of the CPU that 3.11 without them takes).
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

OF_DISTRIBUTIONS = "/usr"
FLAGS = ("PY_CFLAGS", "PY_CFLAGS_NODIST", "PY_CORE_CFLAGS", "PY_LDFLAGS_NODIST")
PGO_FLAGS = ("-fprofile-use", "-fprofile-instr-use", "-prof-use")
LTO_FLAG = "-flto"


def advice() -> str | None:
    """A line for who serves with an interpreter that is known to be slower than it could be.

    Python's own description of its build is read: a millisecond or two (measured), so not on the
    way to the ready line.
    """
    import sysconfig

    missing = missing_optimisations(sysconfig.get_config_vars(), sys.base_prefix)
    if not missing:
        return None
    return (
        f"this Python ({sys.base_prefix}, {sys.version.partition(' ')[0]}) is built without "
        f"{' and '.join(missing)}: small requests take about 15 % more CPU than with both; run "
        "kwire with a Python that was configured with --enable-optimizations --with-lto, such as "
        "those that uv installs"
    )


def missing_optimisations(variables: Mapping[str, object], base_prefix: str) -> list[str]:
    """PGO, LTO or both, if the build of an interpreter says that it has been done without."""
    told = variables.get("CONFIG_ARGS")
    if not isinstance(told, str) or base_prefix == OF_DISTRIBUTIONS:
        return []
    try:
        options = shlex.split(told)
    except ValueError:
        return []
    flags = " ".join(str(variables.get(name) or "") for name in FLAGS)
    missing = []
    if "--enable-optimizations" not in options and not any(x in flags for x in PGO_FLAGS):
        missing.append("PGO")
    if not any(is_lto(option) for option in options) and LTO_FLAG not in flags:
        missing.append("LTO")
    return missing


def is_lto(option: str) -> bool:
    """Whether an option of configure asks for LTO, of any kind."""
    name, _, value = option.partition("=")
    return name == "--with-lto" and value != "no"

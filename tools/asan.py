"""Tests with kernels that are compiled with AddressSanitizer: `make asan`.

    tools/asan.py [--work DIR] [--effort N] [TESTS ...]

What a kernel reads or writes beyond a buffer ends the run with gcc's report. The sources are copied
to DIR, where the kernels are built; brokers that tests start are of that copy too. Without TESTS:
those of records and their kernels, and the hostile ones. Python's own allocator is switched off, so
that each object has borders of its own; leaks are not looked for, Python leaves some behind. Needs
gcc with libasan; Cython is fetched to DIR.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
COPIED = ("kwire", "tests", "bench", "tools", "docs", "pyproject.toml", "README.md")
TESTS = (
    "tests/unit/protocol",
    "tests/golden/records",
    "tests/hostile",
)
FLAGS = (
    "-shared",
    "-fPIC",
    "-fsanitize=address",
    "-fno-omit-frame-pointer",
    "-fwrapv",
    "-g",
    "-O1",
)
CYTHON = "Cython>=3.1"
REPORT = "asan-report"
MARK = b"__asan_report"
"""A function of libasan that every kernel calls which was compiled for it."""
LEFT_OUT = shutil.ignore_patterns("*.so", "__pycache__")


def libasan() -> str:
    """The library, which has to be there before Python; SystemExit."""
    compiler = os.environ.get("CC", "gcc")
    try:
        done = subprocess.run(
            [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(f"asan: needs {compiler}") from None
    found = done.stdout.strip()
    if not os.path.isabs(found):
        raise SystemExit(f"asan: {compiler} has no libasan.so: install it")
    return found


def copy_to(work: pathlib.Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, work / name, ignore=LEFT_OUT, dirs_exist_ok=True)
        else:
            shutil.copy2(source, work / name)


def build(work: pathlib.Path) -> None:
    """The kernels of the copy; SystemExit where one is not built with AddressSanitizer."""
    cython = work / "cython"
    if not cython.is_dir():  # apart: with it in reach, kernels that are not compiled run otherwise
        install = ["pip", "install", "-q", "--target", str(cython), CYTHON]
        subprocess.run([sys.executable, "-m", *install], check=True)
    environment = {**os.environ, "PYTHONPATH": str(cython)}
    compiler = [os.environ.get("CC", "gcc"), *FLAGS, f"-I{sysconfig.get_path('include')}"]
    sources = sorted((work / "kwire" / "protocol" / "records").glob("*kernel.py"))
    for source in sources:
        c_file = source.with_suffix(".c")
        target = source.with_suffix(str(sysconfig.get_config_var("EXT_SUFFIX")))
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            continue
        translate = [sys.executable, "-m", "cython", "-3", str(source), "-o", str(c_file)]
        subprocess.run(translate, cwd=work, env=environment, check=True)
        subprocess.run([*compiler, str(c_file), "-o", str(target)], check=True)
        if MARK not in target.read_bytes():
            raise SystemExit(f"asan: {source.name} was not built with AddressSanitizer")
    print(f"asan: {len(sources)} kernels are built in {work}", flush=True)


def run_tests(work: pathlib.Path, tests: list[str], effort: int) -> int:
    """The exit status of pytest, not 0 where a process of the tests left a report."""
    for report in work.glob(f"{REPORT}.*"):
        report.unlink()
    options = "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1"
    environment = {
        **os.environ,
        "LD_PRELOAD": libasan(),
        "ASAN_OPTIONS": f"{options}:log_path={work / REPORT}",  # pytest keeps stderr to itself
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(work),
        "KWIRE_EFFORT": str(effort),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", *tests]
    status = subprocess.run(command, cwd=work, env=environment, check=False).returncode
    reports = sorted(work.glob(f"{REPORT}.*"))
    for report in reports:
        print(f"\n{report.name}\n{report.read_text(errors='replace')}")
    print(f"asan: {len(reports)} reports")
    return status or int(bool(reports))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=pathlib.Path, help="kept, and built once")
    parser.add_argument("--effort", type=int, default=int(os.environ.get("KWIRE_EFFORT", "1")))
    options, tests = parser.parse_known_args()
    libasan()
    with tempfile.TemporaryDirectory(prefix="kwire-asan-") as folder:
        work = (options.work or pathlib.Path(folder)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        copy_to(work)
        build(work)
        return run_tests(work, tests or list(TESTS), options.effort)


if __name__ == "__main__":
    raise SystemExit(main())

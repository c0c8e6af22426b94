"""`make run` and `make demo`: kernels are compiled once, and nothing is silent for minutes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAME = "kwire.protocol.records.kernel"


@pytest.fixture
def setup_module() -> types.ModuleType:
    pytest.importorskip("setuptools")
    spec = importlib.util.spec_from_file_location("kwire_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Compiler:
    """Stands in for the compiler: writes what it was asked for, and counts."""

    def __init__(self, module: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.module = module
        self.calls = 0
        self.source = folder / (NAME.replace(".", "/") + ".py")
        self.source.parent.mkdir(parents=True)
        self.source.write_text("first = 1\n")
        monkeypatch.chdir(folder)
        monkeypatch.setattr(module.build_ext, "build_extension", lambda *call: self._compile(*call))

    def _compile(self, command: Any, ext: Any) -> None:
        self.calls += 1
        path = Path(command.get_ext_fullpath(ext.name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source.read_text())

    def install(self, folder: str) -> str:
        """Build into `folder`, as each kind of installation does; what is there then."""
        from setuptools import Distribution

        ext = self.module.Extension(NAME, [str(self.source)])
        command = self.module.CachedBuild(Distribution({"ext_modules": [ext]}))
        command.build_lib = folder
        command.ensure_finalized()
        command.inplace = 0
        command.build_extension(command.extensions[0])
        return Path(command.get_ext_fullpath(NAME)).read_text()


def test_a_kernel_is_compiled_again_when_the_build_script_changes(
    setup_module: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Options of the compiler stand in it."""
    compiler = Compiler(setup_module, monkeypatch, tmp_path / "project")
    script = tmp_path / "setup.py"
    script.write_text("first")
    monkeypatch.setattr(setup_module, "__file__", str(script))
    compiler.install("one")
    script.write_text("second")
    compiler.install("two")
    assert compiler.calls == 2


def test_kernels_are_compiled_once_for_all_kinds_of_installation(
    setup_module: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editable installation after a plain one compiled them anew, and the other way round."""
    compiler = Compiler(setup_module, monkeypatch, tmp_path)
    for folder in ("editable", "plain", "editable-again"):
        assert compiler.install(folder) == "first = 1\n"
    assert compiler.calls == 1
    compiler.source.write_text("second = 2\n")
    assert compiler.install("editable") == "second = 2\n"
    monkeypatch.setenv("CFLAGS", "-O0")
    compiler.install("editable")
    assert compiler.calls == 3


SOURCES = """
import importlib, pkgutil
found = [info.name for info in pkgutil.iter_modules() if info.name.startswith("pyspark_")]
print([importlib.import_module(name).DefaultSource.name() for name in found])
"""


def test_spark_finds_the_source_of_segments_where_kwire_is_installed(tmp_path: Path) -> None:
    """As Spark looks for sources of data, from a folder that is not the clone. An editable
    installation, which `make` makes, did not show the module to it."""
    pytest.importorskip("pyspark")
    try:
        importlib.metadata.distribution("kwire")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("kwire is not installed here")
    told = subprocess.run(
        [sys.executable, "-c", SOURCES],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == "['kwire-segments']\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
@pytest.mark.parametrize("target", ["run", "demo", "test"])
def test_make_says_what_takes_minutes(target: str, tmp_path: Path) -> None:
    """A fresh clone said nothing until the broker was ready."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    told = subprocess.run(
        ["make", "-n", target], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert 'echo "kwire: installing it' in told
    assert "pip install" in told
    assert " -q" not in told.replace("grep -q", "").replace("compileall -q", "")

"""A data directory becomes what was kept of it, whatever was done to it; what is the same stays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.testing.brokers.copies import Tree, copy_tree, put_links


def write(path: Path, content: bytes) -> None:
    """A file of one's own, as `ThreadFiles` parts one before it changes it."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def swap_for_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"no directory")


def swap_for_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "log").write_bytes(b"inside")


def swap_for_a_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


DONE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda data: None,
    "a file is written": lambda data: write(data / "a" / "log", b"more"),
    "files of all are written": lambda data: [
        write(data / one / name, b"more") for one in "ab" for name in ("log", "index")
    ],
    "a file is gone": lambda data: (data / "a" / "log").unlink(),
    "a file is more": lambda data: (data / "b" / "time").write_bytes(b"new"),
    "a directory is gone": lambda data: shutil.rmtree(data / "a"),
    "a directory is more": lambda data: shutil.copytree(data / "a", data / "c"),
    "a directory is renamed": lambda data: (data / "a").rename(data / "a.deleted"),
    "a file in the place of a directory": lambda data: swap_for_a_file(data / "a"),
    "a directory in the place of a file": lambda data: swap_for_a_directory(data / "a" / "log"),
    "a link in the place of a directory": lambda data: swap_for_a_link(data / "a"),
    "two exchange their names": lambda data: [
        (data / old).rename(data / new) for old, new in (("a", "x"), ("b", "a"), ("x", "b"))
    ],
}


def held(data: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(data)): (path.stat().st_ino, path.read_bytes())
        for path in data.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("done", DONE.values(), ids=DONE)
def test_a_directory_is_put_back(tmp_path: Path, done: Callable[[Path], object]) -> None:
    data, kept = tmp_path / "data", tmp_path / "kept"
    for name in ("a/log", "a/index", "a/inner/one", "b/log", "b/index", "meta.properties"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(name.encode())
    before = held(data)
    tree: Tree = copy_tree(str(data), str(kept), links=True)
    (data / ".lock").write_bytes(b"")
    done(data)
    put_links(str(kept), tree, str(data))
    assert (data / ".lock").exists()
    (data / ".lock").unlink()
    assert held(data) == before
    assert sorted(path.name for path in data.rglob("*") if path.is_dir()) == ["a", "b", "inner"]
    assert not any(path.is_symlink() for path in data.rglob("*"))
    assert held(kept) == before


def test_only_what_is_not_the_same_is_put_anew(tmp_path: Path) -> None:
    data, kept = tmp_path / "data", tmp_path / "kept"
    (data / "a").mkdir(parents=True)
    for name in ("log", "index"):
        (data / "a" / name).write_bytes(b"kept")
    tree = copy_tree(str(data), str(kept), links=True)
    write(data / "a" / "log", b"changed")
    directory = (data / "a").stat().st_ino
    index = os.stat(data / "a" / "index")
    put_links(str(kept), tree, str(data))
    assert (data / "a").stat().st_ino == directory
    assert os.stat(data / "a" / "index").st_ctime_ns == index.st_ctime_ns, "it was linked anew"
    assert (data / "a" / "log").read_bytes() == b"kept"

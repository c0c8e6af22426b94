"""Copies of a data directory in milliseconds.

    by hard link      all files, where nobody writes into them but through `ThreadFiles`: it parts
                      a file from its other names before it changes it
    else              by reflink (FICLONE) where the file system has it, or by copying what is no
                      hole: preallocated indexes are nearly all hole
    `.lock`           not: it belongs to whoever runs

Files keep their modes: checkpoints of the metadata log have 0400.
"""

from __future__ import annotations

import errno
import itertools
import os
import sys
import tempfile
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import TypeAlias

LOCK_FILE = ".lock"
FICLONE = 0x40049409
SMALL_BYTES = 64 << 10
REMOVED_PREFIX = ".kwire-removed-"
"""Of directories beside a data directory whose content is on its way to nowhere."""
NO_REFLINK = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM)


Tree: TypeAlias = "dict[str, int | Tree]"
"""What a copy has: by name a file's inode where it was copied from, or what a directory has."""

OWN = 0
"""In the place of an inode: a file that is nobody else's."""


def copy_tree(source: str, target: str, *, links: bool) -> Tree:
    """Copy a data directory to a new or empty one; OSError. Nobody may change it meanwhile."""
    os.makedirs(target, exist_ok=True)
    return _Copier(links=links).copy(source, target)


def put_links(source: str, tree: Tree, target: str, kept: Collection[str] = ()) -> None:
    """Make a data directory what `source` holds, by hard links; OSError. Nobody uses either, and
    nobody has changed `source`, which `copy_tree` has made with this tree.

    A file that both share is the same file still (`ThreadFiles`) and stays, the others are put
    there anew, and the lock and `kept` stay. What was in their place is removed by a thread.
    """
    is_one_disk = os.stat(source).st_dev == os.stat(target).st_dev
    aside = tempfile.mkdtemp(prefix=REMOVED_PREFIX, dir=os.path.dirname(os.path.abspath(target)))
    try:
        _PuttingBack(aside, is_one_disk=is_one_disk).put(source, tree, target, {LOCK_FILE, *kept})
    finally:
        remove_soon(aside)


class _PuttingBack:
    """Goes through the directories of `put_links`; what is in the way goes to `aside`."""

    def __init__(self, aside: str, *, is_one_disk: bool) -> None:
        self._aside = aside
        self._is_one_disk = is_one_disk
        self._copier = _Copier(links=True)
        self._numbers = itertools.count()

    def put(self, source: str, held: Tree, target: str, kept: Collection[str] = ()) -> None:
        """Have the directory hold what is `held`, beside what is `kept`."""
        with os.scandir(target) as entries:
            found = list(entries)
        if self._is_one_disk and {one.name: one.inode() for one in found} == held:
            return
        there = set(kept)
        for entry in found:
            if self._is_there(entry, held.get(entry.name, OWN), f"{source}/{entry.name}"):
                there.add(entry.name)
            elif entry.name not in kept:
                os.rename(entry.path, f"{self._aside}/{next(self._numbers)}")
        for name, one in held.items():
            if name not in there:
                self._copier.put(one, f"{source}/{name}", f"{target}/{name}")

    def _is_there(self, entry: os.DirEntry[str], held: int | Tree, source: str) -> bool:
        """Whether that is the same file, or a directory, which is put in order then."""
        if isinstance(held, int):
            return self._is_one_disk and entry.inode() == held
        if not entry.is_dir(follow_symlinks=False):
            return False
        self.put(source, held, entry.path)
        return True


def copy_file(source: str, target: str) -> None:
    """A copy of its own; holes stay holes."""
    _Copier(links=False).copy_file(source, target, os.stat(source))


def remove_soon(path: str) -> None:
    """Remove a tree by a thread: nobody waits for it."""
    threading.Thread(target=_remove, args=(path,), name="kwire-removal").start()


def _remove(path: str) -> None:
    """What cannot be removed stays."""
    with suppress(OSError):
        with os.scandir(path) as entries:
            found = list(entries)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                with suppress(OSError):
                    os.unlink(entry.path)
        os.rmdir(path)


def clear_soon(directory: str, kept: Collection[str] = ()) -> None:
    """Leave nothing in a directory but `kept`; what was in it is removed by a thread. OSError."""
    parent = os.path.dirname(os.path.abspath(directory))
    aside = tempfile.mkdtemp(prefix=REMOVED_PREFIX, dir=parent)
    try:
        for name in set(os.listdir(directory)).difference(kept):
            os.rename(os.path.join(directory, name), os.path.join(aside, name))
    finally:
        remove_soon(aside)


class _Copier:
    def __init__(self, *, links: bool) -> None:
        self._links = links
        self._reflinks = sys.platform.startswith("linux")

    def copy(self, source: str, target: str) -> Tree:
        tree: Tree = {}
        with os.scandir(source) as entries:
            for entry in entries:
                into = f"{target}/{entry.name}"
                if entry.is_dir():
                    os.mkdir(into)
                    tree[entry.name] = self.copy(entry.path, into)
                elif entry.name != LOCK_FILE and entry.is_file():
                    is_shared = self._links and _linked(entry.path, into)
                    if not is_shared:
                        self.copy_file(entry.path, into, entry.stat())
                    tree[entry.name] = entry.inode() if is_shared else OWN
        return tree

    def put(self, held: int | Tree, source: str, target: str) -> None:
        """Copy what `copy` has made."""
        if isinstance(held, int):
            if not (self._links and _linked(source, target)):
                self.copy_file(source, target, os.stat(source))
            return
        os.mkdir(target)
        for name, one in held.items():
            self.put(one, f"{source}/{name}", f"{target}/{name}")

    def copy_file(self, source: str, target: str, status: os.stat_result) -> None:
        reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            writing = os.open(target, flags, status.st_mode & 0o777)
            try:
                size = status.st_size
                if not size:
                    return
                if size <= SMALL_BYTES:
                    os.write(writing, os.read(reading, size))
                elif not self._reflinked(reading, writing):
                    _copy_data(reading, writing, size)
            finally:
                os.close(writing)
        finally:
            os.close(reading)

    def _reflinked(self, reading: int, writing: int) -> bool:
        if not self._reflinks:
            return False
        import fcntl

        try:
            fcntl.ioctl(writing, FICLONE, reading)
        except OSError as error:
            if error.errno not in NO_REFLINK:
                raise
            self._reflinks = False
        return self._reflinks


def _linked(source: str, target: str) -> bool:
    """Give a file another name; False where it cannot have one there."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise
        return False
    return True


def _copy_data(reading: int, writing: int, size: int) -> None:
    """All that is no hole; the rest of the file is one."""
    os.ftruncate(writing, size)
    position = 0
    while position < size:
        try:
            position = os.lseek(reading, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the end
                return
            raise
        end = os.lseek(reading, position, os.SEEK_HOLE)
        while position < end:
            data = os.pread(reading, min(end - position, 1 << 20), position)
            if not data:
                return
            os.pwrite(writing, data, position)
            position += len(data)

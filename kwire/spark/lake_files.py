"""Small files of lakes and of mirrors' state, on this machine or where Hadoop reaches.

Data files are written and read by Spark. This is for notes and commit logs: create a small file
only if it is not there, atomically; list; delete. On this machine a file appears by `link`, which
fails when the name is taken. On S3 it is created under a condition (s3.py). Elsewhere it is
Spark's own `CheckpointFileManager`, which knows for each kind of store how (a rename that does not
replace, for one).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from kwire.clock import SystemRandom
from kwire.log.files import LockedError, SystemFiles, write_atomically
from kwire.spark import s3
from kwire.spark.stores import local_path
from kwire.spark.usage import UsageError, check_address

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class FileInfo(NamedTuple):
    """`path` is relative to the lake."""

    path: str
    size_bytes: int


class LakeFiles(Protocol):
    """Files below a lake's root, by relative path. Methods raise OSError."""

    root: str

    def read(self, path: str) -> bytes | None: ...
    def create(self, path: str, data: bytes) -> bool: ...
    def names(self, folder: str) -> list[str]: ...
    def walk(self, folder: str) -> Iterator[FileInfo]: ...
    def delete(self, paths: Iterable[str]) -> None: ...
    def move(self, path: str, target: str) -> None: ...
    def sync(self, paths: Iterable[str]) -> None: ...
    def hold(self, path: str) -> int | None: ...
    def check_commits(self, *, of_delta: bool) -> None: ...


class LocalLakeFiles:
    """A folder of this machine."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._files = SystemFiles()

    def _path(self, path: str) -> str:
        return f"{self.root}/{path}"

    def read(self, path: str) -> bytes | None:
        """The content; None when there is no such file."""
        try:
            with open(self._path(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def create(self, path: str, data: bytes) -> bool:
        """Make the file, whole and on disk; False when it is there already."""
        target = self._path(path)
        folder, name = os.path.split(target)
        os.makedirs(folder, exist_ok=True)
        # Processes on several machines, or in containers, may have one number.
        draft = f"{folder}/.{name}.{SystemRandom().random_bytes(8).hex()}"
        try:
            write_atomically(self._files, draft, data)
            os.link(draft, target)
        except FileExistsError:
            return False
        finally:
            # On a full disk there is only the first of them.
            for leaving in (f"{draft}.tmp", draft):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(leaving)
        self._files.sync_directory(folder)
        return True

    def names(self, folder: str) -> list[str]:
        """What the folder holds, sorted, without hidden files; [] when there is none."""
        try:
            found = os.listdir(self._path(folder))
        except FileNotFoundError:
            return []
        return sorted(name for name in found if not name.startswith("."))

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """All files below a folder."""
        start = self._path(folder) if folder else self.root
        for place, _, names in os.walk(start):
            for name in names:
                path = f"{place}/{name}"
                with contextlib.suppress(FileNotFoundError):
                    yield FileInfo(os.path.relpath(path, self.root), os.stat(path).st_size)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files, and folders that are empty then; those that are gone are no error."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(path))
            folder, name = os.path.split(self._path(path))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/.{name}.crc")
            while folder != self.root:
                try:
                    os.rmdir(folder)
                except OSError:
                    break
                folder = os.path.dirname(folder)

    def move(self, path: str, target: str) -> None:
        """Rename a file; one that was moved before is no error."""
        os.makedirs(os.path.dirname(self._path(target)), exist_ok=True)
        try:
            os.rename(self._path(path), self._path(target))
        except FileNotFoundError:
            if not os.path.exists(self._path(target)):
                raise
        self.delete([path])  # and the folders that are empty by now

    def sync(self, paths: Iterable[str]) -> None:
        """Bring data files to the disk before a commit names them."""
        for path in paths:
            handle = self._files.open(self._path(path), writable=False)
            try:
                self._files.fdatasync(handle)
            finally:
                self._files.close(handle)

    def hold(self, path: str) -> int | None:
        """Keep a file to this process until it ends; the process that has it, None if it is ours.

        It must not be opened again: closing it would let go of it.
        """
        try:
            self._files.lock(self._path(path))
        except LockedError as error:
            return None if error.pid == os.getpid() else error.pid
        except OSError:  # a file system without locks
            pass
        return None

    def check_commits(self, *, of_delta: bool) -> None:
        """On a disk no commit takes the place of another."""


class HadoopLakeFiles:
    """Any file system that Spark's Hadoop client knows."""

    def __init__(self, spark: Any, root: str) -> None:
        self.root = root.rstrip("/")
        self._spark = spark
        self._jvm = spark._jvm
        conf = spark._jsc.hadoopConfiguration()
        self._path_of: Any = self._jvm.org.apache.hadoop.fs.Path
        self._system = self._reached(conf)
        streaming = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        manager = getattr(getattr(streaming, "CheckpointFileManager$"), "MODULE$")
        self._manager = manager.create(self._path_of(self.root), conf)

    def _reached(self, conf: Any) -> Any:
        """The file system, asked for the folder; UsageError where it cannot be reached: without its
        classes, its bucket, who may read it, or where it is."""
        if s3.is_s3(self.root):
            s3.reach(self._spark, self.root)
            return self._path_of(self.root).getFileSystem(conf)
        try:
            place = self._path_of(self.root)
            system = place.getFileSystem(conf)
            system.exists(place)
        except Exception as error:
            raise UsageError(f"{self.root}: {self._reason(error)}") from None
        return system

    def _reason(self, error: Exception) -> str:
        text = store_error(str(getattr(error, "java_exception", None) or error))
        if not any(word in text for word in ("ClassNotFoundException", s3.NO_STORE)):
            return text
        return f"{text}; --packages GROUP:ARTIFACT:VERSION brings its connector"

    def _path(self, path: str) -> Any:
        return self._path_of(f"{self.root}/{path}" if path else self.root)

    def read(self, path: str) -> bytes | None:
        """As LocalLakeFiles."""
        target = self._path(path)
        if not self._system.exists(target):
            return None
        stream = self._system.open(target)
        try:
            data: bytes = stream.readAllBytes()
            return bytes(data)
        finally:
            stream.close()

    def create(self, path: str, data: bytes) -> bool:
        """As LocalLakeFiles, by the store's own means."""
        target = self._path(path)
        if self._system.exists(target):
            return False
        if s3.is_s3(self.root):
            return s3.create(self._system, target, data)
        self._system.mkdirs(target.getParent())
        stream = self._manager.createAtomic(target, False)
        try:
            stream.write(bytearray(data))
            stream.close()
        except Exception as error:
            stream.cancel()
            if "AlreadyExists" in str(error) or self._system.exists(target):
                return False
            raise
        return True

    def names(self, folder: str) -> list[str]:
        """As LocalLakeFiles."""
        target = self._path(folder)
        if not self._system.exists(target):
            return []
        found = [str(status.getPath().getName()) for status in self._system.listStatus(target)]
        return sorted(name for name in found if not name.startswith("."))

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """As LocalLakeFiles."""
        target = self._path(folder)
        if not self._system.exists(target):
            return
        prefix = str(self._system.makeQualified(self._path("")).toString()).rstrip("/") + "/"
        found = self._system.listFiles(target, True)
        while found.hasNext():
            status = found.next()
            path = str(status.getPath().toString()).removeprefix(prefix)
            yield FileInfo(path, int(status.getLen()))

    def delete(self, paths: Iterable[str]) -> None:
        """As LocalLakeFiles; folders of object stores need no removal."""
        for path in paths:
            self._system.delete(self._path(path), False)

    def move(self, path: str, target: str) -> None:
        """As LocalLakeFiles. Where a store moves by copying, what an end between the copy and the
        removal has left of the source goes too."""
        source, place = self._path(path), self._path(target)
        if not self._system.exists(place):
            self._system.mkdirs(place.getParent())
            # S3A raises where there is no source, others answer so.
            if not (self._system.exists(source) and self._system.rename(source, place)):
                raise FileNotFoundError(f"{self.root}/{path}")
        self._system.delete(source, False)

    def sync(self, paths: Iterable[str]) -> None:
        """Stores have what was written once its file is closed."""

    def hold(self, path: str) -> int | None:
        """Stores keep nothing to a process."""
        return None

    def check_commits(self, *, of_delta: bool) -> None:
        """UsageError where of two writers' commits the later one could take the other's place.
        `of_delta`: for tables, whose log store settings may name."""
        if not s3.is_s3(self.root):
            return
        if not (of_delta and s3.has_own_log_store(self._spark, self.root.partition(":")[0])):
            s3.check_conditions(self._spark, self._system, self.root)


def store_error(text: str) -> str:
    """One line of what a Java exception says of a store, with the innermost cause.

    >>> store_error("java.io.IOException: a/b\\nCaused by: x.y.NoBucket: no such bucket")
    'NoBucket: no such bucket'
    """
    causes = re.findall(r"Caused by: ([^\n]+)", text)
    line = causes[-1] if causes else (text.strip().splitlines() or [""])[0]
    name, colon, rest = line.partition(": ")
    return f"{name.rpartition('.')[2]}{colon}{rest}"[:400]


def is_local(location: str) -> bool:
    """Whether a lake is a folder of this machine: it can be looked at before Spark starts."""
    return location.startswith("file:") or not _SCHEME.match(location)


def check_folder(location: str, option: str) -> None:
    """UsageError when a folder of this machine is none, or cannot be made or written to, or where
    credentials stand in the address of another place."""
    if not is_local(location):
        check_address(location, option)
        return
    if not location.strip():
        raise UsageError(f"{option} {location!r}: names no folder")
    path = open_lake_files(location).root
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise UsageError(f"{option} {location}: {error.strerror}") from None
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    if not os.path.isdir(path):
        raise UsageError(f"{option} {location}: {path} is no folder")
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {location}: {path} may not be written to")


def open_lake_files(location: str, spark: Any = None) -> LakeFiles:
    """The files of a lake; ValueError for one elsewhere without a session, UsageError for a URI
    that is none of a folder of this machine."""
    if location.startswith("file:"):
        try:
            return LocalLakeFiles(local_path(location))
        except ValueError as error:
            raise UsageError(str(error)) from None
    if is_local(location):
        return LocalLakeFiles(location)
    if spark is None:
        raise ValueError(f"{location}: needs a Spark session")
    return HadoopLakeFiles(spark, location)

"""Where data directories are read from: local folders and object stores, through one seam.

A store lists a folder and reads ranges of files. `open_store` gives the one for a location:
a path or `file:` URI is local, `pyarrow.fs` has `s3:`, `gs:`, `abfs:` and `hdfs:` (Hadoop's
spellings `s3a:` and `s3n:` are taken as `s3:`), every other scheme is fsspec's where that is
installed. Stores are made where they are used, in the planner and in each task, so that nothing
but the location travels.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple, Protocol

from kwire.urls import without_userinfo

_FILE_URI = re.compile(r"file:(?:/{3,}|//localhost/+|/(?!/))(.*)\Z", re.DOTALL)
_HADOOP_SCHEMES = {"s3a": "s3", "s3n": "s3"}
_ARROW_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")


class Entry(NamedTuple):
    """A file or folder in a listing; `size_bytes` is -1 for a folder."""

    name: str
    size_bytes: int

    @property
    def is_folder(self) -> bool:
        return self.size_bytes < 0


class Store(Protocol):
    """Reads of one file system; paths are below its root. Methods raise OSError."""

    def entries(self, path: str) -> list[Entry]:
        """What the folder holds, by name; FileNotFoundError when there is none."""

    def read(self, path: str, position: int = 0, size_bytes: int | None = None) -> bytes:
        """A range of a file, shorter where the file ends; all of it without a size."""


class LocalStore:
    """Folders of this machine."""

    def entries(self, path: str) -> list[Entry]:
        with os.scandir(path) as found:
            listed = [
                Entry(entry.name, -1 if entry.is_dir() else entry.stat().st_size) for entry in found
            ]
        return sorted(listed)

    def read(self, path: str, position: int = 0, size_bytes: int | None = None) -> bytes:
        with open(path, "rb", buffering=0) as file:
            if position:
                file.seek(position)
            if size_bytes is None:
                return file.read()
            pieces = []
            while size_bytes > 0 and (piece := file.read(size_bytes)):
                pieces.append(piece)
                size_bytes -= len(piece)
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class ArrowStore:
    """An object store or HDFS, read by pyarrow, or what fsspec knows, behind the same interface."""

    def __init__(self, filesystem: Any) -> None:
        self._filesystem = filesystem

    def entries(self, path: str) -> list[Entry]:
        from pyarrow import fs

        selector = fs.FileSelector(path, allow_not_found=False)
        listed = [
            Entry(info.base_name, -1 if info.type == fs.FileType.Directory else info.size)
            for info in self._filesystem.get_file_info(selector)
        ]
        return sorted(listed)

    def read(self, path: str, position: int = 0, size_bytes: int | None = None) -> bytes:
        with self._filesystem.open_input_file(path) as file:
            if size_bytes is None:
                size_bytes = max(0, file.size() - position)
            data: bytes = file.read_at(size_bytes, position)
            return data


def local_path(location: str) -> str:
    """The path of a `file:` URI; ValueError for one of a host, which would be taken for the first
    folder, and for one without a path from the root on.

    >>> local_path("file:///data/lake")
    '/data/lake'
    """
    found = _FILE_URI.match(location)
    if found is None:
        raise ValueError(f"{location}: a folder of this machine is file:///PATH")
    return f"/{found[1]}"


def open_store(location: str) -> tuple[Store, str]:
    """(store, path below it) for a path or URI; ValueError for one that cannot be opened."""
    if location.startswith("file:"):
        return LocalStore(), local_path(location)
    scheme, separator, rest = location.partition("://")
    if not separator:
        return LocalStore(), location
    scheme = _HADOOP_SCHEMES.get(scheme, scheme)
    if scheme not in _ARROW_SCHEMES:
        return _fsspec_store(location)
    from pyarrow import ArrowException, fs

    try:
        filesystem, path = fs.FileSystem.from_uri(f"{scheme}://{rest}")
    except (ArrowException, OSError) as error:
        line = f"{location}: {str(error).splitlines()[0]}"
        raise ValueError(without_userinfo(line)) from None
    return ArrowStore(filesystem), path


def _fsspec_store(location: str) -> tuple[Store, str]:
    """What only fsspec can open; ValueError where it is not installed or does not know it."""
    from pyarrow import fs

    try:
        from fsspec.core import url_to_fs
    except ImportError:
        schemes = ", ".join(("file", "s3a", "s3n", *_ARROW_SCHEMES))
        line = f"{location}: not one of {schemes}, and fsspec is not installed"
        raise ValueError(without_userinfo(line)) from None
    try:
        filesystem, path = url_to_fs(location)
    except (ValueError, ImportError, OSError) as error:
        raise ValueError(without_userinfo(f"{location}: {error}")) from None
    return ArrowStore(fs.PyFileSystem(fs.FSSpecHandler(filesystem))), path

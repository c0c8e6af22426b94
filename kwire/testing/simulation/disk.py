"""A disk in memory that loses what was not synced: `kwire.log.files.Files` for simulated hosts.

What a program wrote is visible to it at once. A power loss keeps, per file, a drawn prefix of the
writes since its last `fdatasync` - the last one possibly torn at any byte, what follows possibly a
hole of zeros - and of the directory changes since the last `sync_directory` a drawn prefix in the
order they were made, as a journal does. A killed process loses nothing. `fault` may fail any
call, `capacity_bytes` makes the disk full.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from kwire.clock import SeededRandom
from kwire.log.files import Buffer, LockedError

Fault = Callable[[str, str], OSError | None]


class _Inode:
    """A file: its bytes and how to take back what is not synced."""

    __slots__ = ("data", "undo")

    def __init__(self) -> None:
        self.data = bytearray()
        # (position, bytes that were there, size before, size of the write; -1: a truncation)
        self.undo: list[tuple[int, bytes, int, int]] = []

    def write(self, position: int, data: Buffer) -> None:
        before = len(self.data)
        end = position + len(data)
        old = bytes(self.data[position:end])
        self.undo.append((position, old, before, len(data)))
        if position > before:
            self.data.extend(bytes(position - before))
        self.data[position:end] = data

    def truncate(self, size: int) -> None:
        before = len(self.data)
        if size == before:
            return
        self.undo.append((size, bytes(self.data[size:]), before, -1))
        if size < before:
            del self.data[size:]
        else:
            self.data.extend(bytes(size - before))

    def lose(self, random: SeededRandom) -> None:
        """Take back all but a drawn prefix of the changes since the last sync."""
        kept = random.below(len(self.undo) + 1)
        torn: tuple[int, bytes] | None = None
        final_size = len(self.data)
        while len(self.undo) > kept:
            position, old, before, size = self.undo.pop()
            if size >= 0 and len(self.undo) == kept:
                written = bytes(self.data[position : position + size])
                torn = (position, written[: random.below(size + 1)])
            if size < 0:
                del self.data[position:]
            self.data[position : position + len(old)] = old
            if len(self.data) < before:
                self.data.extend(bytes(before - len(self.data)))
            del self.data[before:]
        if torn is not None and torn[1]:
            position, part = torn
            if position > len(self.data):
                self.data.extend(bytes(position - len(self.data)))
            self.data[position : position + len(part)] = part
        if final_size > len(self.data) and random.below(4) == 0:
            self.data.extend(bytes(random.below(final_size - len(self.data) + 1)))
        self.undo.clear()


class SimulatedDisk:
    """One host's disk. Paths are absolute; directories exist once made."""

    write_delay_ms = 0
    descriptors_max = 0  # any number

    def __init__(self, random: SeededRandom) -> None:
        self.wall_ms: Callable[[], int] = lambda: 0
        self._random = random
        self._entries: dict[str, _Inode | None] = {"/": None}  # None: a directory
        self._names: dict[str, dict[str, None]] = {}  # what is in each directory
        # how to take back each directory change that is not synced, oldest first
        self._journal: list[list[tuple[str, _Inode | None, bool]]] = []
        self._handles: dict[int, tuple[str, _Inode]] = {}
        self._locks: dict[str, int] = {}
        self._next_handle = 3
        self.fault: Fault | None = None
        self.misread: Callable[[str, bytes], bytes] | None = None  # (path, data) -> what is read
        self.capacity_bytes: int | None = None
        self.syncs = 0

    # --- what happens to a disk ---

    def crash(self) -> None:
        """Power loss."""
        kept = self._random.below(len(self._journal) + 1)
        while len(self._journal) > kept:
            for path, previous, existed in reversed(self._journal.pop()):
                if existed:
                    self._put(path, previous)
                else:
                    self._drop(path)
        self._journal.clear()
        for path in sorted(self._entries):
            inode = self._entries[path]
            if inode is not None and inode.undo:
                inode.lose(self._random)
        self.process_killed()

    def process_killed(self) -> None:
        """The process that had files open and locked is gone; the kernel keeps its writes."""
        self._handles.clear()
        self._locks.clear()

    def used_bytes(self) -> int:
        return sum(len(inode.data) for inode in self._entries.values() if inode is not None)

    # --- Files ---

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        self._check("open", path)
        inode = self._entries.get(path)
        if inode is None:
            if path in self._entries:
                raise IsADirectoryError(errno.EISDIR, "is a directory", path)
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._parent(path)
            inode = _Inode()
            self._set(path, inode)
        self._next_handle += 1
        self._handles[self._next_handle] = (path, inode)
        return self._next_handle

    def close(self, handle: int) -> None:
        self._handles.pop(handle, None)

    def pread(self, handle: int, size_bytes: int, position: int) -> bytes:
        path, inode = self._of(handle)
        self._check("pread", path)
        data = bytes(inode.data[position : position + size_bytes])
        return data if self.misread is None else self.misread(path, data)

    def is_cached(self, handle: int, position: int, size_bytes: int) -> bool:
        """Everything is in memory."""
        return True

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        path, inode = self._of(handle)
        self._check("pwritev", path)
        data = b"".join(buffers)
        grown = position + len(data) - len(inode.data)
        if grown > 0 and self.capacity_bytes is not None:
            room = self.capacity_bytes - self.used_bytes()
            if room <= 0:
                raise OSError(errno.ENOSPC, "no space left on device", path)
            if grown > room:
                data = data[: len(data) - (grown - room)]
        inode.write(position, data)
        return len(data)

    def fdatasync(self, handle: int) -> None:
        path, inode = self._of(handle)
        self._check("fdatasync", path)
        self.syncs += 1
        inode.undo.clear()

    def truncate(self, handle: int, size_bytes: int) -> None:
        path, inode = self._of(handle)
        self._check("truncate", path)
        inode.truncate(size_bytes)

    def allocate(self, handle: int, position: int, size_bytes: int) -> bool:
        path, inode = self._of(handle)
        self._check("allocate", path)
        grown = position + size_bytes - len(inode.data)
        if self.capacity_bytes is not None and grown > self.capacity_bytes - self.used_bytes():
            raise OSError(errno.ENOSPC, "no space left on device", path)
        return True  # nothing is reserved: who asks for it gives it back, or writes there

    def size(self, handle: int) -> int:
        return len(self._of(handle)[1].data)

    def size_of(self, path: str) -> int:
        return len(self._file(path).data)

    def modified_ms(self, path: str) -> int:
        """Files have no times of their own: `wall_ms`, where whoever runs the world set it."""
        return self.wall_ms()

    def set_modified_ms(self, path: str, wall_ms: int) -> None:
        self._check("set_modified_ms", path)

    def exists(self, path: str) -> bool:
        return path in self._entries

    def is_directory(self, path: str) -> bool:
        return path in self._entries and self._entries[path] is None

    def contents(self, path: str) -> tuple[dict[str, int], list[str]]:
        """Nothing but files and directories: there are no pipes and no links."""
        sizes: dict[str, int] = {}
        irregular: list[str] = []
        for name, inode in self._children(path):
            if inode is None:
                irregular.append(name)
            else:
                sizes[name] = len(inode.data)
        return sizes, irregular

    def listing(self, path: str) -> dict[str, int]:
        return self.contents(path)[0]

    def directories(self, path: str) -> list[str]:
        return [name for name, inode in self._children(path) if inode is None]

    def read_file(self, path: str) -> bytes:
        self._check("read_file", path)
        data = bytes(self._file(path).data)
        return data if self.misread is None else self.misread(path, data)

    def rename(self, source: str, target: str) -> None:
        self._check("rename", source)
        if source not in self._entries:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        moved = [source, *sorted(self._below(source))]
        for path in moved:
            inode = self._entries[path]
            self._set(target + path[len(source) :], inode)
        for path in reversed(moved):
            self._unset(path)
        # One change, also for a directory with all that is in it.
        parts = self._journal[-2 * len(moved) :]
        self._journal[-2 * len(moved) :] = [[change for part in parts for change in part]]

    def set_read_only(self, path: str) -> None:
        """Modes are not simulated."""

    def unlink(self, path: str) -> None:
        self._check("unlink", path)
        self._file(path)
        self._unset(path)

    def make_directory(self, path: str) -> bool:
        self._check("make_directory", path)
        is_new = not self.is_directory(path)
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            directory = "/" + "/".join(parts[:count])
            if directory not in self._entries:
                self._set(directory, None)
        return is_new

    def remove_directory(self, path: str) -> None:
        self._check("remove_directory", path)
        if not self.is_directory(path):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if self._children(path):
            raise OSError(errno.ENOTEMPTY, "directory not empty", path)
        self._unset(path)

    def sync_directory(self, path: str) -> None:
        self._check("sync_directory", path)
        self.syncs += 1
        self._journal.clear()

    def lock(self, path: str) -> int:
        if path in self._locks:
            raise LockedError(path, 0)
        handle = self.open(path, create=True)
        self._locks[path] = handle
        return handle

    def release_lock(self, handle: int, path: str) -> None:
        self._locks.pop(path, None)
        if path in self._entries:
            self._unset(path)
        self.close(handle)

    # --- inside ---

    def _check(self, operation: str, path: str) -> None:
        error = self.fault(operation, path) if self.fault is not None else None
        if error is not None:
            raise error

    def _of(self, handle: int) -> tuple[str, _Inode]:
        found = self._handles.get(handle)
        if found is None:
            raise OSError(errno.EBADF, "bad file handle")
        return found

    def _file(self, path: str) -> _Inode:
        inode = self._entries.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return inode

    def _parent(self, path: str) -> None:
        parent = path.rsplit("/", 1)[0] or "/"
        if not self.is_directory(parent):
            raise FileNotFoundError(errno.ENOENT, "no such directory", parent)

    def _children(self, path: str) -> list[tuple[str, _Inode | None]]:
        if not self.is_directory(path):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        prefix = path.rstrip("/") + "/"
        names = sorted(self._names.get(path.rstrip("/"), ()))
        return [(name, self._entries[prefix + name]) for name in names]

    def _below(self, path: str) -> list[str]:
        """All that is in a directory, and in those in it."""
        found: list[str] = []
        for name in self._names.get(path, ()):
            found.append(f"{path}/{name}")
            found += self._below(f"{path}/{name}")
        return found

    def _set(self, path: str, inode: _Inode | None) -> None:
        self._journal.append([(path, self._entries.get(path), path in self._entries)])
        self._put(path, inode)

    def _unset(self, path: str) -> None:
        self._journal.append([(path, self._entries[path], True)])
        self._drop(path)

    def _put(self, path: str, inode: _Inode | None) -> None:
        self._entries[path] = inode
        directory, _, name = path.rpartition("/")
        self._names.setdefault(directory, {})[name] = None

    def _drop(self, path: str) -> None:
        if path in self._entries:
            del self._entries[path]
            directory, _, name = path.rpartition("/")
            del self._names[directory][name]

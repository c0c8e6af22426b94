"""Every operation on a file that kwire's logs perform, in one place.

A fault-injecting layer and a simulated disk replace `SystemFiles` by another implementation of
`Files`; nothing else in kwire opens, writes, syncs or renames a partition's file. Handles are
opaque integers of the implementation that gave them. Every method raises `OSError` and nothing
else; a failed `fdatasync` must never be repeated by the caller: after one the kernel may have
dropped the dirty pages and a second call would report success for data that is gone.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeGuard

Buffer = bytes | bytearray | memoryview

_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
_PROBE = (bytearray(1),)  # where a byte goes that nobody looks at
WINDOW_BYTES = 16 * 1024 * 1024
NO_WINDOW = 0, memoryview(b"")
WINDOWS_MAX = 16  # files of which a part is mapped
WHOLE_BYTES_MAX = 1 << 28  # of a file that is read whole
TEMPORARY_SUFFIX = ".tmp"  # of what is about to replace a file
IOV_MAX = 1024  # the kernel's limit of buffers in one vectored call


class Files(Protocol):
    """The seam: what a disk can do. Paths are absolute or relative to the working directory."""

    @property
    def write_delay_ms(self) -> int:
        """So long a write to a log waits before it is made: 0 but for faults on command."""
        ...

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int: ...
    def close(self, handle: int) -> None: ...
    def pread(self, handle: int, size_bytes: int, position: int) -> bytes: ...
    def is_cached(self, handle: int, position: int, size_bytes: int) -> bool: ...
    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int: ...
    def fdatasync(self, handle: int) -> None: ...
    def truncate(self, handle: int, size_bytes: int) -> None: ...
    def allocate(self, handle: int, position: int, size_bytes: int) -> bool: ...
    def size(self, handle: int) -> int: ...
    def size_of(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def set_modified_ms(self, path: str, wall_ms: int) -> None: ...
    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def listing(self, path: str) -> dict[str, int]: ...
    def directories(self, path: str) -> list[str]: ...
    def contents(self, path: str) -> tuple[dict[str, int], list[str]]: ...
    def read_file(self, path: str) -> bytes: ...
    def rename(self, source: str, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def set_read_only(self, path: str) -> None: ...
    def make_directory(self, path: str) -> bool: ...
    def remove_directory(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def lock(self, path: str) -> int: ...
    def release_lock(self, handle: int, path: str) -> None: ...


class MappableFiles(Files, Protocol):
    """Files of which parts can be handed to the kernel: see `SystemFiles.map`."""

    def map(self, handle: int, size_bytes: int, position: int) -> memoryview: ...


class LockedError(OSError):
    """Somebody holds the lock of a log directory: process `pid`, 0 if unknown, perhaps our own."""

    def __init__(self, path: str, pid: int) -> None:
        super().__init__(errno.EAGAIN, f"{path} is locked by process {pid or 'unknown'}", path)
        self.pid = pid


class UnfitFileError(OSError, ValueError):
    """What is read whole cannot be a file of its kind: damaged, not to be read."""


class IrregularFileError(UnfitFileError):
    """A directory, or a pipe or device, where reading may wait forever or never end."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "is no plain file", path)


class OversizedError(UnfitFileError):
    """It is larger than any of its kind."""

    def __init__(self, path: str, size_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"{size_bytes} bytes are too many for such a file", path)


class ShortageError(OSError):
    """A file could not be written anew for want of something that may come back: space,
    descriptors, memory. The old one or the new one is there whole; it may be tried again."""


class NotBegunError(OSError):
    """Work was not begun: there was no thread, no memory or no descriptor to begin it with.
    Nothing has happened, so that even a sync may be tried again."""


PASSING = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
)
"""What may be over in a moment, without anybody having repaired anything."""
FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE))


def passes(error: BaseException | None) -> bool:
    """Whether an error says that something is used up that may come back, or stands for one."""
    if isinstance(error, OSError):
        return error.errno in PASSING and not isinstance(error, LockedError)
    return error is not None and error.__cause__ is not None and passes(error.__cause__)


_held: dict[int, tuple[int, int]] = {}  # the locks of this process: handle -> device, inode


class SystemFiles:
    """The operating system's files."""

    syncs_in_parallel = True
    gives_lowest_descriptor = os.name == "posix"

    @property
    def descriptors_max(self) -> int:
        """How many descriptors this process may have, 0 where that is unknown or without limit."""
        return open_files_limit()

    write_delay_ms = 0

    def __init__(self) -> None:
        self._windows: dict[int, tuple[int, memoryview]] = {}
        """By handle: position, the part that is mapped; the one that was made last is last."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        return os.open(path, flags | os.O_CREAT if create else flags, 0o644)

    def close(self, handle: int) -> None:
        self._windows.pop(handle, None)
        os.close(handle)

    def pread(self, handle: int, size_bytes: int, position: int) -> bytes:
        """Up to `size_bytes`; fewer only at the end of the file."""
        data = os.pread(handle, size_bytes, position)
        if len(data) == size_bytes or not data:
            return data
        parts = [data]
        missing = size_bytes - len(data)
        while missing:
            data = os.pread(handle, missing, position + size_bytes - missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def is_cached(self, handle: int, position: int, size_bytes: int) -> bool:
        """Whether a read is likely to be answered from memory: both ends of it are (RWF_NOWAIT).

        True where the system does not know.
        """
        if _NOWAIT is None:
            return True
        try:
            os.preadv(handle, _PROBE, position, _NOWAIT)
            os.preadv(handle, _PROBE, position + max(size_bytes - 1, 0), _NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True  # the read itself will show it
        return True

    def map(self, handle: int, size_bytes: int, position: int) -> memoryview:
        """A part of the file as memory, to be handed to the kernel and to nobody else.

        Whoever looks into it is killed when the file has become shorter or its disk fails; a
        system call that is given it fails. A window of each file is kept for the next part behind
        this one, as long as there are few such files.
        Not every implementation of `Files` has this: see `can_map`.
        """
        windows = self._windows
        start, view = windows.get(handle, NO_WINDOW)
        end = position + size_bytes
        if position < start or end > start + len(view):
            start = position - position % mmap.ALLOCATIONGRANULARITY
            length = min(max(end - start, WINDOW_BYTES), os.fstat(handle).st_size - start)
            if length < end - start:
                raise OSError(errno.EIO, "the file is shorter than it was")
            view = memoryview(mmap.mmap(handle, length, access=mmap.ACCESS_READ, offset=start))
            windows.pop(handle, None)
            while len(windows) >= WINDOWS_MAX:
                windows.pop(next(iter(windows)), None)
            windows[handle] = start, view
        return view[position - start : end - start]

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        """One vectored write; returns the bytes written, which may be fewer than given."""
        return os.pwritev(handle, buffers, position)

    def fdatasync(self, handle: int) -> None:
        os.fdatasync(handle)

    def truncate(self, handle: int, size_bytes: int) -> None:
        self._windows.pop(handle, None)
        os.ftruncate(handle, size_bytes)

    def allocate(self, handle: int, position: int, size_bytes: int) -> bool:
        """Reserve blocks beyond the end without changing the size; False where that is unknown."""
        return _allocate_keep_size(handle, position, size_bytes)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def size_of(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """When the file was written last, in milliseconds since the Unix epoch; 0 without one."""
        try:
            return os.stat(path).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0

    def set_modified_ms(self, path: str, wall_ms: int) -> None:
        os.utime(path, ns=(wall_ms * 1_000_000, wall_ms * 1_000_000))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def listing(self, path: str) -> dict[str, int]:
        """Names of the plain files in a directory with their sizes, in name order."""
        return self.contents(path)[0]

    def directories(self, path: str) -> list[str]:
        """Names of the directories in a directory, in name order."""
        with os.scandir(path) as entries:
            return sorted(e.name for e in entries if _holds(e.is_dir))

    def contents(self, path: str) -> tuple[dict[str, int], list[str]]:
        """(plain files and links to one with their sizes, names of all others), in name order."""
        sizes: dict[str, int] = {}
        others: list[str] = []
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=_name):
                if _holds(entry.is_file):
                    sizes[entry.name] = entry.stat().st_size
                else:
                    others.append(entry.name)
        return sizes, others

    def read_file(self, path: str) -> bytes:
        """The whole of a file. Raises UnfitFileError beside OSError."""
        # A pipe that nobody writes to is not waited for.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise IrregularFileError(path)
            if status.st_size > WHOLE_BYTES_MAX:
                raise OversizedError(path, status.st_size)
            parts, size_bytes = [], 0
            while part := os.read(handle, status.st_size + 1):
                parts.append(part)
                size_bytes += len(part)
                if size_bytes == status.st_size:
                    break  # more was asked for; a read may also be short before the end
            return b"".join(parts)
        finally:
            os.close(handle)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def set_read_only(self, path: str) -> None:
        """Mode 0400, as Kafka keeps the snapshots of the metadata log."""
        os.chmod(path, 0o400)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> bool:
        """Make a directory, with those above it; False where there is one, whatever is in it."""
        try:
            os.mkdir(path)
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
            return False
        return True

    def remove_directory(self, path: str) -> None:
        # A partition's directory may be a link: that goes, the directory that it leads to stays.
        if os.path.islink(path):
            os.unlink(path)
        else:
            os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def lock(self, path: str) -> int:
        """Take the POSIX record lock on `path`, as Kafka's FileLock does; raises LockedError.

        The kernel gives a process its own locks again, and takes them away when any handle of the
        file is closed: whatever this process holds, under another path too, is not opened.
        """
        import fcntl

        try:
            found = os.stat(path)
        except FileNotFoundError:
            pass
        else:
            if (found.st_dev, found.st_ino) in _held.values():
                raise LockedError(path, os.getpid())
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = _lock_holder(handle)
            os.close(handle)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise LockedError(path, pid) from None
            raise
        found = os.fstat(handle)
        _held[handle] = found.st_dev, found.st_ino
        return handle

    def release_lock(self, handle: int, path: str) -> None:
        """Remove the lock file and let go of the lock, in this order."""
        _held.pop(handle, None)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        os.close(handle)


def abandon_lock(handle: int) -> None:
    """Let go of a lock as the end of its process does: the lock file stays."""
    _held.pop(handle, None)
    os.close(handle)


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _holds(test: Callable[[], bool]) -> bool:
    """What `is_file` or `is_dir` of an entry says, no for a link that leads to itself."""
    try:
        return test()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return False


def can_map(files: Files) -> TypeGuard[MappableFiles]:
    """Whether parts of these files can be handed to the kernel without being read before."""
    return hasattr(files, "map")


def raise_open_files_limit() -> int:
    """Let this process open as many files as its user may; returns the limit, 0 if unknown.

    A partition that is written to holds one file open; the usual soft limit is 1,024.
    """
    try:
        import resource
    except ImportError:
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
    return hard


def open_files_limit() -> int:
    """The limit that is in effect now; 0 if unknown or none."""
    try:
        import resource
    except ImportError:
        return 0
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 0 if soft == resource.RLIM_INFINITY else soft


def write_fully(files: Files, handle: int, buffers: Sequence[Buffer], position: int) -> int:
    """Write all buffers at `position`; returns their size. Raises OSError on a short write."""
    size_bytes = sum(map(len, buffers))
    pending: Sequence[Buffer] = buffers if len(buffers) <= IOV_MAX else buffers[:IOV_MAX]
    written = files.pwritev(handle, pending, position)
    while written < size_bytes:
        step = files.pwritev(handle, _remaining(buffers, written), position + written)
        if step <= 0:
            raise OSError(errno.EIO, f"short write: {written} of {size_bytes} bytes")
        written += step
    return size_bytes


def write_atomically(files: Files, path: str, data: bytes, *, sync: bool = True) -> None:
    """Replace `path`: temporary file, sync, rename, sync of the directory.

    Without `sync` the file survives the process, not the machine: for what recovery rebuilds.
    Raises OSError, ShortageError where it may be tried again.
    """
    temporary = path + TEMPORARY_SUFFIX
    handle = _write_new(files, temporary, data)
    try:
        if sync:
            files.fdatasync(handle)
    finally:
        files.close(handle)
    try:
        files.rename(temporary, path)
    except OSError as error:
        raise _short(error, files, temporary) from None
    if sync:
        directory = os.path.dirname(path) or "."
        try:
            files.sync_directory(directory)
        except OSError as error:
            if error.errno in DESCRIPTORS:  # it was not opened, hence not synced
                raise ShortageError(error.errno, error.strerror, directory) from None
            raise


def _write_new(files: Files, path: str, data: bytes) -> int:
    """A file with this content, open and not synced."""
    handle = -1
    try:
        handle = files.open(path, create=True)
        files.truncate(handle, 0)
        if data:
            write_fully(files, handle, [data], 0)
    except OSError as error:
        if handle >= 0:
            files.close(handle)
        raise _short(error, files, path) from None
    return handle


def _short(error: OSError, files: Files, draft: str) -> OSError:
    """The error to raise for a draft that was not finished; what it takes of a full disk goes."""
    if not passes(error):
        return error
    try:
        files.unlink(draft)
    except OSError:
        pass  # it was not made, or is written anew the next time
    return ShortageError(error.errno, error.strerror, draft)


def unlink_quietly(files: Files, paths: Iterable[str]) -> None:
    """Remove those of the files that exist."""
    for path in paths:
        try:
            files.unlink(path)
        except FileNotFoundError:
            pass


def remove_tree(files: Files, path: str) -> None:
    """Remove a partition's directory with its files."""
    try:
        for name in files.listing(path):
            files.unlink(f"{path}/{name}")
        for name in files.directories(path):
            try:
                files.unlink(f"{path}/{name}")  # a link goes, not what it leads to
            except OSError:
                remove_tree(files, f"{path}/{name}")
        files.remove_directory(path)
    except FileNotFoundError:
        pass


def _remaining(buffers: Sequence[Buffer], skip: int) -> list[Buffer]:
    remaining: list[Buffer] = []
    for buffer in buffers:
        if skip >= len(buffer):
            skip -= len(buffer)
            continue
        remaining.append(memoryview(buffer)[skip:] if skip else buffer)
        skip = 0
        if len(remaining) == IOV_MAX:
            break
    return remaining


_FALLOC_FL_KEEP_SIZE = 1
# None before the first call, False where the C library has none.
_fallocate: Callable[[int, int, int, int], int] | bool | None = None


def _allocate_keep_size(handle: int, position: int, size_bytes: int) -> bool:
    """fallocate(FALLOC_FL_KEEP_SIZE); False where the C library or file system has none."""
    global _fallocate
    if _fallocate is None:
        import ctypes

        try:
            library = ctypes.CDLL(None, use_errno=True)
            library.fallocate.argtypes = [
                ctypes.c_int,
                ctypes.c_int,
                ctypes.c_int64,
                ctypes.c_int64,
            ]
            _fallocate = library.fallocate
        except (OSError, AttributeError):
            _fallocate = False
    if _fallocate is None or isinstance(_fallocate, bool):
        return False
    if _fallocate(handle, _FALLOC_FL_KEEP_SIZE, position, size_bytes) == 0:
        return True
    import ctypes

    number = ctypes.get_errno()
    if number in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        raise OSError(number, os.strerror(number))
    return False


def _lock_holder(handle: int) -> int:
    """The pid that holds a conflicting record lock (F_GETLK), 0 if nobody or unknown."""
    import fcntl
    import struct

    # struct flock on 64-bit Linux: short type, short whence, off_t start, off_t len, pid_t pid
    layout = "hhqqi4x"
    try:
        answer = fcntl.fcntl(
            handle, fcntl.F_GETLK, struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        )
        kind, _, _, _, pid = struct.unpack(layout, answer)
    except (OSError, struct.error):
        return 0
    return 0 if kind == fcntl.F_UNLCK else max(pid, 0)

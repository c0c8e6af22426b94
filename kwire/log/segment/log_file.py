"""The `.log` file of a segment: opened when it is needed, and closed for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.log.files import DESCRIPTORS, Files
from kwire.log.flushing import Flusher, SyncRequest
from kwire.log.segment.open_file_limit import OpenSegments

T = TypeVar("T")


class LogFile:
    """A file with `size_bytes` of batches, one of the many that share `OpenSegments`.

    Methods raise OSError.
    """

    def __init__(self, files: Files, size_bytes: int) -> None:
        self.files = files
        self.size_bytes = size_bytes
        self.is_sealed = False
        self.is_used = self.is_dirty = self.is_closing = False  # see `Openable`
        self.flusher: Flusher | None = None
        self._open_segments: OpenSegments | None = None
        self._handle = -1

    @property
    def log_path(self) -> str:
        """Where the file is now."""
        raise NotImplementedError

    def attach(self, flusher: Flusher, open_segments: OpenSegments) -> None:
        """Share these with other segments from now on."""
        self.flusher = flusher
        self._open_segments = open_segments

    @property
    def handle(self) -> int:
        """The open file, for whoever may write to it."""
        self.is_used = self.is_dirty = True
        return self._handle if self._handle >= 0 else self._open()

    def _open(self) -> int:
        try:
            self._handle = self.files.open(
                self.log_path, create=not (self.is_sealed or self.size_bytes)
            )
        except OSError as error:
            if error.errno in DESCRIPTORS and self._open_segments is not None:
                self._open_segments.refused()
            raise
        self._count_as_open()
        return self._handle

    def _count_as_open(self) -> None:
        """Among the active or the sealed ones, as it is now."""
        if self._handle >= 0 and self._open_segments is not None:
            self._open_segments.opened(self, self._handle)

    @property
    def must_wait(self) -> bool:
        """Whether too many files are open for who can wait."""
        if self._handle >= 0:
            return self.is_closing
        return self._open_segments is not None and not self._open_segments.has_room_for(self)

    def wait(self, go_on: Callable[[], None]) -> None:
        """`go_on` is called when it must not wait any more, or something else has changed."""
        assert self._open_segments is not None
        self._open_segments.wait(self, go_on)

    def with_file(self, read: Callable[[int], T]) -> T:
        """What `read` makes of the open file, closed again at once where there are too many."""
        self.is_used = True
        if self._handle >= 0:
            return read(self._handle)
        if not self.must_wait:
            return read(self._open())
        handle = self.files.open(self.log_path, writable=False)
        try:
            return read(handle)
        finally:
            self.files.close(handle)

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Bytes of the file: fewer where it ends before."""
        if self._handle < 0:
            return self.with_file(lambda handle: self.files.pread(handle, size_bytes, position))
        self.is_used = True
        return self.files.pread(self._handle, size_bytes, position)

    def add_file_to_sync(self, request: SyncRequest) -> None:
        """Ask for its batches to be synced."""
        if self.is_sealed or self._handle < 0:
            request.paths.append(self.log_path)
        else:
            request.handles.append(self._handle)

    def release(self) -> None:
        """Let go of the open file; it comes back when needed."""
        raise NotImplementedError

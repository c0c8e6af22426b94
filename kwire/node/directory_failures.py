"""What a node does when one of its log directories has failed."""

from __future__ import annotations

from collections.abc import Callable

from kwire.log.directories.directory import LogDirectory
from kwire.log.directories.manager import LogManager
from kwire.protocol import uuids


class DirectoryFailures:
    """Reports it to the controller; ends the node without a directory left, as Kafka does.

    `report(directory ids)` names all that are offline. `has_others()` says whether other brokers
    can take over what this one cannot write; while there are none, a node without any directory
    goes on. The one at `metadata_directory` holds the metadata log.
    """

    def __init__(
        self,
        logs: LogManager,
        metadata_directory: str,
        *,
        has_others: Callable[[], bool],
        report: Callable[[list[bytes]], None],
        on_fatal: Callable[[str], None],
    ) -> None:
        self._logs = logs
        self._metadata_directory = metadata_directory
        self._has_others = has_others
        self._report = report
        self._on_fatal = on_fatal

    def failed(self, directory: LogDirectory) -> None:
        """This directory has failed."""
        self.report()
        if directory.path == self._metadata_directory:
            self._on_fatal(
                f"{directory.path} has failed, which holds the metadata: {directory.error}"
            )
        elif self._has_others() and all(d.error for d in self._logs.directories):
            self._on_fatal(f"every log directory has failed: {directory.error}")

    def report(self) -> None:
        """Report those that have failed so far."""
        failed = [d.directory_id for d in self._logs.directories if d.error is not None]
        self._report([known for known in failed if known != uuids.ZERO])

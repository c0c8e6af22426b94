"""Logs with the settings that all logs of a node have: opened, or begun in a new directory."""

from __future__ import annotations

from collections.abc import Callable

from kwire.clock import Clock
from kwire.log.directories.directory import LogDirectory
from kwire.log.directories.settings import ManagerSettings
from kwire.log.files import Files
from kwire.log.flushing import Flusher
from kwire.log.partition.config import LogConfig
from kwire.log.partition.new_log import begin_log
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.known_logs import KnownLog
from kwire.log.recovery.opening import open_log
from kwire.log.scheduling import ImmediateScheduler, Scheduler
from kwire.log.segment.open_file_limit import OpenSegments

Key = tuple[str, int]


class LogMaker:
    """Makes logs, which then share `scheduler` and `open_segments`."""

    def __init__(
        self,
        clock: Clock,
        files: Files,
        scheduler: Scheduler,
        settings: ManagerSettings,
        config_of: Callable[[str], LogConfig],
    ) -> None:
        self._clock = clock
        self._files = files
        self._scheduler = scheduler
        self._settings = settings
        self._config_of = config_of
        self.open_segments = OpenSegments.of_descriptors(
            getattr(files, "descriptors_max", 0),
            gives_lowest=getattr(files, "gives_lowest_descriptor", False),
        )

    def open(
        self,
        path: str,
        key: Key,
        topic_id: bytes,
        directory: LogDirectory,
        *,
        clean: bool,
        is_alone: bool = False,
        is_copy: bool = False,
        known: KnownLog | None = None,
        on_error: Callable[[PartitionLog, Exception, bool], None] | None = None,
    ) -> PartitionLog:
        """The log in `path`. Raises KafkaError, OSError.

        One that `is_alone` shares nothing with others; of a copy the checkpoints say nothing.
        """
        topic, partition = key
        scheduler = ImmediateScheduler() if is_alone else self._scheduler
        return open_log(
            path,
            topic,
            partition,
            topic_id,
            self._config_of(topic),
            self._clock,
            files=self._files,
            scheduler=scheduler,
            flusher=Flusher(self._files, scheduler) if is_alone else directory.flusher,
            open_segments=None if is_alone else self.open_segments,
            clean=clean,
            recovery_point=0 if is_copy else directory.recovery_point(key),
            log_start_offset=0 if is_copy else directory.log_starts.get(key, 0),
            high_watermark=0 if is_copy else directory.high_watermarks.get(key, 0),
            producer_expiration_ms=self._settings.producer_id_expiration_ms,
            verify_transactions=self._settings.verify_transactions,
            known=known,
            on_error=on_error,
        )

    def begin(
        self,
        path: str,
        key: Key,
        topic_id: bytes,
        directory: LogDirectory,
        config: LogConfig | None,
    ) -> PartitionLog:
        """The log of `path`, a directory that was made for it just now. Raises OSError."""
        topic, partition = key
        return begin_log(
            path,
            topic,
            partition,
            topic_id,
            self._config_of(topic) if config is None else config,
            self._clock,
            files=self._files,
            scheduler=self._scheduler,
            flusher=directory.flusher,
            open_segments=self.open_segments,
            producer_expiration_ms=self._settings.producer_id_expiration_ms,
            verify_transactions=self._settings.verify_transactions,
        )

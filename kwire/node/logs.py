"""The logs of a node, with what looks after them: threads, syncs, the cleaner."""

from __future__ import annotations

import os
from collections.abc import Callable

from kwire.clock import Clock, Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.log.compaction.cleaner import LogCleaner
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.directories.directory import LogDirectory
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.files import Files
from kwire.log.partition.config import LogConfig
from kwire.node.workers import Workers


def make_log_manager(
    config: BrokerConfig,
    clock: Clock,
    random: Random,
    files: Files | None,
    workers: Workers,
    dynamic_config: DynamicConfig,
    *,
    now_ms: Callable[[], int],
    config_of: Callable[[str], LogConfig],
    on_directory_failure: Callable[[LogDirectory], None],
    has_other_brokers: Callable[[], bool],
    on_descriptors_short: Callable[[], None],
) -> LogManager:
    """`files` are those of a test; without them the system's. What happens to a directory, and
    that descriptors run out, is told by the callables."""
    manager = LogManager(
        [os.path.abspath(path) for path in config.log_directories],
        clock,
        random,
        files=files,
        scheduler=workers.scheduler("kwire-log"),
        sync_scheduler=workers.scheduler("kwire-sync"),
        syncs=workers.syncs,
        settings=ManagerSettings.from_values(config),
        now_ms=now_ms,
        config_of=config_of,
        on_directory_failure=on_directory_failure,
    )
    manager.goes_offline_by_writes = has_other_brokers
    manager.shortages.on_descriptors_short = on_descriptors_short
    manager.cleaner = LogCleaner(
        manager,
        CleanerSettings.from_values(config),
        lambda: workers.scheduler("kwire-cleaner"),
        random,
    )
    dynamic_config.add_listener(manager.cleaner.changed)
    return manager

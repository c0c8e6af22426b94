"""A node's log manager on a simulated disk."""

from __future__ import annotations

from kwire.clock import SeededRandom
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.partition.config import LogConfig
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.logs import ManualClock, ManualScheduler, client_batch

TOPIC_ID = bytes(range(1, 17))
OTHER_TOPIC_ID = bytes(range(2, 18))


class Node:
    """A manager on a simulated disk that may be stopped, killed and started again."""

    def __init__(self, directories: list[str] | None = None) -> None:
        self.disk = SimulatedDisk(SeededRandom(3))
        self.clock = ManualClock()
        self.directories = directories or ["/data"]
        self.configs: dict[str, LogConfig] = {}
        self.scheduler = ManualScheduler()
        self.failed: list[str] = []
        self.manager = self.start()

    def open(self) -> LogManager:
        """A manager whose directories are locked and read, and whose logs are not loaded yet."""
        self.scheduler = ManualScheduler()
        self.manager = LogManager(
            self.directories,
            self.clock,
            SeededRandom(5),
            files=self.disk,
            scheduler=self.scheduler,
            settings=ManagerSettings(file_delete_delay_ms=1000),
            now_ms=lambda: self.scheduler.now_ms,
            config_of=lambda topic: self.configs.get(topic, LogConfig()),
            on_directory_failure=lambda directory: self.failed.append(directory.path),
        )
        self.manager.open_directories()
        return self.manager

    def start(self, topics: dict[tuple[str, int], bytes] | None = None) -> LogManager:
        self.open()
        self.manager.load_all(None if topics is None else lambda *key: topics.get(key))
        return self.manager

    def restart(self, topics: dict[tuple[str, int], bytes] | None = None) -> LogManager:
        self.manager.shutdown(7)
        return self.start(topics)

    def kill(self, topics: dict[tuple[str, int], bytes] | None = None) -> LogManager:
        self.disk.process_killed()
        return self.start(topics)

    def append(self, topic: str, partition: int, count: int = 1) -> None:
        log = self.manager.get(topic, partition)
        assert log is not None
        log.append_as_leader(client_batch(count), leader_epoch=0)
        self.scheduler.turn()
        log.update_high_watermark(log.log_end_offset)

    def names(self, path: str = "/data") -> list[str]:
        return self.disk.directories(path)


def node_with_topic() -> Node:
    """A node that has three records in `topic-0`."""
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 3)
    return node

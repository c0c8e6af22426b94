"""`KafkaContainer` in the shape that Testcontainers gives it, without a container."""

from __future__ import annotations

from typing import NoReturn, Self

from kwire.config.environment import settings_of
from kwire.testing.arguments import PORT_MAX, whole
from kwire.testing.broker import Broker


class KafkaContainer:
    """For tests that were written with Testcontainers: `start`, `get_bootstrap_server`, `stop`,
    `with_env("KAFKA_NUM_PARTITIONS", "3")`. The image and the port inside mean nothing here.
    """

    def __init__(self, image: str = "", port: int = 9093, **_: object) -> None:
        self.image = image
        self.port = port
        self._config: dict[str, str] = {}
        self._port = 0
        self._broker: Broker | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def with_kraft(self) -> Self:
        """It has no ZooKeeper anyway."""
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """The cluster has an id of its own for each start; that of a container is not looked at."""
        return self

    def with_env(self, key: str, value: str) -> Self:
        """Kafka's configs as its image takes them, `KAFKA_LOG_RETENTION_MS`; others are ignored."""
        for name, (text, _) in settings_of({key: value}).items():
            self._config[name] = text
        return self

    def with_envs(self, **envs: str) -> Self:
        """Several at once."""
        for key, value in envs.items():
            self.with_env(key, value)
        return self

    def with_bind_ports(self, container: int | str, host: int | str | None = None) -> Self:
        """The broker is at `host`, whichever port of a container is meant; None picks one."""
        if isinstance(host, str):
            is_number = host.isascii() and host.isdecimal() and len(host) <= 5
            if not is_number:
                raise ValueError(f"host={host!r}: accepted are 0 to {PORT_MAX}")
            host = int(host)
        self._port = whole("host", host or 0, 0, PORT_MAX)
        return self

    def with_exposed_ports(self, *_: int | str) -> Self:
        """A broker's port is always there."""
        return self

    def with_name(self, name: str) -> Self:
        """Nothing has this name."""
        return self

    def with_kwargs(self, **_: str | int | bool | None) -> Self:
        """What a container engine would be told."""
        return self

    def __getattr__(self, name: str) -> NoReturn:
        known = ", ".join(sorted(each for each in vars(type(self)) if not each.startswith("_")))
        raise AttributeError(
            f"KafkaContainer has no {name}, as there is no container; accepted: {known}"
        )

    def start(self, timeout: float = 30) -> Self:
        """Start the broker, unless it has started; BrokerFailed with its log."""
        if self._broker is not None:
            return self
        self._broker = Broker(config=self._config, port=self._port).start()
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """End the broker and its data."""
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.close()

    def get_bootstrap_server(self) -> str:
        """host:port."""
        return self._started().bootstrap

    def get_container_host_ip(self) -> str:
        return self._started().host

    def get_exposed_port(self, port: int) -> int:
        """The port of the broker, whichever of the container's is asked for."""
        return int(self._started().bootstrap.rpartition(":")[2])

    def get_logs(self) -> tuple[bytes, bytes]:
        """What is on a container's standard output, and on its standard error."""
        return b"", self._started().log_text().encode()

    def _started(self) -> Broker:
        if self._broker is None:
            raise RuntimeError("the container has not started: call start(), or use `with`")
        return self._broker

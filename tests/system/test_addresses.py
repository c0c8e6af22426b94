"""Where a broker is reached, and what a container's environment makes of empty volumes."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.client import Client
from kwire.cli.cluster import free_ports
from kwire.testing.cluster import Broker

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")


def metadata(address: str) -> Any:
    with Client(address) as client:
        return client.metadata([])


@needs_ipv6
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "", "[::0]", "[0:0:0:0:0:0:0:0]"])
def test_a_wildcard_is_reached_over_both_families(host: str) -> None:
    """0.0.0.0 served IPv4 only and [::] IPv6 only; Kafka's are reached over both (measured)."""
    (port,) = free_ports(1)
    options = {
        "listeners": f"PLAINTEXT://{host}:{port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
    }
    with Broker(options=options, pass_listen=False):
        for address in (f"127.0.0.1:{port}", f"[::1]:{port}"):
            (broker,) = metadata(address).brokers
            assert (broker.host, broker.port) == ("localhost", port)


@needs_ipv6
def test_two_wildcards_on_one_port_have_a_family_each() -> None:
    """Kafka 4.4 takes the settings and then cannot bind the second one."""
    (port,) = free_ports(1)
    options = {
        "listeners": f"FOUR://0.0.0.0:{port},SIX://[::]:{port}",
        "advertised.listeners": f"FOUR://127.0.0.1:{port},SIX://[::1]:{port}",
        "listener.security.protocol.map": "FOUR:PLAINTEXT,SIX:PLAINTEXT",
        "inter.broker.listener.name": "FOUR",
    }
    with Broker(options=options, pass_listen=False):
        assert metadata(f"127.0.0.1:{port}").brokers[0].host == "127.0.0.1"
        assert metadata(f"[::1]:{port}").brokers[0].host == "::1"


@needs_ipv6
def test_a_wildcard_whose_other_family_is_taken_does_not_start() -> None:
    """Half of the clients would have talked with somebody else."""
    with socket.socket(socket.AF_INET6) as taken:
        taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind(("::", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = Broker(host="0.0.0.0", port=port)
        try:
            with pytest.raises(AssertionError, match=f"cannot listen on 0.0.0.0:{port}"):
                broker.start()
        finally:
            broker.close()


def test_three_containers_form_the_cluster_of_their_environment(tmp_path: Path) -> None:
    """Static voters on empty volumes did not start: CLUSTER_ID, with which Kafka's image formats
    them, was ignored. Afterwards another id changes nothing, as there."""
    ports = free_ports(6)
    voters = ",".join(f"{i + 1}@127.0.0.1:{ports[3 + i]}" for i in range(3))
    with ExitStack() as stack:
        nodes = []
        for i in range(3):
            environment = {
                "KAFKA_NODE_ID": str(i + 1),
                "KAFKA_PROCESS_ROLES": "broker,controller",
                "KAFKA_LISTENERS": (
                    f"PLAINTEXT://127.0.0.1:{ports[i]},CONTROLLER://127.0.0.1:{ports[3 + i]}"
                ),
                "KAFKA_CONTROLLER_QUORUM_VOTERS": voters,
                "KAFKA_ORDERS_TOPIC": "orders",
                "CLUSTER_ID": CLUSTER_ID,
            }
            # Not waited for: a node is ready when there is a quorum.
            node = Broker(data_dir=tmp_path / str(i), environment=environment, pass_listen=False)
            stack.callback(node.close)
            nodes.append(node)
        _start_together(nodes)
        assert metadata(f"127.0.0.1:{ports[0]}").cluster_id == CLUSTER_ID
        assert "KAFKA_ORDERS_TOPIC is no setting" in nodes[0].log_text()
        nodes[0].stop()
        nodes[0].environment["CLUSTER_ID"] = "AAAAAAAAAAAAAAAAAAAAAA"
        nodes[0].start()
        assert metadata(f"127.0.0.1:{ports[0]}").cluster_id == CLUSTER_ID
        assert "CLUSTER_ID is AAAAAAAAAAAAAAAAAAAAAA, but" in nodes[0].log_text()


def _start_together(nodes: list[Broker]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(Broker.start, nodes))


def test_in_a_container_the_environment_wins_over_the_images_command(tmp_path: Path) -> None:
    """`docker run -e KAFKA_LISTENERS=... -e CLUSTER_ID=...`, the command line being the image's."""
    (port,) = free_ports(1)
    broker = Broker(
        data_dir=tmp_path / "image",
        environment={
            "KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
            "KAFKA_LOG_DIRS": str(tmp_path / "volume"),
            "CLUSTER_ID": CLUSTER_ID,
        },
        arguments=["--env"],
    )
    try:
        broker.start()
        assert broker.port == port
        assert metadata(broker.bootstrap).cluster_id == CLUSTER_ID
    finally:
        broker.close()
    assert (tmp_path / "volume" / "meta.properties").exists()
    assert not (tmp_path / "image").exists()


@pytest.mark.parametrize("name", ["lost+found", ".Trash-1000", "#recycle", "@eaDir", "backup-2024"])
def test_an_empty_volume_may_hold_what_systems_leave_there(tmp_path: Path, name: str) -> None:
    """`.Trash-1000` was taken for a partition whose meta.properties is lost."""
    (tmp_path / name / "files").mkdir(parents=True)
    (tmp_path / name / "files" / "00000000000000000000.log").write_bytes(b"")
    with Broker(data_dir=tmp_path) as broker:
        broker.restart()
    assert (tmp_path / name / "files").is_dir()


def test_a_partition_without_meta_properties_is_still_refused(tmp_path: Path) -> None:
    (tmp_path / "topic-0").mkdir()
    (tmp_path / "topic-0" / "00000000000000000000.log").write_bytes(b"")
    broker = Broker(data_dir=tmp_path)
    try:
        with pytest.raises(AssertionError, match="there are partitions"):
            broker.start()
    finally:
        broker.close()

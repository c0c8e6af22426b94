"""`kwire serve --secure`: what it prints connects, and nothing else does."""

from __future__ import annotations

import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.cli.client import Client
from kwire.cli.secret_files import write_secret
from kwire.cli.secure import prepare
from kwire.client.errors import ClientError
from kwire.config.errors import ConfigError
from kwire.node.host_name import reachable_name
from kwire.testing.cluster import Broker, wait_for
from tests.support.certificates import Authority

LAST = "Spark, options of"
OPEN = "was made with --secure, and is served without"
FILES = ("kwire-authority-key.pem", "kwire-node.pem", "kwire-client.properties")


def test_the_printed_settings_connect_and_stay_the_same(tmp_path: Path) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")

    data = tmp_path / "data"
    printed = []
    port = 0
    for round_number in range(2):
        with Broker(data_dir=data, port=port, arguments=["--secure"]) as broker:
            port = broker.port
            wait_for(lambda: LAST in broker.process.output_text(), "the settings are printed")
            text = broker.process.output_text()
            printed.append(text[text.rindex("clients log in") :])
            settings = dict(
                line.strip().split("=", 1)
                for line in printed[-1].splitlines()
                if line.strip().startswith(("bootstrap.servers", "security", "sasl.", "ssl.ca"))
            )
            producer = confluent_kafka.Producer(settings)
            producer.produce("t", b"x")
            assert producer.flush(60) == 0
            config = str(data / "kwire-client.properties")
            with Client(broker.bootstrap, command_config=config) as client:
                topic = client.topic("t")
                assert len(topic.partitions) == 1
            with pytest.raises(ClientError), Client(broker.bootstrap) as client:
                client.metadata([])
            assert checked("--bootstrap", broker.bootstrap, "--command-config", config) == (0, "")
            password = settings["sasl.password"]
            assert password not in broker.process.log_text(), round_number
    assert printed[0] == printed[1]
    for name in FILES:
        assert stat.S_IMODE((data / name).stat().st_mode) == 0o600


def test_on_every_interface_the_printed_address_is_one_that_clients_can_use(tmp_path: Path) -> None:
    """0.0.0.0 is in no certificate: what is printed is what the broker advertises."""
    with Broker(data_dir=tmp_path / "data", host="0.0.0.0", arguments=["--secure"]) as broker:
        wait_for(lambda: LAST in broker.process.output_text(), "the settings are printed")
        printed = broker.process.output_text().partition("clients log in")[2]
        address = printed.partition("bootstrap.servers=")[2].splitlines()[0]
        assert address == f"{reachable_name()}:{broker.port}"
        config = str(tmp_path / "data" / "kwire-client.properties")
        with Client(address, command_config=config) as client:
            client.metadata([])


def test_the_certificate_has_the_names_of_advertised_listeners(tmp_path: Path) -> None:
    data = tmp_path / "data"
    advertised = {"advertised.listeners": "SASL_SSL://127.0.0.2:9999"}
    with Broker(data_dir=data, options=advertised, arguments=["--secure"]):
        told = ssl._ssl._test_decode_cert(str(data / "kwire-node.pem"))  # type: ignore[attr-defined]
    assert ("IP Address", "127.0.0.2") in told["subjectAltName"]


def test_a_start_without_it_behind_one_with_it_is_told(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data_dir=data, arguments=["--secure"]) as broker:
        assert OPEN not in broker.process.log_text()
    with Broker(data_dir=data) as broker:
        assert OPEN in broker.process.log_text()
        assert "PLAINTEXT://" in broker.process.log_text().partition(OPEN)[2].splitlines()[0]


def checked(*arguments: str) -> tuple[int, str]:
    """Status of `kwire security check`, and what it found."""
    command = [sys.executable, "-m", "kwire", "security", "check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, "".join(done.stdout.splitlines(keepends=True)[1:]) + done.stderr


def test_weaknesses_of_a_file_and_of_a_cluster_are_named(tmp_path: Path) -> None:
    old = Authority().sign("node", days=(-30, -3))
    store = old.write(tmp_path, "node")
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        "listeners=SSL://:9092,CONTROLLER://127.0.0.1:9093\n"
        "inter.broker.listener.name=SSL\n"
        "listener.security.protocol.map=SSL:SSL,CONTROLLER:PLAINTEXT\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={store}\n"
    )
    status, found = checked("--config", str(path))
    assert status == 1
    for told in ("nobody has to say who they are", "expired 3 days ago", "everyone may do"):
        assert told in found
    with Broker() as broker:
        status, found = checked("--bootstrap", broker.bootstrap)
    assert (status, "there is no authorizer" in found) == (1, True)
    status, found = checked()
    assert (status, "either --config FILE or --bootstrap" in found) == (2, True)


def test_a_user_without_a_password_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "kwire-client.properties").write_text("sasl.mechanism=SCRAM-SHA-512\n")
    with pytest.raises(ConfigError, match="has no password"):
        prepare(str(tmp_path), [])


def test_a_secret_is_not_written_through_somebody_elses_link(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    (tmp_path / "ours.part").symlink_to(theirs)
    write_secret(str(ours), b"secret")
    assert (ours.read_bytes(), theirs.exists()) == (b"secret", False)


def test_a_directory_that_was_used_without_it_is_refused(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data"):
        pass
    command = [sys.executable, "-m", "kwire", "serve", "--secure", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "data")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "was made without it: there is no user to log in as" in done.stderr
    assert "Traceback" not in done.stderr

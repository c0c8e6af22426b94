"""The Python clients of docs/SECURITY.md write, as they stand there, where a broker is secured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kwire.cli.client import Client
from kwire.config.properties import read_properties
from kwire.testing.cluster import Broker

DOCS = Path(__file__).resolve().parents[2] / "docs" / "SECURITY.md"
MODULES = ("confluent_kafka", "kafka")


def test_documented_clients_write(tmp_path: Path) -> None:
    for name in MODULES:
        pytest.importorskip(name)
    section = DOCS.read_text().partition("## Clients over TLS")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == len(MODULES)
    with Broker(data_dir=tmp_path / "data", arguments=["--secure"]) as broker:
        config = str(tmp_path / "data" / "kwire-client.properties")
        login = read_properties(config)["sasl.jaas.config"]
        password = login.partition('password="')[2].partition('"')[0]
        for block in blocks:
            for written, meant in (
                ("broker:9094", broker.bootstrap),
                ('"alice"', '"admin"'),
                ("alice-secret", password),
                ("authority.pem", str(tmp_path / "data" / "kwire-authority.pem")),
            ):
                assert written in block
                block = block.replace(written, meant)
            exec(block, {})
        with Client(broker.bootstrap, command_config=config) as client:
            found = client.topic("orders")
            assert [each.partition_index for each in found.partitions] == [0]

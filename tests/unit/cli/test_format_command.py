"""`kwire format` from the command line to the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.cli.format import _parser
from kwire.cli.main import main
from kwire.kraft.metadata_version import from_name
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.snapshots.content import parse_snapshot

CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\n"
        "node.id=4\n"
        "listeners=PLAINTEXT://127.0.0.1:29092,CONTROLLER://127.0.0.1:29093\n"
        "controller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:29093\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    return path


def test_standalone(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["format", "-c", str(config), "-t", "a3dpcmUtcGVlci1rYWZrYQ", "--standalone"]
    assert main([*command, "--feature", "group.version=0"]) == 0
    assert "dynamic metadata voter directory" in capsys.readouterr().out
    found = parse_snapshot((tmp_path / "a" / CHECKPOINT).read_bytes())
    assert found.voters is not None
    assert found.voters.endpoints(4) == (Endpoint("CONTROLLER", "127.0.0.1", 29093),)
    assert "group.version" not in [record.name for record in found.records]
    assert "node.id=4" in (tmp_path / "b" / "meta.properties").read_text()
    assert main(command) == 1
    assert "already formatted" in capsys.readouterr().err
    assert main([*command, "--ignore-formatted"]) == 0


@pytest.mark.parametrize("advertised", ["", "PLAINTEXT://:29092,CONTROLLER://:29094", "other"])
def test_the_first_voters_address_is_never_empty(
    config: Path, tmp_path: Path, advertised: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that listens on every interface was a voter at "", where nobody reaches it.
    Kafka 4.4 writes this host's name (measured)."""
    monkeypatch.setattr("kwire.cli.format.reachable_name", lambda: "here")
    text = config.read_text().replace("://127.0.0.1:", "://:")
    if advertised == "other":
        text += "advertised.listeners=PLAINTEXT://there:29092,CONTROLLER://there:29095\n"
    elif advertised:
        text += f"advertised.listeners={advertised}\n"
    config.write_text(text)
    command = ["format", "-c", str(config), "-t", "a3dpcmUtcGVlci1rYWZrYQ", "--standalone"]
    assert main(command) == 0
    found = parse_snapshot((tmp_path / "a" / CHECKPOINT).read_bytes())
    assert found.voters is not None
    host, port = {"": ("here", 29093), "other": ("there", 29095)}.get(advertised, ("here", 29094))
    assert found.voters.endpoints(4) == (Endpoint("CONTROLLER", host, port),)


def test_refusals_are_one_line(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["format", "-c", str(config), "-t", "id"]
    assert main(command) == 1
    assert "you must specify one of the following" in capsys.readouterr().err
    assert main([*command, "-N", "--add-scram", "SCRAM-SHA-256=[name=a]"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "'password' or 'saltedpassword'" in error
    for wrong in (["--standalone", "-N"], ["-I", "-1@a:1:b"], ["--bogus"]):
        with pytest.raises(SystemExit, match="2"):
            main([*command, *wrong])
        error = capsys.readouterr().err
        assert error.startswith("kwire: ")
        assert error.count("\n") == 1


@pytest.mark.parametrize("cluster_id", ["", "a\nnode.id=7", "a\0"])
def test_what_is_no_cluster_id_is_refused(
    cluster_id: str, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["format", "-c", str(config), "-t", cluster_id, "--standalone"]) == 1
    assert capsys.readouterr().err == f"kwire: {cluster_id!r} is no cluster id\n"
    assert not (tmp_path / "a").exists()


def test_every_flag_reaches_the_files(config: Path, tmp_path: Path) -> None:
    directory = "a3dpcmUtZGlyZWN0b3J4AA"
    initial = f"4@127.0.0.1:29093:{directory},5@127.0.0.2:29094:a3dpcmUtZGlyZWN0b3J5AA"
    command = ["format", "-c", str(config), "-t", "a3dpcmUtcGVlci1rYWZrYQ"]
    flags = ["--initial-controllers", initial, "--release-version", "4.0"]
    flags += ["--add-scram", "SCRAM-SHA-256=[name=ada,password=secret,iterations=4096]"]
    flags += ["--add-scram", "SCRAM-SHA-512=[name=bea,password=secret]"]
    assert main([*command, *flags, "--feature", "group.version=0"]) == 0
    found = parse_snapshot((tmp_path / "a" / CHECKPOINT).read_bytes())
    assert found.kraft_version == 1
    assert found.voters is not None
    assert sorted(found.voters.ids) == [4, 5]
    assert found.voters.endpoints(5) == (Endpoint("CONTROLLER", "127.0.0.2", 29094),)
    properties = (tmp_path / "a" / "meta.properties").read_text()
    assert f"directory.id={directory}" in properties
    levels = {r.name: r.feature_level for r in found.records if hasattr(r, "feature_level")}
    assert levels["metadata.version"] == from_name("4.0").level
    users = [(r.name, r.iterations) for r in found.records if hasattr(r, "stored_key")]
    assert users == [("ada", 4096), ("bea", 4096)]


def test_a_node_that_joins_later_has_no_voters(config: Path, tmp_path: Path) -> None:
    command = ["format", "-c", str(config), "-t", "a3dpcmUtcGVlci1rYWZrYQ"]
    assert main([*command, "--no-initial-controllers"]) == 0
    assert (tmp_path / "a" / "meta.properties").exists()
    found = parse_snapshot((tmp_path / "a" / CHECKPOINT).read_bytes())
    assert found.voters is None
    with pytest.raises(SystemExit):
        main([*command, "--no-initial-controllers", "--standalone"])


def test_help_says_what_every_option_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["format", "--help"])
    told = capsys.readouterr().out
    assert "kwire format -c node1.properties -t ID --standalone" in told
    assert [action.dest for action in _parser()._actions if not action.help] == []

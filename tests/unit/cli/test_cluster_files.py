"""The files of `kwire serve --brokers N`, and starts of it that are interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.cli import cluster
from kwire.cli.main import main
from kwire.cli.serve_arguments import ServeArguments
from kwire.config.broker_config import BrokerConfig
from kwire.config.properties import read_properties
from kwire.kraft.formatting import log_directories as formatting
from kwire.kraft.snapshots.content import parse_snapshot

CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def _prepare(directory: Path, brokers: int = 3) -> None:
    arguments = ServeArguments()
    arguments.brokers = brokers
    arguments.listen = "127.0.0.1:0"
    cluster.Cluster(str(directory), arguments).prepare()


def _voters(directory: Path, node_id: int) -> dict[int, bytes | None]:
    content = parse_snapshot((directory / f"broker-{node_id}" / CHECKPOINT).read_bytes())
    assert content.voters is not None
    return {key.id: key.directory_id for key in content.voters.keys}


@pytest.mark.parametrize("whole", [0, 1, 2, 3])
def test_a_start_that_was_interrupted_while_it_formatted_is_finished_by_the_next(
    whole: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def interrupted(options: Any, **how: Any) -> list[str]:
        if len(done) == whole:
            raise KeyboardInterrupt
        done.append(options.directories[0])
        return formatted(options, **how)

    formatted = formatting.format_directories
    with monkeypatch.context() as patch:
        patch.setattr(formatting, "format_directories", interrupted)
        if whole < 3:
            with pytest.raises(KeyboardInterrupt):
                _prepare(tmp_path)
        else:
            _prepare(tmp_path)
    before = read_properties(str(tmp_path / "cluster.properties"))
    _prepare(tmp_path)
    after = read_properties(str(tmp_path / "cluster.properties"))
    assert list(after) == ["cluster.id", "controller.ports"]
    assert after.items() <= before.items()
    voters = _voters(tmp_path, 1)
    assert sorted(voters) == [1, 2, 3]
    for node_id in (1, 2, 3):
        properties = read_properties(str(tmp_path / f"broker-{node_id}" / "meta.properties"))
        assert properties["cluster.id"] == after["cluster.id"]
        assert properties["node.id"] == str(node_id)
        assert _voters(tmp_path, node_id) == voters


def test_a_node_that_lost_its_directory_is_not_formatted_behind_its_back(tmp_path: Path) -> None:
    """It voted: only a person may say that what it knew is not needed."""
    _prepare(tmp_path)
    (tmp_path / "broker-2" / "meta.properties").unlink()
    _prepare(tmp_path)
    assert not (tmp_path / "broker-2" / "meta.properties").exists()


def test_an_interrupt_before_anything_serves_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: ServeArguments) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, "serve_cluster", interrupted)
    assert main(["serve", "--brokers", "3"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("brokers", [1, 2, 3])
def test_nobody_is_warned_of_what_the_command_sets_itself(brokers: int, tmp_path: Path) -> None:
    """Of two brokers: a replication factor of share groups, which are not built."""
    _prepare(tmp_path, brokers)
    for node_id in range(1, brokers + 1):
        properties = read_properties(str(tmp_path / f"broker-{node_id}.properties"))
        assert BrokerConfig.load(properties=properties).warnings == []

"""What the command line of `kwire serve` makes of a node's settings."""

from __future__ import annotations

import pathlib

import pytest

from kwire.cli.serve import load_config
from kwire.cli.serve_arguments import ServeArguments, UsageError
from kwire.config.errors import ConfigError


@pytest.mark.parametrize("name", ["log.dirs", "log.dir"])
def test_a_setting_wins_over_the_data_directorys_option(name: str, tmp_path: pathlib.Path) -> None:
    arguments = ServeArguments()
    arguments.data_dir = str(tmp_path / "one")
    arguments.overrides = {name: str(tmp_path / "two")}
    assert load_config(arguments, None).log_directories == [str(tmp_path / "two")]


def test_an_ephemeral_broker_has_no_directories_of_the_users(tmp_path: pathlib.Path) -> None:
    arguments = ServeArguments()
    arguments.overrides = {"log.dirs": str(tmp_path / "two")}
    with pytest.raises(UsageError, match=r"--ephemeral and -o log\.dirs exclude each other"):
        load_config(arguments, str(tmp_path / "temporary"))


@pytest.mark.parametrize("limits", ["10.0.0.7", "10.0.0.7:many"])
def test_limits_of_addresses_that_cannot_be_read_tell_what_is_accepted(limits: str) -> None:
    arguments = ServeArguments()
    arguments.overrides = {"max.connections.per.ip.overrides": limits}
    with pytest.raises(ConfigError, match=r"per\.ip\.overrides.*; accepted: ADDRESS:NUMBER"):
        load_config(arguments, None)

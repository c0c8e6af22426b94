"""Three brokers of one process start in three threads: each sees tables of configs whole.

A table that showed its rows while it was being read made a broker refuse settings that there are:
"Unknown setting transaction.state.log.replication.factor=3: did you mean
transaction.state.log.replication.factor".
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kwire.config import definitions
from kwire.config.definitions import ConfigDefinition, ConfigTable


def test_a_table_that_is_being_read_shows_none_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ConfigTable("group.tsv")
    seen: list[int] = []
    nested = False

    def define(row: Mapping[str, str]) -> ConfigDefinition:
        nonlocal nested
        if not nested:  # another thread asks while this one reads
            nested = True
            seen.append(len(table))
            nested = False
        return ConfigDefinition(row)

    monkeypatch.setattr(definitions, "ConfigDefinition", define)
    nested = True
    whole = len(ConfigTable("group.tsv"))
    nested = False
    assert len(table) == whole
    assert set(seen) == {whole}

"""What each config is for, a sentence in our own words: `data/documentation.tsv`.

Read when somebody asks and not kept: few ever do, and a node has other uses for the memory. A line
is the scope (as `kwire configs --scope` names it), the config's name, and the text.
"""

from __future__ import annotations

import os

from kwire.config.definitions import DATA

FILE = os.path.join(DATA, "documentation.tsv")


def texts() -> dict[tuple[str, str], str]:
    """(scope, config) -> what it is for."""
    with open(FILE, encoding="utf-8") as file:
        lines = file.read().splitlines()[1:]
    found: dict[tuple[str, str], str] = {}
    for line in lines:
        scope, name, text = line.split("\t")
        found[scope, name] = text
    return found

"""All request scripts of groups and offsets, by the broker that they run against."""

from __future__ import annotations

from typing import Any

from tests.golden.coordinator import membership_scripts, offset_scripts, timed_scripts

SCRIPTS: dict[str, list[Any]] = {
    **membership_scripts.SCRIPTS,
    **offset_scripts.SCRIPTS,
    **timed_scripts.SCRIPTS,
}
LIMITED = timed_scripts.LIMITED
LIMITED_SETTINGS = timed_scripts.LIMITED_SETTINGS

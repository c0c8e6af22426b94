"""What holds for every test: Hypothesis judges no times, the machine may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kwire", deadline=None)
settings.load_profile("kwire")

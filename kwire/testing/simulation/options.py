"""What a run is told, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kwire.testing.brokers.runner import Setting, setting_texts
from kwire.testing.simulation.plans import checked_kinds

BROKERS_MAX = 9
MINUTES_MAX = 600.0
SEED_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Options:
    """`kinds` are the faults that may be drawn, none without minutes. `faults` and `operations`
    are the numbers that are left of a run that was made smaller; None for all."""

    seed: int
    minutes: float
    brokers: int = 3
    kinds: tuple[str, ...] = ()
    config: Mapping[str, Setting] = field(default_factory=dict)
    faults: frozenset[int] | None = None
    operations: frozenset[int] | None = None

    @classmethod
    def checked(
        cls,
        *,
        seed: int,
        minutes: float,
        brokers: int,
        faults: Iterable[str] | None,
        config: Mapping[str, Setting] | None,
    ) -> Options:
        """ValueError or TypeError with a line that names what is wrong and what is accepted."""
        if not _is_whole(seed) or not 0 <= seed <= SEED_MAX:
            raise ValueError(f"seed={seed!r}: accepted are whole numbers from 0 to {SEED_MAX}")
        is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
        if not is_number or not 0 <= minutes <= MINUTES_MAX:
            raise ValueError(f"minutes={minutes!r}: accepted are 0 (no faults) to {MINUTES_MAX:g}")
        if not _is_whole(brokers) or not 1 <= brokers <= BROKERS_MAX:
            raise ValueError(f"brokers={brokers!r}: accepted are 1 to {BROKERS_MAX}")
        if config is not None and not isinstance(config, Mapping):
            raise ValueError(f"config={config!r}: accepted is a dictionary of Kafka's configs")
        setting_texts(config or {})
        return cls(seed, minutes, brokers, checked_kinds(faults), dict(config or {}))


def _is_whole(number: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)

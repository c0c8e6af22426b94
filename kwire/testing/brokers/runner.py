"""What a broker of a user's test can be made to do, however it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from kwire.faults.kinds import Given
from kwire.log.recovery.known_logs import KnownLog

T = TypeVar("T")

Setting: TypeAlias = str | int | float | bool
"""The value of a config of Kafka's; `True` is `true`."""

HOST = "127.0.0.1"

KnownLogs: TypeAlias = Mapping[tuple[str, int], KnownLog]
"""By topic and partition."""

StartSettings: TypeAlias = Callable[[int], Mapping[str, str]]
"""(the port that it had before, 0 at the first start) -> the configs of a start."""


class BrokerFailed(AssertionError):
    """A broker that did not start, did not stop or was asked for what it cannot do now."""


class FaultControl(Protocol):
    """The faults on command of one broker, by numbers (`kwire.faults`); they end with its life.

    What cannot be right is a FaultError.
    """

    def add(self, given: Mapping[str, Given]) -> dict[str, Given]: ...

    def remove(self, number: int) -> dict[str, Given]: ...

    def clear(self) -> None: ...

    def standing(self) -> list[dict[str, Given]]: ...


class Still(NamedTuple):
    """What is known of a broker that changes no file now."""

    incarnation: bytes = b""
    """Who is at work; empty where nobody is, or it is not known."""
    broker_epoch: int = -1
    is_written_out: bool = False
    """Whether its files are as a clean stop leaves them, but for the note that says so."""
    logs: KnownLogs = {}
    """What is known of its logs, where it is written out."""


class GoingOn(NamedTuple):
    """Whose state a data directory has, for a start that goes on as the same broker."""

    incarnation: bytes = b""
    """Empty for a start as after a kill."""
    logs: KnownLogs = {}


ANEW = GoingOn()


class Runner(Protocol):
    """One broker. After `stop` and `kill` it may be started again, with the same data."""

    @property
    def is_running(self) -> bool: ...

    @property
    def port(self) -> int:
        """Where it serves, also while it does not run; 0 before its first start."""
        ...

    def start(self, going_on: GoingOn = ANEW) -> None:
        """Start it and wait until it serves; BrokerFailed. `going_on`: whose state its directory
        has, so that it is the same broker still."""
        ...

    def stop(self) -> None:
        """Stop it in order; nothing when it does not run."""
        ...

    def kill(self) -> None:
        """End it as SIGKILL does: what it has written to files stays, nothing else."""
        ...

    def lose_power(self) -> None:
        """End it as `kill` does, and take back what it has written and not synced."""
        ...

    @property
    def faults(self) -> FaultControl:
        """BrokerFailed while it does not run."""
        ...

    def pause(self) -> None:
        """As SIGSTOP does: it keeps its connections and does nothing."""
        ...

    def resume(self) -> None: ...

    @property
    def links(self) -> bool:
        """Whether its files may have other names: it never writes into one that has."""
        ...

    def while_still(self, work: Callable[[Still], T]) -> T:
        """Do `work` while it changes no file; it goes on afterwards, as if nothing had been."""
        ...

    def close(self) -> None:
        """End it somehow, and what was made for it."""
        ...

    def log_text(self) -> str:
        """What it has logged over all starts: in a thread the last 100,000 records, else all."""
        ...


def setting_texts(
    config: Mapping[str, Setting], own: Collection[str] = (), instead: str = ""
) -> dict[str, str]:
    """Configs as Kafka writes them; TypeError names what is no config, ValueError one of `own`:
    those are the test broker's, and `instead` says what there is for them."""
    if not isinstance(config, Mapping):
        raise TypeError(f"config={config!r}: accepted is a dictionary of configs")
    texts = {}
    for name, value in config.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise TypeError(
                f"config {name!r}: {value!r} is a {type(value).__name__}; "
                "accepted are text, numbers, True and False"
            )
        if name in own:
            raise ValueError(f"config {name!r} is the test broker's own; {instead}")
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts

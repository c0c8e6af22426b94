"""One seed of a test, run in this process: what became of it, as data."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kwire.testing.simulation.options import Options
from kwire.testing.simulation.run import Run
from kwire.testing.simulation.simulated_test import Test

_OWN = str(Path(__file__).parent)
_HIDDEN = (_OWN, f"{os.sep}asyncio{os.sep}")


@dataclass(frozen=True)
class Outcome:
    """`failure` is the error as text, None when all is well; `summary` its last line. `faults`
    and `operations` are the numbers of those that there were."""

    seed: int
    failure: str | None
    summary: str
    faults: tuple[int, ...]
    operations: tuple[int, ...]
    fingerprint: str
    history: str
    simulated_s: float

    @property
    def kind(self) -> str:
        """What sort of failure it is: the error's class, and which check it is of."""
        name, _, text = self.summary.partition(": ")
        return f"{name}: {text.partition(chr(10))[0]}" if name == "CheckFailed" else name


def outcome_of(test: Test, arguments: Mapping[str, object], options: Options) -> Outcome:
    """Run it. Raises nothing that the test raises."""
    run = Run(options)
    cluster = run.cluster
    failure, summary = None, ""
    try:
        run.open()
        run.execute(test(cluster, **arguments))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        failure, summary = _text_of(error), _summary_of(error)
    finally:
        simulated_s, fingerprint = cluster.now, cluster.fingerprint()
        run.close()
    return Outcome(
        seed=options.seed,
        failure=failure,
        summary=summary,
        faults=tuple(fault.number for fault in cluster.faults.plan),
        operations=tuple(cluster.operations_begun),
        fingerprint=fingerprint,
        history=str(cluster.history),
        simulated_s=simulated_s,
    )


def with_less(options: Options, faults: tuple[int, ...], operations: tuple[int, ...]) -> Options:
    """The same run with those faults and operations only."""
    return replace(options, faults=frozenset(faults), operations=frozenset(operations))


def _summary_of(error: BaseException) -> str:
    last = error.__cause__ or error
    name = type(last).__name__
    text = str(last)
    return f"{name}: {text}" if text else name


def _text_of(error: BaseException) -> str:
    """The traceback, without the frames of the simulation."""
    told = traceback.TracebackException.from_exception(error)
    one: traceback.TracebackException | None = told
    while one is not None:
        shown = [frame for frame in one.stack if not any(h in frame.filename for h in _HIDDEN)]
        one.stack = traceback.StackSummary.from_list(shown)
        one = one.__cause__ or one.__context__
    return "".join(told.format()).rstrip()

"""What an idle cluster costs: `python -m tests.sim.idle [MINUTES] [--profile]`.

Three nodes with the topics of a history and no client run for that long; it prints simulated
minutes per minute of CPU, and with `--profile` where the time goes.
"""

from __future__ import annotations

import cProfile
import gc
import logging
import pstats
import sys
import time

from tests.sim.client import RoutingClient
from tests.sim.faults import Plan
from tests.sim.history import START_LIMIT_S, History
from tests.sim.workload import TOPICS, create_topics


def idle(history: History, seconds: float) -> tuple[float, int]:
    """CPU seconds and events of that many simulated seconds, checked as a history is."""
    simulation, cluster = history.simulation, history.cluster
    history.begin()
    client = RoutingClient(simulation.host("clients"), "creator")
    creation = simulation.host("clients").loop.create_task(create_topics(client, TOPICS))
    history.until(creation.done, START_LIMIT_S, "the topics cannot be created")
    history.until(cluster.is_in_sync, START_LIMIT_S, "not everything is in sync")
    client.close()
    end, events = simulation.now + seconds, simulation.events
    gc.collect()
    gc.disable()  # as in a history
    started = time.process_time()
    history.until(lambda: simulation.now >= end, seconds + 1, "time does not pass")
    used_s = time.process_time() - started
    gc.enable()
    return used_s, simulation.events - events


def main() -> None:
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    minutes = float(arguments[0]) if arguments else 5.0
    logging.disable(logging.CRITICAL)
    history = History(1, Plan())
    profile = cProfile.Profile() if "--profile" in sys.argv else None
    with history.checkers.watch():
        if profile is not None:
            profile.enable()
        used_s, events = idle(history, minutes * 60)
        if profile is not None:
            profile.disable()
    history.close()
    print(
        f"idle: {minutes * 60 / used_s:.0f} simulated minutes a minute of CPU, "
        f"{events / minutes / 60:.0f} events a simulated second"
    )
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()

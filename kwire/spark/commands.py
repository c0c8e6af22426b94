"""`kwire spark JOB ...`: the jobs by name, each imported only when it is run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches

JOBS = {
    "archive": ("kwire.spark.archive", "topics to a lake of Delta tables, exactly once"),
    "replay": ("kwire.spark.replay", "an archive, or a range of it, back into topics"),
    "mirror": ("kwire.spark.mirror", "topics of one cluster to another, continuously"),
    "audit": ("kwire.spark.audit", "compare two of topic, archive, mirror and segment files"),
    "profile": ("kwire.spark.profiles", "hot keys, skew, sizes, rates, codecs, consumer lag"),
    "query": ("kwire.spark.query", "SQL over the topics of lakes and clusters, by their names"),
    "lake": ("kwire.spark.convert", "convert a lake of an older kwire into Delta tables"),
}
EXIT_USAGE = 2


def usage() -> str:
    """The jobs, a line each."""
    lines = [f"  {name:<10}{about}" for name, (_, about) in JOBS.items()]
    return (
        "usage: kwire spark JOB [OPTIONS]\n\nJobs on Spark, for kwire and any Kafka:\n\n"
        + "\n".join(lines)
        + "\n\n`kwire spark JOB --help` has options and an example; the rest: docs/SPARK.md.\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Run `kwire spark` with what follows; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(usage())
        return 0 if arguments else EXIT_USAGE
    job = JOBS.get(arguments[0])
    if job is None:
        near = get_close_matches(arguments[0], JOBS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(JOBS)}"
        sys.stderr.write(f"kwire spark: no job {arguments[0]}; {hint}\n")
        return EXIT_USAGE
    status: int = importlib.import_module(job[0]).main(list(arguments[1:]))
    return status

"""Scripts of quotas and their use, what kwire makes of them, and what Kafka's quota managers do.

`tests/golden/quota/QuotaOracle.java` describes the lines of a script.
"""

from __future__ import annotations

import pathlib
import random
import subprocess

from kwire.quota.client_quotas import QuotaKind
from kwire.quota.entities import ABSENT, DEFAULT, Part, Tags
from kwire.quota.windows import TokenBucket, token_throttle_ms

ORACLE = str(pathlib.Path(__file__).parents[1] / "golden" / "quota" / "QuotaOracle.java")
UNLIMITED_WINDOW = "1.7976931348623157E308"
NAMES = {"*": DEFAULT, "-": ABSENT}
CLIENT_MS = 30_000


def drawn_script(rng: random.Random) -> list[str]:
    """Quotas of one kind, used over some windows; a bound changes now and then."""
    kind = rng.choice(["produce", "produce", "request", "mutation"])
    samples, seconds = rng.choice([(11, 1), (11, 1), (2, 1), (1, 1), (5, 3), (3, 10)])
    lines = [f"new\t{kind}\t{samples}\t{seconds}"]
    key = rng.choice(["u\tc", "u\t*", "u\t-", "*\tc", "*\t*", "*\t-", "-\tc", "-\t*"])
    bound = rng.choice([1, 7, 100, 12_345, 1_000_000, 0.5, 33.3])
    lines.append(f"set\t{key}\t{bound}")
    # Kafka's buckets are full at any time but the epoch.
    begin_ms = 1_700_000_000_000 if kind == "mutation" else rng.choice([0, 1_000, 10**12])
    now_ms = begin_ms + rng.randrange(5_000)
    span_ms = samples * seconds * 1000
    for _ in range(rng.randrange(10, 60)):
        pause = rng.random()
        if pause < 0.6:
            now_ms += rng.randrange(max(2, seconds * 500))
        elif pause < 0.9:
            now_ms += rng.randrange(span_ms)
        else:
            now_ms += rng.choice([span_ms, span_ms - 1, span_ms + 1, seconds * 1000, 3 * span_ms])
        if rng.random() < 0.05:
            bound = bound * rng.choice([0.5, 2, 3])
            lines.append(f"set\t{key}\t{bound}")
        most = max(1, int(bound * span_ms / 1000 / rng.choice([1, 5, 20])))
        value = rng.randrange(most + 1) if kind != "request" else rng.random() * most
        lines.append(f"use\tu\tc\t{value}\t{now_ms}")
        if rng.random() < 0.1 and kind != "mutation":
            lines.append(f"back\tu\tc\t{value}\t{now_ms}")
    return lines


def drawn_precedence(rng: random.Random) -> list[str]:
    """A random set of quotas, and who is bound by what."""
    lines = ["new\tproduce\t2\t1"]
    names = ["a", "b", "*", "-"]
    for bound in range(1, rng.randrange(2, 12)):
        user, client = rng.choice(names), rng.choice(names)
        if (user, client) != ("-", "-"):
            lines.append(f"set\t{user}\t{client}\t{'-' if rng.random() < 0.2 else bound}")
    lines += [f"limit\t{user}\t{client}" for user in "abc" for client in ("a", "b", "c", "", "~")]
    return lines


def client_script(rng: random.Random) -> list[str]:
    """One client for 30 seconds that asks for twice its quota, waits as long as it is told (by
    kwire), and asks again: a producer, a consumer, whose refused reads are taken back, or one with
    a share of time. Where Kafka tells the same of every line, it gets the same from both."""
    kind, takes_back = rng.choice([("produce", False), ("produce", True), ("request", False)])
    bound = rng.choice([0.1, 1.0, 10.0]) if kind == "request" else rng.choice([5e3, 5e4, 1e6])
    pause_ms = rng.choice([50, 100, 200])
    ours = Ours()
    lines: list[str] = []

    def say(line: str) -> str:
        lines.append(line)
        return ours.answer(line)

    say(f"new\t{kind}\t11\t1")
    say(f"set\tu\tc\t{bound}")
    begin_ms = now_ms = 10**12 + rng.randrange(1000)
    while now_ms < begin_ms + CLIENT_MS:
        value = bound * 2 * pause_ms / 1000 * rng.uniform(0.8, 1.2)
        used = value if kind == "request" else int(value)
        wait_ms = int(say(f"use\tu\tc\t{used}\t{now_ms}"))
        if wait_ms and takes_back:
            say(f"back\tu\tc\t{used}\t{now_ms}")
        now_ms += (wait_ms or pause_ms) + rng.randrange(4)
    return lines


def used_by_client(script: list[str], said: list[str]) -> float:
    """What the client of a `client_script` got, by these answers."""
    takes_back = any(line.startswith("back") for line in script)
    return sum(
        float(line.split("\t")[3])
        for line, answer in zip(script, said, strict=True)
        if line.startswith("use") and not (takes_back and int(answer))
    )


def answers_of_kafka(scripts: list[list[str]], libs: pathlib.Path, limit_s: float) -> list[str]:
    """A line of answer for each line."""
    asked = "\n".join(line for script in scripts for line in script) + "\n"
    done = subprocess.run(
        ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", ORACLE],
        input=asked.encode(),
        capture_output=True,
        check=True,
        timeout=limit_s,
    )
    return done.stdout.decode().split("\n")[:-1]


class Ours:
    """Kwire's answers to the lines of a script."""

    def __init__(self) -> None:
        self._kind = "produce"
        self._quota = QuotaKind(11, 1000)
        self._bucket = TokenBucket()

    def answer(self, line: str) -> str:
        verb, *parts = line.split("\t")
        return str(getattr(self, f"_{verb}")(*parts))

    def _new(self, kind: str, samples: str, seconds: str) -> str:
        count, window_ms = int(samples), int(seconds) * 1000
        self._kind = kind
        wait_ms_max = window_ms if kind == "request" else 2**31 - 1
        self._quota = QuotaKind(count, window_ms, wait_ms_max)
        self._bucket = TokenBucket(count, window_ms)
        self._window_s = (count - 1) * int(seconds)
        return ""

    def _set(self, user: str, client: str, bound: str) -> str:
        key: tuple[Part, Part] = NAMES.get(user, user), NAMES.get(client, client)
        self._quota.table.set(key, None if bound == "-" else float(bound))
        self._quota.refresh()
        return ""

    def _use(self, user: str, client: str, value: str, ms: str) -> str:
        used, now_ms = float(value), int(ms)
        if self._kind == "mutation":
            return str(self._mutate(user, client, used, now_ms))
        sensor = self._quota.sensor(user, client, now_ms)
        assert sensor is not None
        return str(sensor.record_and_wait_ms(used, now_ms))

    def _mutate(self, user: str, client: str, value: float, now_ms: int) -> int:
        bound = self._quota.table.bound(self._quota.table.tags(user, client))
        assert bound is not None
        tokens = self._bucket.tokens(bound, now_ms)
        if tokens < 0:
            return token_throttle_ms(tokens, bound)
        self._bucket.record(value, bound, now_ms)
        return 0

    def _back(self, user: str, client: str, value: str, ms: str) -> str:
        sensor = self._quota.sensor(user, client, int(ms))
        assert sensor is not None
        sensor.record(-float(value), int(ms))
        return ""

    def _limit(self, user: str, client: str) -> str:
        table = self._quota.table
        tags = table.tags(user, None if client == "~" else client)
        bound = table.bound(tags)
        return f"{_shown(tags)}\t{UNLIMITED_WINDOW if bound is None else bound * self._window_s}"


def _shown(tags: Tags) -> str:
    return f"{tags[0]}\t{'null' if tags[1] is None else tags[1]}"


def differences(scripts: list[list[str]], said: list[str]) -> list[tuple[str, str, str]]:
    """(line, our answer, Kafka's) where they are not the same.

    Who is bound by nothing is not measured here, by whichever tags Kafka does.
    """
    ours, found, at = Ours(), [], 0
    for script in scripts:
        for line in script:
            answer, expected = ours.answer(line), said[at]
            at += 1
            is_unbound = answer.endswith(UNLIMITED_WINDOW) and expected.endswith(UNLIMITED_WINDOW)
            if answer != expected and not is_unbound:
                found.append((line, answer, expected))
    return found

"""One history of dynamic settings with config providers, played against any broker.

`play(bootstrap, directory)` goes through it with a fresh broker, node 1 and alone, that was started
with `STATIC` and runs on this machine: its files are written to `directory`, shown as `@`. What was
answered is returned as JSON. Played against Apache Kafka 4.4 it gave
`tests/golden/data/dynamic_provider_answers.json.gz`.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

from kwire.cli.client import Client
from kwire.cli.operations import create_topic
from kwire.testing.cluster import wait_for
from tests.support.config_scenario import APPEND, BROKER, DATA, DELETE, SET, TOPIC
from tests.support.config_scenario import _change as change
from tests.support.config_scenario import _describe as describe

RECORDED = DATA / "dynamic_provider_answers.json.gz"
CLASSES = "org.apache.kafka.common.config.provider."
STATIC = {
    "config.providers": "file",
    "config.providers.file.class": f"{CLASSES}FileConfigProvider",
    "broker.rack": "${file:@/values:rack}",
    "num.recovery.threads.per.data.dir": "${file:@/values:threads}",
}
KEYS = [
    *("broker.rack", "config.providers", "config.providers.file.class", "log.retention.ms"),
    *(
        "min.insync.replicas",
        "log.flush.interval.ms",
        "my.own",
        "num.recovery.threads.per.data.dir",
        "compression.type",
    ),
]
UNKNOWN_TOPIC = 3  # UNKNOWN_TOPIC_OR_PARTITION
DYNAMIC_BROKER_CONFIG = 2  # A config source.
CHANGED = "log.retention.ms"
RETENTION = "${file:@/values:retention}"
FILE: list[tuple[str, int, str | None]] = [
    ("config.providers", SET, "file"),
    ("config.providers.file.class", SET, f"{CLASSES}FileConfigProvider"),
]


def write_values(directory: pathlib.Path, **changed: str) -> None:
    """The properties file that the placeholders name."""
    values = {
        "rack": "r1", "threads": "3", "retention": "70001", "text": "hush", "codec": "zstd",
    } | changed  # fmt: skip
    lines = [f"{name}={value}\n" for name, value in values.items()]
    (directory / "values").write_text("".join(lines))


class Play:
    """The broker and what it answered."""

    def __init__(self, client: Client, directory: pathlib.Path) -> None:
        self.client = client
        self.directory = str(directory)
        self.answers: dict[str, Any] = {}

    def note(self, step: str, answer: Any) -> None:
        text = json.dumps(answer).replace(self.directory, "@")
        self.answers[f"{len(self.answers)} {step}"] = json.loads(text)

    def described(self, name: str = "1") -> Any:
        return describe(self.client, BROKER, name, KEYS)

    def describe(self) -> None:
        self.note("described", self.described())
        self.note("described the default", self.described(""))

    def value(self, name: str = CHANGED) -> Any:
        return self.described()[2][name][0]

    def is_own(self, name: str) -> bool:
        """Whether the node has a dynamic value of its own for the setting, in force."""
        entry = self.described()[2].get(name)
        return entry is not None and entry[1] == DYNAMIC_BROKER_CONFIG

    def change(
        self,
        *changes: tuple[str, int, str | None],
        name: str = "1",
        shows: Callable[[], bool] | None = None,
    ) -> None:
        """Change settings; wait until `shows()`, and describe them then."""
        self._change(changes, name, shows)
        if shows is not None:
            self.describe()

    def prepare(self, *changes: tuple[str, int, str | None], shows: Callable[[], bool]) -> None:
        """Change settings that the next step builds on; wait until `shows()`.

        A broker answers before the change is in force on it, and checks the next one against what
        is in force.
        """
        self._change(changes, "1", shows)

    def _change(
        self,
        changes: tuple[tuple[str, int, str | None], ...],
        name: str,
        shows: Callable[[], bool] | None,
    ) -> None:
        given = [(n, o, v and v.replace("@", self.directory)) for n, o, v in changes]
        answer = change(self.client, BROKER, name, given)
        self.note(f"change {name} {changes}", answer)
        if shows is not None:
            assert answer[0] == 0, answer
            wait_for(shows, f"the change of {name} is in force")


def play(bootstrap: str, directory: pathlib.Path) -> dict[str, Any]:
    """Every answer by a name for its step."""
    with Client(bootstrap) as client:
        one = Play(client, directory)
        one.describe()
        # The static provider does not count.
        one.change((CHANGED, SET, RETENTION))
        one.prepare(FILE[0], shows=lambda: one.is_own("config.providers"))
        one.change(FILE[1], (CHANGED, SET, RETENTION), shows=lambda: one.value() == "70001")
        # Written again, it is read again.
        write_values(directory, retention="70002")
        one.change((CHANGED, SET, RETENTION), shows=lambda: one.value() == "70002")
        _refused(one)
        one.prepare(("my.own", SET, "${file:@/values:text}"), shows=lambda: one.is_own("my.own"))
        one.prepare(
            ("config.providers", APPEND, "other"),
            shows=lambda: one.value("config.providers") == "file,other",
        )
        one.change(("config.providers", DELETE, None))
        one.change((CHANGED, SET, "71"), shows=lambda: one.value() == "71")
        codec = ("compression.type", SET, "${file:@/values:codec}")
        one.change(codec, name="")
        one.change(*FILE, codec, name="", shows=lambda: one.value("compression.type") == "zstd")
        create_topic(client, "t", 1, 1, {})
        one.note("topic", _of_new_topic(client, "t"))
        retention = ("retention.ms", SET, f"${{file:{directory}/values:retention}}")
        one.note("topic value", change(client, TOPIC, "t", [retention]))
        in_sync = ("min.insync.replicas", SET, "${file:@/values:threads}")
        one.change(*FILE, in_sync, name="", shows=lambda: one.value("min.insync.replicas") == "3")
        created = create_topic(client, "u", 1, 1, {})
        names = ("compression.type", "min.insync.replicas")
        shown = [
            (c.name, c.value, c.config_source) for c in created.configs or () if c.name in names
        ]
        one.note("created", shown)
        return one.answers


def _of_new_topic(client: Client, name: str) -> Any:
    """Its settings as soon as the broker that is asked has followed the metadata so far."""
    while (found := describe(client, TOPIC, name, ["compression.type"]))[0] == UNKNOWN_TOPIC:
        pass
    return found


def _refused(one: Play) -> None:
    """Changes that are answered and change nothing that shows."""
    for text in ("text", "nothing"):
        one.change((CHANGED, SET, f"${{file:@/values:{text}}}"))
    one.change((CHANGED, SET, "${file:@/no-such-file:text}"))
    one.change(("log.flush.interval.ms", SET, "${other:@/values:retention}"))
    one.change(("compression.type", SET, "${file:@/values:text}"))
    one.change(("log.cleanup.policy", SET, "delete,${file:@/values:text}"))
    one.change(("num.partitions", SET, "${file:@/values:threads}"))
    one.change(("config.providers", SET, "file,v"), ("config.providers.v.class", SET, "com.acme.V"))
    one.change(("config.providers.file.param.allowed.paths", SET, "relative"))
    one.change(("config.providers.file.param.allowed.paths", SET, "/usr"))
    one.change(("num.partitions", SET, "5"), name="")

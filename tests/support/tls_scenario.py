"""One history of changed TLS settings of a listener, played against any broker.

`prepare(directory)` writes the stores and gives the settings to start with, `play(bootstrap,
directory)` changes them and returns what was answered, as JSON, with `@` for the directory. Played
against Apache Kafka 4.4 it gave `tests/golden/data/tls_answers.json.gz`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kwire.cli.client import Client
from tests.support.certificates import Authority
from tests.support.config_scenario import BROKER, DATA, DELETE, SET
from tests.support.config_scenario import _change as change

RECORDED = DATA / "tls_answers.json.gz"
OWN = "listener.name.ssl.ssl."
NAMES = re.compile(r"SAN=\[(\[.*?\])\]")
"""The names of a certificate in a text. Kafka has them as a set, in any order."""

# (broker, [(config, operation, value)])
CHANGES: list[tuple[str, list[tuple[str, int, str | None]]]] = [
    ("1", [("ssl.client.auth", SET, "requested")]),
    ("1", [("ssl.enabled.protocols", SET, "TLSv1.2")]),
    ("1", [(OWN + "keystore.location", SET, "@/none.pem")]),
    ("1", [(OWN + "keystore.location", SET, "@/damaged.pem")]),
    ("1", [(OWN + "keystore.location", SET, "@/mismatched.pem")]),
    ("1", [(OWN + "keystore.location", SET, "@/renamed.pem")]),
    ("1", [(OWN + "keystore.location", SET, "@/fewer.pem")]),
    ("1", [(OWN + "keystore.location", SET, "@/renewed.pem")]),
    ("1", [(OWN + "keystore.location", SET, "@/renewed.pem")]),
    ("1", [(OWN + "keystore.location", SET, "@/encrypted.pem")]),
    (
        "1",
        [
            (OWN + "keystore.location", SET, "@/encrypted.pem"),
            (OWN + "key.password", SET, "word"),
        ],
    ),
    (
        "1",
        [
            (OWN + "keystore.location", SET, "@/renewed.pem"),
            (OWN + "key.password", DELETE, None),
        ],
    ),
    ("1", [(OWN + "keystore.type", SET, "BKS")]),
    ("1", [(OWN + "keystore.type", SET, "JKS")]),
    ("1", [(OWN + "keystore.password", SET, "word")]),
    ("1", [(OWN + "keystore.key", SET, "x")]),
    ("1", [(OWN + "truststore.location", SET, "@/none.pem")]),
    ("1", [(OWN + "truststore.location", SET, "@/damaged.pem")]),
    ("1", [(OWN + "truststore.location", SET, "@/authority.pem")]),
    ("1", [(OWN + "truststore.password", SET, "x")]),
    ("1", [(OWN + "client.auth", SET, "required")]),
    ("1", [(OWN + "client.auth", SET, "never")]),
    ("1", [(OWN + "endpoint.identification.algorithm", SET, "")]),
    ("1", [("listener.name.other.ssl.keystore.location", SET, "@/none.pem")]),
    ("1", [("ssl.keystore.location", SET, "@/renewed.pem")]),
    ("", [(OWN + "keystore.location", SET, "@/renewed.pem")]),
    ("1", [(OWN + "keystore.location", DELETE, None)]),
]


def prepare(directory: Path) -> dict[str, str]:
    """The stores of the history; the settings of a listener SSL."""
    authority = Authority()
    authority.write(directory)
    node = authority.sign("node")
    node.write(directory, "node")
    authority.sign("node").write(directory, "renewed")
    authority.sign("other").write(directory, "renamed")
    authority.sign("node", ("localhost",)).write(directory, "fewer")
    (directory / "damaged.pem").write_text("nothing")
    (directory / "encrypted.pem").write_text(node.key_pem("word") + node.pem)
    (directory / "mismatched.pem").write_text(authority.sign("node").key_pem() + node.pem)
    return {
        OWN + "keystore.type": "PEM",
        OWN + "keystore.location": f"{directory}/node.pem",
        OWN + "truststore.type": "PEM",
        OWN + "truststore.location": f"{directory}/authority.pem",
    }


def play(bootstrap: str, directory: Path) -> list[Any]:
    """Every change with its answer, as JSON."""
    answers: list[Any] = []
    with Client(bootstrap) as client:
        for broker, changes in CHANGES:
            named = [
                (name, op, text and text.replace("@", str(directory))) for name, op, text in changes
            ]
            answer = json.dumps([broker, named, change(client, BROKER, broker, named)])
            answers.append(json.loads(_in_order(answer.replace(str(directory), "@"))))
    return answers


def _in_order(text: str) -> str:
    def ordered(found: re.Match[str]) -> str:
        names = sorted(re.findall(r"\[.*?\]", found[1]))
        return f"SAN=[{', '.join(names)}]"

    return NAMES.sub(ordered, text)

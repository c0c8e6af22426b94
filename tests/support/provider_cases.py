"""Settings with config providers, and what Apache Kafka 4.4 makes of them.

`golden/data/config_providers.json.gz` holds the cases and the answers of Kafka's KafkaConfig, made
by `compat_tests/peers/ConfigProviders.java`: name -> {"settings": [[name, value], ...], "answer":
{"values": {...}} or {"error": ...}}. `@DIR@` stands for the directory that `write_files` fills,
which is the working directory too.
"""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

RECORDED = (
    pathlib.Path(__file__).resolve().parents[1] / "golden" / "data" / "config_providers.json.gz"
)
ENVIRONMENT = {"HOME": "/home/ada", "EMPTY_ONE": "", "PH": "${env:HOME}", "DOLLAR": "$1\\2"}
DIRECTORY = "@DIR@"
PROPERTIES = f"""\
k=value
port=9999
empty=
blank=  x\x20\x20
nested=${{file:{DIRECTORY}/a.properties:k}}
utf=caf\u00e9
esc=a\\tb\\u0041
dollar=$1 \\\\1
m.l=one\\
  two
paths=/tmp/x
with\\:colon=c
int=7
cls=org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""


def recorded() -> dict[str, Any]:
    """Case -> settings and answer."""
    cases: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return cases


def in_directory(value: Any, directory: pathlib.Path) -> Any:
    """`value` (as JSON has it) with the directory put in."""
    return json.loads(json.dumps(value).replace(DIRECTORY, str(directory)))


def write_files(directory: pathlib.Path) -> None:
    """The files that the cases name."""
    text = PROPERTIES.replace(DIRECTORY, str(directory))
    (directory / "a.properties").write_text(text, encoding="utf-8")
    (directory / "bad.properties").write_bytes(b"k=\xff\xfe\n")
    (directory / "badesc.properties").write_bytes(b"k=\\u12\n")
    secrets, other = directory / "sub", directory / "other"
    (secrets / "dir").mkdir(parents=True)
    other.mkdir()
    for name, data in {
        "secret": b"hush\n",
        "nonl": b"hush",
        "bin": b"\xff\xfe",
        ".hidden": b"dot",
        "empty": b"",
        "num": b" 12 \n",
    }.items():
        (secrets / name).write_bytes(data)
    (other / "secret").write_bytes(b"other")
    (secrets / "link").symlink_to(other / "secret")
    (secrets / "dirlink").symlink_to(other)
    (secrets / "dangling").symlink_to(directory / "nowhere")

"""The command line of `kwire serve`, read without argparse: a start has no time for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.cli.secure import Secure

USAGE = """\
usage: kwire serve [--listen HOST:PORT] [--advertise HOST:PORT]
                   [--data-dir DIR | --ephemeral] [--config server.properties]
                   [--brokers N] [--env] [--no-http] [--secure] [--trace FILE]
                   [--faults]
                   [--feature NAME=LEVEL]... [-o name=value]...

Serve a Kafka broker. Without options: on localhost:9092, keeping its data in the
user's data directory.

  --listen HOST:PORT      where to listen (port 0 picks a free one and prints it)
  --advertise HOST:PORT   what clients are told to connect to
  --data-dir DIR          where to keep data; formatted on first use
  --ephemeral             keep data in a temporary directory, removed at the end
  --config FILE           Kafka's server.properties; Kafka's defaults apply
  --brokers N             a cluster of N brokers on ports from the first one on, each a
                          process that is broker and controller
  --env                   the environment is a container's of this broker alone: an empty
                          data directory is formatted with its CLUSTER_ID, and
                          KAFKA_LISTENERS and KAFKA_LOG_DIRS win over options
  --secure                TLS and a login: makes an authority, a certificate and a user
                          in the data directory and prints the settings of clients
                          (needs kwire[tls])
  --no-http               do not answer HTTP; without --config it is answered on
                          127.0.0.1:8080 or the next free port (needs kwire[http])
  --trace FILE            write requests and replies as lines of JSON, compressed where FILE
                          ends with .gz; kwire trace reads them
  --trace-api NAME, --trace-client-id ID, --trace-topic NAME, --trace-group ID,
  --trace-errors, --trace-slower-than MS, --trace-records BYTES
                          what of it, as with kwire proxy; --trace-api may be repeated
  --faults                faults on command, by kwire fault and a control API on
                          127.0.0.1:9097 (-o kwire.fault.listeners=HOST:PORT)
  --feature NAME=LEVEL    a feature level, used when the data directory is formatted
  -o name=value           one setting by Kafka's name; wins over all others

Other commands: kwire --help
"""

DIGITS_MAX = 9
"""Of a number on the command line of `serve`."""


class UsageError(Exception):
    """A wrong command line or setting: one line for the user."""


class ServeArguments:
    """What the command line of `serve` says."""

    def __init__(self) -> None:
        self.listen: str | None = None
        self.advertise: str | None = None
        self.data_dir: str | None = None
        self.ephemeral = False
        self.config: str | None = None
        self.brokers = 0
        self.supervised = False
        self.env = False
        self.no_http = False
        self.secure = False
        self.trace: str | None = None
        self.trace_options: dict[str, list[str]] = {}
        self.faults = False
        self.secured: Secure | None = None  # what that has made
        self.overrides: dict[str, str] = {}
        self.features: dict[str, int] = {}
        self.help = False


_WITH_VALUE = {
    "--listen": "listen",
    "--advertise": "advertise",
    "--data-dir": "data_dir",
    "--config": "config",
    "--trace": "trace",
}


_OF_TRACE = (
    "--trace-api",
    "--trace-client-id",
    "--trace-topic",
    "--trace-group",
    "--trace-slower-than",
    "--trace-records",
)


_OTHERS = (
    *_OF_TRACE,
    "--trace-errors",
    "--help",
    "--ephemeral",
    "--env",
    "--no-http",
    "--secure",
    "--faults",
    "--brokers",
    "--feature",
    "-o",
)


def parse_serve(arguments: list[str]) -> ServeArguments:
    """The arguments behind `kwire serve`; UsageError names the one that is wrong."""
    result = ServeArguments()
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in ("-h", "--help"):
            result.help = True
        elif name == "--ephemeral" and not equals:
            result.ephemeral = True
        elif name == "--env" and not equals:
            result.env = True
        elif name == "--no-http" and not equals:
            result.no_http = True
        elif name == "--secure" and not equals:
            result.secure = True
        elif name == "--trace-errors" and not equals:
            result.trace_options[name] = []
        elif name in _OF_TRACE:
            given = result.trace_options.setdefault(name, [])
            given.append(value if equals else _next(name, rest))
        elif name == "--faults" and not equals:
            result.faults = True
        elif name == "--supervised" and not equals:
            result.supervised = True  # by `serve --brokers` and by tests: stop when stdin ends
        elif name == "--brokers":
            result.brokers = _count(name, value if equals else _next(name, rest))
        elif name in _WITH_VALUE:
            setattr(result, _WITH_VALUE[name], value if equals else _next(name, rest))
        elif name == "--feature":
            _feature(result, value if equals else _next(name, rest))
        elif name == "-o" or name == "--override":
            _override(result, value if equals else _next(name, rest))
        elif name.startswith("-o") and len(name) > 2:
            _override(result, f"{name[2:]}={value}")
        else:
            raise UsageError(f"unknown argument {name} of kwire serve; {_hint(name)}")
    if result.ephemeral and result.data_dir is not None:
        raise UsageError("--data-dir and --ephemeral exclude each other")
    if result.secure and (result.config is not None or result.brokers or result.env):
        raise UsageError("--secure is for one broker without --config, --brokers and --env")
    if result.trace is not None and result.brokers:
        raise UsageError("--trace is for one broker; kwire proxy sees the traffic of --brokers")
    if result.trace_options and result.trace is None:
        raise UsageError(f"{next(iter(result.trace_options))} needs --trace FILE")
    if result.faults and result.brokers:
        raise UsageError(
            "--faults is for one broker; of several say -o kwire.fault.listeners=127.0.0.1:0"
        )
    return result


def _hint(name: str) -> str:
    """What was meant, perhaps."""
    from difflib import get_close_matches

    known = [*_WITH_VALUE, *_OTHERS]
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "see kwire serve --help"


def _next(name: str, rest: list[str]) -> str:
    if not rest:
        raise UsageError(f"{name} needs a value")
    return rest.pop(0)


def _count(name: str, text: str) -> int:
    if not _is_number(text) or int(text) < 1:
        raise UsageError(f"{name} {text}: expected a number from 1 on")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX


def _override(result: ServeArguments, text: str) -> None:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"-o {text}: expected name=value")
    result.overrides[name.strip()] = value.strip()


def _feature(result: ServeArguments, text: str) -> None:
    name, _, level = text.partition("=")
    if not name or not _is_number(level):
        raise UsageError(f"--feature {text}: expected NAME=LEVEL")
    result.features[name] = int(level)

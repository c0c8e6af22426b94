"""`kwire format`: format the log directories of a node, as Kafka's storage tool does.

    kwire format --config server.properties --cluster-id ID
        (--standalone | --initial-controllers ID@HOST:PORT:DIRECTORY,... | --no-initial-controllers)
        [--ignore-formatted] [--release-version VERSION] [--feature NAME=LEVEL]...
        [--add-scram 'SCRAM-SHA-256=[name=...,password=...]']...

Exit status 0: formatted, or nothing to do; 1: refused, one line says why; 2: a wrong argument.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from kwire.clock import SystemClock, SystemRandom
from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.config.properties import read_properties
from kwire.kraft.formatting.errors import FormatError
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.kraft.raft.types import Endpoint
from kwire.node.host_name import reachable_name

EXIT_REFUSED, EXIT_USAGE = 1, 2
EXAMPLES = """\
With controller.quorum.voters in the file, none of the three about controllers is needed.
Else a quorum begins with one node, and others join it (with
controller.quorum.auto.join.enable=true when they start):

  kwire format -c node1.properties -t ID --standalone
  kwire format -c node2.properties -t ID --no-initial-controllers
"""


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"kwire: {message}; kwire format --help tells more\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="kwire format",
        description="Format a node's log directories, as Kafka's storage tool does.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--config", "-c", required=True, metavar="FILE", help="the node's server.properties")
    add(
        "--cluster-id",
        "-t",
        required=True,
        metavar="ID",
        help="the same on all nodes; `kwire random-uuid` makes one",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone", "-s", action="store_true", help="this controller is the first of a quorum"
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="ID@HOST:PORT:DIRECTORY,...",
        help="the first quorum: the same list on each of its nodes; DIRECTORY is an id too",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="the quorum is there already: this node joins it",
    )
    add("--ignore-formatted", "-g", action="store_true", help="leave out what is formatted")
    add("--release-version", "-r", metavar="VERSION", help="metadata.version, such as 4.4-IV2")
    add(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="another feature's level",
    )
    add(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="CREDENTIAL",
        help="a user, such as SCRAM-SHA-256=[name=ada,password=secret]",
    )
    return parser


def _options(arguments: argparse.Namespace, config: BrokerConfig) -> FormatOptions:
    directories = [os.path.abspath(path) for path in config.log_directories]
    metadata = os.path.abspath(config["metadata.log.dir"] or directories[0])
    if metadata not in directories:
        directories.insert(0, metadata)
    names = config.controller_listener_names()
    advertised = config.advertised_controller_listeners(reachable_name)
    endpoint = next((Endpoint(each.name, each.host, each.port) for each in advertised), None)
    return FormatOptions(
        cluster_id=arguments.cluster_id,
        node_id=config.node_id,
        directories=directories,
        metadata_directory=metadata,
        is_controller=config.is_controller,
        has_static_voters=bool(config["controller.quorum.voters"]),
        endpoint=endpoint,
        listener_name=names[0] if names else "CONTROLLER",
        standalone=arguments.standalone,
        initial_controllers=arguments.initial_controllers,
        no_initial_controllers=arguments.no_initial_controllers,
        ignore_formatted=arguments.ignore_formatted,
        release_version=arguments.release_version,
        features=arguments.feature,
        scram=arguments.add_scram,
    )


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        config = BrokerConfig.load(properties=read_properties(parsed.config), developer=False)
        options = _options(parsed, config)
    except ConfigError as error:
        sys.stderr.write(f"kwire: {error}\n")
        return EXIT_USAGE
    try:
        lines = format_directories(options, clock=SystemClock(), random=SystemRandom())
    except (FormatError, OSError) as error:
        sys.stderr.write(f"kwire: {error}\n")
        return EXIT_REFUSED
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0

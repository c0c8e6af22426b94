"""`kwire serve`: settings, one node, signals."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from kwire.cli.serve_arguments import ServeArguments, UsageError
from kwire.config.broker_config import BrokerConfig
from kwire.config.checks import is_number
from kwire.config.listeners import is_wildcard
from kwire.config.provider_settings import has_providers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task

    from kwire.cli.secure import Secure
    from kwire.cli.serve_faults import ServedFaults
    from kwire.node.node import Node

T = TypeVar("T")

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
PORT_MAX = 65535
SWITCH_S = 0.001
DEFAULT_PORT = 9092
DEFAULT_FAULT_LISTENER = "127.0.0.1:9097"
CLUSTER_FILE = "cluster.properties"
"""Marks the data directory of `--brokers N`."""


def default_data_directory() -> str:
    """The user's data directory of the platform, for kwire."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    elif sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    else:
        base = os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    return os.path.join(base, "kwire")


def default_cluster_directory(brokers: int) -> str:
    """Where `--brokers N` keeps its nodes, beside the single node's directory: a directory in that
    one would be a partition's."""
    return f"{default_data_directory()}-cluster-{brokers}"


def split_address(option: str, text: str) -> tuple[str, int]:
    """`HOST:PORT` or `[HOST]:PORT`; an empty host is every interface. UsageError."""
    host, colon, port_text = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if (
        not colon
        or not is_number(port_text)
        or int(port_text) > PORT_MAX
        or (":" in host and not bracketed)
    ):
        raise UsageError(f"{option} {text}: expected HOST:PORT, such as localhost:9092")
    return (host[1:-1] if bracketed else host), int(port_text)


def _listener(host: str, port: int, protocol: str = "PLAINTEXT") -> str:
    return f"{protocol}://[{host}]:{port}" if ":" in host else f"{protocol}://{host}:{port}"


def load_config(arguments: ServeArguments, ephemeral_directory: str | None) -> BrokerConfig:
    """The node's settings out of command line, file and environment; ConfigError, UsageError."""
    properties: dict[str, str] = {}
    if arguments.config is not None:
        from kwire.config.properties import read_properties

        properties = read_properties(arguments.config)
    overrides = dict(arguments.overrides)
    if arguments.no_http:
        overrides["http.listeners"] = ""
    if arguments.faults:
        overrides.setdefault("kwire.fault.listeners", DEFAULT_FAULT_LISTENER)
    protocol = "SASL_SSL" if arguments.secure else "PLAINTEXT"
    if arguments.secure and arguments.listen is None:
        overrides.setdefault("listeners", _listener("localhost", DEFAULT_PORT, protocol))
    # In a container the command line is the image's, the environment its user's.
    of_user = os.environ.keys() if arguments.env else set()
    if arguments.listen is not None and "KAFKA_LISTENERS" not in of_user:
        host, port = split_address("--listen", arguments.listen)
        own = [_listener(host, port, protocol)]
        known = properties
        if has_providers(properties):
            from kwire.config.providers import resolve_settings

            known = resolve_settings(properties).texts
        controller = known.get("controller.listener.names", "")
        for entry in known.get("listeners", "").split(","):
            if entry.strip() and entry.strip().partition("://")[0] in controller.split(","):
                own.append(entry.strip())
        overrides.setdefault("listeners", ",".join(own))
    if arguments.advertise is not None:
        host, port = split_address("--advertise", arguments.advertise)
        if host and is_wildcard(host):
            raise UsageError(f"--advertise {arguments.advertise}: clients cannot connect to that")
        overrides.setdefault("advertised.listeners", _listener(host, port, protocol))
    directories = {"KAFKA_LOG_DIRS", "KAFKA_LOG_DIR"}
    directory = (None if directories & of_user else arguments.data_dir) or ephemeral_directory
    if directory is not None and overrides.keys() & {"log.dirs", "log.dir"}:
        if ephemeral_directory is not None:
            raise UsageError("--ephemeral and -o log.dirs exclude each other")
    elif directory is not None:
        if os.path.exists(os.path.join(directory, CLUSTER_FILE)):
            raise UsageError(f"{directory} is the data directory of a cluster: --brokers N")
        overrides["log.dirs"] = os.path.abspath(directory)
    elif not (properties.keys() | overrides.keys()) & {"log.dirs", "log.dir"}:
        environment_sets_it = directories & os.environ.keys()
        if arguments.config is None and not environment_sets_it:
            overrides["log.dirs"] = default_data_directory()
    if arguments.secure:
        arguments.secured = _secured(overrides, arguments)
        overrides = {**arguments.secured.settings, **overrides}
    return BrokerConfig.load(
        properties=properties,
        environment=dict(os.environ),
        container=arguments.env,
        overrides=overrides,
        developer=arguments.config is None,
    )


def _secured(overrides: Mapping[str, str], arguments: ServeArguments) -> Secure:
    """What `--secure` makes in the data directory."""
    from kwire.cli.secure import prepare
    from kwire.node.host_name import reachable_name

    directory = overrides.get("log.dirs") or overrides.get("log.dir") or ""
    told = [arguments.listen, arguments.advertise]
    hosts = [split_address("--listen", text)[0] for text in told if text is not None]
    # What is wrong with these is told when the settings are read.
    for setting in ("listeners", "advertised.listeners"):
        for text in overrides.get(setting, "").split(","):
            hosts.append(text.partition("://")[2].rpartition(":")[0].strip("[]"))
    names = [host for host in hosts if host and not is_wildcard(host)] + [reachable_name()]
    try:
        return prepare(os.path.abspath(directory.split(",")[0]), names)
    except ImportError:
        raise UsageError(
            "--secure needs the package cryptography: pip install 'kwire[tls]'"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--secure: {error}") from None


def serve(arguments: ServeArguments) -> int:
    """Run a node until SIGTERM or SIGINT; returns the exit status."""
    ephemeral_directory = None
    if arguments.ephemeral:
        import tempfile

        ephemeral_directory = tempfile.mkdtemp(prefix="kwire-")
    try:
        config = load_config(arguments, ephemeral_directory)
        return _run(config, arguments)
    finally:
        if ephemeral_directory is not None:
            import shutil

            shutil.rmtree(ephemeral_directory, ignore_errors=True)


def _run(config: BrokerConfig, arguments: ServeArguments) -> int:
    from kwire.cli.logs import start_logging
    from kwire.network.loop import new_event_loop, tune_malloc
    from kwire.node.node import Node, StartError

    start_logging()
    for line in config.warnings:
        logger.warning(line)
    if arguments.secured is None:
        _warn_of_open_listeners(config)
    tune_malloc()
    loop = new_event_loop()
    by_default = (config.developer or arguments.supervised) and not arguments.no_http
    faults = None
    if config["kwire.fault.listeners"]:
        from kwire.cli.serve_faults import ServedFaults

        faults = ServedFaults(config)
    node = Node(
        config,
        loop,
        features=arguments.features,
        clock=None if faults is None else faults.clock,
        files=None if faults is None else faults.files,
        http_by_default=by_default,
    )
    if faults is not None:
        faults.attach(node)
    if arguments.secured is not None:
        node.directory_identities.scram = [arguments.secured.scram]
    trace = None
    try:
        if arguments.trace is not None:
            from kwire.cli.serve_trace import ServeTrace

            trace = ServeTrace(loop, node.clock, arguments.trace, arguments.trace_options)
            node.request_steps.set_tap(trace.tap(node.listeners.local_address))
        try:
            return loop.run_until_complete(_serve_until_stopped(node, loop, arguments, faults))
        finally:
            if trace is not None:
                loop.run_until_complete(trace.close())
    except StartError as error:
        sys.stderr.write(f"kwire: {error}\n")
        return EXIT_FAILED
    finally:
        loop.close()


def _warn_of_open_listeners(config: BrokerConfig) -> None:
    """Name the listeners without TLS and login of a directory that `--secure` has made."""
    from kwire.cli.secret_files import SECURE_CLIENT

    made = [
        path for path in config.log_directories if os.path.exists(os.path.join(path, SECURE_CLIENT))
    ]
    is_open = [each for each in config.broker_listeners() if each.protocol == "PLAINTEXT"]
    if made and is_open:
        logger.warning(
            "%s was made with --secure, and is served without: %s asks for no login",
            made[0],
            ", ".join(f"{each.name}://{each.host}:{each.port}" for each in is_open),
        )


async def _serve_until_stopped(
    node: Node, loop: AbstractEventLoop, arguments: ServeArguments, faults: ServedFaults | None
) -> int:
    stopped: Future[int] = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if arguments.supervised:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end_of_input, loop, stop)
    node.on_fatal = lambda reason: None if stopped.done() else stopped.set_result(EXIT_FAILED)
    starting = loop.create_task(node.start() if faults is None else faults.start(node.start))
    await _first_of(loop, starting, stopped)
    error = starting.exception() if starting.done() else None
    if error is not None:
        await node.stop()
        raise error
    if starting.done() and not stopped.done():
        host, port = node.ready_address()
        shown = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"kwire ready on {shown}:{port}\n")
        if node.http is not None:
            sys.stdout.writelines(f"http on {url}\n" for url in node.http.addresses())
        if faults is not None:
            sys.stdout.writelines(f"faults on {address}\n" for address in faults.addresses)
        if arguments.secured is not None:
            from kwire.cli.secure import client_settings

            told = node.listeners.advertised[0]
            shown = f"[{told.host}]" if ":" in told.host else told.host
            sys.stdout.write(client_settings(arguments.secured, f"{shown}:{told.port}"))
        sys.stdout.flush()
        if not arguments.supervised:
            _advise()
        _settle_memory()
        _share_the_interpreter()
        await stopped
    elif not starting.done():
        starting.cancel()
        await _ended(starting)
    status = stopped.result() if stopped.done() else 0
    if faults is not None:
        faults.stop()
    await node.stop()
    return status


def _stop_at_end_of_input(loop: AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Whoever started us is gone, or has closed the pipe."""
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        stop()


def _advise() -> None:
    """Say if the interpreter could be a faster one; `serve --brokers` says it once for all."""
    from kwire.cli.interpreter import advice

    if (told := advice()) is not None:
        logger.info(told)


def _settle_memory() -> None:
    """What the start made stays: the collector looks at it no more, and less often at the rest.

    Requests make no cycles; with Python's thresholds the collector took a tenth of the time of
    small requests (measured). 5,000 young objects hold the loop 2 ms. There is no collection before
    it: of 100,000 partitions it took 2.5 s and found 209 objects.
    """
    import gc

    gc.freeze()
    gc.set_threshold(5_000, 20, 50)
    gc.enable()


def _share_the_interpreter() -> None:
    """A thread that computes gives the loop its turn after 1 ms, not after Python's 5.

    The loop lets go of the interpreter at each system call, and waits for it again each time.
    """
    sys.setswitchinterval(SWITCH_S)


async def _first_of(loop: AbstractEventLoop, task: Task[None], future: Future[int]) -> None:
    """Wait until one of them is done."""
    either: Future[None] = loop.create_future()

    def done(_: Future[T]) -> None:
        if not either.done():
            either.set_result(None)

    task.add_done_callback(done)
    future.add_done_callback(done)
    await either


async def _ended(task: Task[None]) -> None:
    """Wait until a cancelled task has ended, however it does."""
    import asyncio

    try:
        await task
    except (asyncio.CancelledError, Exception):
        return

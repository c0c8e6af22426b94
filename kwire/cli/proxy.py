"""`kwire proxy`: the traffic between clients and any Kafka cluster, seen."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import trace_options as options
from kwire.cli.options import CommandConfig
from kwire.client.errors import ClientError
from kwire.trace.files import STDOUT, TraceWriter
from kwire.trace.filters import Filters

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from kwire.trace.proxy.server import Proxy
    from kwire.trace.recorder import Recorder


def proxy(
    listen: Annotated[
        str, typer.Argument(metavar="LISTEN", help="HOST:PORT to serve; port 0 picks one.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="HOST:PORT[,HOST:PORT] of the cluster.")
    ],
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            show_default=False,
            help="Write lines of JSON to this file, compressed where it ends with .gz. Without: "
            "to standard output.",
        ),
    ] = None,
    explain: options.Explain = False,
    records: options.KeptBytes = 0,
    client_id: options.ClientId = None,
    api: options.Api = None,
    topic: options.Topic = None,
    group: options.Group = None,
    errors: options.ErrorsOnly = False,
    slower_than: options.SlowerThan = None,
    advertise: Annotated[
        str, typer.Option("--advertise", help="The host that clients are told; else as they came.")
    ] = "",
    tls_cert: Annotated[
        str | None,
        typer.Option(
            "--tls-cert",
            show_default=False,
            help="Take TLS from clients, with this certificate and its chain (PEM).",
        ),
    ] = None,
    tls_key: Annotated[
        str | None,
        typer.Option("--tls-key", show_default=False, help="The key of --tls-cert (PEM)."),
    ] = None,
    command_config: CommandConfig = None,
) -> None:
    """Stand in front of a cluster and show what its clients ask and get.

    Clients connect to LISTEN and stay behind it: each broker gets a local port, from LISTEN's next
    one on, and replies that tell addresses tell these. With --command-config the proxy speaks TLS
    to the cluster and logs in for its clients. With --tls-cert and --tls-key its clients speak TLS.
    """
    from kwire.cli.client import connection_settings
    from kwire.cli.proxy_tls import tls_of
    from kwire.client.address import parse_address, parse_addresses
    from kwire.network.loop import new_event_loop
    from kwire.trace.proxy.server import Proxy

    wanted = options.filters(client_id, api, topic, group, errors, slower_than)
    where, targets = parse_address(listen), parse_addresses(target)
    if 0 in (port for _, port in targets):
        raise ClientError(f"{target}: port 0 is no broker's")
    settings = connection_settings(target, None, command_config)
    tls = tls_of(tls_cert, tls_key)
    path = trace if trace is not None else None if explain else STDOUT
    writer = None
    try:
        writer = None if path is None else TraceWriter(path)
    except OSError as error:
        raise ClientError(f"--trace {trace}: {error.strerror or error}") from None
    loop = new_event_loop()
    try:
        loop.run_until_complete(
            _run(
                loop,
                lambda recorder: Proxy(loop, where, targets, settings, recorder, advertise, tls),
                writer,
                explain,
                wanted,
                records,
                listen,
                target,
            )
        )
    finally:
        loop.close()


async def _run(
    loop: AbstractEventLoop,
    make: Callable[[Recorder], Proxy],
    writer: TraceWriter | None,
    explain: bool,
    wanted: Filters,
    kept_bytes: int,
    listen: str,
    target: str,
) -> None:
    from kwire.client.address import shown
    from kwire.clock import SystemClock, ticks_ns
    from kwire.trace.background import BackgroundTrace
    from kwire.trace.recorder import Recorder

    stopped = loop.create_future()

    def stop(reason: str = "") -> None:
        if not stopped.done():
            stopped.set_result(reason)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    began_ns = ticks_ns()
    recorder = Recorder(lambda: (ticks_ns() - began_ns) / 1e6, wanted, kept_bytes)
    executor = ThreadPoolExecutor(1, thread_name_prefix="kwire-trace")
    file = None
    if writer is not None:
        file = BackgroundTrace(loop, executor, writer, stop)
        recorder.add(file.write)
    if explain:
        from kwire.cli.narration import Narration

        recorder.add(Narration().tell)
    recorder.begins(f"kwire proxy {target}", SystemClock().wall_ms())  # before any connection
    proxy = make(recorder)
    try:
        host, port = await proxy.start()
    except OSError as error:
        failure = f"{listen} cannot be served: {error.strerror or error}"
    else:
        sys.stderr.write(f"kwire proxy ready on {shown(host, port)}\n")
        sys.stderr.flush()
        failure = await stopped
        await proxy.stop()
    if file is not None:
        await file.close()
    executor.shutdown()
    if failure:
        raise ClientError(failure)

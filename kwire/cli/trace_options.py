"""Options of `kwire proxy` and `kwire trace`: which traffic is wanted."""

from __future__ import annotations

from typing import Annotated

import typer

from kwire.trace.filters import Filters, api_names
from kwire.trace.recorder import KEPT_BYTES_MAX

ClientId = Annotated[
    str | None, typer.Option("--client-id", show_default=False, help="Only of this client id.")
]
Api = Annotated[
    list[str] | None,
    typer.Option("--api", "-a", help="Only this API, by its name or number; may be repeated."),
]
Topic = Annotated[
    str | None,
    typer.Option("--topic", "-t", show_default=False, help="Only what names this topic."),
]
Group = Annotated[
    str | None,
    typer.Option("--group", "-g", show_default=False, help="Only what names this group."),
]
ErrorsOnly = Annotated[
    bool, typer.Option("--errors", help="Only what is answered with an error, or not at all.")
]
SlowerThan = Annotated[
    float | None,
    typer.Option("--slower-than", min=0, show_default=False, help="Only what took more ms."),
]
KeptBytes = Annotated[
    int,
    typer.Option(
        "--records",
        min=0,
        max=KEPT_BYTES_MAX,
        help="Write so many bytes of each key and value; 0: nothing of them.",
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="Tell in words what happens, and why.")]


def filters(
    client_id: str | None,
    api: list[str] | None,
    topic: str | None,
    group: str | None,
    errors_only: bool,
    slower_than_ms: float | None,
) -> Filters:
    """The filters of a command line."""
    try:
        apis = api_names(api or [])
    except ValueError as error:
        raise typer.BadParameter(f"--api {error}") from None
    return Filters(client_id, apis, topic, group, errors_only, slower_than_ms)

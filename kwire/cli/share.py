"""`kwire share`: the dead letters of a share group, listed and redriven."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import output
from kwire.cli.client import Client
from kwire.cli.options import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    CommandConfig,
    GroupOption,
    named,
)
from kwire.cli.verbs import Verbs
from kwire.client.errors import ClientError

if TYPE_CHECKING:
    from kwire.cli.dead_letters import Listed
    from kwire.client.dead_letters.filters import Filter
    from kwire.client.dead_letters.redrive import Told

LISTED_MAX = 100
STRANGERS_SHOWN_MAX = 20

share_app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List the dead letters of a share group, and send them once more.",
)
GroupName = Annotated[str | None, typer.Argument(metavar="GROUP", show_default=False)]
LetterTopic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        "-t",
        show_default=False,
        help="The dead letter topic, where not that of the group's configs.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        "-w",
        show_default=False,
        help="Only these: conditions on topic, partition, offset (of the original), reason, "
        "deliveries, age, header.NAME, with = != ~ !~ < <= > >=, and, or, not, brackets: "
        '"topic = mail and reason ~ rejected and age < 2h".',
    ),
]


@share_app.command("dead")
def share_dead(
    name: GroupName = None,
    group: GroupOption = None,
    where: Where = None,
    topic: LetterTopic = None,
    count: Annotated[
        int, typer.Option("--count", "-c", min=0, help="At most so many; 0 for all.")
    ] = LISTED_MAX,
    originals: Annotated[
        bool, typer.Option("--originals/--no-originals", help="Read the records they are of.")
    ] = True,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """The dead letters of a share group: where each came from, why it was given up, and its
    record, as far as it is still there."""
    wanted_group = named(name, group, "group")
    wanted = _filter(where)
    from kwire.cli import dead_letters

    rows: list[tuple[output.Json, ...]] = []
    strangers = _Strangers()
    is_more = False
    shown = 0

    def show(one: Listed) -> bool:
        nonlocal shown, is_more
        if count and shown == count:
            is_more = True
            return False
        shown += 1
        if as_json:
            output.say_json(dead_letters.as_object(one))
        else:
            rows.append(dead_letters.row(one))
        return True

    with Client(bootstrap, command_config=command_config) as client:
        client.drive(
            lambda cluster: dead_letters.listed(
                cluster, wanted_group, topic, wanted, originals, show, strangers.add
            )
        )
    if not as_json:
        output.table(dead_letters.LIST_COLUMNS, rows)
    strangers.end()
    if is_more:
        _note(f"there are more than {count}; --count 0 shows all, --where chooses")


@share_app.command("redrive")
def share_redrive(
    name: GroupName = None,
    group: GroupOption = None,
    where: Where = None,
    topic: LetterTopic = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show.")] = False,
    count: Annotated[
        int, typer.Option("--count", "-c", min=0, help="Send at most so many; 0 for all.")
    ] = 0,
    trust_offsets: Annotated[
        bool,
        typer.Option(
            "--trust-offsets",
            help="Send what is at an origin offset even where it is younger than the dead letter.",
        ),
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
) -> None:
    """Send the originals of dead letters to where they came from, each once: what was sent before
    is not sent again, whatever ended it. What is gone is named."""
    wanted_group = named(name, group, "group")
    wanted = _filter(where)
    from kwire.cli import dead_letters
    from kwire.client.dead_letters.redrive import Sent

    sums = dead_letters.Sums()

    def tell(letter_topic: str, index: int, told: Told) -> None:
        sums.add(told)
        if as_json:
            output.say_json(dead_letters.told_object(letter_topic, index, told, dry_run))
        elif dry_run or not isinstance(told, Sent) or told.is_copied:
            output.say(dead_letters.line(letter_topic, index, told, dry_run))

    with Client(bootstrap, command_config=command_config) as client:
        try:
            client.drive(
                lambda cluster: dead_letters.redriven(
                    cluster,
                    wanted_group,
                    topic,
                    wanted,
                    is_dry=dry_run,
                    count_max=count,
                    trusts_offsets=trust_offsets,
                    tell=tell,
                )
            )
        except BaseException:
            if sums and not as_json:
                output.say(sums.text(dry_run))
            raise
    if not as_json:
        output.say(sums.text(dry_run))


def _filter(where: str | None) -> Filter:
    from kwire.client.dead_letters.filters import EVERYTHING, parse_filter

    if where is None:
        return EVERYTHING
    try:
        return parse_filter(where)
    except ClientError as error:
        raise typer.BadParameter(f"--where: {error}") from None


class _Strangers:
    """Records of the topic that are no dead letters: the first ones are named, all counted."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        if self._count <= STRANGERS_SHOWN_MAX:
            _note(text)

    def end(self) -> None:
        if self._count > STRANGERS_SHOWN_MAX:
            _note(f"{self._count - STRANGERS_SHOWN_MAX} more that are no dead letters")


def _note(text: str) -> None:
    line = text.encode(errors="backslashreplace").decode()
    sys.stderr.write(f"kwire: {line}\n")

"""Write the parts of the documents that come from the code (`make docs`).

README.md: the table of APIs and the counts of configs, between their marker comments.
docs/CONFIGS.md: every config with what kwire does with it.
docs/FAULTS.md: the table of faults.
docs/AUTHORIZATION.md: what each API requires. docs/METRICS.md: see `metrics_docs.py`.
`--check` only tells whether they are up to date; `tests/unit/test_docs.py` calls the same
functions.
"""

from __future__ import annotations

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kwire.cli import tables  # noqa: E402
from kwire.faults.kinds import KINDS  # noqa: E402
from tools import metrics_docs  # noqa: E402

SCOPE_TITLES = {
    "broker": "Broker (`server.properties`, `KAFKA_*`, `-o`)",
    "topic": "Topic",
    "group": "Group",
    "client-metrics": "Client metrics subscription",
    "quota": "Quotas",
    "kwire": "kwire's own",
}


def markdown(columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """A table; what would break a cell is escaped."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = (str(cell).replace("|", "\\|").replace("*", "\\*") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def apis() -> str:
    """The APIs that are answered, three to a row to keep the README short."""
    entries = [f"{name} {versions}" for _, name, versions in tables.api_rows()]
    width = 4
    entries += [""] * (-len(entries) % width)
    rows: list[tuple[object, ...]] = [
        tuple(entries[at : at + width]) for at in range(0, len(entries), width)
    ]
    return markdown(("API, versions",) * width, rows)


def config_counts() -> str:
    """How many configs act, are accepted, are refused."""
    return markdown(
        ("scope", "acts", "accepted without effect", "refused"), [*tables.support_counts()]
    )


def developer_table() -> str:
    """The developer settings beside Kafka's defaults."""
    rows = [
        (f"`{name}`", f"`{value}`", f"`{default}`")
        for name, value, default in tables.developer_rows()
    ]
    return markdown(("setting", "developer table", "Kafka's default"), [*rows])


SECTIONS = {
    "apis": apis,
    "config counts": config_counts,
    "developer settings": developer_table,
}


def with_sections(text: str) -> str:
    """`text` with every generated section made anew."""
    for name, make in SECTIONS.items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        head, found, rest = text.partition(begin)
        if not found:
            raise SystemExit(f"README.md lacks {begin}")
        _, _, tail = rest.partition(end)
        text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


def configs_page() -> str:
    """docs/CONFIGS.md."""
    parts = [
        "# What kwire does with Kafka's configs",
        "",
        "Made by `make docs` from `kwire/config/data`; names, types and defaults are Apache Kafka "
        "4.4's.",
        "",
        "- **acts**: it has Kafka's effect.",
        "- **accepted**: it has none; one log line says so when it is set to something else than "
        "its default. Never one of durability or security.",
        "- **refused**: anything but the default ends the start with one line (exit status 2), or "
        "is answered with INVALID_CONFIG.",
    ]
    for scope, title in SCOPE_TITLES.items():
        rows = tables.config_rows(scope, [])
        if not rows:
            continue
        parts += ["", f"## {title}", ""]
        shown: list[tuple[object, ...]] = [
            (f"`{name}`", text, kind, f"`{default}`" if default else "", changes, support, note)
            for name, kind, default, _, changes, support, note, text in rows
        ]
        columns = ("config", "what it is for", "type", "default", "changes", "support", "why")
        parts.append(markdown(columns, shown))
    return "\n".join(parts) + "\n"


AUTHORIZATION_INTRO = """# What each API requires

Made by `make docs` from the `AUTHORIZATION` of the modules in `kwire/api` and of
`kwire/server/controller_dispatch.py`. Operations and resource types are those of Kafka's ACLs; the
resource of type CLUSTER is called `kafka-cluster`. Without an authorizer nothing is asked.

- **resources**: where the request names them. Empty: the cluster, or what only the answer names.
- **without the right**: what becomes of the request, with the error code of the resource's type
  (TOPIC_AUTHORIZATION_FAILED and so on).
- **asked by**: before the handler for requests as a whole, by the handler for single entries, by
  the active controller for what a broker hands on in its client's name.
"""


def authorization_page() -> str:
    """docs/AUTHORIZATION.md."""
    columns = ("API", "operation", "on", "resources", "without the right", "asked by", "when")
    parts = [AUTHORIZATION_INTRO]
    for listener in ("broker", "controller"):
        rows = tables.authorization_rows(listener)
        shown: list[tuple[object, ...]] = [
            (*row[:3], f"`{row[3]}`" if row[3] not in ("", "-") else row[3], *row[4:])
            for row in rows
        ]
        parts += [f"## {listener.capitalize()} listeners\n", markdown(columns, shown) + "\n"]
    return "\n".join(parts)


def faults_table() -> str:
    """The faults there are, with their options."""
    rows: list[tuple[object, ...]] = []
    for kind in KINDS.values():
        options = [
            f"`{one.name}`" + ("" if one.default is None else f" ({str(one.default).lower()})")
            for one in kind.options
        ]
        needed = [f"`{name}`" for name in kind.needs]
        rows.append((f"`{kind.name}`", kind.text, kind.looks, ", ".join(needed + options) or "-"))
    return markdown(("fault", "does", "looks like", "needs, options (default)"), rows)


def faults_page() -> str:
    """docs/FAULTS.md: its table of faults is made anew."""
    begin, end = "<!-- generated: faults -->", "<!-- end: faults -->"
    head, _, rest = (ROOT / "docs/FAULTS.md").read_text().partition(begin)
    return f"{head}{begin}\n{faults_table()}\n{end}{rest.partition(end)[2]}"


def documents() -> dict[pathlib.Path, str]:
    """Path -> text as it should be, of every document that is generated wholly or in part."""
    readme = ROOT / "README.md"
    return {
        readme: with_sections(readme.read_text()),
        ROOT / "docs/CONFIGS.md": configs_page(),
        ROOT / "docs/AUTHORIZATION.md": authorization_page(),
        ROOT / "docs/METRICS.md": metrics_docs.page(markdown),
        ROOT / "docs/FAULTS.md": faults_page(),
    }


def main() -> int:
    """Write what differs; with `--check` only name it."""
    stale = [
        path for path, text in documents().items() if not path.exists() or path.read_text() != text
    ]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not up to date: make docs")
        return 1 if stale else 0
    for path in stale:
        path.write_text(documents()[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

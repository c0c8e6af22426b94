"""The generated parts of the documents are what the code says; links lead somewhere."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import re
import types

import pytest

from kwire.cli.app import app
from kwire.cli.cluster import READY_PREFIX
from kwire.cli.log_tool import ACTIONS
from kwire.spark.commands import JOBS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("*/README.md")),
    *sorted(ROOT.glob("*/*/README.md")),
]
FOLDERS = "bench|compat_tests|docker|docs|kwire|pyspark_kwire|tests|tools"
MADE_UP = re.compile(r"(^|/)(test_)?(echo_topics|shop)\.\w+$|^ask\.py$")
"""The files that the example of CONTRIBUTING.md makes."""


def generator() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools/generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED = ("README.md", "docs/CONFIGS.md", "docs/AUTHORIZATION.md", "docs/FAULTS.md")


@pytest.mark.parametrize("name", GENERATED)
def test_generated_parts_are_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == generator().documents()[ROOT / name], "run make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page: pathlib.Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_guarantee_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "GUARANTEES.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    assert len(rows) > 20
    for row in rows:
        file = None
        named = re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", row)
        for path, test in named:
            file = path or file
            if file is None:
                continue
            source = (ROOT / file).read_text()
            assert not test or f"def {test}(" in source, f"{file}::{test}"
        is_heading = "shown by" in row or row.split("|")[1].strip() == "What happens"
        assert is_heading or file or row.rstrip().endswith("| - |"), row


def code_of(page: pathlib.Path) -> list[str]:
    """The lines of code blocks, and what stands between backquotes."""
    text = page.read_text()
    blocks = re.findall(r"^```.*?\n(.*?)^```", text, re.M | re.S)
    blocks += re.findall(r"^(?: {4}.*\n)+", text, re.M)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", text)


def kwire_commands() -> set[str]:
    """`topic`, `topic create`, ..."""
    found = {str(command.name) for command in app.registered_commands}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        found.add(str(group.name))
        found |= {f"{group.name} {c.name}" for c in group.typer_instance.registered_commands}
    return found | {f"spark {job}" for job in JOBS} | {f"log {action}" for action in ACTIONS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_files_of_the_pages_are_there(page: pathlib.Path) -> None:
    known = kwire_commands()
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M)
    missing: list[str] = []
    for line in code_of(page):
        if line.startswith(READY_PREFIX):  # what `serve` says
            continue
        if match := re.match(r"kwire ([a-z][\w-]*)(?: ([a-z][\w-]*))?", line):
            command, word = match[1], match[2]
            has_words = any(name.startswith(f"{command} ") for name in known)
            if command not in known or (word and has_words and f"{command} {word}" not in known):
                missing.append(match[0])
        if (match := re.match(r"make ([a-z][\w-]*)", line)) and match[1] not in targets:
            missing.append(match[0])
        for path in re.findall(rf"(?<![\w./-])(?:{FOLDERS})/[\w./-]*\w(?![\w*<{{])", line):
            if not (ROOT / path).exists() and not (page.parent / path).exists():
                missing.append(path)
    assert [name for name in missing if not MADE_UP.search(name)] == []


@functools.cache
def ends_of_paths() -> frozenset[str]:
    """`log/files.py` and `files.py` of `kwire/log/files.py`, of every file of the repository."""
    found = set()
    for folder in FOLDERS.split("|"):
        for path in (ROOT / folder).rglob("*.*"):
            parts = path.relative_to(ROOT).parts
            found |= {"/".join(parts[at:]) for at in range(len(parts))}
    return frozenset(found | {path.name for path in ROOT.iterdir()})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_by_the_end_of_their_path_are_there(page: pathlib.Path) -> None:
    """`raft_driver.py`, `log/files.py`, `unit/test_docs.py`."""
    named = re.findall(
        r"(?<![\w./*<{-])[a-z_][\w/-]*\.(?:py|md|tsv)\b(?!\.)", "\n".join(code_of(page))
    )
    unknown = [name for name in dict.fromkeys(named) if name not in ends_of_paths()]
    assert [name for name in unknown if not MADE_UP.search(name)] == []

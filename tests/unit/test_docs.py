"""The generated parts of the documents are what the code says; links lead somewhere."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("*/README.md"))]


def generator() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools/generate_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["README.md", "docs/CONFIGS.md"])
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

"""`kwire schema` against a broker's registry; what goes wrong is one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")

from kwire.cli import app
from kwire.testing.cluster import Broker, free_ports

A = {"name": "a", "type": "int"}
NARROW = {"type": "record", "name": "R", "fields": [A]}
WIDE = {"type": "record", "name": "R", "fields": [A, {"name": "b", "type": "int"}]}
DEFAULTED = {
    "type": "record",
    "name": "R",
    "fields": [A, {"name": "b", "type": "int", "default": 0}],
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    (port,) = free_ports(1)
    with Broker(options={"http.listeners": f"http://127.0.0.1:{port}"}):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, schema in (("narrow", NARROW), ("wide", WIDE), ("defaulted", DEFAULTED)):
        (tmp_path / f"{name}.avsc").write_text(json.dumps(schema))
    return tmp_path


class Runs:
    """Runs commands in this process."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys

    def __call__(self, *arguments: object, status: int = 0) -> str:
        got = app.main(["schema", *map(str, arguments), "--registry", self.url])
        captured = self._capsys.readouterr()
        assert got == status, captured.err
        if captured.err:
            assert captured.err.startswith("kwire: ")
            assert captured.err.count("\n") == 1
        return captured.out + captured.err


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(url, capsys)


def test_a_schema_from_a_file_to_its_next_version(run: Runs, files: Path) -> None:
    first = run("register", "s-value", files / "narrow.avsc")
    assert first == "s-value version 1 has id 1\n"
    assert run("register", "s-value", files / "narrow.avsc") == first
    refused = run("check", "s-value", files / "wide.avsc", status=1)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused
    assert "may not follow" in refused
    assert "incompatible" in run("register", "s-value", files / "wide.avsc", status=1)
    assert "may follow" in run("check", "s-value", files / "defaulted.avsc", "--version", "latest")
    run("register", "s-value", files / "defaulted.avsc")
    assert json.loads(run("show", "s-value", "1")) == NARROW
    assert json.loads(run("show", "s-value")) == json.loads(run("show", "2")) == DEFAULTED
    assert json.loads(run("show", "s-value", "--json"))["version"] == 2
    changed = run("diff", "s-value", "1", status=1).splitlines()
    assert changed[:2] == ["--- s-value 1", "+++ s-value latest"]
    assert '+      "name": "b",' in changed
    assert run("diff", "s-value", "1", files / "narrow.avsc") == ""
    assert json.loads(run("list", "s-", "--json")) == {
        "subject": "s-value",
        "versions": "1,2",
        "type": "AVRO",
        "id": 2,
        "compatibility": "BACKWARD",
    }


def test_what_goes_wrong_is_one_line(
    run: Runs, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Subject 'none' not found" in run("show", "none", status=1)
    assert "version" in run("show", "none", "first", status=1)
    text = files / "x.txt"
    text.write_text("x")
    assert "--type" in run("register", "s", text, status=2)
    assert "Invalid schema" in run("register", "s", text, "--type", "avro", status=1)
    wide = files / "wide.avsc"
    assert "NAME=SUBJECT" in run("register", "s", wide, "--reference", "x", status=2)
    (files / "bad.avsc").write_bytes(b"\xff")
    assert "UTF-8" in run("register", "s", files / "bad.avsc", status=1)
    for url in ("localhost:8080", "http://127.0.0.1:1", "http://127.0.0.1:x", "ftp://x"):
        assert app.main(["schema", "list", "--registry", url]) == 1
        assert capsys.readouterr().err.count("\n") == 1

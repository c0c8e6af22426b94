"""The notation of the schema files, and that every file is well formed."""

from __future__ import annotations

import pathlib

import pytest

from kwire.protocol import messages, schema

ROOT = pathlib.Path(schema.__file__).parent
FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.txt"))


def names() -> list[str]:
    found = []
    for file in FILES:
        lines = (ROOT / file).read_text().splitlines()
        found += [line.split()[1] for line in lines if line and line[0] != " "]
    return found


def test_every_message_is_found_by_its_name() -> None:
    assert len(names()) == len(set(names())) > 200
    for name in names():
        assert schema.load(name).name == name


@pytest.mark.parametrize("file", FILES)
def test_files_are_tidy(file: str) -> None:
    text = (ROOT / file).read_text()
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line == line.rstrip()
        assert len(line) <= 110
        assert (len(line) - len(line.lstrip())) % 2 == 0


def test_versions_of_fields_are_within_their_struct_and_names_are_free() -> None:
    taken = set(dir(messages.by_name("FetchRequest").__mro__[1]))

    def check(struct: schema.Struct, around: tuple[int, int], depth: int) -> None:
        assert depth < 10
        tags = []
        for field in struct.fields:
            assert around[0] <= field.versions[0] <= field.versions[1] <= around[1]
            assert field.name.isidentifier()
            assert field.name not in taken - {"unknown_tags"} or field.name == "unknown_tags"
            if field.nullable != schema.NONE:
                assert field.versions[0] <= field.nullable[0]
                assert field.nullable[1] <= field.versions[1]
            if field.tag is not None:
                assert field.tagged == field.versions
                tags.append(field.tag)
            if field.struct is not None:
                check(field.struct, around, depth + 1)
        assert len(tags) == len(set(tags))
        assert len(struct.fields) == len({field.name for field in struct.fields})

    for name in names():
        message = schema.load(name)
        check(message.root, message.versions, 0)


def test_a_field_line_says_everything() -> None:
    message = schema.load("FetchRequest")
    fields = {field.name: field for field in message.root.fields}
    cluster = fields["cluster_id"]
    assert (cluster.type, cluster.tag, cluster.tagged) == ("string", 0, (12, 18))
    assert (cluster.versions, cluster.nullable) == ((12, 18), (12, 18))
    assert (cluster.default, cluster.ignorable) == (None, True)
    assert fields["max_bytes"].default == 0x7FFFFFFF
    topics = fields["topics"]
    assert (topics.is_array, topics.type, topics.default) == (True, "FetchTopic", ...)
    assert message.structs["FetchPartition"].fields[0].name == "partition"
    assert schema.load("MetadataRequest").root.fields[0].nullable == (1, 13)


def test_unknown_names() -> None:
    for name in ("NoSuchRequest", "NoSuchRecord", "NoSuchHeader", ""):
        with pytest.raises(KeyError):
            schema.load(name)
    with pytest.raises(KeyError):
        schema.names_in("no_such_module")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("  topics", "a field needs a type"),
        ("  topics  [strin]", "there is no type strin"),
        ("  topics  []", "there is no type"),
        ("  topics  [string]  taged", "there is no option taged"),
        ("  topics  [string]  v=0..x", "'x'"),
        ("response NoSuchResponse", "not indented"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(
    line: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"request NoSuchRequest key=1000 versions=0 flexible=all\n{line}\n"
    monkeypatch.setattr(schema, "_read", lambda path: text)
    with pytest.raises(ValueError, match=reason) as raised:
        schema.load("NoSuchRequest")
    assert "NoSuchRequest" in str(raised.value)
    assert line.strip() in str(raised.value)

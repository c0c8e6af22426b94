"""Logs that are deleted: their names, their space, and what they are called meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.log.directories.directory import parse_name, suffixed_name
from kwire.log.files import SystemFiles, remove_tree
from tests.support.managed_logs import OTHER_TOPIC_ID, TOPIC_ID, Node


def test_delete_frees_the_name_at_once_and_the_space_later() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 3)
    done = node.manager.delete("topic", 0)
    node.scheduler.turn()
    assert done.done
    assert node.manager.get("topic", 0) is None
    (name,) = node.names()
    assert name.startswith("topic-0.")
    assert name.endswith("-delete")
    log = node.manager.create("topic", 0, OTHER_TOPIC_ID)
    assert log.log_end_offset == 0
    node.scheduler.advance(1001)
    assert node.names() == ["topic-0"]


def test_a_deletion_during_a_flush_is_no_failed_sync() -> None:
    node = Node()
    for partition in range(2):
        node.manager.create("topic", partition, TOPIC_ID)
    node.scheduler.turn()
    for partition in range(2):
        node.append("topic", partition)
    flushes = [log.flush() for log in node.manager.logs()]
    node.scheduler.holds_jobs = True
    node.scheduler.turn()
    deleted = node.manager.delete("topic", 0)
    node.scheduler.holds_jobs = False
    node.scheduler.turn()
    assert [f.error() for f in flushes] == [None, None]
    assert deleted.done
    assert deleted.error() is None
    assert node.failed == []
    assert node.manager.logs()[0].error is None


def test_a_deletion_goes_on_after_a_restart() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.manager.delete("topic", 0)
    node.scheduler.turn()
    node.kill()
    assert node.manager.logs() == []
    assert len(node.names()) == 1
    node.scheduler.advance(1001)
    assert node.names() == []


def test_a_long_name_is_cut_for_its_suffix() -> None:
    name = suffixed_name("t" * 249, 12, "u" * 32, "-delete")
    assert len(name) == 255
    parsed = parse_name(name)
    assert parsed is not None
    assert (parsed.partition, parsed.suffix) == (12, "-delete")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topic-0", ("topic", 0, "")),
        ("with.dots_and-dashes-12", ("with.dots_and-dashes", 12, "")),
        ("topic-3.0123abcd-stray", ("topic", 3, "-stray")),
        ("topic-03", None),
        ("a.b-3.0123abcd-future", ("a.b", 3, "-future")),
        ("lost+found", None),
        ("topic", None),
        ("-1", None),
        ("topic-x", None),
        ("topic-delete", None),
        ("topic-99999999999", None),
    ],
)
def test_names(name: str, expected: tuple[str, int, str] | None) -> None:
    assert parse_name(name) == expected


def test_what_is_removed_ends_at_links(tmp_path: Path) -> None:
    """Somebody linked a partition to another disk, and something else into it."""
    real, other, link = tmp_path / "real", tmp_path / "other", tmp_path / "topic-0.1-delete"
    for directory in (real, other, real / "inner"):
        directory.mkdir()
        (directory / "file").write_text("content")
    (real / "elsewhere").symlink_to(other)
    link.symlink_to(real)
    remove_tree(SystemFiles(), str(link))
    assert not link.is_symlink()
    assert list(real.iterdir()) == []
    assert (other / "file").read_text() == "content"

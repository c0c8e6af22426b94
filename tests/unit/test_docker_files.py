"""The container image: what the builder needs is sent to it, and little else."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_that_is_copied_into_the_image_is_sent_and_nothing_else() -> None:
    """Without a .dockerignore the virtual environment and every cache were sent."""
    copied = {
        source
        for line in (ROOT / "docker" / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from=" not in line
        for source in line.split()[1:-1]
    }
    rules = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert rules[0] == "*"
    sent = {rule[1:] for rule in rules if rule.startswith("!")}
    assert sent == copied
    assert all((ROOT / name).exists() for name in sent)

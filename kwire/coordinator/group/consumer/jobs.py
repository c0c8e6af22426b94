"""Work for a consumer group that takes several turns of the loop: its results are soft state."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.coordinator.group.topics import Topics, topic_hash
from kwire.protocol.regex import compile_pattern

#: Names that a slice matches, and fewer where a pattern is large: positions times names.
SLICE_NAMES = 1000
SLICE_COST = 20_000
PATTERNS_KEPT_MAX = 256

TopicNames = tuple[str, ...]


class Matching:
    """The patterns of one group on their way through the topics of one state of the metadata."""

    def __init__(
        self,
        patterns: dict[str, None],
        topics: Topics,
        generation: int,
        matched: dict[str, TopicNames],
    ) -> None:
        self.patterns = patterns
        self.generation = generation
        self.found = {x: matched[x] for x in patterns if x in matched}
        self._matched = matched
        self._steps = self._match([x for x in patterns if x not in matched], topics)

    def step(self) -> bool:
        """One slice; whether there is more to do."""
        return next(self._steps, None) is not None

    def _match(self, patterns: list[str], topics: Topics) -> Iterator[bool]:
        names = list(topics.names()) if patterns else []
        for pattern in patterns:
            matches = compile_pattern(pattern)
            found: list[str] = []
            count = max(1, min(SLICE_NAMES, SLICE_COST // matches.size))
            for start in range(0, len(names), count):
                matching = [name for name in names[start : start + count] if matches(name)]
                for name in matching:
                    topic_hash(name, topics)  # is remembered, and wanted in one go at the end
                found += matching
                if start + count < len(names):
                    yield True
            self.found[pattern] = tuple(sorted(found))
            if len(self._matched) < PATTERNS_KEPT_MAX:
                self._matched[pattern] = self.found[pattern]

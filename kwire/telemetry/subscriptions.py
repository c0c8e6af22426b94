"""Which metrics are asked of a client: subscriptions, whom they match, and the id of what results.

The names are told in the order of Java's `HashSet`, and the id is made of that order: a client
that goes from an Apache Kafka broker to one of kwire finds its subscription unchanged.
Source: KIP-714; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.checksums import crc32c
from kwire.config import stored
from kwire.config.definitions import CLIENT_METRICS
from kwire.protocol.errors import KafkaError
from kwire.protocol.regex import CompiledPattern, compile_pattern

INTERVAL_MS_DEFAULT = 300_000
"""Also the longest interval: Kafka takes the least of this and of the subscriptions'."""
EVERYTHING = "*"
TABLE_MIN = 16


class Subscription(NamedTuple):
    """What one subscription asks for, of clients whose attributes match all patterns."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, CompiledPattern]

    def is_for(self, attributes: Mapping[str, str | None]) -> bool:
        """Whether a client is meant; one that lacks an attribute is not."""
        for name, pattern in self.patterns.items():
            value = attributes.get(name)
            if value is None or not pattern(value):
                return False
        return True


class Asked(NamedTuple):
    """What is asked of one client."""

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


def read_subscriptions(configs: Mapping[str, Mapping[str, str]]) -> list[Subscription]:
    """The subscriptions by name as the metadata has them. A config that cannot be used has its
    default, a pattern that cannot be used matches nobody."""
    return [_subscription(configs[name]) for name in in_hash_order(configs)]


def _subscription(texts: Mapping[str, str]) -> Subscription:
    values = {
        definition.name: stored.read(definition, texts[definition.name], definition.default)
        if definition.name in texts
        else definition.default
        for definition in CLIENT_METRICS.values()
    }
    metrics, interval_ms, matches = values["metrics"], values["interval.ms"], values["match"]
    patterns = {}
    for match in matches if isinstance(matches, list) else ():
        name, _, expression = (part.strip() for part in match.partition("="))
        try:
            patterns[name] = compile_pattern(expression)
        except KafkaError:
            patterns[name] = compile_pattern("$.")
    return Subscription(
        tuple(in_hash_order(metrics if isinstance(metrics, list) else (), is_copy=True)),
        interval_ms if isinstance(interval_ms, int) else INTERVAL_MS_DEFAULT,
        patterns,
    )


def asked_of(
    subscriptions: Iterable[Subscription],
    instance_id: bytes,
    attributes: Mapping[str, str | None],
) -> Asked:
    """What all subscriptions together ask of a client."""
    interval_ms = INTERVAL_MS_DEFAULT
    names: dict[str, None] = {}
    for subscription in subscriptions:
        if subscription.is_for(attributes):
            names.update(dict.fromkeys(subscription.metrics))
            interval_ms = min(interval_ms, subscription.interval_ms)
    metrics = (EVERYTHING,) if EVERYTHING in names else tuple(in_hash_order(names))
    return Asked(_subscription_id(metrics, interval_ms, instance_id), metrics, interval_ms)


def _subscription_id(metrics: tuple[str, ...], interval_ms: int, instance_id: bytes) -> int:
    text = f"[{', '.join(metrics)}]{interval_ms}"
    words = [int.from_bytes(instance_id[at : at + 4], "big") for at in range(0, 16, 4)]
    found = crc32c(text.encode(errors="replace")) ^ words[0] ^ words[1] ^ words[2] ^ words[3]
    return (found ^ 0x80000000) - 0x80000000


def in_hash_order(names: Iterable[str], *, is_copy: bool = False) -> list[str]:
    """Names as a Java `HashSet` that they were added to gives them. One that is made as the copy of
    a list has a larger table where it would be three quarters full."""
    distinct = list(dict.fromkeys(names))
    size = TABLE_MIN
    while len(distinct) + is_copy > size * 3 // 4:
        size *= 2
    return sorted(distinct, key=lambda name: _spread(name) & (size - 1))


def _spread(text: str) -> int:
    """The hash of a Java string, as a table of hashes uses it; the lower half is what counts."""
    found = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        found = (found * 31 + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFFFFFF
    return found ^ found >> 16

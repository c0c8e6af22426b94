"""The `support` column is honest: what acts is read by the code, what is read acts.

A config counts as read when its name is a string in the code outside of kwire/config (or in the
modules of kwire/config that a node runs on), a topic config when a field of LogConfig made from it
is used, a broker config also when the topic or group config it is the default of is read.
"""

from __future__ import annotations

import ast
import functools
import pathlib

from kwire.config.definitions import BROKER, GROUP, TOPIC
from kwire.config.validate import GROUP_BOUNDS

ROOT = pathlib.Path(__file__).resolve().parents[3]
CODE = ROOT / "kwire"
# Parts of kwire/config that use settings rather than describe or check them.
USERS_IN_CONFIG = ("broker_config.py", "dynamic.py", "provider_settings.py")
NO_USERS = (CODE / "cli" / "tables.py", CODE / "log" / "log_config.py")
# Topic config -> what LogConfig makes of it.
DERIVED = {
    "cleanup.policy": ("compacts", "deletes"),
    "message.timestamp.type": ("is_log_append_time",),
    "internal.segment.bytes": ("segment_bytes",),
    "segment.ms": ("roll_ms",),
}
# What bounds the values of group configs.
BOUNDS = frozenset(bound for bounds in GROUP_BOUNDS.values() for bound in bounds)
# Read by names that kwire/config has for them (oauth_settings.py, token_settings.py in
# kwire/security/sasl).
READ_BY_NAME = (
    "sasl.server.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.jwt.retriever.class",
)
# Broker config -> group configs that it is the default of.
DEFAULT_OF_GROUP: dict[str, list[str]] = {}
for _definition in GROUP.values():
    for _synonym, _ in _definition.broker_synonyms:
        DEFAULT_OF_GROUP.setdefault(_synonym, []).append(_definition.name)
# Kinds of groups that are not built: their settings bound what a group config may be, no more.
GROUPS_WITHOUT_EFFECT = ("group.streams.", "streams.", "errors.")
# Read already, without the effect that Kafka's has.
READ_WITHOUT_EFFECT = {}


@functools.cache
def words() -> frozenset[str]:
    """Every string and attribute name of the code that uses settings."""
    found: set[str] = set()
    for path in CODE.rglob("*.py"):
        in_config = path.parent == CODE / "config"
        if path in NO_USERS or CODE / "spark" in path.parents:  # Spark's are settings of clients
            continue
        if in_config and path.name not in USERS_IN_CONFIG:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return frozenset(found)


def is_topic_config_read(name: str) -> bool:
    fields = DERIVED.get(name, (name.replace(".", "_"),))
    return name in words() or any(field in words() for field in fields)


def is_broker_config_read(name: str) -> bool:
    topic_config = BROKER[name].topic_config
    if topic_config is not None and is_topic_config_read(topic_config):
        return True
    if any(group_config in words() for group_config in DEFAULT_OF_GROUP.get(name, ())):
        return True
    return name in words() or name in BOUNDS or name in READ_BY_NAME


def test_every_config_is_marked_and_says_why_it_does_not_act() -> None:
    for table in (BROKER, TOPIC, GROUP):
        for name, definition in table.items():
            assert definition.support in ("acts", "accepted", "refused"), name
            assert bool(definition.note) == (definition.support != "acts"), name


def test_broker_configs_that_act_are_read() -> None:
    acting = [name for name, definition in BROKER.items() if definition.support == "acts"]
    assert [name for name in acting if not is_broker_config_read(name)] == []


def test_topic_configs_that_act_are_read() -> None:
    acting = [name for name, definition in TOPIC.items() if definition.support == "acts"]
    assert [name for name in acting if not is_topic_config_read(name)] == []


def test_broker_configs_that_are_read_act() -> None:
    idle = [name for name, definition in BROKER.items() if definition.support != "acts"]
    read = [name for name in idle if is_broker_config_read(name)]
    assert [
        name
        for name in read
        if name not in READ_WITHOUT_EFFECT and not name.startswith(GROUPS_WITHOUT_EFFECT)
    ] == []


def test_topic_and_group_configs_that_are_read_act() -> None:
    idle_topic = [name for name, definition in TOPIC.items() if definition.support != "acts"]
    assert [name for name in idle_topic if is_topic_config_read(name)] == []
    idle_group = [name for name, definition in GROUP.items() if definition.support != "acts"]
    assert [
        name
        for name in idle_group
        if name in words() and not name.startswith(GROUPS_WITHOUT_EFFECT)
    ] == []


def test_exceptions_are_still_needed() -> None:
    assert [
        name
        for name in READ_WITHOUT_EFFECT
        if BROKER[name].support == "acts" or not is_broker_config_read(name)
    ] == []

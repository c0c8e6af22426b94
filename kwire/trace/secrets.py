"""What is never written into a trace.

SASL tokens, SCRAM salts and keys, HMACs of delegation tokens    fields of these names
what an Envelope holds                                           a whole request of another client
metrics that clients push                                        their size only
values of configs                                                unless Kafka has a config of this
                                                                 name that is no password
"""

from __future__ import annotations

from kwire.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kwire.protocol.structs import SECRETS
from kwire.trace.json_values import JsonObject

HIDDEN = "[hidden]"
HIDDEN_FIELDS = frozenset(
    (*SECRETS, "request_data", "response_data", "request_principal", "metrics")
)
"""Names of fields of type bytes; `metrics` is that of PushTelemetry."""
CONFIG_MESSAGES = frozenset(
    f"{api}{kind}"
    for api in ("AlterConfigs", "IncrementalAlterConfigs", "CreateTopics", "DescribeConfigs")
    for kind in ("Request", "Response")
)
"""Messages in which a struct with `name` and `value` is a config."""


def hide_config(entry: JsonObject) -> None:
    """Hide the value of a config that may be secret, in place."""
    if entry.get("value") is not None and not _is_public(entry):
        entry["value"] = HIDDEN


def _is_public(entry: JsonObject) -> bool:
    name = entry.get("name")
    if not isinstance(name, str) or entry.get("is_sensitive"):
        return False
    for table in (TOPIC, BROKER, GROUP, CLIENT_METRICS):
        if name in table:
            return not table[name].sensitive
    return name.startswith("org.apache.") or name == "root"  # levels of loggers

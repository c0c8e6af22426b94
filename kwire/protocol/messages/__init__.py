"""Every message of Kafka 4.4 as a class by its Kafka name, loaded when it is first named.

    from kwire.protocol import messages as m
    request = m.FetchRequest(max_wait_ms=500, topics=[m.FetchRequest.FetchTopic(...)])
    body = request.encode(13)
    request = m.FetchRequest.decode(body, 13)

Fields have Kafka's names in snake case and the schema's defaults when left out. An array is a
list, a uuid 16 bytes, null is None, `records` a buffer or a list of buffers (decoded: a view).
The classes of structs are attributes of their message's class. The modules below this one are
generated from the schema (`make messages`), a module per file of it; a type checker sees all
messages by `index`, which is never imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kwire.protocol import schema
from kwire.protocol.api_keys import API_KEYS

if TYPE_CHECKING:
    from kwire.protocol.messages.index import *  # noqa: F403

_tables: dict[tuple[str, str], dict[int, str]] = {}
_requests: dict[int, Any] = {}
_responses: dict[int, Any] = {}
_metadata_records: dict[tuple[str, int], Any] = {}


def __getattr__(name: str) -> Any:
    if not name[:1].isupper():
        raise AttributeError(name)
    try:
        module = schema.file_of(name).replace("/", ".")
        cls = getattr(import_module(f"{__name__}.{module}"), name)
    except (AttributeError, KeyError, ModuleNotFoundError):
        raise AttributeError(f"Kafka 4.4 has no message {name}") from None
    globals()[name] = cls
    return cls


def by_name(name: str) -> Any:
    """The class of a message by its Kafka name; AttributeError when there is none."""
    return globals().get(name) or __getattr__(name)


def request_class(api_key: int) -> Any:
    """The request of an API; KeyError for a key that has none."""
    cls = _requests.get(api_key)
    if cls is None:
        cls = _requests[api_key] = by_name(f"{API_KEYS[api_key].name}Request")
    return cls


def response_class(api_key: int) -> Any:
    """The response of an API; KeyError for a key that has none."""
    cls = _responses.get(api_key)
    if cls is None:
        cls = _responses[api_key] = by_name(f"{API_KEYS[api_key].name}Response")
    return cls


def metadata_record_class(record_type: int, module: str = "metadata") -> Any:
    """The metadata record of a type; `storage` is the remote-log metadata. KeyError for none."""
    cls = _metadata_records.get((module, record_type))
    if cls is None:
        cls = by_name(_table(module, "metadata")[record_type])
        _metadata_records[module, record_type] = cls
    return cls


def coordinator_key_class(module: str, record_type: int) -> Any:
    """The key of a coordinator record, module as `group-coordinator`; KeyError for none."""
    return by_name(_table(module, "coordinator-key")[record_type])


def coordinator_value_class(module: str, record_type: int) -> Any:
    """The value of a coordinator record; KeyError for an unknown module or type."""
    return by_name(_table(module, "coordinator-value")[record_type])


def _table(module: str, kind: str) -> dict[int, str]:
    """Names of the messages of a kind by their type."""
    table = _tables.get((module, kind))
    if table is None:
        names = schema.names_in(module.replace("-", "_"))
        table = {key: name for name, of_kind, key in names if of_kind == kind and key is not None}
        _tables[module, kind] = table
    return table

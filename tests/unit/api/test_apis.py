"""Every API has a handler, or is listed as not built."""

from __future__ import annotations

import importlib

import pytest

from kwire.protocol.api_keys import API_KEYS, UNBUILT
from kwire.server.dispatch import API_PACKAGE, has_module, module_name

OFFERED = [
    info for key, info in API_KEYS.items() if "broker" in info.listeners and key not in UNBUILT
]


def test_the_list_of_apis_that_are_not_built_is_true() -> None:
    without = {
        key
        for key, info in API_KEYS.items()
        if "broker" in info.listeners and not info.forwardable and not has_module(info.name)
    }
    assert without == {key for key in UNBUILT if "broker" in API_KEYS[key].listeners}


@pytest.mark.parametrize("info", OFFERED, ids=lambda info: info.name)
def test_handlers_have_the_versions_of_kafka(info: object) -> None:
    name = info.name  # type: ignore[attr-defined]
    if not has_module(name):
        return  # forwarded as it is, at every version
    module = importlib.import_module(f"{API_PACKAGE}.{module_name(name)}")
    assert (info.min, info.max) == module.VERSIONS  # type: ignore[attr-defined]
    assert module.__doc__
    assert callable(module.handle)

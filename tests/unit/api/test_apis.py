"""Every API has a handler, or is listed as not built."""

from __future__ import annotations

import importlib

import pytest

from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiInfo
from kwire.server.dispatch import API_PACKAGE, has_module, is_built, module_name

OFFERED = [
    info for key, info in API_KEYS.items() if "broker" in info.listeners and key not in UNBUILT
]


def test_the_list_of_apis_that_are_not_built_is_true() -> None:
    without = {
        key for key, info in API_KEYS.items() if "broker" in info.listeners and not is_built(info)
    }
    assert without == {key for key in UNBUILT if "broker" in API_KEYS[key].listeners}


@pytest.mark.parametrize("info", OFFERED, ids=lambda info: info.name)
def test_handlers_have_the_versions_of_kafka(info: ApiInfo) -> None:
    name = info.name
    if not has_module(name):
        from kwire.api import forwarded

        assert info.forwardable  # as it is, at every version
        assert forwarded.__doc__
        assert f"\n{name} " in forwarded.__doc__
        return
    module = importlib.import_module(f"{API_PACKAGE}.{module_name(name)}")
    assert (info.min, info.max) == module.VERSIONS
    assert module.__doc__
    assert callable(module.handle)

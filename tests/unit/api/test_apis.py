"""Every API has a handler, or is listed as not built."""

from __future__ import annotations

import ast
import importlib
import pathlib

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


CONSTANTS = ("VERSIONS", "WAITS_FOR_WRITES", "TAKES_TURNS")
FUNCTIONS = ("handle", "error_response", "denied_response")


@pytest.mark.parametrize("info", OFFERED, ids=lambda info: info.name)
def test_handlers_have_one_shape(info: ApiInfo) -> None:
    """What every module has comes first, always in the same order (`kwire/api/__init__.py`)."""
    if not has_module(info.name):
        return
    module = importlib.import_module(f"{API_PACKAGE}.{module_name(info.name)}")
    names: dict[str, list[str]] = {"constants": [], "functions": []}
    for node in ast.parse(pathlib.Path(str(module.__file__)).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names["functions"].append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names["constants"].append(ast.unparse(target))
    for found, common in ((names["constants"], CONSTANTS), (names["functions"], FUNCTIONS)):
        expected = [name for name in common if name in found]
        assert found[: len(expected)] == expected
    assert "AUTHORIZATION" in names["constants"]

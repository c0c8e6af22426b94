"""The text of a schema in another form: the parameter `format`."""

from __future__ import annotations

from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.version import Version

AS_IT_IS = ("", "default")


def formatted(registry: Registry, version: Version, form: str) -> str:
    """RegistryError 422 for a form that there is not."""
    if form.strip().lower() in AS_IT_IS:
        return version.schema
    raise RegistryError(
        Code.UNPROCESSABLE,
        f"Invalid value {form[:100]!r} for parameter format: expected default",
    )

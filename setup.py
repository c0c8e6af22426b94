"""Builds the record kernel as extension modules where there is a compiler; without one kwire
runs the same sources as they are (everything else about the project is in pyproject.toml)."""

from __future__ import annotations

from setuptools import Extension, setup

KERNELS = tuple(
    f"kwire/protocol/records/{name}.py"
    for name in ("kernel", "compaction_kernel", "scan_kernel", "row_kernel", "envelope_kernel")
)


def extensions() -> list[Extension]:
    """The kernels, optional: a failure to compile one is a warning, not a failed installation."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sources = [Extension(path[:-3].replace("/", "."), [path]) for path in KERNELS]
    modules: list[Extension] = cythonize(sources, build_dir="build/cython", quiet=True)
    for module in modules:
        module.optional = True
    return modules


setup(ext_modules=extensions())

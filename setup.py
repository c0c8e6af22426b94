"""Builds the record kernel as extension modules where there is a compiler; without one kwire
runs the same sources as they are (everything else about the project is in pyproject.toml)."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = tuple(
    f"kwire/protocol/records/{name}.py"
    for name in ("kernel", "compaction_kernel", "row_kernel", "envelope_kernel")
)
CACHE = os.path.join("build", "kernels")


class CachedBuild(build_ext):
    """Compiles a kernel once: what came out is kept in `build/kernels`, by all that went in.

    Each installation builds in a folder of its own, so that an editable one, a plain one and one
    with other extras would compile the same files again and again, for minutes each time.
    """

    def build_extension(self, ext: Extension) -> None:
        target = self.get_ext_fullpath(ext.name)
        kept = os.path.join(CACHE, f"{ext.name}-{key_of(ext)}.so")
        if os.path.exists(kept):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(kept, target)
            return
        super().build_extension(ext)
        if os.path.exists(target):
            os.makedirs(CACHE, exist_ok=True)
            draft = f"{kept}.{os.getpid()}"
            shutil.copy(target, draft)
            os.replace(draft, kept)


def key_of(ext: Extension) -> str:
    """A hash of a kernel's source, of how this file has it compiled, and of what compiles it."""
    told = hashlib.sha256()
    for source in (ext.name.replace(".", "/") + ".py", __file__):
        with open(source, "rb") as file:
            told.update(file.read())
    with_what = [sys.version, sysconfig.get_platform(), sysconfig.get_config_var("EXT_SUFFIX")]
    with_what += [os.environ.get(name) for name in ("CC", "CFLAGS", "LDFLAGS")]
    try:
        from Cython import __version__

        with_what.append(__version__)
    except ImportError:
        pass
    told.update(repr(with_what).encode())
    return told.hexdigest()[:32]


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


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": CachedBuild})

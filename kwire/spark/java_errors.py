"""Exceptions of Java as Py4J brings them, and whether Spark has a class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.spark.usage import UsageError

CAUSES_MAX = 10


def causes_of(error: BaseException) -> Iterator[tuple[str, str]]:
    """(class without its package, message in one line) of a Java exception and what caused it."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(CAUSES_MAX):
        if java is None:
            return
        name = str(java.getClass().getName()).rpartition(".")[2]
        yield name, " ".join(str(java.getMessage() or "").split())
        java = java.getCause()


def java_class(error: BaseException) -> str:
    """The class of the Java exception behind one of Python's; "" without one."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        return str(java.getClass().getName()) if java is not None else ""
    except Exception:  # the JVM is gone
        return ""


def java_message(error: BaseException) -> str:
    """The first line of what a Java exception says, without the name of its condition."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        text = str(java.getMessage()) if java is not None else str(error)
    except Exception:  # the JVM is gone
        text = str(error)
    line = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    if line.startswith("["):
        line = line.partition("] ")[2] or line
    return line.partition(" SQLSTATE: ")[0].rstrip()[:400]


def has_class(jvm: Any, loader: Any, name: str) -> bool:
    """Whether a class is there; UsageError where it is and cannot be loaded."""
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Exception as error:
        causes = list(causes_of(error))
        if not causes:  # not of Java: the JVM is gone, say
            raise
        kind, text = causes[0]
        if kind == "ClassNotFoundException":
            return False
        raise UsageError(f"{name} cannot be loaded: {kind}: {text}"[:400]) from None
    return True

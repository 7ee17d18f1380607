"""Finds retrievers by name, here or in other packages, and makes them."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast, get_args

from parley.errors import UsageError, describe_exception, unknown_name
from parley.memory import Neighbour, OwnExamples, Retriever, Search, retrievers

GROUP = "parley.retrievers"
PAGE = "docs/evolve.md shows one"


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
        raise UsageError(f"retriever {family}/{rest}: {family} takes no name; write {family}")


def load_retriever(name: str, entries: list[EntryPoint], taken: bool) -> Retriever:
    """The retriever of another package; `taken`: Parley has a retriever of that name itself."""
    packages = ", ".join(sorted({entry.dist.name if entry.dist else "?" for entry in entries}))
    if taken:
        why = "Parley has a retriever of that name itself"
        raise broken_retriever(name, packages, why, "give it another name there")
    if len({entry.value for entry in entries}) > 1:
        raise broken_retriever(name, packages, "several packages bring it", "uninstall all but one")
    try:
        found = entries[0].load()(name)
    except UsageError:  # the package says itself what is wrong
        raise
    except Exception as wrong:  # whatever code of somebody else's does
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
        return "makes an object without `version: str`, which changes whenever its results may"
    if getattr(found, "own_examples", "fill") not in get_args(OwnExamples):
        return f"makes an object whose `own_examples` is none of {', '.join(get_args(OwnExamples))}"
    if not callable(getattr(found, "search", None)):
        return "makes an object without the method `search(self, wanted: Search)`"
    return ""


class OtherRetriever:
    """A retriever of another package. Its results are checked."""

    def __init__(self, name: str, packages: str, found: Any) -> None:
        self.name, self.version = name, f"{packages} {found.version}"
        self.own_examples: OwnExamples = getattr(found, "own_examples", "fill")
        self._packages, self._found = packages, found

    def prepare(self) -> None:
        if callable(prepare := getattr(self._found, "prepare", None)):
            self._call(prepare)

    def search(self, wanted: Search) -> list[list[Neighbour]]:
        try:
            rows = [
                [Neighbour(int(stored), float(distance)) for stored, distance in row]
                for row in self._call(self._found.search, wanted)
            ]
        except (TypeError, ValueError) as wrong:
            raise self._fault(f"its search gives no rows of (stored, distance): {wrong}") from wrong
        if len(rows) != len(wanted.queries):
            raise self._fault(f"it gives {len(rows)} rows for {len(wanted.queries)} queries")
        for number, row in enumerate(rows):
            if why := describe_bad_row(row, wanted, number):
                raise self._fault(f"row {number} {why}")
        return rows

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except UsageError:
            raise
        except Exception as wrong:  # whatever code of somebody else's does
            raise self._fault(describe_exception(wrong)) from wrong

    def _fault(self, why: str) -> UsageError:
        return broken_retriever(self.name, self._packages, why, "fix the package or uninstall it")


def describe_bad_row(row: list[Neighbour], wanted: Search, number: int) -> str:
    """What is wrong with the neighbours of one query; empty if nothing is."""
    places = [each.stored for each in row]
    if len(places) > wanted.k:
        return f"has {len(places)} neighbours where at most {wanted.k} are wanted"
    if len(set(places)) < len(places):
        return "has a stored text twice"
    if any(not 0 <= place < len(wanted.stored) for place in places):
        return f"has a place outside of the {len(wanted.stored)} stored texts"
    distances = [each.distance for each in row]
    if distances != sorted(distances) or any(each != each for each in distances):
        return "is not in the order of its distances"
    barred = wanted.barred(slice(number, number + 1))
    if barred is not None and barred[0][places].any():
        return "has a stored text that is masked or outside of the scope"
    return ""

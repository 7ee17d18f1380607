"""Checks what a retriever returns: a plug-in may have bugs, and a run must not record their
results."""

from __future__ import annotations

import math
from collections.abc import Sequence

from parley.errors import UsageError
from parley.memory import Neighbour, Search
from parley.tables import plural


def check_found(name: str, wanted: Search, found: Sequence[Sequence[Neighbour]]) -> None:
    """Raise an error if results break the contract of `Retriever.search`."""
    if len(found) != len(wanted.queries):
        results, queries = (
            plural(len(found), "result"),
            plural(len(wanted.queries), "query", "queries"),
        )
        refuse(name, f"{results} for {queries}")
    for query, near in enumerate(found):
        if len(near) > wanted.k:
            refuse(name, f"{len(near):,} texts for one query, more than k={wanted.k}")
        if len({each.stored for each in near}) < len(near):
            refuse(name, "the same text twice for one query")
        for each in near:
            if not 0 <= each.stored < len(wanted.stored):
                stored = plural(len(wanted.stored), "stored text")
                refuse(name, f"text number {each.stored}, but there are only {stored}, from 0")
            if not math.isfinite(each.distance):
                refuse(name, f"a distance of {each.distance}")
            if is_barred(wanted, query, each.stored):
                refuse(name, "a text that `mask` or `scope` excludes")
        distances = [each.distance for each in near]
        if distances != sorted(distances):
            refuse(name, "texts that are not sorted by distance")


def is_barred(wanted: Search, query: int, stored: int) -> bool:
    """Whether a query may not find a stored text."""
    if wanted.mask and wanted.query_items[query] == wanted.stored_items[stored]:
        return True
    if wanted.scope == "all":
        return False
    same = wanted.query_subjects[query] == wanted.stored_subjects[stored]
    return same == (wanted.scope == "other")


def refuse(name: str, what: str) -> None:
    raise UsageError(
        f"retriever {name} returned {what}. This is a bug in the retriever: fix it and resume the "
        "run, or start a new run with another retriever"
    )

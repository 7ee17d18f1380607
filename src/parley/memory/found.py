"""Checks what a retriever has found: a plugin may be wrong, and a run must not record it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from parley.errors import UsageError
from parley.memory import Neighbour, Search


def check_found(name: str, wanted: Search, found: Sequence[Sequence[Neighbour]]) -> None:
    """Refuse results that a search cannot have."""
    if len(found) != len(wanted.queries):
        refuse(name, f"{len(found):,} results for {len(wanted.queries):,} queries")
    for query, near in enumerate(found):
        if len(near) > wanted.k:
            refuse(name, f"{len(near):,} texts for one query, and {wanted.k:,} were wanted")
        if len({each.stored for each in near}) < len(near):
            refuse(name, "the same text twice for one query")
        for each in near:
            if not 0 <= each.stored < len(wanted.stored):
                refuse(name, f"text {each.stored}, and there are {len(wanted.stored):,} from 0 on")
            if not math.isfinite(each.distance):
                refuse(name, f"a text at the distance {each.distance}")
            if is_barred(wanted, query, each.stored):
                refuse(name, "a text that mask or scope leaves out")


def is_barred(wanted: Search, query: int, stored: int) -> bool:
    """Whether a query may not find a stored text."""
    if wanted.mask and wanted.query_items[query] == wanted.stored_items[stored]:
        return True
    if wanted.scope == "all":
        return False
    same = wanted.query_subjects[query] == wanted.stored_subjects[stored]
    return same == (wanted.scope == "other")


def refuse(name: str, what: str) -> None:
    """Say what a retriever found that it cannot have found."""
    raise UsageError(
        f"retriever {name} found {what}: this is a fault of the retriever; use another one, or "
        "mend it and resume the run"
    )

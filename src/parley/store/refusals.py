"""The refusals that every store words in the same way."""

from __future__ import annotations

from typing import NoReturn

from parley.errors import NotShared, StoreError, UsageError
from parley.store.owner import Owner

TAKEN_OVER = "another process has taken over this run, so this process stops"
ALREADY_ENDED = "this match has already ended"


def refuse_played(place: str, owner: Owner) -> NoReturn:
    """Refuse to play a run that another process plays."""
    raise StoreError(
        f"{place} is already being played by {owner}: wait until that process ends, or stop it"
    )


def refuse_shared(place: str, id: str) -> NoReturn:
    """Refuse to play a run alone that workers play."""
    raise StoreError(
        f"{place} is being played by workers: wait until it is over, stop it (`parley stop {id}`), "
        f"or help to play it (`parley worker {id}`)"
    )


def refuse_to_join(place: str, id: str) -> NoReturn:
    """Refuse workers for a run that is not open for them."""
    raise NotShared(
        f"{place} is not open for workers: open it with `parley resume {id} --workers N`"
    )


def refuse_second(place: str) -> NoReturn:
    """Refuse to create a run where there is one."""
    raise StoreError(f"{place} already exists: choose another name, or delete that run") from None


def refuse_running(id: str) -> NoReturn:
    """Refuse to delete a run that is being played."""
    raise UsageError(
        f"{id} is still running: stop it first (Ctrl-C in its terminal, or `parley stop {id}` if "
        "workers play it)"
    )


def refuse_imported(id: str, store: str) -> NoReturn:
    """Refuse to import a run that the store has already."""
    raise UsageError(
        f"{store} already has the run {id}: delete it first (`parley rm {id} --store {store}`), or "
        "import into another store"
    )

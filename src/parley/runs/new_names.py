"""Names of new runs."""

from __future__ import annotations

import os
import time
from collections.abc import Container
from itertools import count

from parley.errors import UsageError
from parley.store import Store
from parley.store.config import Config
from parley.store.types import RunInfo


def new_id(task: str) -> str:
    """A new unique name for a run; names sort by time."""
    return f"{task}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"


def refuse_taken_name(config: Config, store: Store) -> None:
    """Raise an error if another run of the store has the same name. Runs that only screen items may
    share one."""
    if not config.name or config.screening is not None:
        return
    names = names_in(store)
    if config.name in names:
        free = find_free_name(config.name, names)
        raise UsageError(
            f"a run named {config.name!r} already exists ({names[config.name]}): choose another "
            f"name, like {free}, or delete that run (`parley rm {names[config.name]}`)"
        )


def names_in(store: Store) -> dict[str, str]:
    """The names of runs that no other run may have, with the ids of these runs."""
    infos = [run for run in store.runs() if isinstance(run, RunInfo)]
    return {
        run.config.name: run.id for run in infos if run.config.name and run.config.screening is None
    }


def find_free_name(name: str, taken: Container[str]) -> str:
    """The name itself, or with the first number that makes it a new one."""
    if name not in taken:
        return name
    return next(free for n in count(2) if (free := f"{name}-{n}") not in taken)

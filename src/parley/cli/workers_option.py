"""The option `--workers`: how a run is played by other processes."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from parley.cli.invocation import ALLOWING, find_flags
from parley.runs.run_context import PlayNew, Resume


class OnWorkers(NamedTuple):
    """How many workers are started, and how they play new and stopped runs."""

    workers: int
    play_new: PlayNew
    resume: Resume


def choose_workers(
    text: str | None, store: str | None, task: str | None = None, unsafe: bool = False
) -> OnWorkers | None:
    """The workers that the user asks for, if any; refuses a store that cannot be shared."""
    if text is None:
        return None
    from parley.runs.shared_play import parse_workers, play_new_on_workers, resume_on_workers
    from parley.store import open_store
    from parley.store.shared_runs import require_shared

    require_shared(open_store(store))
    words = find_flags(*ALLOWING)
    words += ["--task", task] if task else []
    words += ["--unsafe-run-code-without-isolation"] if unsafe else []
    setup = parse_workers(text, words)
    return OnWorkers(
        setup.workers,
        partial(play_new_on_workers, setup=setup),
        partial(resume_on_workers, setup=setup),
    )

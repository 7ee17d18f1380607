"""Finds a run of a store by what a user types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from parley.errors import UsageError, unknown_name
from parley.store.address_forms import RUN_FORMS, refuse_misspelled
from parley.store.types import RunInfo, RunRef, UnreadableRun

SHOWN = 10  # runs that an error lists


def choose_run(
    text: str,
    found: Sequence[RunRef],
    read_runs: Callable[[], Iterable[RunInfo | UnreadableRun]],
    place: object,
) -> RunRef:
    """The run with this id, a unique beginning or end of its id, or this name, or the last one.
    `found`: all runs, newest first; `read_runs` reads them."""
    refs = {ref.id: ref for ref in found}
    if text == "last" and refs:
        return next(iter(refs.values()))
    if text in refs:
        return refs[text]
    names = {
        run.ref.id: run.config.name
        for run in read_runs()
        if isinstance(run, RunInfo) and run.config.name
    }
    fitting = (
        [id for id, name in names.items() if name == text]
        or [id for id in refs if id.startswith(text)]
        or [id for id in refs if id.endswith(text)]
    )
    if len(fitting) == 1:
        return refs[fitting[0]]
    if fitting:
        raise UsageError(
            f"{text!r} matches several runs ({', '.join(sorted(fitting))}): give more of the id"
        )
    refuse_misspelled(text, RUN_FORMS)
    listed = [f"{id} ({names[id]})" if id in names else id for id in refs]
    more = len(listed) - SHOWN
    wanted = f"the newest are: {', '.join(listed[:SHOWN])}" if listed else "the store has no runs"
    wanted += f"; {more} more are listed by `parley ls`" if more > 0 else ""
    raise unknown_name(f"run (store {place}):", text, [*refs, *names.values()], wanted)

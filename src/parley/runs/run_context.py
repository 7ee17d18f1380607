"""What follows a run while it is played, and what may stop it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from parley.config.prepare import Prepared
from parley.rules.task import Task
from parley.runs.progress import Progress, StopSignal
from parley.runs.run_outcome import RunOutcome
from parley.store import Store
from parley.store.types import RunRef, StoredPart

if TYPE_CHECKING:
    from parley.participants._desk import Desk


class Summary(NamedTuple):
    """The result of a run that has ended, the parts of its task to store with it, and notices about
    those that failed."""

    result: Any
    parts: Sequence[StoredPart]
    notices: Sequence[str]


# It never raises: an error in an analysis does not touch what was played.
Summarise: TypeAlias = Callable[[RunRef, type[Task]], Summary]


@dataclass(frozen=True)
class RunContext:
    """Who is told the progress of a run, and what may stop it. `desk`: of people in a browser."""

    progress: Progress = field(default_factory=Progress)
    stop_signal: StopSignal = field(default_factory=StopSignal)
    summarise: Summarise | None = None
    desk: Desk | None = None


# ways to play: a run that is ready, any new run, and one that has stopped
Play: TypeAlias = Callable[[RunContext], Coroutine[Any, Any, RunOutcome]]
PlayNew: TypeAlias = Callable[[Prepared, Store, RunContext], Coroutine[Any, Any, RunOutcome]]
Resume: TypeAlias = Callable[[Prepared, RunRef, RunContext], Coroutine[Any, Any, RunOutcome]]

"""Runs that several workers play: what a store has to offer for them.

A worker is a process with a lease. It leases matches, plays them, and records them like a process
that plays a run alone. The store is the only thing that workers share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import orjson

from parley.errors import UsageError
from parley.plans import MatchSpec
from parley.store import Store
from parley.store.config import Config
from parley.store.journal import Journal
from parley.store.shared_limits import Grants
from parley.store.types import NewRun, RunRef, StoredPart

T = TypeVar("T")

LEASE = 15.0  # seconds for which a worker counts as alive after its last sign of life
MOST_RETURNS = 2  # how often a match goes back because a model did not answer; then it fails

EndState: TypeAlias = Literal["done", "stopped", "failed"]
# "sealed": the run has ended by this call; "over": by another one, or it does not end; "busy": a
# worker is left
SealResult: TypeAlias = Literal["sealed", "over", "busy"]


@dataclass(frozen=True)
class RunEnd:
    """How a run ends, or why it stops. The first worker or user to say so decides; then all
    workers finish their calls and leave."""

    state: EndState
    status: str | None
    reason: str
    flag: str = ""  # the option whose limit was reached
    minimum_to_resume: str = ""  # the smallest value of that option with which a run can go on
    advice: str = ""  # what to do before you resume

    def encoded(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def decoded(cls, text: str) -> RunEnd:
        return cls(**orjson.loads(text))


class SpentBefore(NamedTuple):
    """What a run may have spent before workers began to play it."""

    calls: int = 0
    usd: float | None = None


class WorkerState(NamedTuple):
    """What a worker learns with each sign of life."""

    end: RunEnd | None  # how the run ends, once that is decided
    is_over: bool  # the run has ended, or is no longer shared
    died: Sequence[str]  # workers that were declared dead just now


class SharedProgress(NamedTuple):
    """How far the workers of a run are."""

    state: str  # running, done, stopped or failed
    status: str | None
    reason: str
    end: RunEnd | None
    planned: int
    played: int
    failed: int
    calls: int
    playing: int
    alive: int  # workers
    plan_line: str  # what the plan says about its progress


class WorkerFacts(NamedTuple):
    """What a worker says about itself when it joins."""

    host: str
    pid: int
    version: str


class WorkerSession(Protocol):
    """A worker that takes part in a run."""

    number: int
    journal: Journal
    grants: Grants
    spent_before: SpentBefore

    @property
    def was_replaced(self) -> bool:
        """Whether this worker was declared dead: it can record nothing more."""

    async def heartbeat(self, playing: int) -> WorkerState:
        """Renew the lease, and free the matches of workers whose lease has lapsed. `playing`: how
        many matches this worker plays."""

    async def lease(self, most: int) -> list[MatchSpec]:
        """Lease matches to play them; the journal then has what is on record for them."""

    async def first_of_stage(self, stage: int) -> int:
        """The number of the first match of a stage."""

    async def take_plan(self) -> bool:
        """Become the worker that plans, unless another one is."""

    async def set_plan_line(self, text: str) -> None:
        """Store what the plan says about its progress."""

    def have_ended(self, first: int, last: int) -> bool:
        """Whether all matches numbered `first` to `last` have ended. Not for the event loop."""

    async def last_match(self) -> int:
        """The highest number of a planned match. All lower ones are planned as well."""

    async def failed_matches(self) -> Mapping[str, int]:
        """If no match can be played: how many have failed, by reason."""

    async def end_run(self, end: RunEnd) -> None:
        """Decide how the run ends, unless that is decided."""

    async def leave(self) -> None:
        """Give all matches back and end the lease."""

    async def seal(self, prices: Sequence[Mapping[str, Any]] | None) -> SealResult:
        """Set the state and the digest of a run that ends, if no other worker is left."""

    def wait_for_store(self, work: Callable[[], T]) -> T:
        """Do some work that reads or writes the store, again and again while the store is away. Not
        for the event loop."""

    def give_up(self) -> None:
        """Stop waiting for a store that does not answer."""

    async def close(self) -> None: ...


class SharedRuns(Protocol):
    """A store whose runs can be played by several workers."""

    async def create_shared(self, run: NewRun) -> RunRef:
        """Create a run for workers."""

    def share(
        self, ref: RunRef, config: Config, before: Callable[[], SpentBefore]
    ) -> Literal["shared", "joined"]:
        """Open a run that has stopped for workers. "joined": workers play it already. `before`
        tells what was spent so far; it is called when nobody plays the run."""

    def shared_progress(self, ref: RunRef) -> SharedProgress: ...

    def ask_to_end(self, ref: RunRef, end: RunEnd) -> None:
        """Let all workers of a run finish their calls and leave."""

    def seal_shared(
        self, ref: RunRef, prices: Sequence[Mapping[str, Any]] | None = None
    ) -> SealResult:
        """Set the state and the digest of a run that ends, if no worker is left."""

    def keep_parts(self, ref: RunRef, parts: Sequence[StoredPart]) -> None:
        """Store the results of analyses of a run that has ended, replacing earlier ones."""

    def open_shared_runs(self) -> list[RunRef]:
        """The runs that workers can play now, or whose end nobody is left to set on record; the
        oldest first."""

    def launch_words(self) -> tuple[list[str], dict[str, str]]:
        """How another process reaches this store: words of a command, and secrets for its
        environment."""

    async def join(
        self, ref: RunRef, facts: WorkerFacts, notify: Callable[[str], None]
    ) -> WorkerSession:
        """Take part in a run as a new worker."""


def has_shared_runs(store: Store) -> bool:
    """Whether the runs of a store can be played by several workers."""
    return hasattr(store, "create_shared")


def require_shared(store: Store) -> SharedRuns:
    """The store, if its runs can be played by several workers."""
    if not has_shared_runs(store):
        raise UsageError(
            f"workers need a PostgreSQL store, because the runs in {store.name} are files of one "
            "machine: give --store postgresql://USER@HOST/DATABASE or set PARLEY_STORE. `parley "
            "import` brings a run of this folder there"
        )
    shared: Any = store
    found: SharedRuns = shared
    return found

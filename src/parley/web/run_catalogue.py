"""The runs of a store as the first page lists them: read once, and again when they change."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from parley.config.prices import PriceList
from parley.errors import StoreError
from parley.money import Total, cost_rows, prices_of, total_cost
from parley.results.part import style_of
from parley.results.parts.results import ShownScore, list_scores
from parley.results.scores import RunScores
from parley.store import Store
from parley.store.types import ENDED, RunInfo, RunRef
from parley.tables import shorten
from parley.web.background import Background

PAGE = 50  # runs on a page
MOST_RUNS = 10_000  # that are kept in memory
MOST_MATCHES = 2_000  # of a run whose intervals are computed for the list
PATIENCE = 0.8  # seconds of a search among runs that have not been read yet
STATES = ("running", "done", "stopped", "failed")


@dataclass(frozen=True)
class ListedRun:
    """What the list shows of a run without reading its matches."""

    ref: RunRef
    id: str
    created: float
    task: str
    name: str
    contestants: tuple[str, ...]
    models: tuple[str, ...]  # aliases and model names of all participants
    state: str
    reason: str
    planned: int
    budget_usd: float | None
    unreadable: str = ""  # why the run cannot be read

    def fits(self, words: Sequence[str], state: str) -> bool:
        """Whether every word occurs in its task, name, id or models."""
        if state and self.state != state:
            return False
        facts = (self.task, self.task.replace("_", " "), self.name, self.id, self.ref.id)
        text = "\n".join((*facts, *self.models)).casefold()
        return all(word in text for word in words)


@dataclass(frozen=True)
class RunSummary:
    """What the list shows of the matches of a run."""

    done: int
    failed: int
    cost: Total
    better: str  # higher or lower
    metric: str
    # of the models with a mean, the best first; None: the run is too large for the list
    scores: tuple[ShownScore, ...] | None


@dataclass(frozen=True)
class FoundRuns:
    """One page of runs."""

    runs: tuple[ListedRun, ...]
    next: str  # the id after which the next page begins; empty on the last page
    looked_at: int = 0  # the search took long and ended early, after this many runs


class RunCatalogue:
    """The runs of a store, cached by their stamps. It may be used from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading = threading.Lock()
        self._known: dict[str, tuple[str, ListedRun]] = {}
        self._readings = Background[None](1)
        self.summaries = Background[RunSummary](MOST_RUNS)
        self._look_up = PriceList().find

    def search(self, words: Sequence[str], state: str, after: str) -> FoundRuns:
        """A page of the runs that fit, newest first, from after this run on."""
        refs = self._store.refs()
        self._forget_all_but(refs)
        places = {ref.id: place for place, ref in enumerate(refs)}
        found: list[ListedRun] = []
        ends = time.monotonic() + PATIENCE
        for at, ref in enumerate(refs[places.get(after, -1) + 1 :], 1):
            run = self.read(ref)
            if run is not None and not run.unreadable and run.fits(words, state):
                found.append(run)
            late = time.monotonic() > ends
            if late or len(found) > PAGE:
                self._readings.start("all", str(len(refs)), lambda: self._read_rest(refs))
                if len(found) > PAGE:
                    return FoundRuns(tuple(found[:PAGE]), found[PAGE - 1].ref.id)
                return FoundRuns(tuple(found), ref.id, at)
        return FoundRuns(tuple(found), "")

    def unreadable(self) -> list[ListedRun]:
        """The files that cannot be read, as far as they have been tried."""
        with self._reading:
            return [run for _, run in self._known.values() if run.unreadable]

    def _forget_all_but(self, refs: Sequence[RunRef]) -> None:
        there = {ref.location for ref in refs}
        with self._reading:
            self._known = {at: run for at, run in self._known.items() if at in there}

    def _read_rest(self, refs: Sequence[RunRef]) -> None:
        """Read all runs, so that a search finds them quickly."""
        for ref in refs:
            self.read(ref)

    def read(self, ref: RunRef) -> ListedRun | None:
        """A run as it is now; None if it has vanished."""
        stamp = self._store.stamp(ref)
        if not stamp:
            return None
        with self._reading:  # so that two threads do not read the same run
            known = self._known.get(ref.location)
            if known is not None and known[0] == stamp:
                return known[1]
            run = read_listed(self._store, ref)
            # a running one is read again: it ends without a change if its process is killed
            if run.state != "running" and len(self._known) < MOST_RUNS:
                self._known[ref.location] = stamp, run
        return run

    def start_summary(self, ref: RunRef) -> str:
        """Summarise a run soon; returns the stamp of its state."""
        stamp = self._store.stamp(ref)
        self.summaries.start(ref.location, stamp, lambda: self._summarise(ref))
        return stamp

    def _summarise(self, ref: RunRef) -> RunSummary:
        with self._store.read(ref) as reader:
            counts = reader.matches.counts()
            cost = total_cost(cost_rows(reader, prices_of(reader, self._look_up)))
            done, failed = sum(counts.get(state, 0) for state in ENDED), counts.get("failed", 0)
            if sum(counts.values()) > MOST_MATCHES:
                return RunSummary(done, failed, cost, "", "", None)
            run = RunScores(reader)
            role = run.roles[0] if run.roles else ""
            metric = run.ranking_metric(role) or ""
            better = run.metrics[metric].better if metric else ""
            groups = list_scores(run.results, style_of(run), [metric])
            known = tuple(
                score
                for group in groups
                if group.role == role
                for score in group.scores
                if score.row.mean is not None
            )
            return RunSummary(done, failed, cost, better, metric, known)


def read_listed(store: Store, ref: RunRef) -> ListedRun:
    """A run as the list shows it; one that cannot be read has the reason."""
    try:
        with store.read(ref) as reader:
            return list_run(reader.info)
    except StoreError as wrong:
        why = str(wrong)
    except Exception as wrong:  # one file must not hide the others
        why = f"{ref.location} cannot be read as a run: {type(wrong).__name__}: {shorten(wrong)}"
    return ListedRun(ref, ref.id, 0.0, "", "", (), (), "unreadable", why, 0, None, why)


def list_run(info: RunInfo) -> ListedRun:
    """The facts of a run that the list shows."""
    config = info.config
    names = (str(each.get("model", "")) for each in config.models.values())
    return ListedRun(
        info.ref,
        info.id,
        info.created,
        config.task,
        config.name or "",
        tuple(config.contestants),
        (*config.models, *names),
        info.state,
        info.reason or "",
        info.planned,
        config.budget_usd,
    )

"""Simulates how many matches a plan would need, with models of known ability and the plan's own
stopping rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from parley.plans.sequential import BUSY, GROWTH
from parley.runs.simulated_models import Counts, Design, Flags, SimulatedModels
from parley.statistics.confidence_sequences import Numbers, Sequences
from parley.statistics.duels import Duels
from parley.statistics.stopping_rules import LEAST

Watch = Callable[[int, int], None]  # called with how many runs have ended, after how many blocks
PAIRS = 4000  # pairs of models in one role that are computed together: more are no faster
CELLS = 400  # results that are computed together


class SimulatedRun(NamedTuple):
    """One simulated run: its size, whether it was decided, and whether its decision is wrong."""

    matches: int
    blocks: int
    decided: bool
    wrong: bool
    looks: tuple[int, ...]  # the matches so far at each check of the stopping rule
    seats: tuple[tuple[int, ...], ...]  # by role and model: how often it played


class Simulation(ABC):
    """Simulated runs of one plan, computed together block by block; each looks at its results when
    a real run would."""

    def __init__(
        self,
        simulated: SimulatedModels,
        design: Design,
        runs: int,
        most: int,
        rng: np.random.Generator,
    ) -> None:
        self.simulated, self.design, self.most, self._rng = simulated, design, most, rng
        self.live, self.block = np.arange(runs), 0
        self.wanted: Flags = np.ones((runs, simulated.roles, simulated.models), dtype=np.bool_)
        self.seats: Counts = np.zeros(self.wanted.shape, dtype=np.int64)
        self.trials: dict[int, SimulatedRun] = {}
        self._began, self._look = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        self._looks: list[list[int]] = [[] for _ in range(runs)]

    @property
    def matches(self) -> Counts:
        """The matches of each run so far."""
        return np.asarray(self.seats.sum(axis=(1, 2)) // self.simulated.seats)

    @abstractmethod
    def take(self, scores: Numbers) -> None:
        """Add one block of every run: scores between 0 and 1 by run, role and model, nan where none
        was played."""

    @abstractmethod
    def judge(self, runs: Counts) -> None:
        """End those of these runs that can end now."""

    def play(self, watch: Watch | None, before: int) -> list[SimulatedRun]:
        """Play block after block until every run has ended; `before` counts the runs of earlier
        chunks, for `watch`."""
        while len(self.live):
            self.take(self._block())
            if len(due := self._due()):
                self.judge(due)
                if watch is not None:
                    watch(before + len(self.trials), self.block)
        return [self.trials[run] for run in sorted(self.trials)]

    def _block(self) -> Numbers:
        simulated, live = self.simulated, self.live
        scores, after = simulated.blocks(self.design, len(live), self._rng)
        self.seats[live] += simulated.count_seats(self.design, self.wanted[live], after)
        self.block += 1
        found = np.full(self.wanted.shape, np.nan)
        found[live] = np.where(
            self.wanted[live], (scores - simulated.low) / simulated.width, np.nan
        )
        return found

    def _due(self) -> Counts:
        """Runs that check their stopping rule now."""
        matches = self.matches
        whole = (matches - self._began >= BUSY) & (self.block >= self._look)
        due = self.live[whole[self.live] | (self.block >= self.most)]
        for run in due.tolist():
            self._looks[run].append(int(matches[run]))
        self._began[due] = matches[due]
        self._look[due] = self.block + self.block // GROWTH
        return due

    def end(self, run: int, decided: bool, wrong: bool) -> None:
        seats = tuple(tuple(row) for row in self.seats[run].tolist())
        matches = sum(map(sum, seats)) // self.simulated.seats
        self.trials[run] = SimulatedRun(
            matches, self.block, decided, decided and wrong, tuple(self._looks[run]), seats
        )
        self.live = self.live[self.live != run]


class Ranking(Simulation):
    """Runs until the ranking, or its top, is decided; with racing, only models that can still
    change it play on."""

    def __init__(
        self, *course: Any, racing: bool, epsilon: float, alpha: float, top: int | None
    ) -> None:
        super().__init__(*course)
        self._racing, self._epsilon, self._top = racing, epsilon, top
        runs, roles, models = self.wanted.shape
        # Every role of every run is a role here. The level is multiplied by the number of runs, so
        # that each role keeps the level that it has in a single run.
        self._duels = Duels(
            runs * roles,
            models,
            np.full(runs * roles, epsilon / self.simulated.width),
            alpha * runs,
        )
        self._sum, self._n = np.zeros(self.wanted.shape), np.zeros(self.wanted.shape)

    def take(self, scores: Numbers) -> None:
        self._duels.add(scores.reshape(-1, self.simulated.models))
        seen = ~np.isnan(scores)
        self._sum += np.where(seen, scores, 0)
        self._n += seen

    def judge(self, runs: Counts) -> None:
        models, means = self.simulated.models, self._sum / np.maximum(self._n, 1)
        top = self._top if self._top is not None and self._top < models else None
        open_ = (
            self._duels.undecided()
            if top is None
            else self._duels.undecided_top(top, means.reshape(-1, models))
        )
        undecided = open_.reshape(*self.wanted.shape, models)
        for run in runs.tolist():
            decided = self.block >= LEAST and not undecided[run].any()
            if decided or self.block >= self.most:
                self.end(run, decided, decided and self._wrong(run, top, means[run]))
            elif self._racing and self.block >= LEAST:
                self.wanted[run] = undecided[run].any(axis=2)

    def _wrong(self, run: int, top: int | None, means: Numbers) -> bool:
        """Whether any decision is wrong."""
        truth = self.simulated.truth
        if top is not None:
            leading = np.argsort(-means, axis=1, kind="stable")[:, :top]
            least = np.take_along_axis(truth, leading, axis=1).min(axis=1)
            return bool((least < np.sort(truth, axis=1)[:, -top] - self._epsilon).any())
        here, gap = (
            slice(run * self.simulated.roles, (run + 1) * self.simulated.roles),
            truth[:, :, None] - truth[:, None, :],
        )
        better, level = self._duels.better[here], self._duels.not_ahead[here]
        return bool(
            (better & (gap <= 0)).any()
            or (level & level.swapaxes(1, 2) & (np.abs(gap) >= self._epsilon)).any()
        )


class Precision(Simulation):
    """Runs until every result has the requested half-width, for new items."""

    def __init__(self, *course: Any, epsilon: float, alpha: float) -> None:
        super().__init__(*course)
        self._epsilon = epsilon / self.simulated.width
        self._sequences = Sequences(
            self.wanted.size, alpha / (self.simulated.roles * self.simulated.models)
        )

    def take(self, scores: Numbers) -> None:
        self._sequences.add(scores.ravel())

    def judge(self, runs: Counts) -> None:
        low, high = (end.reshape(self.wanted.shape) for end in self._sequences.intervals)
        truth = (self.simulated.truth - self.simulated.low) / self.simulated.width
        for run in runs.tolist():
            drift = bool(np.isnan(low[run]).any())
            near = self.block >= LEAST and bool(((high[run] - low[run]) / 2 <= self._epsilon).all())
            if near or drift or self.block >= self.most:
                self.end(run, near, bool(((low[run] > truth) | (truth > high[run])).any()))


def simulate_ranking(
    simulated: SimulatedModels,
    design: Design,
    *,
    racing: bool,
    epsilon: float,
    alpha: float = 0.05,
    top: int | None = None,
    most: int,
    runs: int,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> list[SimulatedRun]:
    """Simulate runs until their ranking, or its top, is decided."""

    def course(count: int) -> Simulation:
        return Ranking(
            simulated,
            design,
            count,
            most,
            rng,
            racing=racing,
            epsilon=epsilon,
            alpha=alpha,
            top=top,
        )

    return simulate_in_chunks(course, runs, PAIRS // simulated.models**2, watch)


def simulate_precision(
    simulated: SimulatedModels,
    design: Design,
    *,
    epsilon: float,
    alpha: float = 0.05,
    most: int,
    runs: int,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> list[SimulatedRun]:
    """Simulate runs until every result has the requested half-width."""

    def course(count: int) -> Simulation:
        return Precision(simulated, design, count, most, rng, epsilon=epsilon, alpha=alpha)

    return simulate_in_chunks(course, runs, CELLS // (simulated.roles * simulated.models), watch)


def simulate_in_chunks(
    course: Callable[[int], Simulation], runs: int, most: int, watch: Watch | None
) -> list[SimulatedRun]:
    """Simulate all runs, at most `most` at a time."""
    found: list[SimulatedRun] = []
    while len(found) < runs:
        found += course(min(runs - len(found), max(1, most))).play(watch, len(found))
    return found

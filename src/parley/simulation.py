"""What a plan would need, before anything is paid: worlds with known abilities, played by the plans' own rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parley.errors import UsageError
from parley.plan.sequential import BUSY, GROWTH
from parley.statistics.betting import Numbers, Sequences
from parley.statistics.duels import Duels
from parley.statistics.stability import LEAST

Design = Literal["round_robin", "cycles"]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Watch = Callable[[int, int], None]  # told how many runs have ended, after how many blocks
FINE = 200  # steps of the range, where scores are hardly rounded
PAIRS = 4000  # of models in one role that move on together: more of them are no faster
CELLS = 400  # results that move on together


@dataclass(frozen=True, eq=False)
class World:
    """Models with known abilities, and how much items, models on items and single matches scatter (standard deviations).

    Abilities are by role and model, or by role, model and partner. Scores are kept within their range, and rounded where
    judges give whole marks.
    """

    abilities: Numbers
    low: float = 1.0
    high: float = 10.0
    item: float = 0.5
    model_item: float = 0.4
    match: float = 1.0
    step: float | None = 1.0  # what scores are rounded to
    seats: int = 2  # of contestants in a match; two seats may be one role

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise UsageError(f"a range wants its lower end first, not {self.low:g} to {self.high:g}")
        if min(self.item, self.model_item, self.match) < 0:
            raise UsageError("noise is given as standard deviations: not below 0")
        if self.abilities.ndim not in (2, 3) or self.models < 2:
            raise UsageError("abilities are wanted for at least two models")
        if self.seats not in (1, 2) or self.roles > self.seats:
            raise UsageError(f"matches with 1 or 2 contestants are simulated, in as many roles or fewer, not {self.seats}")
        if self.seats == 1 and self.abilities.ndim == 3:
            raise UsageError("who plays alone has no partner: abilities by role and model are wanted")

    @property
    def roles(self) -> int:
        return int(self.abilities.shape[0])

    @property
    def models(self) -> int:
        return int(self.abilities.shape[1])

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def spread(self) -> float:
        """Of a single score, before it is rounded and kept within its range."""
        return math.hypot(self.item, self.model_item, self.match)

    @cached_property
    def against(self) -> Numbers:
        """By role, model and partner."""
        if self.abilities.ndim == 3:
            return self.abilities
        return np.repeat(self.abilities[:, :, None], self.models, axis=2)

    @cached_property
    def truth(self) -> Numbers:
        """By role and model, the mean score over all partners, items and matches, bounds and rounding included."""
        if self.abilities.ndim == 2:
            return moments(self.abilities, self.low, self.high, self.step, self.spread)[0]
        return self._over_others(moments(self.abilities, self.low, self.high, self.step, self.spread)[0])

    def _over_others(self, scores: Numbers) -> Numbers:
        """Means over all partners but oneself."""
        return np.asarray((scores * ~np.eye(self.models, dtype=bool)).sum(axis=-1) / (self.models - 1))

    def blocks(self, design: Design, runs: int, rng: np.random.Generator) -> tuple[Numbers, Counts]:
        """One item for each of so many runs: mean scores by run, role and model, and in cycles who comes after whom."""
        shape, everybody = (runs, self.roles, self.models), np.arange(self.models)
        base = self.item * rng.standard_normal((runs, 1, 1)) + self.model_item * rng.standard_normal(shape)
        times = self.seats // self.roles  # how often a model sits in a role with one partner, or alone
        if self.seats == 1:
            scores = self.abilities + base + self.match * rng.standard_normal(shape)
            return shown(scores, self.low, self.high, self.step), everybody
        if design == "round_robin":
            noise = self.match * rng.standard_normal((times, *shape, self.models))
            scores = shown(self.against + base[..., None] + noise, self.low, self.high, self.step)
            return self._over_others(scores.mean(axis=0)), everybody
        circle = np.argsort(rng.random((runs, self.models)), axis=1)
        after, before = np.empty_like(circle), np.empty_like(circle)
        np.put_along_axis(after, circle, np.roll(circle, -1, axis=1), axis=1)
        np.put_along_axis(before, circle, np.roll(circle, 1, axis=1), axis=1)
        seat = np.arange(2) % self.roles  # in the first seat one meets who comes after, in the second who comes before
        ability = self.against[seat[:, None], everybody, np.stack([after, before], axis=1)]
        noise = self.match * rng.standard_normal((runs, 2, self.models))
        scores = shown(ability + base[:, seat] + noise, self.low, self.high, self.step)
        return (scores if self.roles == 2 else scores.mean(axis=1, keepdims=True)), after

    def matches(self, design: Design, wanted: Flags, after: Counts) -> Counts:
        """How many matches a block takes in each run, if only so many results are wanted."""
        if self.seats == 1:
            return np.asarray(wanted[:, 0].sum(axis=1))
        if design == "round_robin":
            return np.full(len(wanted), self.models * (self.models - 1))
        return np.asarray((wanted[:, 0] | np.take_along_axis(wanted[:, -1], after, axis=1)).sum(axis=1))


def shown(scores: Numbers, low: float, high: float, step: float | None) -> Numbers:
    """Scores as a match would show them."""
    rounded = scores if step is None else np.rint(scores / step) * step
    return np.asarray(np.clip(rounded, low, high))


def moments(abilities: Numbers, low: float, high: float, step: float | None, spread: float) -> tuple[Numbers, Numbers]:
    """Mean and variance of the scores that are shown where so much noise comes upon these abilities."""
    if spread == 0:
        return shown(abilities, low, high, step), np.zeros(abilities.shape)
    step = max(step or 0.0, (high - low) / FINE)
    inner = np.arange(math.floor(low / step) + 1, math.ceil(high / step)) * step
    levels, reached = np.append(inner, high), np.append(inner, math.ceil(high / step) * step) - step / 2
    above = 0.5 - 0.5 * np.vectorize(math.erf)((reached - abilities[..., None]) / (spread * math.sqrt(2)))
    mean = low + above @ np.diff(levels, prepend=low)
    squares = low**2 + above @ np.diff(levels**2, prepend=low**2)
    return np.asarray(mean), np.asarray(np.maximum(squares - mean**2, 0))


def alike(
    means: Numbers, low: float, high: float, item: float, model_item: float, match: float, step: float | None, seats: int
) -> World:
    """A world whose scores come out like those of a run: with these means by role and model, and as much spread.

    Rounding and bounds change both, so the noise before them is found by trying, and the abilities with it.
    """
    spread, scale, factor = math.hypot(item, model_item, match), 1.0, 1.0
    if spread == 0:
        return World(means, low, high, 0, 0, 0, None, seats)
    candidates = np.linspace(2 * low - high, 2 * high - low, 601)
    for _ in range(12):
        scale = min(max(scale * factor, 0.2), 3.0)
        mean, variance = moments(candidates, low, high, step, spread * scale)
        abilities = np.interp(means, mean, candidates)
        found = math.sqrt(float(np.interp(abilities, candidates, variance).mean()))
        if not found or abs(spread / found - 1) < 0.01:
            break
        factor = spread / found
    return World(np.asarray(abilities), low, high, item * scale, model_item * scale, match * scale, step, seats)


class Trial(NamedTuple):
    """One simulated run: what it took, whether it came to an end, and whether what it says is wrong."""

    matches: int
    blocks: int
    decided: bool
    wrong: bool


class Course:
    """Simulated runs of one plan that move on together, block by block; each has batches of its own, as plans have them."""

    def __init__(self, world: World, design: Design, runs: int, most: int, rng: np.random.Generator) -> None:
        self.world, self.design, self.most, self._rng = world, design, most, rng
        self.live, self.block = np.arange(runs), 0
        self.matches = np.zeros(runs, dtype=np.int64)
        self.wanted: Flags = np.ones((runs, world.roles, world.models), dtype=np.bool_)
        self.trials: dict[int, Trial] = {}
        self._began, self._look = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)

    def take(self, scores: Numbers) -> None:
        """One block of every run: scores between 0 and 1 by run, role and model, nan where none was wanted."""
        raise NotImplementedError

    def judge(self, runs: Counts) -> None:
        """End these runs, if they can end now."""
        raise NotImplementedError

    def play(self, watch: Watch | None, before: int) -> list[Trial]:
        """Block after block until every run has ended; `before` counts the runs that others have brought to an end."""
        while len(self.live):
            self.take(self._block())
            if len(due := self._due()):
                self.judge(due)
                if watch is not None:
                    watch(before + len(self.trials), self.block)
        return [self.trials[run] for run in sorted(self.trials)]

    def _block(self) -> Numbers:
        world, live = self.world, self.live
        scores, after = world.blocks(self.design, len(live), self._rng)
        self.matches[live] += world.matches(self.design, self.wanted[live], after)
        self.block += 1
        found = np.full(self.wanted.shape, np.nan)
        found[live] = np.where(self.wanted[live], (scores - world.low) / world.width, np.nan)
        return found

    def _due(self) -> Counts:
        """Runs whose batch is complete, so that they look at what was played."""
        whole = (self.matches - self._began >= BUSY) & (self.block >= self._look)
        due = self.live[whole[self.live] | (self.block >= self.most)]
        self._began[due] = self.matches[due]
        self._look[due] = self.block + self.block // GROWTH
        return due

    def end(self, run: int, decided: bool, wrong: bool) -> None:
        self.trials[run] = Trial(int(self.matches[run]), self.block, decided, decided and wrong)
        self.live = self.live[self.live != run]


class Ranking(Course):
    """Until the ranking, or its top, is decided; with racing, only what can still change it is played."""

    def __init__(self, *course: Any, racing: bool, epsilon: float, alpha: float, top: int | None) -> None:
        super().__init__(*course)
        self._racing, self._epsilon, self._top = racing, epsilon, top
        runs, roles, models = self.wanted.shape
        # Every role of every run is a role here; with so many times α each of them has the level that it has in a run.
        self._duels = Duels(runs * roles, models, np.full(runs * roles, epsilon / self.world.width), alpha * runs)
        self._sum, self._n = np.zeros(self.wanted.shape), np.zeros(self.wanted.shape)

    def take(self, scores: Numbers) -> None:
        self._duels.add(scores.reshape(-1, self.world.models))
        seen = ~np.isnan(scores)
        self._sum += np.where(seen, scores, 0)
        self._n += seen

    def judge(self, runs: Counts) -> None:
        models, means = self.world.models, self._sum / np.maximum(self._n, 1)
        top = self._top if self._top is not None and self._top < models else None
        open_ = self._duels.undecided() if top is None else self._duels.undecided_top(top, means.reshape(-1, models))
        undecided = open_.reshape(*self.wanted.shape, models)
        for run in runs.tolist():
            decided = self.block >= LEAST and not undecided[run].any()
            if decided or self.block >= self.most:
                self.end(run, decided, decided and self._wrong(run, top, means[run]))
            elif self._racing and self.block >= LEAST:
                self.wanted[run] = undecided[run].any(axis=2)

    def _wrong(self, run: int, top: int | None, means: Numbers) -> bool:
        """Whether anything that was certified is not so."""
        truth = self.world.truth
        if top is not None:
            leading = np.argsort(-means, axis=1, kind="stable")[:, :top]
            least = np.take_along_axis(truth, leading, axis=1).min(axis=1)
            return bool((least < np.sort(truth, axis=1)[:, -top] - self._epsilon).any())
        here, gap = slice(run * self.world.roles, (run + 1) * self.world.roles), truth[:, :, None] - truth[:, None, :]
        better, level = self._duels.better[here], self._duels.not_ahead[here]
        return bool((better & (gap <= 0)).any() or (level & level.swapaxes(1, 2) & (np.abs(gap) >= self._epsilon)).any())


class Precision(Course):
    """Until every result has the half-width that is wanted, for new items."""

    def __init__(self, *course: Any, epsilon: float, alpha: float) -> None:
        super().__init__(*course)
        self._epsilon = epsilon / self.world.width
        self._sequences = Sequences(self.wanted.size, alpha / (self.world.roles * self.world.models))

    def take(self, scores: Numbers) -> None:
        self._sequences.add(scores.ravel())

    def judge(self, runs: Counts) -> None:
        low, high = (end.reshape(self.wanted.shape) for end in self._sequences.intervals)
        truth = (self.world.truth - self.world.low) / self.world.width
        for run in runs.tolist():
            drift = bool(np.isnan(low[run]).any())
            near = self.block >= LEAST and bool(((high[run] - low[run]) / 2 <= self._epsilon).all())
            if near or drift or self.block >= self.most:
                self.end(run, near, bool(((low[run] > truth) | (truth > high[run])).any()))


def ranked(
    world: World,
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
) -> list[Trial]:
    """Runs that are played until their ranking, or its top, is decided."""

    def course(count: int) -> Course:
        return Ranking(world, design, count, most, rng, racing=racing, epsilon=epsilon, alpha=alpha, top=top)

    return shared_out(course, runs, PAIRS // world.models**2, watch)


def stable(
    world: World,
    design: Design,
    *,
    epsilon: float,
    alpha: float = 0.05,
    most: int,
    runs: int,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> list[Trial]:
    """Runs that are played until every result has its half-width."""

    def course(count: int) -> Course:
        return Precision(world, design, count, most, rng, epsilon=epsilon, alpha=alpha)

    return shared_out(course, runs, CELLS // (world.roles * world.models), watch)


def shared_out(course: Callable[[int], Course], runs: int, most: int, watch: Watch | None) -> list[Trial]:
    """All runs, only so many at a time."""
    found: list[Trial] = []
    while len(found) < runs:
        found += course(min(runs - len(found), max(1, most))).play(watch, len(found))
    return found

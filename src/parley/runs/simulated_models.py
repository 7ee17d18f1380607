"""Simulated models with known abilities, and the scores of their blocks of matches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from parley.errors import UsageError
from parley.statistics.confidence_sequences import Numbers
from parley.tables import plural

Design = Literal["round_robin", "cycles"]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
FINE = 200  # the most steps of the range; finer rounding is treated as none


@dataclass(frozen=True, eq=False)
class SimulatedModels:
    """Models with known abilities, and the noise of items, of models on items and of single matches
    (standard deviations).

    Abilities are by role and model, or by role, model and partner. Scores are clipped to their
    range, and rounded to `step`.
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
            raise UsageError(
                f"the range must go from low to high, not from {self.low:g} to {self.high:g}"
            )
        if (least := min(self.item, self.model_item, self.match)) < 0:
            raise UsageError(f"noise (standard deviations) must be at least 0, not {least:g}")
        if self.abilities.ndim not in (2, 3) or self.models < 2:
            raise UsageError(
                "a simulation needs the abilities (mean scores) of at least two models"
            )
        if self.seats not in (1, 2) or self.roles > self.seats:
            raise UsageError(
                "a simulated match must have 1 or 2 contestants and at most as many roles, not "
                f"{plural(self.seats, 'contestant')} and {plural(self.roles, 'role')}"
            )
        if self.seats == 1 and self.abilities.ndim == 3:
            raise UsageError(
                "a contestant that plays alone has no partner: give abilities by role and model"
            )

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
        """The standard deviation of a single score before it is rounded and clipped."""
        return math.hypot(self.item, self.model_item, self.match)

    @cached_property
    def against(self) -> Numbers:
        """By role, model and partner."""
        if self.abilities.ndim == 3:
            return self.abilities
        return np.repeat(self.abilities[:, :, None], self.models, axis=2)

    @cached_property
    def truth(self) -> Numbers:
        """By role and model, the mean score over all partners, items and matches, bounds and
        rounding included."""
        if self.abilities.ndim == 2:
            return score_moments(self.abilities, self.low, self.high, self.step, self.spread)[0]
        return self._over_others(
            score_moments(self.abilities, self.low, self.high, self.step, self.spread)[0]
        )

    def _over_others(self, scores: Numbers) -> Numbers:
        """Means over all partners but oneself."""
        return np.asarray(
            (scores * ~np.eye(self.models, dtype=bool)).sum(axis=-1) / (self.models - 1)
        )

    def blocks(self, design: Design, runs: int, rng: np.random.Generator) -> tuple[Numbers, Counts]:
        """One item for each of `runs` runs: mean scores by run, role and model, and in cycles the
        model after each one."""
        shape, everybody = (runs, self.roles, self.models), np.arange(self.models)
        base = self.item * rng.standard_normal(
            (runs, 1, 1)
        ) + self.model_item * rng.standard_normal(shape)
        # how often a model sits in a role with one partner, or alone
        times = self.seats // self.roles
        if self.seats == 1:
            scores = self.abilities + base + self.match * rng.standard_normal(shape)
            return round_scores(scores, self.low, self.high, self.step), everybody
        if design == "round_robin":
            noise = self.match * rng.standard_normal((times, *shape, self.models))
            scores = round_scores(
                self.against + base[..., None] + noise, self.low, self.high, self.step
            )
            return self._over_others(scores.mean(axis=0)), everybody
        circle = np.argsort(rng.random((runs, self.models)), axis=1)
        after, before = np.empty_like(circle), np.empty_like(circle)
        np.put_along_axis(after, circle, np.roll(circle, -1, axis=1), axis=1)
        np.put_along_axis(before, circle, np.roll(circle, 1, axis=1), axis=1)
        # in the first seat one meets who comes after, in the second who comes before
        seat = np.arange(2) % self.roles
        ability = self.against[seat[:, None], everybody, np.stack([after, before], axis=1)]
        noise = self.match * rng.standard_normal((runs, 2, self.models))
        scores = round_scores(ability + base[:, seat] + noise, self.low, self.high, self.step)
        return (scores if self.roles == 2 else scores.mean(axis=1, keepdims=True)), after

    def count_seats(self, design: Design, wanted: Flags, after: Counts) -> Counts:
        """How often each model sits in each role in one block, by run, role and model, if only the
        wanted results are played."""
        if self.seats == 1:
            return wanted.astype(np.int64)
        if design == "round_robin":
            often = (self.models - 1) * self.seats // self.roles
            return np.full(wanted.shape, often, dtype=np.int64)
        # by the model in the first seat, whether its match is played
        first = wanted[:, 0] | np.take_along_axis(wanted[:, -1], after, axis=1)
        second = np.zeros_like(first)
        np.put_along_axis(second, after, first, axis=1)
        if self.roles == 1:
            return np.asarray((first.astype(np.int64) + second)[:, None])
        return np.stack([first, second], axis=1).astype(np.int64)


def round_scores(scores: Numbers, low: float, high: float, step: float | None) -> Numbers:
    """Round scores and clip them to their range, as a match would."""
    rounded = scores if step is None else np.rint(scores / step) * step
    return np.asarray(np.clip(rounded, low, high))


def score_moments(
    abilities: Numbers, low: float, high: float, step: float | None, spread: float
) -> tuple[Numbers, Numbers]:
    """Mean and variance of rounded and clipped scores, for these abilities and this noise."""
    if spread == 0:
        return round_scores(abilities, low, high, step), np.zeros(abilities.shape)
    step = max(step or 0.0, (high - low) / FINE)
    inner = np.arange(math.floor(low / step) + 1, math.ceil(high / step)) * step
    levels, reached = (
        np.append(inner, high),
        np.append(inner, math.ceil(high / step) * step) - step / 2,
    )
    above = 0.5 - 0.5 * np.vectorize(math.erf)(
        (reached - abilities[..., None]) / (spread * math.sqrt(2))
    )
    mean = low + above @ np.diff(levels, prepend=low)
    squares = low**2 + above @ np.diff(levels**2, prepend=low**2)
    return np.asarray(mean), np.asarray(np.maximum(squares - mean**2, 0))


def fit_models(
    means: Numbers,
    low: float,
    high: float,
    item: float,
    model_item: float,
    match: float,
    step: float | None,
    seats: int,
) -> SimulatedModels:
    """Fit simulated models to a run: their scores have its means by role and model, and its spread.

    Rounding and clipping change both, so the abilities and the noise before them are found
    iteratively.
    """
    spread, scale, factor = math.hypot(item, model_item, match), 1.0, 1.0
    if spread == 0:
        return SimulatedModels(means, low, high, 0, 0, 0, None, seats)
    candidates = np.linspace(2 * low - high, 2 * high - low, 601)
    for _ in range(12):
        scale = min(max(scale * factor, 0.2), 3.0)
        mean, variance = score_moments(candidates, low, high, step, spread * scale)
        abilities = np.interp(means, mean, candidates)
        found = math.sqrt(float(np.interp(abilities, candidates, variance).mean()))
        if not found or abs(spread / found - 1) < 0.01:
            break
        factor = spread / found
    return SimulatedModels(
        np.asarray(abilities),
        low,
        high,
        item * scale,
        model_item * scale,
        match * scale,
        step,
        seats,
    )

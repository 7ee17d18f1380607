"""Bradley-Terry ratings with a first-mover term, for tasks in which one of two seats wins. They
complement the win rates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parley.errors import UsageError
from parley.statistics.intervals import ALPHA
from parley.statistics.role_tables import Meeting
from parley.statistics.student_t import t_quantile

Array = NDArray[np.float64]
PRIOR = 1.0  # virtual draws
POINTS = 400 / math.log(10)  # of Elo's scale for one logit
MIDDLE = 1500


class Game(NamedTuple):
    """One match of two models from the first seat's point of view: 1 is a win, 0.5 a draw, 0 a
    loss."""

    block: str
    first: str
    second: str
    outcome: float


class AbilityEstimate(NamedTuple):
    """A number with its interval; unknown parts are None."""

    value: float | None
    low: float | None
    high: float | None


UNKNOWN = AbilityEstimate(None, None, None)


@dataclass(frozen=True)
class Rating:
    """A model's ability in logits, relative to the mean of its group; unknown for a model that
    played against no other model."""

    alias: str
    group: int
    logit: AbilityEstimate
    matches: int
    blocks: int

    @property
    def elo(self) -> AbilityEstimate:
        """The ability on the Elo scale, where the mean of the group is 1500."""
        return AbilityEstimate(
            *(None if end is None else MIDDLE + POINTS * end for end in self.logit)
        )


@dataclass(frozen=True)
class Ratings:
    """All models, best first within their group. The first-mover advantage is in logits and the
    same for all models.

    Models are in one group if a chain of matches connects them. Ratings of different groups have no
    common scale.
    """

    models: tuple[Rating, ...]
    first_mover: AbilityEstimate
    groups: int
    matches: int
    blocks: int

    @property
    def comparable(self) -> bool:
        """Whether all models are in one group, so that any two can be compared."""
        return self.groups <= 1


def is_win_loss(met: Iterable[Meeting], bounds: tuple[float, float]) -> bool:
    """Whether a metric is a win/loss metric: it ranges from 0 to 1, and every complete match is
    a win, a draw or a loss, whose two scores sum to one."""
    if bounds != (0, 1):
        return False
    complete = False
    for *_, a, b in met:
        if a is not None and b is not None:
            complete = True
            if a not in (0, 0.5, 1) or a + b != 1:
                return False
    return complete


def complete_games(met: Iterable[Meeting]) -> list[Game]:
    """The complete matches among meetings in a win/loss metric."""
    return [
        Game(each.block, each.first, each.second, each.first_value)
        for each in met
        if each.first_value is not None and each.second_value is not None
    ]


def fit_ratings(played: Sequence[Game], alpha: float = ALPHA, prior: float = PRIOR) -> Ratings:
    """Maximum likelihood under P(first wins) = 1 / (1 + exp(second − first − advantage)); a draw
    counts as half a win.

    The prior is one virtual draw per group, spread evenly over all seatings of its models, so that
    the rating of a model that wins every match stays finite. Intervals are t intervals over the
    model's blocks, with errors clustered by block. If the plain normal interval of the likelihood
    is wider, it is used instead: if only the prior determines a number, blocks agree too well.
    """
    if not played:
        return Ratings((), UNKNOWN, 0, 0, 0)
    if prior <= 0:
        raise UsageError(
            f"the prior of ratings must be above 0, not {prior}: without a prior, a model that "
            "wins everything has an infinite rating"
        )
    if wrong := next((game for game in played if not 0 <= game.outcome <= 1), None):
        raise UsageError(
            f"outcomes for ratings must be from 0 to 1, not {wrong.outcome} (block {wrong.block})"
        )
    matches: dict[str, int] = {}
    blocks: dict[str, set[str]] = {}
    for game in played:
        for alias in {game.first, game.second}:
            matches[alias] = matches.get(alias, 0) + 1
            blocks.setdefault(alias, set()).add(game.block)
    aliases = sorted(matches)
    group = connected_groups(aliases, played)
    sizes = Counter(group.values())
    values, clustered, plain = estimate_abilities(
        played, aliases, [group[alias] for alias in aliases], prior
    )
    normal = NormalDist().inv_cdf(1 - alpha / 2)

    def estimate(place: int, n: int) -> AbilityEstimate:
        value = values[place]
        if n < 2:
            return AbilityEstimate(value, None, None)
        half = max(t_quantile(1 - alpha / 2, n - 1) * clustered[place], normal * plain[place])
        return AbilityEstimate(value, value - half, value + half)

    found = []
    for place, alias in enumerate(aliases):
        n, met_others = len(blocks[alias]), sizes[group[alias]] > 1
        found.append(
            Rating(
                alias,
                group[alias],
                estimate(place, n) if met_others else UNKNOWN,
                matches[alias],
                n,
            )
        )
    found.sort(key=lambda rating: (rating.group, -(rating.logit.value or 0), rating.alias))
    every = len(set().union(*blocks.values()))
    return Ratings(tuple(found), estimate(len(aliases), every), len(sizes), len(played), every)


def connected_groups(aliases: Sequence[str], played: Iterable[Game]) -> dict[str, int]:
    """The group of every model; group 1 is the largest."""
    linked = {alias: {alias} for alias in aliases}
    for first, second in {(game.first, game.second) for game in played}:
        if linked[first] is not linked[second]:
            joined = linked[first] | linked[second]
            linked.update(dict.fromkeys(joined, joined))
    groups = {min(group): group for group in linked.values()}.values()
    ordered = sorted(groups, key=lambda group: (-len(group), min(group)))
    return {alias: n for n, group in enumerate(ordered, 1) for alias in group}


def estimate_abilities(
    played: Sequence[Game], aliases: Sequence[str], group: Sequence[int], prior: float
) -> tuple[list[float], list[float], list[float]]:
    """Abilities and, last, the first-mover advantage; their standard errors clustered by block;
    and the standard errors of the likelihood."""
    index = {alias: n for n, alias in enumerate(aliases)}
    number: dict[str, int] = {}
    block = np.array([number.setdefault(game.block, len(number)) for game in played])
    first = np.array([index[game.first] for game in played])
    second = np.array([index[game.second] for game in played])
    outcome = np.array([float(game.outcome) for game in played])
    member = np.array(group)
    count = prior * (member[:, None] == member) / np.bincount(member)[member] ** 2
    won = count / 2
    np.add.at(count, (first, second), 1)
    np.add.at(won, (first, second), outcome)
    values, spread = maximise_likelihood(count, won)

    surplus = outcome - win_probability(first_seat_advantages(values))[first, second]
    score = np.zeros((len(number), len(values)))  # the gradient by block
    np.add.at(score, (block, first), surplus)
    np.add.at(score, (block, second), -surplus)
    score[:, -1] = np.bincount(block, surplus)
    clustered = np.square(score @ spread).sum(0) * len(number) / max(1, len(number) - 1)
    return values.tolist(), np.sqrt(clustered).tolist(), np.sqrt(np.diag(spread).clip(0)).tolist()


def maximise_likelihood(count: Array, won: Array) -> tuple[Array, Array]:
    """The maximum likelihood estimates by Newton's method, where the abilities of a group sum to
    zero, and their covariance."""

    def loss(values: Array) -> float:
        ahead = first_seat_advantages(values)
        return float(np.sum(won * np.logaddexp(0, -ahead) + (count - won) * np.logaddexp(0, ahead)))

    values = np.zeros(len(count) + 1)
    for _ in range(100):
        p = win_probability(first_seat_advantages(values))
        surplus, weight = won - count * p, count * p * (1 - p)
        gradient = np.append(surplus.sum(1) - surplus.sum(0), surplus.sum())
        tilt = weight.sum(1) - weight.sum(0)
        inner = np.diag(weight.sum(1) + weight.sum(0)) - weight - weight.T
        information = np.block([[inner, tilt[:, None]], [tilt, weight.sum()]])
        # of no size along the sums, which thus stay zero
        spread = np.linalg.pinv(information, hermitian=True)
        step = spread @ gradient
        if np.abs(step).max() < 1e-8:
            return values + step, spread
        now = loss(values)
        while loss(values + step) > now * (1 + 1e-12):
            step /= 2
        values = values + step
    raise UsageError(
        "the ratings do not converge, because the prior is too weak for these outcomes: use "
        "the default prior"
    )


def first_seat_advantages(values: Array) -> Array:
    """The lead of the first seat in logits, for every seating."""
    ahead: Array = values[:-1, None] - values[:-1] + values[-1]
    return ahead


def win_probability(ahead: Array) -> Array:
    """The probability of winning for a seat with this lead in logits."""
    likely: Array = np.exp(-np.logaddexp(0, -ahead))
    return likely

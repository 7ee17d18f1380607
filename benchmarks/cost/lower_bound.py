"""The fewest matches that any method needs, by change of measure.

A method must be right with probability 1 - δ in every world. So it must tell the true world from
every other world in which its answer would be wrong. If matches give n_i scores of model i on
average, and the other world moves the abilities from μ to λ, then

    Σ n_i (μ_i - λ_i)² / (2 s_i²)  ≥  kl(P(this answer in the true world), δ)

(Kaufmann, Cappé and Garivier 2016, lemma 1). The bound is the smallest Σ n_i that satisfies this
for every other world (Garivier and Kaufmann 2016 solve this for the best arm). Ties within ε make
several answers right; then this takes the one that is easiest to prove, with probability 1 - δ
(Degenne and Koolen 2019 show that this is the limit for small δ). At a larger δ a method that
divides its answers among the right ones may need less.

Assumptions: scores are Gaussian with known variances. The effect of each item is known, so a score
is as good as a difference to the others of its block. Each match is on a new item and gives one
score in each role, so the role that needs more decides. All of this makes the problem easier than
it is for a plan, so the bound is never too high.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parley.runs.simulated_models import SimulatedModels, score_moments

Numbers = NDArray[np.float64]
NODES = 21  # of the quadrature over item effects
GRID = 1500  # thresholds that are tried for an alternative
PRECISION = 0.01  # relative gap between the bound and an allocation that reaches it
ROUNDS = 400  # of cuts


class Allocation(NamedTuple):
    """Scores of each model on average, and the bound on their sum; the sum is at most
    `PRECISION` above the bound."""

    scores: Numbers
    bound: float


def kl(p: float, q: float) -> float:
    """The relative entropy of two coins."""
    heads = p * math.log(p / q) if p > 0 else 0.0
    tails = (1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0
    return heads + tails


def residual_variances(world: SimulatedModels) -> Numbers:
    """By role and model: the variance of a score of which the item effect is known, after rounding
    and clipping."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    rest = math.hypot(world.model_item, world.match)
    found = sum(
        weight
        * score_moments(world.against + world.item * node, world.low, world.high, world.step, rest)[
            1
        ]
        for node, weight in zip(nodes, weights / weights.sum(), strict=True)
    )
    others = ~np.eye(world.models, dtype=bool)
    return np.asarray((found * others).sum(axis=2) / (world.models - 1))


def bound_matches(world: SimulatedModels, epsilon: float, delta: float, top: int | None) -> float:
    """The fewest matches for a full ranking, or for its top."""
    variances = residual_variances(world)
    return max(
        (
            allocate_for_ranking(means, own, epsilon, delta)
            if top is None or top >= world.models
            else allocate_for_top(means, own, epsilon, delta, top)
        ).bound
        for means, own in zip(world.truth, variances, strict=True)
    )


# A full ranking: every pair is separated, or shown to differ by less than ε.


def pair_information(gap: float, epsilon: float, delta: float) -> float:
    """The smallest information J about one pair: moving the gap by d costs J d². "Better" must
    exclude a gap of 0, "equal" a gap of ε; the answer that is further from its alternatives is
    taken."""
    gap = abs(gap)
    return kl(1 - delta, delta) / (gap if gap >= epsilon else max(gap, epsilon - gap)) ** 2


def allocate_for_ranking(
    means: Numbers, variances: Numbers, epsilon: float, delta: float
) -> Allocation:
    """With x_i = s_i² / n_i, every pair needs x_i + x_j ≤ 1 / (2 J). This minimises Σ s_i² / x_i by
    Newton steps on a logarithmic barrier."""
    pairs = list(combinations(range(len(means)), 2))
    most = np.array(
        [1 / (2 * pair_information(means[i] - means[j], epsilon, delta)) for i, j in pairs]
    )
    ends = np.zeros((len(pairs), len(means)))
    for row, (i, j) in enumerate(pairs):
        ends[row, [i, j]] = 1
    x = np.full(len(means), 0.45 * most.min())
    weight = len(pairs) / float((variances / x).sum())
    while True:
        for _ in range(60):
            slack = most - ends @ x
            gradient = -weight * variances / x**2 + ends.T @ (1 / slack)
            hessian = np.diag(2 * weight * variances / x**3) + (ends.T / slack**2) @ ends
            step = -np.linalg.solve(hessian, gradient)
            if -gradient @ step < 1e-9:
                break
            x = x + step * shorten(step, x, slack, ends @ step)
        total = float((variances / x).sum())
        gap = len(pairs) / weight
        if gap < PRECISION / 10 * total:
            return Allocation(variances / x, total - gap)
        weight *= 8


def shorten(step: Numbers, x: Numbers, slack: Numbers, used: Numbers) -> float:
    """The part of a Newton step that stays inside all limits."""
    limits = [1.0]
    if (step < 0).any():
        limits.append(0.9 * float((-x / step)[step < 0].min()))
    if (used > 0).any():
        limits.append(0.9 * float((slack / used)[used > 0].min()))
    return min(limits)


# The top k: no model that is named may be worse than the true k-th by more than ε.


def closest_alternative(
    means: Numbers, variances: Numbers, scores: Numbers, model: int, epsilon: float, top: int
) -> Numbers:
    """The world that is hardest to exclude, as information per score of each model: this model
    falls to a threshold, and k others are at least ε above it."""
    others = np.arange(len(means)) != model
    thresholds = np.linspace(means.min() - epsilon, means[model], GRID)[:, None]
    lifts = np.maximum(thresholds + epsilon - means, 0) ** 2 / (2 * variances)
    lifts[:, model] = np.inf
    prices = np.where(others, lifts * scores, np.inf)
    # of equally cheap models, the nearer ones
    order = np.lexsort((lifts, prices), axis=1)[:, :top]
    fall = (means[model] - thresholds[:, 0]) ** 2 / (2 * variances[model])
    best = int(
        np.argmin(fall * scores[model] + np.take_along_axis(prices, order, axis=1).sum(axis=1))
    )
    costs = np.zeros(len(means))
    costs[order[best]] = lifts[best, order[best]]
    costs[model] = fall[best]
    return costs


def allocate_for_top(
    means: Numbers, variances: Numbers, epsilon: float, delta: float, top: int
) -> Allocation:
    """Cutting planes: a linear programme over scores, to which the closest alternatives of its
    solution are added until none is violated. The answer to prove is the true top."""
    wanted, costs = kl(1 - delta, delta), list[Numbers]()
    named = np.argsort(-means, kind="stable")[:top].tolist()
    points, best, bound = [np.ones(len(means))], np.full(len(means), math.inf), 0.0
    for _ in range(ROUNDS):
        for point in points:
            found = [
                closest_alternative(means, variances, point, model, epsilon, top) for model in named
            ]
            costs += found
            reached = point * wanted / min(float(each @ point) for each in found)
            best = min(best, reached, key=lambda scores: float(scores.sum()))
        gap = 1 - bound / float(best.sum())
        if gap <= PRECISION:
            return Allocation(best, bound)
        # a coarse solution lies further inside, where cuts go deeper, and so does a point on the
        # way to the best allocation so far
        scores, least = solve_cuts(np.array(costs), wanted, max(PRECISION / 4, gap / 4))
        bound = max(bound, least)
        points = [scores, (scores + 3 * best) / 4]
    raise ArithmeticError(f"the bound did not converge: it is between {bound:g} and {best.sum():g}")


def solve_cuts(costs: Numbers, wanted: float, precision: float) -> tuple[Numbers, float]:
    """The smallest Σ n with costs · n ≥ wanted, by a barrier; the second number is a lower bound on
    the sum."""
    unit = 2 * wanted / float(costs.sum(axis=1).min())  # so that 1 is inside all limits
    matrix = np.vstack([costs * unit / wanted, np.eye(costs.shape[1])])
    limits = np.concatenate([np.ones(len(costs)), np.zeros(costs.shape[1])])
    z, weight = np.ones(costs.shape[1]), 1.0
    while True:
        z = centre(z, weight * np.ones(len(z)), matrix, limits)
        total, gap = float(z.sum()), len(limits) / weight
        if gap < precision * total:
            return unit * z, unit * (total - gap)
        weight *= 4


def centre(z: Numbers, cost: Numbers, matrix: Numbers, limits: Numbers) -> Numbers:
    """Minimise cost · z − Σ log(matrix z − limits) by Newton's method with a line search."""
    value = float(cost @ z - np.log(matrix @ z - limits).sum())
    for _ in range(100):
        slack = matrix @ z - limits
        gradient = cost - matrix.T @ (1 / slack)
        step = -np.linalg.solve((matrix.T / slack**2) @ matrix, gradient)
        slope = float(gradient @ step)
        if -slope < 1e-6:
            break
        used, length = -(matrix @ step), 1.0
        if (used > 0).any():
            length = min(1.0, 0.95 * float((slack[used > 0] / used[used > 0]).min()))
        while length > 1e-10:
            tried = z + length * step
            new = float(cost @ tried - np.log(matrix @ tried - limits).sum())
            if new <= value + 0.1 * length * slope:
                break
            length /= 2
        else:
            break
        z, value = tried, new
    return z

"""Duels: for every pair of models, bets on which one is better, valid at every look, until the
ranking is decided."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from parley.statistics.confidence_sequences import Numbers

NEAR = (0.5, 1.0, 2.0, 4.0)  # of ε: how much better a gambler may suppose one model to be
FAR = (0.1, 0.4)  # of the range, for models that are far apart
MOST = 0.8  # of its capital that a bet may lose
PRIOR = 0.04  # the variance of a difference before any is seen; scores lie in [0, 1]


class Duels:
    """All pairs of models in all roles, compared on the blocks that both played.

    For a pair (a, b), gamblers bet against four claims: a ≤ b, b ≤ a, a ≥ b + ε, b ≥ a + ε. A
    gambler who multiplies the stake by the number of claims that can be true at once, divided by α,
    has refuted the claim. So the probability that any verdict is wrong is at most α, at every look.
    Stakes are spread over several margins and chosen by the Kelly criterion.
    """

    def __init__(self, roles: int, models: int, epsilon: Numbers, alpha: float) -> None:
        self.roles, self.models = roles, models
        self._a, self._b = (
            np.array(list(combinations(range(models), 2)), dtype=np.int64).reshape(-1, 2).T
        )
        pairs = len(self._a)
        self._claims = 2 * roles * pairs
        self._stake = math.log(max(self._claims, 1) / alpha)
        self._epsilon = epsilon  # by role
        self._n = np.zeros((roles, pairs))
        self._sum = np.zeros((roles, pairs))
        self._squares = np.full((roles, pairs), PRIOR)
        self._margins = np.concatenate(
            [np.multiply.outer(NEAR, epsilon), np.repeat(FAR, roles).reshape(-1, roles)]
        )
        self._capital = np.zeros((4, len(self._margins), roles, pairs))  # logarithms
        self.best = np.zeros((4, roles, pairs))  # the most that each gambler ever had

    def add(self, scores: Numbers) -> None:
        """Add one block: a score for every role and model, nan if the model did not play or has
        no score; higher is better."""
        gap = scores[:, self._a] - scores[:, self._b]
        role, pair = np.nonzero(~np.isnan(gap))
        if not len(role):
            return
        d = np.clip(gap[role, pair], -1, 1)
        n, epsilon = self._n[role, pair], self._epsilon[role]
        mean, variance = self._sum[role, pair] / (n + 1), self._squares[role, pair] / (n + 1)
        margins = self._margins[:, role]
        bets = np.minimum(margins / (variance + margins**2), MOST)  # from the past only
        gains = np.stack([d, -d, epsilon - d, epsilon + d])
        capital = self._capital[:, :, role, pair] + np.log1p(bets * gains[:, None, :])
        self._capital[:, :, role, pair] = capital
        top = capital.max(axis=1)
        together = top + np.log(np.exp(capital - top[:, None, :]).mean(axis=1))
        self.best[:, role, pair] = np.maximum(self.best[:, role, pair], together)
        self._n[role, pair] += 1
        self._sum[role, pair] += d
        self._squares[role, pair] += (d - mean) ** 2

    def _refuted(self, claim: int, mirrored: int) -> NDArray[np.bool_]:
        """For each role and pair of models, whether the claim about them is refuted."""
        found = np.zeros((self.roles, self.models, self.models), dtype=bool)
        found[:, self._a, self._b] = self.best[claim] >= self._stake
        found[:, self._b, self._a] = self.best[mirrored] >= self._stake
        return found

    @property
    def better(self) -> NDArray[np.bool_]:
        """For each role, whether the first model is significantly better than the second."""
        return self._refuted(0, 1)

    @property
    def not_ahead(self) -> NDArray[np.bool_]:
        """For each role, whether it is certain that the first model is not better by ε."""
        return self._refuted(2, 3)

    def p(self) -> Numbers:
        """For each role and pair, the level at which the two models are separated, adjusted for
        all pairs and valid at every look."""
        return np.asarray(
            np.minimum(1, self._claims * np.exp(-np.maximum(self.best[0], self.best[1])))
        )

    def p_of_equality(self) -> Numbers:
        """For each role and pair, the level at which the two models differ by less than ε, adjusted
        in the same way."""
        return np.asarray(
            np.minimum(1, self._claims * np.exp(-np.minimum(self.best[2], self.best[3])))
        )

    def undecided(self) -> NDArray[np.bool_]:
        """For each role, the undecided pairs: neither model is better, and they are not known to
        differ by less than ε."""
        better, level = self.better, self.not_ahead
        return self._apart(~(better | better.swapaxes(1, 2) | (level & level.swapaxes(1, 2))))

    def undecided_top(self, count: int, means: Numbers) -> NDArray[np.bool_]:
        """For each role, pairs of a model outside the top K and one inside it, where the outside
        model may still be ahead by ε."""
        order = np.argsort(np.argsort(-means, axis=1, kind="stable"), axis=1, kind="stable")
        top = order < count
        open_ = ~top[:, :, None] & top[:, None, :] & ~(self.not_ahead | self.better.swapaxes(1, 2))
        return self._apart(open_ | open_.swapaxes(1, 2))

    def _apart(self, pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        pairs[:, np.arange(self.models), np.arange(self.models)] = False
        return pairs


def expected_duel_blocks(
    gap: float, spread: float, epsilon: float, level: float, most: int
) -> int | None:
    """The approximate number of blocks that are needed to separate two models whose means differ by
    `gap` and whose differences have this standard deviation; None if it is more than the limit.

    All values are in units of the range of scores; `level` is the α of a single claim.
    """
    duels = Duels(1, 2, np.array([epsilon]), 2 * level)
    for block in range(1, most + 1):
        duels.add(np.array([[gap + (spread if block % 2 else -spread), 0.0]]))
        if not duels.undecided().any():
            return block
    return None

"""The race: plays only the models whose rank is still undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from parley.plans import Done
from parley.plans.sequential import Values
from parley.plans.stop_targets import (
    StopTarget,
    describe_assumption,
    expected_spread,
    format_block_count,
    join_names,
    refuse_unscored,
    unit_suffix,
)
from parley.rules.task import Metric
from parley.statistics.duels import Duels, expected_duel_blocks
from parley.statistics.stopping_rules import LEAST
from parley.tables import plural

FAR = 5000  # blocks; the most that a forecast considers


class RaceRule:
    """Ends a run once every pair of models is ranked, or known to differ by less than ε; or once
    the top is known.

    A model that is decided in a role still plays where others need a partner. So partners are drawn
    uniformly from all models, and the means of eq. 3 and 4 are estimated unchanged. Its own scores
    there no longer count.
    """

    def __init__(
        self, leading: Mapping[str, Metric], contestants: Sequence[str], stop: StopTarget
    ) -> None:
        self._roles, self._aliases, self._stop = list(leading), list(contestants), stop
        self._metrics = list(leading.values())
        self.metrics = {role: metric.name for role, metric in leading.items()}
        self._low = np.array([[metric.low] for metric in self._metrics])
        self._width = np.array([[metric.high - metric.low] for metric in self._metrics])
        self._sign = np.array(
            [[1.0 if metric.better == "higher" else -1.0] for metric in self._metrics]
        )
        epsilon = np.array(
            [metric.epsilon / (metric.high - metric.low) for metric in self._metrics]
        )
        self._duels = Duels(len(self._roles), len(self._aliases), epsilon, stop.alpha)
        shape = (len(self._roles), len(self._aliases))
        self._sum, self._n = np.zeros(shape), np.zeros(shape)
        self._wanted: NDArray[np.bool_] = np.ones(shape, dtype=np.bool_)
        self.blocks = 0

    @property
    def _open(self) -> int:
        return int(self._undecided().sum()) // 2

    def _undecided(self) -> NDArray[np.bool_]:
        if self._stop.top is None or self._stop.top >= len(self._aliases):
            return self._duels.undecided()
        return self._duels.undecided_top(self._stop.top, self._sum / np.maximum(self._n, 1))

    @property
    def status_line(self) -> str:
        pairs = len(self._roles) * len(self._aliases) * (len(self._aliases) - 1) // 2
        racing = [alias for at, alias in enumerate(self._aliases) if self._wanted[:, at].any()]
        state = f"{self._open} of {pairs} pairs undecided after {plural(self.blocks, 'block')}"
        return state + (f"; still playing: {join_names(racing)}" if self.blocks and racing else "")

    def cautions(self, most: int, matches: int) -> list[str]:
        """Before the race: how many blocks its hardest pair would take."""
        count, roles = len(self._aliases), len(self._roles)
        found = []
        for metric in dict.fromkeys(self._metrics):
            epsilon, width, spread = (
                metric.epsilon,
                metric.high - metric.low,
                1.4 * expected_spread(metric),
            )
            level = self._stop.alpha / (roles * count * (count - 1))
            blocks = expected_duel_blocks(
                epsilon / 2 / width, spread / width, epsilon / width, level, FAR
            )
            need = format_block_count(blocks, matches) if blocks else f"more than {FAR:,} blocks"
            found.append(
                (
                    "forecast: to decide a close pair of models "
                    f"({epsilon / 2:g}{unit_suffix(metric)} apart), the race needs {need}, "
                    f"{describe_assumption(metric)}; "
                )
                + (
                    "larger differences are decided earlier"
                    if self._stop.top is None
                    else "a race with --top usually needs far fewer"
                )
            )
            if blocks is None or blocks > most:
                found.append(
                    f"at most {most:,} blocks will be played, so some pairs may stay undecided; "
                    "`parley simulate` estimates how many blocks you need"
                )
        if count < 6 and self._stop.top is None:
            found.append(
                "for a full ranking of few models, a race needs almost as many matches as "
                "--plan cycles"
            )
        return found

    def is_wanted(self, role: str, alias: str) -> bool:
        return role in self.metrics and bool(
            self._wanted[self._roles.index(role), self._aliases.index(alias)]
        )

    def add_block(self, block: Values) -> None:
        scores = np.full(self._wanted.shape, np.nan)
        for (role, alias), values in block.items():
            scores[self._roles.index(role), self._aliases.index(alias)] = sum(values) / len(values)
        scores = self._sign * (scores - self._low) / self._width
        self._duels.add(scores)
        seen = ~np.isnan(scores)
        self._sum += np.where(seen, scores, 0)
        self._n += seen
        self.blocks += 1

    def verdict(self) -> Done | None:
        if self.blocks < LEAST:
            return None
        for at, role in enumerate(self._roles):
            for alias in (
                alias for alias, n in zip(self._aliases, self._n[at], strict=True) if not n
            ):
                refuse_unscored(role, alias, self.metrics[role], self.blocks)
        better = self._duels.better
        for role, a, b in np.argwhere(better & better.swapaxes(1, 2)):
            return Done(
                "drift",
                f"as {self._roles[role]}, {self._aliases[a]} was significantly better than "
                f"{self._aliases[b]} in some blocks and significantly worse in others, so "
                "scores drifted during the run",
            )
        undecided = self._undecided()
        self._wanted = np.asarray(undecided.any(axis=2))
        return None if undecided.any() else Done("converged", self._found())

    def _found(self) -> str:
        """The result of a finished race."""
        if self._stop.top is None:
            return (
                "every pair of models is ranked, or differs by less than "
                f"{self._metrics[0].epsilon:g}, after {self.blocks} blocks"
            )
        means, found = self._sum / np.maximum(self._n, 1), []
        for at, role in enumerate(self._roles):
            leading = [
                self._aliases[place]
                for place in np.argsort(-means[at], kind="stable")[: self._stop.top]
            ]
            found.append(f"top {self._stop.top} as {role}: {', '.join(leading)}")
        return (
            f"{'; '.join(found)}; after {self.blocks} blocks, no other model can be better "
            f"than one of these by {self._metrics[0].epsilon:g} or more"
        )

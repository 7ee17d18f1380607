"""The rule of `--until-stable`: ends a run when the interval of every result is narrow enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parley.plans import Done
from parley.plans.sequential import BUSY, Values
from parley.plans.stop_targets import (
    StopTarget,
    describe_assumption,
    expected_spread,
    format_block_count,
    refuse_unscored,
    unit_suffix,
)
from parley.rules.task import Metric
from parley.statistics.stopping_rules import (
    LEAST,
    StabilityRule,
    WatchedCell,
    count_fixed_blocks,
    forecast_blocks,
)
from parley.tables import plural

FAR = 5000  # blocks; the most that a forecast considers
CHEAPER = 0.7  # a fixed number of blocks is advised if it takes at most this share of the matches
FEWEST = 6  # blocks of a fixed run that is advised: with fewer, a sign test ranks no model


class StableRule:
    """Ends a run once every model in every role has the half-width that the user set."""

    def __init__(
        self,
        leading: Mapping[str, Metric],
        contestants: Sequence[str],
        stop: StopTarget,
        items: int,
    ) -> None:
        self._leading, self._stop = leading, stop
        self._items, self._population = items, items if stop.target == "these_items" else None
        cells = [
            WatchedCell(role, alias, metric.name, metric.low, metric.high, metric.epsilon)
            for role, metric in leading.items()
            for alias in contestants
        ]
        self._stability = StabilityRule(cells, stop.alpha, self._population)
        self.metrics = {role: metric.name for role, metric in leading.items()}

    @property
    def status_line(self) -> str:
        widest = self._stability.widest()
        if widest is None:
            return ""
        cell, width = widest
        blocks, whose = self._stability.blocks, f"{cell.alias}, {cell.role}"
        # the half-width shrinks with the root of the number of blocks, and faster at first
        more = round(blocks * ((width / cell.epsilon) ** 2 - 1))
        left = f", about {more:,} more blocks at most" if blocks and more > 0 else ""
        return (
            f"half-width {width:.3g} after {plural(blocks, 'block')}, target {cell.epsilon:g} "
            f"({whose}){left}"
        )

    def cautions(self, most: int, matches: int) -> list[str]:
        """Before the run: how many blocks the half-width will take, and whether it can be
        reached."""
        cells, found = len(self._stability.cells), []
        for metric in dict.fromkeys(self._leading.values()):
            role = next(role for role, its in self._leading.items() if its == metric)
            cell = next(cell for cell in self._stability.cells if cell.role == role)
            spread, level = expected_spread(metric), self._stop.alpha / cells
            wanted = (
                f"a half-width of {cell.epsilon:g}{unit_suffix(metric)} in {metric.name} for "
                f"all {cells} results"
            )
            guess = describe_assumption(metric)
            soon = forecast_blocks(cell, spread, level, min(most, FAR), self._population)
            if soon.blocks is not None:
                found.append(
                    f"forecast: {wanted} takes {format_block_count(soon.blocks, matches)}, {guess}"
                )
            else:
                bound = f"the {most:,} items" if most == self._items else f"{most:,} blocks"
                far = forecast_blocks(cell, spread, level, FAR)
                need = (
                    format_block_count(far.blocks, matches)
                    if far.blocks
                    else f"more than {FAR:,} blocks"
                )
                found.append(
                    f"forecast: {bound} are probably too few for {wanted}; expect a half-width "
                    f"of about {soon.half_width:.2g}. You need "
                    f"{need}{' with more items' if self._items else ''}, {guess}"
                )
            found += self._advise_fixed(cell, spread, level, most, matches, soon.blocks)
        return found

    def _advise_fixed(
        self,
        cell: WatchedCell,
        spread: float,
        level: float,
        most: int,
        matches: int,
        blocks: int | None,
    ) -> list[str]:
        """Advice to play a fixed number of blocks, if that gives the same half-width with clearly
        fewer matches."""
        fixed = count_fixed_blocks(cell.epsilon, spread, level, min(most, FAR))
        if fixed is None:
            return []
        fixed = max(fixed, FEWEST)
        # the fewest matches of a sequential run
        looking = max((blocks or most) * matches, min(BUSY, most * matches))
        if fixed * matches > CHEAPER * looking:
            return []
        way = f"--items {fixed}" if self._items else f"--repeats {fixed}"
        return [
            f"a fixed number of matches would be cheaper: for this half-width, {way} without "
            f"--until-stable needs about {fixed * matches:,} matches, and --until-stable needs "
            f"{'more than' if blocks is None else 'about'} {looking:,}. Intervals that are "
            "valid at every look cost extra if scores vary little (standard deviation "
            f"{spread:.3g}) within their range ({cell.low:g} to {cell.high:g})"
        ]

    def is_wanted(self, role: str, alias: str) -> bool:
        return True

    def add_block(self, block: Values) -> None:
        self._stability.add(block)

    def verdict(self) -> Done | None:
        stability = self._stability
        if stability.blocks >= LEAST and (unseen := stability.unseen()):
            refuse_unscored(unseen[0].role, unseen[0].alias, unseen[0].metric, stability.blocks)
        match stability.status:
            case "drift":
                cell = next(
                    cell
                    for cell, found in zip(stability.cells, stability.intervals, strict=True)
                    if found is None
                )
                return Done(
                    "drift",
                    f"the scores of {cell.alias} as {cell.role} drifted during the run, so no "
                    "single mean is consistent with all blocks",
                )
            case "converged":
                return Done("converged", self.status_line)
        return None

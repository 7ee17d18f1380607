"""Until stable: every result's interval, valid at every look, is narrow enough."""

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

FAR = 5000  # blocks; a forecast looks no farther
CHEAPER = 0.7  # a fixed number of blocks is advised where it takes no more than this share
FEWEST = 6  # blocks of a fixed run that is advised: with fewer, a sign test ranks nobody


class StableRule:
    """Ends a run once the half-width of every model in every role is what was asked for."""

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
        # it shrinks as the root of the blocks, and faster at first
        more = round(blocks * ((width / cell.epsilon) ** 2 - 1))
        left = f", at most some {more:,} blocks more" if blocks and more > 0 else ""
        return (
            f"half-width {width:.3g} after {blocks} blocks, wanted {cell.epsilon:g} ({whose}){left}"
        )

    def cautions(self, most: int, matches: int) -> list[str]:
        """Before the run: how many blocks the half-width will take, and whether it can be had at
        all."""
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
                    f"forecast: {bound} will hardly give {wanted}: expect about "
                    f"{soon.half_width:.2g}; it takes {need}"
                    f"{' of new items' if self._items else ''}, {guess}"
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
        """Where a fixed number of blocks would give the same half-width for clearly less: how many
        of them, and how many matches each way takes."""
        fixed = count_fixed_blocks(cell.epsilon, spread, level, min(most, FAR))
        if fixed is None:
            return []
        fixed = max(fixed, FEWEST)
        # a run that looks at what it sees plays whole batches
        looking = max((blocks or most) * matches, min(BUSY, most * matches))
        if fixed * matches > CHEAPER * looking:
            return []
        way = f"--items {fixed}" if self._items else f"--repeats {fixed}"
        return [
            f"a fixed number would be cheaper: {way} without --until-stable takes about "
            f"{fixed * matches:,} matches for this half-width, --until-stable "
            f"{'more than ' if blocks is None else 'about '}{looking:,}: its intervals hold at "
            f"every look, and pay for the whole range ({cell.low:g} to {cell.high:g}) where blocks "
            f"spread by {spread:.3g}"
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
                    f"the blocks of {cell.alias} as {cell.role} were not alike: "
                    f"no mean fits all of them",
                )
            case "converged":
                return Done("converged", self.status_line)
        return None

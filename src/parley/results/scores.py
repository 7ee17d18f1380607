"""The scores of a run, as every analysis reads them: computed from the run's record alone."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

from parley.errors import StoreError, UsageError
from parley.money import FindPrice, cost_rows, prices_of
from parley.results.main_stage import MainStage, choose_main_stage
from parley.results.run_facts import group_attempts
from parley.results.signature import make_signature
from parley.results.types import (
    IdenticalRepeats,
    ScoreRow,
    Share,
)
from parley.rules.notes import Note
from parley.rules.pool import Seat
from parley.rules.task import Metric, name_unprotected
from parley.statistics import estimates, role_tables
from parley.statistics.block_means import BlockNames, BlockSums
from parley.statistics.intervals import ALPHA, compute_interval
from parley.statistics.role_tables import SeatScore
from parley.store import MatchRow, RunReader
from parley.tables import plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from parley.results.score_columns import PairedMetrics, PairedSeats, ScoreColumns
    from parley.statistics.anytime import Anytime

N = TypeVar("N", bound=Note)


class RunScores:
    """The scores of a run, in all the forms that analyses need. The `compute` of a part gets this.

    Only matches that have ended count, and only seats that are scored. In a run with sequential
    stopping, only complete blocks count.
    """

    def __init__(
        self,
        reader: RunReader,
        method: str = "block",
        look_up: FindPrice | None = None,
        scores_file: str | Path | None = None,
    ) -> None:
        """`look_up` finds prices that the run did not record; `scores_file` has external scores."""
        # late: `parley ls` imports this module and computes no scores
        from parley.results.played_matches import PlayedMatches
        from parley.results.score_columns import LazyRows, ScoreColumns

        self.reader, self.info, self.method = reader, reader.info, method
        self.prices, self.scores_file = prices_of(reader, look_up), scores_file
        self.config, self.identity = reader.info.config, reader.info.identity
        self.metrics: dict[str, Metric] = {
            each["name"]: parse_metric(each) for each in self.identity["metrics"]
        }
        self.bounds = {name: (metric.low, metric.high) for name, metric in self.metrics.items()}
        self.roles = [name for name, kind in self.identity["roles"].items() if kind == "contestant"]
        if self.config.stop is not None and method != "block":
            raise UsageError(
                "this run stopped depending on its scores, so only anytime-valid intervals "
                f"are valid: leave out the interval method {method!r}"
            )
        played = PlayedMatches.read(reader.matches())
        if self.config.stop is not None:
            played = played.in_whole_blocks()
        scores = ScoreColumns.read(reader.scores(), played.blocks)
        if self.config.stop is not None:
            scores = scores.select(number in played for number in scores.match)
        # in an `evolve` run: all stages here, and below the stage that the main tables show
        self._every_match = played
        self.every_match = played.rows(reader)
        self.every_score = LazyRows(scores.scores, len(scores))
        self.main_stage = choose_main_stage(self.config.evolve, played.stages_and_arms())
        if self.main_stage is not None:
            played = played.in_stages(self.main_stage.includes)
            scores = scores.select(number in played for number in scores.match)
        self._played, self._scores = played, scores
        self.blocks = played.blocks  # all blocks of the run, by number
        self.matches = played.rows(reader)
        self.same, self.identical = self._find_identical_repeats()
        self._counted = scores.with_seats(lambda each: not each.unscored)
        self.observations = LazyRows(self._counted.observations, len(self._counted))

    def _find_identical_repeats(self) -> tuple[dict[str, str], IdenticalRepeats | None]:
        if not self._played.has_repeated_item():
            return {}, None
        from parley.results.repeat_check import find_identical_repeats

        is_fixed = self.config.stop is None
        return find_identical_repeats(self.reader, self._played, self._scores, self.roles, is_fixed)

    @cached_property
    def tallies(self) -> dict[estimates.Key, estimates.CellTally]:
        """By metric, role and alias: block means, and counts of matches and missing scores."""
        return self._counted.tally_cells()

    def values_of(self, alias: str) -> array[float]:
        """The scores of a model in all roles and metrics, by match; NaN if a score is missing."""
        return self._counted.values_of(lambda each: each.alias == alias)

    def compute_cells(self, blocks: Iterable[str]) -> list[estimates.Cell]:
        """The result of every model in every role and metric, on some of the blocks."""
        tallies = self._counted.in_blocks(blocks).tally_cells()
        return estimates.compute_cells(tallies, self.bounds, self.method)

    @cached_property
    def block_means(self) -> estimates.Table:
        """By metric, role and alias, the mean of each block."""
        return {key: tally.means for key, tally in self.tallies.items() if tally.means}

    def first_identical(self, block: str) -> str:
        """The first block that is identical to this one; it clusters matches that are not
        independent."""
        return self.same.get(block, block)

    @cached_property
    def block_order(self) -> NDArray[np.int64]:
        """By the number of a block: the place of its first identical block, by name."""
        import numpy as np

        names = list(map(self.first_identical, self.blocks.names))
        places = {name: at for at, name in enumerate(sorted(set(names)))}
        return np.array([places[name] for name in names], dtype=np.int64)

    def pair_metrics(self, role: str, first: str, second: str) -> PairedMetrics | None:
        """The scores of a role in two metrics, by match and model; None if no match has both."""
        return self._counted.pair_metrics(role, first, second)

    def notes(self, kind: type[N]) -> Iterator[tuple[MatchRow, N]]:
        """The notes of one kind in matches that count, by match, as the type that was written."""
        matches = iter(self.matches)  # by number, as notes are
        match = next(matches, None)
        for row in self.reader.notes(kind.kind):
            while match is not None and match.number < row.match:
                match = next(matches, None)
            if match is None:
                return
            if match.number == row.match:
                try:
                    note = kind.from_facts(row.facts)
                except ValueError as wrong:
                    raise StoreError(
                        f"match {row.match}: a recorded note is damaged: {wrong}"
                    ) from None
                yield match, note

    def contestants_of(self, match: MatchRow) -> Iterator[tuple[Seat, str]]:
        """The seats of a match that are scored, with the aliases that sat there."""
        for seat, alias in match.seats.items():
            if seat.role in self.roles and seat not in match.unscored:
                yield seat, alias

    def share(self, cases: Iterable[tuple[str, bool]]) -> Share:
        """The share of cases among (block, case), with an interval over blocks."""
        names, count = BlockNames(), 0
        sums = BlockSums(names)
        for block, case in cases:
            sums.add(names.number(block), case)
            count += case
        means = sums.means()
        values, weights = estimates.merge_blocks(means, self.same)
        low, high, _ = compute_interval(values, (0.0, 1.0), weights=weights)
        return Share(count, fmean(means.values()), low, high, len(values))

    def ranking_metric(self, role: str, measured: bool = False) -> str | None:
        """The metric that a role is ranked by: the first one that is measured for this role alone,
        else the first metric of the role; with `measured`, judged metrics are skipped."""
        found = choose_ranking_metric(list(self.metrics.values()), role, measured)
        return found.name if found else None

    @cached_property
    def anytime(self) -> dict[str, Anytime] | None:
        """By metric, the anytime-valid estimates of a run with sequential stopping."""
        stop = self.config.stop
        if stop is None:
            return None
        from parley.statistics.anytime import Scale, compute_anytime

        population = len(self.reader.items()) if stop.target == "these_items" else None
        repeats = {match.number: match.repeat for match in self.reader.matches()}
        metrics = list(self.metrics.values())
        found = {}
        for metric in metrics:
            scale = Scale(metric.low, metric.high, stop.epsilon(metric, metrics[0]))
            if scale.low < scale.high and scale.epsilon > 0:
                found[metric.name] = compute_anytime(
                    self.observations,
                    metric.name,
                    scale,
                    stop.alpha,
                    len(self.roles),
                    repeats,
                    population,
                )
        return found

    @cached_property
    def cost(self) -> list[dict[str, Any]]:
        """Calls, tokens and cost by model and role, over all calls of the run."""
        return cost_rows(self.reader, self.prices)

    @cached_property
    def results(self) -> tuple[ScoreRow, ...]:
        """Every model in every role and metric: mean, interval, n, missing scores, signature."""
        served, order = self.reader.names_served(), list(self.metrics)
        faults, defaulted = self._count_faults()
        found = estimates.compute_cells(self.tallies, self.bounds, self.method, self.same)
        without = missing_by_failure(
            self.reader, self._expected_metrics, self.roles, self.main_stage
        )
        cells = {(cell.alias, cell.role, cell.metric) for cell in found}
        protected = {name_unprotected(name): name for name in self.metrics}
        # a metric of which a model has nothing but unprotected results has an empty row
        expected = {
            (alias, role, protected[metric]): None
            for alias, role, metric in sorted(cells)
            if metric in protected
        }
        nothing = compute_interval([], (0, 0))
        found += [
            estimates.Cell(*key, None, nothing, None, 0, 0, 0)
            for key in {**dict.fromkeys(without), **expected}
            if key not in cells
        ]
        rows = []
        for cell in sorted(
            found, key=lambda cell: (order.index(cell.metric), cell.role, cell.alias)
        ):
            low, high, kind = self._interval(cell)
            rows.append(
                ScoreRow(
                    alias=cell.alias,
                    model_requested=self.config.models[cell.alias]["model"],
                    model_served=list(served.get(cell.alias, [])),
                    role=cell.role,
                    metric=cell.metric,
                    unit=self.metrics[cell.metric].unit,
                    mean=cell.mean,
                    low=low,
                    high=high,
                    sd=cell.sd,
                    interval=kind,
                    blocks=cell.blocks,
                    matches=cell.matches,
                    missing=cell.missing + without[cell.alias, cell.role, cell.metric],
                    violations=faults[cell.alias, cell.role],
                    signature=make_signature(self.info, cell.matches),
                    defaulted=defaulted[cell.alias, cell.role],
                )
            )
        return tuple(rows)

    @property
    def _expected_metrics(self) -> list[Metric]:
        """The metrics that a match which failed has not: those of protected results."""
        unprotected = set(map(name_unprotected, self.metrics))
        return [each for name, each in self.metrics.items() if name not in unprotected]

    def _count_faults(self) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        """By alias and role: violations, and the matches that count in which the task's default
        replaced a reply that could not be read."""
        faults, defaulted = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        matches = iter(self.matches)  # by number, as violations are
        match: MatchRow | None = None
        for number, rows in groupby(self.reader.violations(), lambda each: each.match):
            counts = number in self._played
            if self.main_stage is not None and not counts:
                continue
            violations = list(rows)
            faults.update(
                (tries[0].alias, tries[0].seat.role) for tries in group_attempts(violations)
            )
            replaced = {each.seat for each in violations if each.outcome == "default"}
            if not replaced or not counts:
                continue
            while match is None or match.number < number:
                match = next(matches)
            defaulted.update(
                {
                    (alias, seat.role)
                    for seat, alias in self.contestants_of(match)
                    if seat in replaced
                }
            )
        return faults, defaulted

    @property
    def is_exact(self) -> bool:
        """Whether the scores are exact for the prompts of this run, so that they have no
        interval."""
        return self.identical is not None and self.identical.exact

    def _interval(self, cell: estimates.Cell) -> tuple[float | None, float | None, str | None]:
        """The interval of a cell; with sequential stopping, the anytime-valid one."""
        if self.is_exact:
            return (None, None, "exact" if cell.mean is not None else None)
        if self.anytime is None:
            return cell.interval
        known = self.anytime.get(cell.metric)
        found = known.intervals.get((cell.metric, cell.role, cell.alias)) if known else None
        return (*found, "anytime") if found else (None, None, None)

    @cached_property
    def differences(self) -> tuple[estimates.PairedDifference, ...]:
        """All differences between models in one role and metric, in a fixed order."""
        table = self.block_means
        if self.is_exact:
            found = estimates.compare_exactly(table, self.same)
        elif self.anytime is None:
            found = estimates.compare_models(table, self.bounds, ALPHA, self.method, self.same)
        else:
            found = [pair for each in self.anytime.values() for pair in each.pairs]
        order = list(self.metrics)
        return tuple(
            sorted(found, key=lambda pair: (order.index(pair.metric), pair.role, pair.a, pair.b))
        )

    @cached_property
    def ranks(self) -> tuple[estimates.Rank, ...]:
        """The range of ranks of each model."""
        order, alpha = list(self.metrics), self.config.stop.alpha if self.config.stop else ALPHA
        lower = frozenset(name for name, m in self.metrics.items() if m.better == "lower")
        table = self.block_means
        found = (
            estimates.rank_exactly(table, lower, self.bounds)
            if self.is_exact
            else estimates.rank_intervals(table, self.differences, lower, alpha)
        )
        return tuple(
            sorted(
                found,
                key=lambda rank: (
                    order.index(rank.metric),
                    rank.role,
                    rank.low,
                    rank.high,
                    rank.alias,
                ),
            )
        )

    @cached_property
    def _seated(self) -> ScoreColumns:
        return self._scores.with_seats(lambda each: each.seat.role in self.roles)

    def seats_with_positions(self) -> Iterator[SeatScore]:
        """The scores of roles that have several seats; the score of an unscored seat is None."""
        seats = {each.seat for each in self._seated.used_seats()}
        held = Counter(seat.role for seat in seats)
        for match, block, (seat, alias, metric, unscored), value in self._seated.rows():
            if held[seat.role] > 1:
                scored = None if unscored else value
                yield SeatScore(block, match, seat.role, seat.number, alias, metric, scored)

    @cached_property
    def two_seats(self) -> tuple[role_tables.Place, role_tables.Place] | None:
        """The first and the second seat, if matches have two seats."""
        used = self._seated.used_seats()
        places = {(each.seat.role, each.seat.number) for each in used}
        return role_tables.find_two_seats(places, self.roles)

    @cached_property
    def _pairs(self) -> PairedSeats | None:
        from parley.results.score_columns import PairedSeats

        return PairedSeats(self._seated, self.two_seats) if self.two_seats else None

    def matches_of_two(self) -> frozenset[int]:
        """The numbers of matches in which both of two seats have scores."""
        return self._pairs.matches() if self._pairs else frozenset()

    def meetings(self, metric: str) -> Iterable[role_tables.Meeting]:
        """The matches between two seats in one metric; none if matches have other seats."""
        return self._pairs.meetings(metric) if self._pairs else ()

    def role_table(self, metric: str) -> role_tables.MeetingTable | None:
        """The scores of every pair of models in one metric; None if no two models met."""
        met = self._pairs.meetings(metric) if self._pairs else None
        if met is None or not len(met.match):
            return None
        listed = [*self.config.players, *self.config.excluded]
        return role_tables.make_role_table(met, listed, self.bounds[metric], self.same)


def parse_metric(facts: Mapping[str, Any]) -> Metric:
    """A metric as the record describes it."""
    return Metric(**{**facts, "roles": tuple(facts["roles"])})


def seat_name(role: str, position: int) -> str:
    """A seat's role and position as a table names them."""
    return f"{role} {position}" if position else role


def choose_ranking_metric(
    metrics: Sequence[Metric], role: str, measured: bool = False
) -> Metric | None:
    """The metric that a role is ranked by; see `RunScores.ranking_metric`."""
    own = [
        metric
        for metric in metrics
        if (not metric.roles or role in metric.roles) and not (measured and metric.judged)
    ]
    alone = [metric for metric in own if list(metric.roles) == [role] and not metric.judged]
    return next(iter([*alone, *own]), None)


def describe_identical(found: IdenticalRepeats | None) -> list[str]:
    """A note on a run whose models always gave the same reply to the same prompt."""
    if found is None:
        return []
    from parley.statistics.identical_repeats import WHAT_HELPS

    alike = f"a match was played {found.plays} times, with identical prompts and replies"
    if found.blocks > found.different:
        alike = (
            f"{found.blocks} blocks have only {plural(found.different, 'distinct set')} of prompts "
            f"and replies"
        )
    exact = (
        "; the scores are exact for these prompts, so they have no interval" if found.exact else ""
    )
    return [
        f"the models always gave the same replies: {alike}{exact}. More repeats add "
        f"nothing; use {WHAT_HELPS}"
    ]


def missing_by_failure(
    reader: RunReader,
    metrics: Sequence[Metric],
    contestants: Sequence[str],
    main_stage: MainStage | None = None,
) -> Counter[tuple[str, str, str]]:
    """By alias, role and metric, the scores that are missing because a match failed; none with
    sequential stopping."""
    is_whole = reader.info.config.stop is not None or not reader.counts().get("failed")
    seats = [
        (alias, seat.role)
        for match in (() if is_whole else reader.matches())
        if match.state == "failed"
        and (main_stage is None or main_stage.includes(match.stage, match.arm))
        for seat, alias in match.seats.items()
        if seat not in match.unscored
    ]
    return Counter(
        (alias, role, metric.name)
        for alias, role in seats
        for metric in metrics
        if role in (metric.roles or contestants)
    )

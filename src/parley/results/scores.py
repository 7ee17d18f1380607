"""The scores of a run, as every analysis reads them: computed from the run's record alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from parley.errors import StoreError, UsageError
from parley.money import FindPrice, cost_rows, prices_of
from parley.results.main_stage import choose_main_stage
from parley.results.repeat_check import find_identical_repeats
from parley.results.score_rows import make_score_rows
from parley.results.types import ScoreRow, Share
from parley.rules.notes import Note
from parley.rules.pool import Seat
from parley.rules.task import Metric
from parley.statistics import estimates, role_tables
from parley.statistics.anytime import Anytime, Scale, compute_anytime
from parley.statistics.intervals import ALPHA, compute_interval
from parley.statistics.score_table import Numbers, ScoredSeat, ScoreTable
from parley.store.reader import RunReader
from parley.store.types import MatchRow, Score

N = TypeVar("N", bound=Note)


class RunScores:
    """The scores of a run, and what analyses share. The `compute` of a part gets this.

    Only matches that have ended count, and only seats that are scored. In a run with sequential
    stopping, only complete blocks count. In an `evolve` run, `every_match` and `every_score` have
    all stages, everything else has the stage that the main tables show.
    """

    def __init__(
        self,
        reader: RunReader,
        method: str = "block",
        look_up: FindPrice | None = None,
        scores_file: str | Path | None = None,
    ) -> None:
        """`look_up` finds prices that the run did not record; `scores_file` has external scores."""
        self.reader, self.info, self.method = reader, reader.info, method
        self.prices, self.scores_file = prices_of(reader, look_up), scores_file
        self.config, self.identity = reader.info.config, reader.info.identity
        self.metrics: dict[str, Metric] = {
            each["name"]: parse_metric(each) for each in self.identity["metrics"]
        }
        self.bounds = {name: (metric.low, metric.high) for name, metric in self.metrics.items()}
        self.roles = [name for name, kind in self.identity["roles"].items() if kind == "contestant"]
        stops = self.config.stop is not None
        if stops and method != "block":
            raise UsageError(
                "this run stopped depending on its scores, so only anytime-valid intervals "
                f"are valid: leave out the interval method {method!r}"
            )
        planned = list(reader.matches.read())
        self.blocks = list(dict.fromkeys(match.block for match in planned))  # by number
        broken = {match.block for match in planned if stops and not match.has_ended}
        self.every_match = [m for m in planned if m.has_ended and m.block not in broken]
        self.every_score = read_score_table(reader.scores.read(), self.blocks, self.every_match)
        self.main_stage = choose_main_stage(
            self.config.evolve, {(match.stage, match.arm) for match in self.every_match}
        )
        self.matches, scores = self.every_match, self.every_score
        if self.main_stage is not None:
            shows = self.main_stage.includes
            self.matches = [match for match in self.matches if shows(match.stage, match.arm)]
            scores = select_matches(scores, self.matches)
        self.observations = scores.with_seats(lambda seat: not seat.unscored)
        # also seats that are not scored, without values: they show who played with whom
        self.seated = scores.with_seats(lambda seat: seat.role in self.roles).without_values(
            lambda seat: seat.unscored
        )
        self.same, self.identical = find_identical_repeats(
            reader, self.matches, scores, self.roles, is_fixed=not stops
        )

    @cached_property
    def match_by_number(self) -> dict[int, MatchRow]:
        """The matches that count."""
        return {match.number: match for match in self.matches}

    @cached_property
    def tallies(self) -> dict[estimates.Key, estimates.CellTally]:
        """By metric, role and alias: block means, and counts of matches and missing scores."""
        return estimates.tally_cells(self.observations)

    @cached_property
    def block_means(self) -> estimates.Table:
        """By metric, role and alias, the mean of each block."""
        return estimates.means_of_cells(self.tallies)

    def first_identical(self, block: str) -> str:
        """The first block that is identical to this one; it clusters matches that are not
        independent."""
        return self.same.get(block, block)

    @cached_property
    def block_order(self) -> Numbers:
        """By the number of a block: the place of its first identical block, by name."""
        names = list(map(self.first_identical, self.blocks))
        places = {name: at for at, name in enumerate(sorted(set(names)))}
        return np.array([places[name] for name in names], dtype=np.int64)

    def notes(self, kind: type[N]) -> Iterator[tuple[MatchRow, N]]:
        """The notes of one kind in matches that count, by match, as the type that was written."""
        for row in self.reader.notes.read(kind.kind):
            match = self.match_by_number.get(row.match)
            if match is None:
                continue
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
        by_block: dict[str, list[bool]] = {}
        for block, case in cases:
            by_block.setdefault(block, []).append(case)
        means = {block: fmean(found) for block, found in by_block.items()}
        values, weights = estimates.merge_blocks(means, self.same)
        low, high, _ = compute_interval(values, (0.0, 1.0), weights=weights)
        count = sum(map(sum, by_block.values()))
        return Share(count, fmean(means.values()), low, high, len(values))

    def ranking_metric(self, role: str, measured: bool = False) -> str | None:
        """The metric that a role is ranked by: the first one that is measured for this role alone,
        else the first metric of the role; with `measured`, judged metrics are skipped."""
        found = choose_ranking_metric(list(self.metrics.values()), role, measured)
        return found.name if found else None

    @cached_property
    def cost(self) -> list[dict[str, Any]]:
        """Calls, tokens and cost by model and role, over all calls of the run."""
        return cost_rows(self.reader, self.prices)

    @property
    def is_exact(self) -> bool:
        """Whether the scores are exact for the prompts of this run, so that they have no
        interval."""
        return self.identical is not None and self.identical.exact

    @cached_property
    def anytime(self) -> dict[str, Anytime] | None:
        """By metric, the anytime-valid estimates of a run with sequential stopping."""
        stop = self.config.stop
        if stop is None:
            return None
        population = len(self.reader.run.items()) if stop.target == "these_items" else None
        repeats = {match.number: match.repeat for match in self.matches}
        metrics, roles = list(self.metrics.values()), len(self.roles)
        found = {}
        for metric in metrics:
            scale = Scale(metric.low, metric.high, stop.epsilon(metric, metrics[0]))
            if scale.low < scale.high and scale.epsilon > 0:
                found[metric.name] = compute_anytime(
                    self.observations, metric.name, scale, stop.alpha, roles, repeats, population
                )
        return found

    @cached_property
    def results(self) -> tuple[ScoreRow, ...]:
        """Every model in every role and metric: mean, interval, n, missing scores, signature."""
        return make_score_rows(self)

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

        def place(rank: estimates.Rank) -> tuple[Any, ...]:
            return order.index(rank.metric), rank.role, rank.low, rank.high, rank.alias

        return tuple(sorted(found, key=place))

    @cached_property
    def two_seats(self) -> tuple[role_tables.Place, role_tables.Place] | None:
        """The first and the second seat, if matches have two seats."""
        places = {(seat.role, seat.position) for seat in self.seated.used_seats()}
        return role_tables.find_two_seats(places, self.roles)

    def meetings(self, metric: str) -> Iterable[role_tables.Meeting]:
        """The matches between two seats in one metric; none if matches have other seats."""
        if self.two_seats is None:
            return ()
        return role_tables.find_meetings(self.seated, self.two_seats, metric)


def read_score_table(
    scores: Iterable[Score], blocks: Iterable[str], matches: Iterable[MatchRow]
) -> ScoreTable:
    """The recorded scores of some matches."""
    table = ScoreTable.read(
        (
            (match, block, ScoredSeat(alias, seat.role, metric, seat.number, unscored), value)
            for match, block, seat, alias, metric, value, unscored in scores
        ),
        blocks,
    )
    return select_matches(table, matches)


def select_matches(scores: ScoreTable, matches: Iterable[MatchRow]) -> ScoreTable:
    """The scores of some matches."""
    numbers = np.fromiter((match.number for match in matches), np.int64)
    return scores.select(np.isin(scores.rows["match"], numbers))


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

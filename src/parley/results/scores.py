"""The scores of a run, as every analysis reads them: computed from the run's record alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

from parley.errors import StoreError, UsageError
from parley.money import FindPrice, cost_rows, prices_of
from parley.results.main_stage import MainStage, choose_main_stage
from parley.results.signature import make_signature
from parley.results.types import (
    IdenticalRepeats,
    LeftOut,
    MatchCounts,
    RunFacts,
    RunLimits,
    ScoreRow,
    Share,
    Stop,
    Unfinished,
    ViolationCount,
)
from parley.rules.notes import Note
from parley.rules.pool import Seat
from parley.rules.task import Metric
from parley.statistics import estimates, role_tables
from parley.statistics.estimates import Observation
from parley.statistics.identical_repeats import (
    ENOUGH,
    WHAT_HELPS,
    DigestedReply,
    Line,
    PlayedMatch,
    RepeatTracker,
    collect_exchanges,
    group_identical_blocks,
    is_design_repeated,
)
from parley.statistics.intervals import ALPHA, compute_interval
from parley.statistics.role_tables import SeatScore
from parley.store import MatchRow, RunReader, Score, ViolationRow
from parley.tables import plural

if TYPE_CHECKING:
    from parley.statistics.anytime import Anytime

N = TypeVar("N", bound=Note)
NAMED = 8  # models that a line names at most


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
        self.reader, self.info, self.method = reader, reader.info, method
        self.prices, self.scores_file = prices_of(reader, look_up), scores_file
        self.config, self.identity = reader.info.config, reader.info.identity
        self.metrics: dict[str, Metric] = {
            each["name"]: parse_metric(each) for each in self.identity["metrics"]
        }
        self.bounds = {name: (metric.low, metric.high) for name, metric in self.metrics.items()}
        self.roles = [name for name, kind in self.identity["roles"].items() if kind == "contestant"]
        scores, matches = list(reader.scores()), [row for row in reader.matches() if row.has_ended]
        if self.config.stop is not None:
            if method != "block":
                raise UsageError(
                    "this run stopped depending on its scores, so only anytime-valid intervals "
                    f"are valid: leave out the interval method {method!r}"
                )
            whole = find_whole_blocks(reader)
            scores = [score for score in scores if score.block in whole]
            matches = [match for match in matches if match.block in whole]
        # in an `evolve` run: all rounds here, and below the round that the main tables show
        self.every_match, self.every_score = matches, scores
        self.main_stage = choose_main_stage(self.config.evolve, matches)
        if self.main_stage is not None:
            matches = [match for match in matches if self.main_stage.includes(match)]
            shown = {match.number for match in matches}
            scores = [score for score in scores if score.match in shown]
        self.identical = self._find_identical_repeats(matches, scores)
        self.matches: list[MatchRow] = matches
        self._scores = scores
        self.observations = [
            Observation(each.block, each.match, each.alias, each.seat.role, each.metric, each.value)
            for each in scores
            if not each.idle
        ]

    def _find_identical_repeats(
        self, matches: Sequence[MatchRow], scores: Sequence[Score]
    ) -> IdenticalRepeats | None:
        """Whether all models, including judges, always gave the same reply to the same prompt. Then
        identical blocks of a fixed plan are one observation: `same` maps each block to the first
        of them."""
        self.same: dict[str, str] = {}
        if len({(match.block, match.repeat) for match in matches}) < ENOUGH:
            return None
        if not self._may_be_deterministic(matches):
            return None
        tracker = RepeatTracker()
        exchanges: dict[int, list[DigestedReply]] = {}
        for match in matches:
            seats = {seat.key: (seat.role, alias) for seat, alias in match.seats.items()}
            lines = [
                Line(each["sender"], each["audience"], each["content"])
                for each in self.reader.messages(match.number)
                if each["content"] is not None
            ]
            exchanges[match.number] = collect_exchanges(lines, seats)
            tracker.add(match.block, match.repeat, exchanges[match.number])
            if tracker.differs:
                return None
        if not tracker.is_deterministic:
            return None
        blocks = dict.fromkeys(match.block for match in matches)
        different, exact = len(blocks), False
        if self.config.stop is None:
            marks: dict[int, list[tuple[str, str, str, float | None]]] = {}
            for score in scores:
                marks.setdefault(score.match, []).append(
                    (score.seat.role, score.alias, score.metric, score.value)
                )
            played = [
                PlayedMatch(
                    match.block,
                    describe_design(match),
                    exchanges[match.number],
                    marks.get(match.number, []),
                )
                for match in matches
            ]
            same = group_identical_blocks(played)
            different = len(set(same.values()))
            if different < len(blocks):
                self.same = same
            exact = different == 1 or is_design_repeated(played, same)
        return IdenticalRepeats(tracker.most_plays, len(blocks), different, exact)

    def _may_be_deterministic(self, matches: Sequence[MatchRow]) -> bool:
        """A quick check of replies alone, which rules out most runs: whether contestants gave the
        same replies in enough matches."""
        by_number = {match.number: match for match in matches}
        said: dict[int, list[tuple[str, str, int]]] = {}
        for number, seat, text in self.reader.replies():
            if number in by_number and seat.role in self.roles:
                alias = by_number[number].seats[seat]
                said.setdefault(number, []).append((seat.role, alias, hash(text)))
        plays: dict[tuple[str | None, int], set[tuple[str, int]]] = {}
        for number, replies in said.items():
            match = by_number[number]
            key = match.item, hash(tuple(sorted(replies)))
            plays.setdefault(key, set()).add((match.block, match.repeat))
        return any(len(found) >= ENOUGH for found in plays.values())

    def first_identical(self, block: str) -> str:
        """The first block that is identical to this one; it clusters matches that are not
        independent."""
        return self.same.get(block, block)

    def notes(self, kind: type[N]) -> Iterator[tuple[MatchRow, N]]:
        """The notes of one kind in matches that count, by match, as the type that was written."""
        by_number = {match.number: match for match in self.matches}
        legacy = kind.legacy_keys if self.info.notes_without_kinds else frozenset()
        for row in self.reader.notes(None if legacy else kind.kind):
            if row.match in by_number and (not legacy or legacy <= row.facts.keys()):
                try:
                    note = kind.from_facts(row.facts)
                except ValueError as wrong:
                    raise StoreError(
                        f"match {row.match}: a recorded note is damaged: {wrong}"
                    ) from None
                yield by_number[row.match], note

    def contestants_of(self, match: MatchRow) -> Iterator[tuple[Seat, str]]:
        """The seats of a match that are scored, with the aliases that sat there."""
        for seat, alias in match.seats.items():
            if seat.role in self.roles and seat not in match.idle:
                yield seat, alias

    def share(self, cases: Iterable[tuple[str, bool]]) -> Share:
        """The share of cases among (block, case), with an interval over blocks."""
        blocks: dict[str, list[bool]] = {}
        for block, case in cases:
            blocks.setdefault(block, []).append(case)
        means = {block: fmean(found) for block, found in blocks.items()}
        values, weights = estimates.merge_blocks(means, self.same)
        low, high, _ = compute_interval(values, (0.0, 1.0), weights=weights)
        return Share(sum(map(sum, blocks.values())), fmean(means.values()), low, high, len(values))

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
        violations = [each for each in self.reader.violations() if self._shows(each.match)]
        faults = Counter(
            (tries[0].alias, tries[0].seat.role) for tries in group_attempts(violations)
        )
        defaulted = self._count_defaulted(violations)
        found = estimates.compute_cells(self.observations, self.bounds, self.method, self.same)
        without = missing_by_failure(
            self.reader, list(self.metrics.values()), self.roles, self.main_stage
        )
        cells = {(cell.alias, cell.role, cell.metric) for cell in found}
        nothing = compute_interval([], (0, 0))
        found += [
            estimates.Cell(*key, None, nothing, None, 0, 0, 0)
            for key in without
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

    def _shows(self, match: int) -> bool:
        """Whether the main tables include a match; without the plan `evolve`, they include all."""
        return self.main_stage is None or match in self._shown

    @cached_property
    def _shown(self) -> frozenset[int]:
        return frozenset(match.number for match in self.matches)

    def _count_defaulted(self, violations: Iterable[ViolationRow]) -> Counter[tuple[str, str]]:
        """By alias and role, the matches that count in which the task's default replaced a reply
        that could not be read."""
        counted = {
            (match.number, seat) for match in self.matches for seat, _ in self.contestants_of(match)
        }
        return Counter(
            (alias, role)
            for _, alias, role in {
                (each.match, each.alias, each.seat.role)
                for each in violations
                if each.outcome == "default" and (each.match, each.seat) in counted
            }
        )

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
        table = estimates.block_means(self.observations)
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
        table = estimates.block_means(self.observations)
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
    def seated(self) -> list[SeatScore]:
        """Scores with their seats; the score of an idle seat is None."""
        return [
            SeatScore(
                s.block,
                s.match,
                s.seat.role,
                s.seat.number,
                s.alias,
                s.metric,
                None if s.idle else s.value,
            )
            for s in self._scores
            if s.seat.role in self.roles
        ]

    @cached_property
    def two_seats(self) -> tuple[role_tables.Place, role_tables.Place] | None:
        """The first and the second seat, if matches have two seats."""
        return role_tables.find_two_seats(self.seated, self.roles)

    @cached_property
    def meetings(self) -> list[role_tables.Meeting]:
        """Matches between two seats; none if matches have other seats."""
        return role_tables.collect_meetings(self.seated, self.two_seats) if self.two_seats else []


def parse_metric(facts: Mapping[str, Any]) -> Metric:
    """A metric as the record describes it."""
    return Metric(**{**facts, "roles": tuple(facts["roles"])})


def describe_design(match: MatchRow) -> str:
    """The plan of a match: its item and its seats."""
    return repr((match.item, sorted((seat.key, alias) for seat, alias in match.seats.items())))


def find_whole_blocks(reader: RunReader) -> set[str]:
    """Blocks of which every match has ended."""
    matches = list(reader.matches())
    return {match.block for match in matches} - {
        match.block for match in matches if not match.has_ended
    }


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


def collect_run_facts(reader: RunReader) -> RunFacts:
    """The `run` object of results and of `parley ls`."""
    info, config, counts = reader.info, reader.info.config, reader.counts()
    return RunFacts(
        id=info.id,
        name=config.name or None,
        task=info.identity["task"],
        params=config.params,
        models=config.models,
        excluded=config.excluded,
        plan=config.plan,
        seed=config.seed,
        sandbox=config.sandbox if info.identity.get("runs_code") else None,
        budget=RunLimits(config.budget_usd, config.max_calls),
        state=info.state,
        stop=Stop(info.status, info.reason),
        matches=MatchCounts(
            info.planned,
            counts.get("done", 0) + counts.get("aborted", 0),
            counts.get("failed", 0),
        ),
        parley=info.identity["parley"],
        created=datetime.fromtimestamp(info.created, UTC).isoformat(timespec="seconds"),
    )


def group_attempts(found: Iterable[ViolationRow]) -> list[list[ViolationRow]]:
    """Violations with their attempts: attempts at one reply that went wrong in the same way are one
    violation."""
    groups: dict[tuple[Any, ...], list[ViolationRow]] = {}
    for number, row in enumerate(found):
        alone = row.outcome in ("ruled", "masked")
        key = (row.match, row.round, row.seat, row.kind, number if alone else None)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def count_violations(reader: RunReader) -> tuple[ViolationCount, ...]:
    """Violations by model and kind, with the number of attempts."""
    violations, attempts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for tries in group_attempts(reader.violations()):
        violations[tries[0].alias, tries[0].kind] += 1
        attempts[tries[0].alias, tries[0].kind] += len(tries)
    return tuple(
        ViolationCount(*key, count, attempts[key]) for key, count in sorted(violations.items())
    )


def describe_left_out(left_out: Sequence[LeftOut]) -> list[str]:
    """A line for every model whose endpoint rejected some of its options."""
    said = {"system": "a system role"}
    return [
        f"{found.alias}: {plural(found.calls, 'call')} sent without "
        f"{', '.join(said.get(option, option) for option in found.options)}, because the "
        "endpoint does not support this"
        for found in left_out
    ]


def describe_identical(found: IdenticalRepeats | None) -> list[str]:
    """A note on a run whose models always gave the same reply to the same prompt."""
    if found is None:
        return []
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
    seats = [
        (alias, seat.role)
        for match in (reader.matches() if reader.info.config.stop is None else ())
        if match.state == "failed" and (main_stage is None or main_stage.includes(match))
        for seat, alias in match.seats.items()
        if seat not in match.idle
    ]
    return Counter(
        (alias, role, metric.name)
        for alias, role in seats
        for metric in metrics
        if role in (metric.roles or contestants)
    )


def unfinished_models(reader: RunReader) -> tuple[Unfinished, ...]:
    """The models of a stopped run with unfinished matches, and how many were planned for them."""
    if reader.info.state not in ("stopped", "failed"):
        return ()
    planned, ended = Counter[str](), Counter[str]()
    for match in reader.matches():
        aliases = set(match.seats.values())
        planned.update(aliases)
        ended.update(aliases if match.has_ended else ())
    return tuple(
        Unfinished(alias, planned[alias] - ended[alias], planned[alias])
        for alias in reader.info.config.models
        if planned[alias] > ended[alias]
    )


def describe_unfinished(found: Sequence[Unfinished]) -> list[str]:
    """A line on the models with unfinished matches."""
    named = [
        f"{each.alias} {each.matches:,} of {plural(each.planned, 'match', 'matches')}"
        for each in found[:NAMED]
    ]
    more = [f"and {plural(len(found) - NAMED, 'more model')}"] if len(found) > NAMED else []
    return [f"not all matches are finished: {', '.join([*named, *more])}"] if named else []

"""How reliable judges are: their agreement with each other and with measured metrics (DynaEval
§3.1), and their bias towards length and towards their own model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.results.types import Dot, Figure, Scatter, as_json
from parley.rules.notes import Votes
from parley.rules.pool import Seat
from parley.statistics import estimates
from parley.statistics.agreement import BlockEstimate, krippendorff_alpha
from parley.statistics.correlation import (
    Correlation,
    blocked_correlation,
    centred_correlation,
    spearman,
)
from parley.statistics.intervals import compute_interval
from parley.statistics.judge_bias import Judgement, self_preference
from parley.statistics.score_table import (
    NO_VALUE,
    Flags,
    Numbers,
    ScoreTable,
    TableRows,
    Values,
    flag_rows,
    mean_by_group,
)
from parley.store.types import MatchRow, RunInfo
from parley.tables import Table, format_interval, format_number, format_signed, plural


@dataclass(frozen=True)
class PanelRow:
    """The votes of one judge on one role: `votes` of `asked` could be read."""

    judge: str
    role: str
    votes: int
    asked: int
    blocks: int
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Incomplete:
    """Matches in which a vote is missing."""

    matches: int
    of: int


@dataclass(frozen=True)
class AgreementRow:
    """Agreement of the judges on a role: Krippendorff's alpha."""

    role: str
    judges: int
    one_model_twice: bool
    value: float | None
    low: float | None
    high: float | None
    n: int
    blocks: int | None


@dataclass(frozen=True)
class ValidityRow:
    """Correlation of the judges' score with a measured metric of a role."""

    role: str
    measured: str
    over: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    blocks: int | None


@dataclass(frozen=True)
class JudgedModel:
    """A model in a role: the judges' score and the measured metric, with their intervals."""

    role: str
    alias: str
    measured: str
    score: float | None
    score_low: float | None
    score_high: float | None
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BiasRow:
    """A bias of judges: towards length, or towards their own model."""

    about: str
    judge: str | None
    role: str | None
    value: float | None
    low: float | None
    high: float | None
    n: int
    blocks: int | None


@dataclass(frozen=True)
class JudgeReport:
    """Votes, agreement, validity and biases of the judges of a run."""

    metric: str
    panel: tuple[PanelRow, ...]
    incomplete: Incomplete
    agreement: tuple[AgreementRow, ...]
    validity: tuple[ValidityRow, ...]
    bias: tuple[BiasRow, ...]
    also_play: tuple[str, ...]
    models: tuple[JudgedModel, ...] = ()


def compute_judges(run: RunScores) -> JudgeReport | None:
    judged = next((name for name, metric in run.metrics.items() if metric.judged), None)
    if judged is None:
        return None
    votes = collect_votes(run)
    bounds = run.bounds[judged]
    return JudgeReport(
        metric=judged,
        panel=tuple(panel_rows(run, votes, bounds)),
        incomplete=count_incomplete(votes),
        agreement=tuple(agreement_rows(run, votes)),
        validity=tuple(row for role in run.roles for row in validity_rows(run, role, judged)),
        bias=(*length_bias(run, votes), *self_preference_rows(run, votes, bounds)),
        also_play=tuple(judges_that_play(run, votes)),
        models=tuple(judged_models(run, judged)),
    )


VOTE = np.dtype(
    [
        ("match", np.int64),
        ("note", np.int64),
        ("block", np.int32),  # its number
        ("judge", np.int32),  # the place in `judges`
        ("seat", np.int32),  # the place in `seats`
        ("score", float),  # NaN: the judgement could not be read
        ("mark", float),  # as the judge gave it, before it was converted to a score
    ]
)


@dataclass(frozen=True)
class VoteTable:
    """Votes by match and note; `rows` has the columns of `VOTE`."""

    rows: TableRows
    judges: list[tuple[str, str]]  # the seat, and who sat there
    seats: list[tuple[str, str, str]]  # the judged seat, its role and alias

    def select(self, kept: Flags) -> VoteTable:
        """The votes for which `kept` is true."""
        return self if kept.all() else replace(self, rows=self.rows[kept])

    @cached_property
    def roles(self) -> list[str]:
        """The judged roles, in the order of their first votes."""
        used, first = np.unique(self.rows["seat"], return_index=True)
        return list(dict.fromkeys(self.seats[at][1] for at in used[np.argsort(first)]))

    @cached_property
    def judges_asked(self) -> list[tuple[str, str]]:
        """The seats of judges and who sat there, in order."""
        return sorted(self.judges[at] for at in np.unique(self.rows["judge"]).tolist())

    def on_role(self, role: str) -> Flags:
        """Which votes are on a role."""
        return flag_rows(self.rows["seat"], (each == role for _, each, _ in self.seats))

    def judgements(self, run: RunScores) -> Iterator[Judgement]:
        """Who gave what to whom."""
        for block, judge, seat, score in self.rows[["block", "judge", "seat", "score"]].tolist():
            given = None if score != score else score
            where = run.first_identical(run.blocks[block])
            yield Judgement(where, self.judges[judge][1], self.seats[seat][2], given)


class SeatNumbers(NamedTuple):
    """The places of a seating's judges and scored seats in the lists of a `VoteTable`."""

    judges: Mapping[Seat, int]
    scored: Mapping[Seat, int]


def collect_votes(run: RunScores) -> VoteTable:
    """Every requested vote on a scored seat, in matches that count."""
    judges: dict[tuple[str, str], int] = {}
    seats: dict[tuple[str, str, str], int] = {}
    seatings: dict[Any, SeatNumbers] = {}
    rated: dict[int, set[str]] = {}
    blocks = {name: number for number, name in enumerate(run.blocks)}

    def number_seats(match: MatchRow) -> SeatNumbers:
        return SeatNumbers(
            {
                seat: judges.setdefault((seat.key, alias), len(judges))
                for seat, alias in match.seats.items()
            },
            {
                seat: seats.setdefault((seat.key, seat.role, alias), len(seats))
                for seat, alias in run.contestants_of(match)
            },
        )

    def list_votes() -> Iterator[tuple[Any, ...]]:
        for number, (match, note) in enumerate(run.notes(Votes)):
            seating = tuple(match.seats.items()), match.unscored
            if seating not in seatings:
                seatings[seating] = number_seats(match)
            places, block = seatings[seating], blocks[match.block]
            for judge, given in note.votes.items():
                place = places.judges[judge]
                rated.setdefault(place, set()).update(seat.role for seat in given or ())
                for seat, at in places.scored.items():
                    vote = given.get(seat) if given else None
                    score = vote.score if vote else None
                    mark = score if vote is None or vote.mark is None else vote.mark
                    values = (NO_VALUE if each is None else each for each in (score, mark))
                    yield match.number, number, block, place, at, *values

    rows = np.fromiter(list_votes(), VOTE)
    votes = VoteTable(rows, list(judges), list(seats))
    return leave_out_unrated(votes, find_rated_roles(run, rated))


def leave_out_unrated(votes: VoteTable, rated: Mapping[int, set[str]]) -> VoteTable:
    """Leave out votes on roles that a judge does not rate."""
    kept = np.zeros((len(votes.judges), len(votes.seats)), dtype=bool)
    for judge, roles in rated.items():
        kept[judge] = [role in roles for _, role, _ in votes.seats]
    return votes.select(kept[votes.rows["judge"], votes.rows["seat"]])


def find_rated_roles(run: RunScores, found: Mapping[int, set[str]]) -> dict[int, set[str]]:
    """The roles that each judge rates: a task may ask a judge about one of several roles. A judge
    without any readable reply was asked about the roles that the other judges rate, or about all
    roles if there are no votes."""
    every = set().union(*found.values()) or set(run.roles)
    return {judge: roles or every for judge, roles in found.items()}


def count_incomplete(votes: VoteTable) -> Incomplete:
    """The matches with votes, and how many of them lack one."""
    missing = np.unique(votes.rows["match"][np.isnan(votes.rows["score"])])
    return Incomplete(len(missing), len(np.unique(votes.rows["match"])))


def panel_rows(run: RunScores, votes: VoteTable, bounds: tuple[float, float]) -> Iterator[PanelRow]:
    """Each judge's mean on each role with its interval over blocks, and the number of votes."""
    names = [name for _, name in votes.judges_asked]
    known = ~np.isnan(votes.rows["score"])
    for judge, name in votes.judges_asked:
        asked_judge = votes.rows["judge"] == votes.judges.index((judge, name))
        for role in votes.roles:
            asked = asked_judge & votes.on_role(role)
            if not asked.any():
                continue
            read = asked & known
            means = mean_by_block(run.blocks, votes.select(read))
            values, weights = estimates.merge_blocks(means, run.same)
            low, high, _ = compute_interval(values, bounds, weights=weights)
            yield PanelRow(
                judge=name if names.count(name) == 1 else f"{name} ({judge})",
                role=role,
                votes=int(np.count_nonzero(read)),
                asked=int(np.count_nonzero(asked)),
                blocks=len(values),
                mean=fmean(means.values()) if means else None,
                low=low,
                high=high,
            )


def mean_by_block(blocks: Sequence[str], votes: VoteTable) -> dict[str, float]:
    """The mean score of each block."""
    counts = np.bincount(votes.rows["block"])
    sums = np.bincount(votes.rows["block"], votes.rows["score"])
    used = np.flatnonzero(counts)
    means = (sums[used] / counts[used]).tolist()
    return dict(zip((blocks[at] for at in used.tolist()), means, strict=True))


def agreement_rows(run: RunScores, votes: VoteTable) -> Iterator[AgreementRow]:
    """Krippendorff's alpha by judged role, over what at least two judges have marked."""
    seats = sorted({judge for judge, _ in votes.judges_asked})
    twice = len({name for _, name in votes.judges_asked}) < len(seats)
    column = np.array([seats.index(judge) if judge in seats else -1 for judge, _ in votes.judges])
    for role in votes.roles:
        here = votes.select(votes.on_role(role))
        _, first, unit = np.unique(
            here.rows["note"] * len(votes.seats) + here.rows["seat"],
            return_index=True,
            return_inverse=True,
        )
        ratings = np.full((len(first), len(seats)), np.nan)
        ratings[unit, column[here.rows["judge"]]] = here.rows["mark"]
        blocks = run.block_order[here.rows["block"][first]]
        alpha = krippendorff_alpha(ratings, "ordinal", blocks)
        yield AgreementRow(role, len(seats), twice, **estimate_fields(alpha))


def validity_rows(run: RunScores, role: str, judged: str) -> Iterator[ValidityRow]:
    """Correlation of the judges' score with the measured metric of a role: over matches, within
    items, and over models."""
    measured = run.ranking_metric(role, measured=True)
    pairs = None if measured is None else pair_metrics(run.observations, role, judged, measured)
    if measured is None or pairs is None:
        return
    blocks = run.block_order[pairs.block]
    matches = blocked_correlation(pairs.first, pairs.second, blocks)
    yield ValidityRow(role, measured, "matches", **estimate_fields(matches))
    within = centred_correlation(pairs.first, pairs.second, blocks)
    yield ValidityRow(role, measured, "within items", **estimate_fields(within))
    if len(pairs.means) > 2:  # with two, a rank correlation is always 1 or -1
        ranked = spearman([a for a, _ in pairs.means], [b for _, b in pairs.means])
        yield ValidityRow(role, measured, "models", **estimate_fields(ranked))


class PairedScores(NamedTuple):
    """The scores of models in two metrics, one for each match and model; NaN if one is missing."""

    block: Numbers
    first: Values
    second: Values
    means: list[tuple[float, float]]  # of all models that have scores in both metrics


def pair_metrics(scores: ScoreTable, role: str, first: str, second: str) -> PairedScores | None:
    """The scores of a role in two metrics; None if no model has both in a match. If a model has
    several seats in a match, the last one counts."""
    scores = scores.with_seats(lambda each: each.role == role and each.metric in (first, second))
    if not len(scores):
        return None
    aliases: dict[str, int] = {}
    alias = [aliases.setdefault(each.alias, len(aliases)) for each in scores.seats]
    rows, seat = scores.rows, scores.rows["seat"]
    who = np.array(alias)[seat]
    side = np.array([each.metric != first for each in scores.seats], dtype=np.int64)[seat]
    row = np.cumsum(np.diff(rows["match"], prepend=-1) != 0)
    _, start, pair = np.unique(row * len(aliases) + who, return_index=True, return_inverse=True)
    values, has_score = np.full((2, len(start)), NO_VALUE), np.zeros((2, len(start)), bool)
    values[side, pair] = rows["value"]
    has_score[side, pair] = True
    if not has_score.all(axis=0).any():
        return None
    known = ~np.isnan(rows["value"])
    cell = side[known] * len(aliases) + who[known]
    sums = np.bincount(cell, rows["value"][known], 2 * len(aliases)).reshape(2, -1)
    counts = np.bincount(cell, minlength=2 * len(aliases)).reshape(2, -1)
    both = counts.all(axis=0)
    means = (sums[:, both] / counts[:, both]).T.tolist()
    one, other = values
    return PairedScores(rows["block"][start], one, other, [(a, b) for a, b in means])


def judged_models(run: RunScores, judged: str) -> Iterator[JudgedModel]:
    """The means of both metrics, in roles that have both."""
    rows = {(row.role, row.alias, row.metric): row for row in run.results}
    for role in run.roles:
        measured = run.ranking_metric(role, measured=True)
        for alias in run.config.contestants:
            score, value = rows.get((role, alias, judged)), rows.get((role, alias, str(measured)))
            if measured and score and value:
                ends = (score.mean, score.low, score.high, value.mean, value.low, value.high)
                yield JudgedModel(role, alias, measured, *ends)


def judge_figures(found: JudgeReport, style: Style) -> list[Figure]:
    """For each role, the judges' score of every model against what was measured."""
    figures: list[Figure] = []
    for role in dict.fromkeys(each.role for each in found.models):
        dots = tuple(
            Dot(
                each.alias,
                each.value,
                each.score,
                note=f"{each.alias}: judges {each.score:.3g}, {each.measured} {each.value:.3g}",
                x_low=each.low,
                x_high=each.high,
                y_low=each.score_low,
                y_high=each.score_high,
                model=each.alias,
            )
            for each in found.models
            if each.role == role and each.score is not None and each.value is not None
        )
        if not dots:
            continue
        measured = next(each.measured for each in found.models if each.role == role)
        title = f"{role.capitalize()}: score of the judges against {measured}"
        figures.append(
            Scatter(
                title,
                f"{title}, with {style.level} intervals: {'; '.join(dot.note for dot in dots)}",
                f"{measured} (measured)",
                f"{found.metric} (judges)",
                dots,
                x_bounds=style.bounds.get(measured, ()),
                y_bounds=style.bounds.get(found.metric, ()),
            )
        )
    return figures


def length_bias(run: RunScores, votes: VoteTable) -> Iterator[BiasRow]:
    """Whether longer replies on the same item are rated higher. This is a bias only if longer
    replies are not better."""
    read = votes.select(~np.isnan(votes.rows["score"]))
    matches, match = np.unique(read.rows["match"], return_inverse=True)
    judged, size = match * len(votes.seats) + read.rows["seat"], len(votes.seats)
    order = np.argsort(judged, kind="stable")
    ordered = read.rows[order]
    keys, first, sizes = np.unique(judged[order], return_index=True, return_counts=True)
    score, block = mean_by_group(ordered["score"], sizes), ordered["block"][first]
    match, seat = np.divmod(keys, max(size, 1))
    length = find_lengths(run, votes, matches)[match, seat]
    for role in votes.roles:
        here = np.array([each == role for _, each, _ in votes.seats], dtype=bool)[seat]
        blocks = run.block_order[block[here]]
        found = centred_correlation(score[here], length[here], blocks)
        yield BiasRow("length", None, role, **estimate_fields(found))


def find_lengths(run: RunScores, votes: VoteTable, matches: Numbers) -> Values:
    """How long the replies of each judged seat are, by match; NaN if there are none."""
    keys = list(dict.fromkeys(key for key, _, _ in votes.seats))
    place = {key: at for at, key in enumerate(keys)}
    found = np.full((len(matches), len(keys)), np.nan)
    numbers = iter(enumerate(matches.tolist()))
    at, number = next(numbers, (0, None))
    for match, seat, characters in run.reader.usage.reply_lengths():  # by match
        while number is not None and number < match:
            at, number = next(numbers, (0, None))
        if number is None:
            break
        if number == match and (column := place.get(seat.key)) is not None:
            found[at, column] = characters
    return found[:, [place[key] for key, _, _ in votes.seats]]


def self_preference_rows(
    run: RunScores, votes: VoteTable, bounds: tuple[float, float]
) -> Iterator[BiasRow]:
    """How much more a judge gives its own model than other judges do, minus the same difference
    for other models."""
    models = run.config.models
    own = {
        judge: alias
        for _, judge in votes.judges_asked
        for alias in run.config.contestants
        if models[alias]["model"] == models[judge]["model"]
    }
    for judge in sorted(own):
        found = self_preference(votes.judgements(run), judge, own, bounds)
        yield BiasRow("itself", judge, None, **estimate_fields(found))


def judges_that_play(run: RunScores, votes: VoteTable) -> list[str]:
    """The judges whose models are also contestants."""
    models = run.config.models
    played = {models[alias]["model"] for alias in run.config.contestants}
    names = {name for _, name in votes.judges_asked}
    return sorted(name for name in names if models[name]["model"] in played)


def estimate_fields(found: BlockEstimate | Correlation) -> dict[str, Any]:
    """An estimate, its interval and n; the number of blocks if rows share blocks."""
    value = found.r if isinstance(found, Correlation) else found.value
    blocks = None if isinstance(found, Correlation) else found.blocks
    return {
        "value": value,
        "low": found.interval.low,
        "high": found.interval.high,
        "n": found.n,
        "blocks": blocks,
    }


def judge_tables(found: JudgeReport, style: Style) -> list[Table]:
    """Tables of votes, agreement, validity and bias."""
    panel = [
        [
            each.judge,
            each.role,
            format_number(each.mean),
            format_interval(each.low, each.high),
            str(each.blocks),
        ]
        + [f"{each.votes} of {each.asked}"]
        for each in found.panel
    ]
    if not panel:
        return []
    missing = found.incomplete
    note = (
        f"votes are missing in {missing.matches} of {plural(missing.of, 'match', 'matches')}"
        if missing.matches
        else ""
    )
    header = ["judge", "judged role", "mean", "95% interval", "blocks", "votes"]
    tables = [Table(header, panel, left=2, note=note)]
    if any(each.judges > 1 for each in found.agreement):
        lines = [
            [
                each.role,
                str(each.judges),
                format_number(each.value),
                format_interval(each.low, each.high),
            ]
            + [str(each.n)]
            for each in found.agreement
        ]
        note = (
            "Krippendorff's alpha for ordinal scores, over all seats that were scored by at "
            "least two judges"
        )
        if any(each.one_model_twice for each in found.agreement):
            note += (
                "; one model fills several judge seats, so part of this agreement is a "
                "model agreeing with itself"
            )
        header = ["judged role", "judges", "alpha", "95% interval", "judged"]
        tables.append(Table(header, lines, note=note))
    if found.validity:
        lines = [
            [each.role, each.measured, each.over, format_number(each.value)]
            + [format_interval(each.low, each.high), str(each.n)]
            for each in found.validity
        ]
        note = (
            f"correlations between {found.metric} and the measured metric: Pearson's r over "
            "matches, and rank correlations within items and over models"
        )
        header = ["role", "measured", "over", "r", "95% interval", "n"]
        tables.append(Table(header, lines, left=3, note=note))
    lines = [
        [each.judge or "all", each.role or "all", each.about, format_signed(each.value)]
        + [format_interval(each.low, each.high), str(each.n)]
        for each in found.bias
    ]
    note = (
        "`length` is the rank correlation between a judge's votes and the length of replies, "
        "within items; it shows a bias only if longer replies are not better. `itself` is how "
        "much more a judge gives to its own model than other judges do, minus the same "
        f"difference for other models{style.fixed_blocks_note}"
    )
    header = ["judge", "judged role", "towards", "value", "95% interval", "n"]
    return [*tables, Table(header, lines, left=3, note=note)] if lines else tables


def judge_rows(found: JudgeReport) -> Rows:
    """All tables about judges as rows with the same columns."""
    columns = ("judge", "role", "measured", "over", "value", "low", "high", "n", "asked", "blocks")
    rows: list[dict[str, Any]] = [
        {"about": "votes", **as_json(each), "value": each.mean, "n": each.votes}
        for each in found.panel
    ]
    rows += [{"about": "agreement", **as_json(each)} for each in found.agreement]
    rows += [{"about": "validity", **as_json(each)} for each in found.validity]
    rows += [{**as_json(each), "about": "bias", "over": each.about} for each in found.bias]
    return [{"about": row["about"], **{name: row.get(name) for name in columns}} for row in rows]


def is_judged(info: RunInfo) -> bool:
    """Whether a metric of the task comes from judges."""
    return any(metric.get("judged") for metric in info.identity["metrics"])


PARTS = (
    Part(
        "judges",
        "Reliability and bias of the judges",
        JudgeReport,
        compute_judges,
        tables=judge_tables,
        rows=judge_rows,
        figures=judge_figures,
        applies=is_judged,
        absent="not applicable: this run has no votes from judges",
        section="judges",
    ),
)

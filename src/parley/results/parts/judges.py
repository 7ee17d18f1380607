"""How reliable judges are: their agreement with each other and with measured metrics (DynaEval
§3.1), and their bias towards length and towards their own model."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Any, NamedTuple

from parley.results.part import Part, Rows, Style
from parley.results.score_columns import NO_VALUE, select_values
from parley.results.scores import RunScores
from parley.results.types import Dot, Figure, Scatter, as_json
from parley.rules.notes import Vote, Votes
from parley.rules.pool import Seat
from parley.statistics import estimates
from parley.statistics.agreement import BlockEstimate, krippendorff_alpha
from parley.statistics.block_means import BlockNames
from parley.statistics.correlation import (
    Correlation,
    blocked_correlation,
    centred_correlation,
    spearman,
)
from parley.statistics.intervals import compute_interval
from parley.statistics.judge_bias import Judgement, self_preference
from parley.store import MatchRow, RunInfo
from parley.tables import Table, format_interval, format_number, format_signed, plural


class JudgeVote(NamedTuple):
    """What a judge gave to a seat; None where its judgement could not be read."""

    block: str
    match: int
    note: int  # where a match is judged several times, which time this is
    judge: str  # the seat
    name: str  # who sat there
    seat: str  # who was judged
    role: str
    alias: str
    score: float | None
    mark: float | None  # as the judge gave it, before it was converted to a score


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
        panel=tuple(panel_rows(votes, bounds, run.same)),
        incomplete=count_incomplete(votes),
        agreement=tuple(agreement_rows(votes, run.first_identical)),
        validity=tuple(row for role in run.roles for row in validity_rows(run, role, judged)),
        bias=(*length_bias(run, votes), *self_preference_rows(run, votes, bounds)),
        also_play=tuple(judges_that_play(run, votes)),
        models=tuple(judged_models(run, judged)),
    )


class VoteColumns:
    """Votes by match and note. A run may have millions, so they are kept as columns."""

    def __init__(self) -> None:
        self.judges: dict[tuple[str, str], int] = {}  # the seat, and who sat there
        self.seats: dict[tuple[str, str, str], int] = {}  # the seat, its role and alias
        self.blocks = BlockNames()
        self._match, self._note, self._block = array("q"), array("i"), array("i")
        self._judge, self._seat = array("i"), array("i")
        self._score, self._mark = array("d"), array("d")

    def add(self, match: MatchRow, note: int, judge: Seat, seat: Seat, vote: Vote | None) -> None:
        score = vote.score if vote else None
        mark = score if vote is None or vote.mark is None else vote.mark
        judging, judged = (judge.key, match.seats[judge]), (seat.key, seat.role, match.seats[seat])
        self._match.append(match.number)
        self._note.append(note)
        self._block.append(self.blocks.number(match.block))
        self._judge.append(self.judges.setdefault(judging, len(self.judges)))
        self._seat.append(self.seats.setdefault(judged, len(self.seats)))
        self._score.append(NO_VALUE if score is None else score)
        self._mark.append(NO_VALUE if mark is None else mark)

    def keep(self, rated: Mapping[tuple[str, str], set[str]]) -> None:
        """Leave out votes on roles that a judge does not rate."""
        judges, roles = list(self.judges), [role for _, role, _ in self.seats]
        kept = bytes(
            roles[seat] in rated[judges[judge]]
            for judge, seat in zip(self._judge, self._seat, strict=True)
        )
        if all(kept):
            return
        for name in ("_match", "_note", "_block", "_judge", "_seat", "_score", "_mark"):
            setattr(self, name, select_values(getattr(self, name), kept))

    def __iter__(self) -> Iterator[JudgeVote]:
        judges, seats, blocks = list(self.judges), list(self.seats), self.blocks.names
        for match, note, block, judge, seat, score, mark in zip(
            self._match,
            self._note,
            self._block,
            self._judge,
            self._seat,
            self._score,
            self._mark,
            strict=True,
        ):
            at, name = judges[judge]
            key, role, alias = seats[seat]
            given = None if score != score else score
            marked = None if mark != mark else mark
            yield JudgeVote(blocks[block], match, note, at, name, key, role, alias, given, marked)

    @property
    def roles(self) -> list[str]:
        """The judged roles, in the order of their first votes."""
        seats = list(self.seats)
        return list(dict.fromkeys(seats[at][1] for at in dict.fromkeys(self._seat)))

    @property
    def judges_asked(self) -> list[tuple[str, str]]:
        """The seats of judges and who sat there, in order."""
        judges = list(self.judges)
        return sorted(judges[at] for at in set(self._judge))

    def by_note(self) -> Iterator[tuple[JudgeVote, list[JudgeVote]]]:
        """The votes of each note, with the first of them."""
        for _, votes in groupby(self, lambda vote: (vote.match, vote.note)):
            found = list(votes)
            yield found[0], found


def collect_votes(run: RunScores) -> VoteColumns:
    """Every requested vote on a scored seat, in matches that count."""
    votes, last, number = VoteColumns(), 0, 0
    rated: dict[tuple[str, str], set[str]] = {}
    for match, note in run.notes(Votes):
        number = number + 1 if match.number == last else 0
        last = match.number
        seats = [seat for seat, _ in run.contestants_of(match)]
        for judge, given in note.votes.items():
            roles = rated.setdefault((judge.key, match.seats[judge]), set())
            roles.update(seat.role for seat in given or ())
            for seat in seats:
                votes.add(match, number, judge, seat, (given or {}).get(seat))
    votes.keep(find_rated_roles(run, rated))
    return votes


def find_rated_roles(
    run: RunScores, found: Mapping[tuple[str, str], set[str]]
) -> dict[tuple[str, str], set[str]]:
    """The roles that each judge rates, by its seat and alias: a task may ask a judge about one of
    several roles. A judge without any readable reply was asked about the roles that the other
    judges rate, or about all roles if there are no votes."""
    every = set().union(*found.values()) or set(run.roles)
    return {judge: roles or every for judge, roles in found.items()}


def count_incomplete(votes: VoteColumns) -> Incomplete:
    """The matches with votes, and how many of them lack one."""
    of = missing = 0
    for _, given in groupby(votes, lambda vote: vote.match):
        of += 1
        missing += any(vote.score is None for vote in given)
    return Incomplete(missing, of)


def panel_rows(
    votes: VoteColumns, bounds: tuple[float, float], same: estimates.Same
) -> Iterator[PanelRow]:
    """Each judge's mean on each role with its interval over blocks, and the number of votes."""
    asked = Counter[tuple[str, str, str]]()
    given: dict[tuple[str, str, str], dict[str, list[float]]] = {}  # sums and counts by block
    for vote in votes:
        key = vote.judge, vote.name, vote.role
        asked[key] += 1
        if vote.score is not None:
            sums = given.setdefault(key, {}).setdefault(vote.block, [0.0, 0])
            sums[0] += vote.score
            sums[1] += 1
    names = [name for _, name in votes.judges_asked]
    for judge, name in votes.judges_asked:
        for role in votes.roles:
            if not asked[judge, name, role]:
                continue
            blocks = given.get((judge, name, role), {})
            means = {block: total / count for block, (total, count) in blocks.items()}
            values, weights = estimates.merge_blocks(means, same)
            low, high, _ = compute_interval(values, bounds, weights=weights)
            yield PanelRow(
                judge=name if names.count(name) == 1 else f"{name} ({judge})",
                role=role,
                votes=int(sum(count for _, count in blocks.values())),
                asked=asked[judge, name, role],
                blocks=len(values),
                mean=fmean(means.values()) if means else None,
                low=low,
                high=high,
            )


def agreement_rows(
    votes: VoteColumns, first_identical: Callable[[str], str]
) -> Iterator[AgreementRow]:
    """Krippendorff's alpha by judged role, over what at least two judges have marked."""
    seats = sorted({judge for judge, _ in votes.judges_asked})
    twice = len({name for _, name in votes.judges_asked}) < len(seats)
    for role in votes.roles:
        rows: list[list[float | None]] = []
        blocks: list[str] = []
        for first, given in votes.by_note():
            units: dict[str, dict[str, float | None]] = {}
            for vote in given:
                if vote.role == role:
                    units.setdefault(vote.seat, {})[vote.judge] = vote.mark
            rows += [[unit.get(seat) for seat in seats] for unit in units.values()]
            blocks += [first_identical(first.block)] * len(units)
        alpha = krippendorff_alpha(rows, "ordinal", blocks)
        yield AgreementRow(role, len(seats), twice, **estimate_fields(alpha))


def validity_rows(run: RunScores, role: str, judged: str) -> Iterator[ValidityRow]:
    """Correlation of the judges' score with the measured metric of a role: over matches, within
    items, and over models."""
    measured = run.ranking_metric(role, measured=True)
    if measured is None:
        return
    left: list[float | None] = []
    right: list[float | None] = []
    blocks: list[str] = []
    by_model: dict[str, dict[str, list[float]]] = {}  # sum and count
    both = False
    here = (row for row in run.observations if row.role == role)
    for _, rows in groupby(here, lambda row: row.match):
        by_alias: dict[str, dict[str, float | None]] = {}
        for row in rows:
            if row.metric in (judged, measured):
                by_alias.setdefault(row.alias, {})[row.metric] = row.value
                if row.value is not None:
                    sums = by_model.setdefault(row.alias, {}).setdefault(row.metric, [0.0, 0])
                    sums[0] += row.value
                    sums[1] += 1
                block = run.first_identical(row.block)
        for by in by_alias.values():
            both = both or {judged, measured} <= by.keys()
            left.append(by.get(judged))
            right.append(by.get(measured))
            blocks.append(block)
    if not both:
        return
    models = [
        (each[judged][0] / each[judged][1], each[measured][0] / each[measured][1])
        for each in by_model.values()
        if {judged, measured} <= each.keys()
    ]
    matches = blocked_correlation(left, right, blocks)
    yield ValidityRow(role, measured, "matches", **estimate_fields(matches))
    within = centred_correlation(left, right, blocks)
    yield ValidityRow(role, measured, "within items", **estimate_fields(within))
    if len(models) > 2:  # with two, a rank correlation is always 1 or -1
        ranked = spearman([a for a, _ in models], [b for _, b in models])
        yield ValidityRow(role, measured, "models", **estimate_fields(ranked))


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


def length_bias(run: RunScores, votes: VoteColumns) -> Iterator[BiasRow]:
    """Whether longer replies on the same item are rated higher. This is a bias only if longer
    replies are not better."""
    rated = {role: RatedLengths([], [], []) for role in votes.roles}
    lengths = groupby(run.reader.reply_lengths(), lambda row: row[0])  # by match, as votes are
    number, rows = next(lengths, (None, iter(())))
    for match, given in groupby(votes, lambda vote: vote.match):
        while number is not None and number < match:
            number, rows = next(lengths, (None, iter(())))
        said = {seat.key: n for _, seat, n in rows} if number == match else {}
        found: dict[tuple[str, str], list[float]] = {}
        for vote in given:
            if vote.score is not None:
                found.setdefault((vote.role, vote.seat), []).append(vote.score)
                block = run.first_identical(vote.block)
        for (role, seat), scores in found.items():
            rated[role].scores.append(fmean(scores))
            rated[role].lengths.append(said.get(seat))
            rated[role].blocks.append(block)
    for role, each in rated.items():
        yield BiasRow("length", None, role, **estimate_fields(centred_correlation(*each)))


class RatedLengths(NamedTuple):
    """The mean votes on replies, and how long these are."""

    scores: list[float | None]
    lengths: list[float | None]
    blocks: list[str]


def self_preference_rows(
    run: RunScores, votes: VoteColumns, bounds: tuple[float, float]
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
        given = (
            Judgement(run.first_identical(vote.block), vote.name, vote.alias, vote.score)
            for vote in votes
        )
        found = self_preference(given, judge, own, bounds)
        yield BiasRow("itself", judge, None, **estimate_fields(found))


def judges_that_play(run: RunScores, votes: VoteColumns) -> list[str]:
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

"""Parts of a word guessing result besides its scores (AGE §4): how matches went, means over
matches, and scores of zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.statistics.intervals import compute_interval
from parley.tables import Table, format_interval, format_number
from parley.tasks.word_guessing.rule import GameEnd
from parley.tasks.word_guessing.scoring import age, reached_third_round, went_on_late

MEANS = ("comprehension", "confusion", "age")
# the two readings of "beyond two rounds", which only=successful and only=successful_late take
THIRD, LATE = "a third round was played", "not both words were guessed in two rounds"


@dataclass(frozen=True)
class MeanOverMatches:
    """A mean in which each match counts once, with an interval over pairs of words."""

    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ShareOfMatches:
    """A count of matches, the total, and the share."""

    count: int
    of: int
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class NamedShare(ShareOfMatches):
    """A share of all matches, and what it counts."""

    what: str


@dataclass(frozen=True)
class GuessingModel:
    """A model's means over its matches."""

    alias: str
    comprehension: MeanOverMatches
    confusion: MeanOverMatches
    age: MeanOverMatches
    harmonic: float | None  # of mean comprehension and mean confusion
    zeros: ShareOfMatches
    guessed: ShareOfMatches
    scored: int
    missing: int


@dataclass(frozen=True)
class GuessingResult:
    """How the matches of a run went, and every model's means."""

    matches: tuple[NamedShare, ...]
    models: tuple[GuessingModel, ...]


def compute_guessing(run: RunScores) -> GuessingResult | None:
    """How many matches went beyond two rounds (in both readings) and had both words guessed, and
    every model's means over its matches."""
    played = {match.number: (match.block, note.guessing) for match, note in run.notes(GameEnd)}
    if not played:
        return None
    games = list(played.values())
    both = [(block, game.both is not None) for block, game in games]
    third = [(block, reached_third_round(game.rounds)) for block, game in games]
    late = [(block, went_on_late(game.both, game.rounds)) for block, game in games]
    shares = {
        THIRD: third,
        f"{THIRD}, and both words were guessed": select_rows(both, third),
        LATE: late,
        f"{LATE}, and both were guessed later": select_rows(both, late),
        "both words were guessed": both,
    }
    matches = tuple(
        NamedShare(**vars(share_of_matches(rows, run.method)), what=what)
        for what, rows in shares.items()
    )
    models = []
    for alias in run.config.contestants:
        own = [row for row in run.observations if row.alias == alias]
        scores = {
            name: [
                (row.block, row.value)
                for row in own
                if row.metric == name and row.value is not None
            ]
            for name in MEANS
        }
        means = {name: mean_over_matches(scores[name], run.method) for name in MEANS}
        zeros = [(block, value == 0) for block, value in scores["age"]]
        guessed = [
            (row.block, played[row.match][1].both is not None)
            for row in own
            if row.metric == "age" and row.match in played
        ]
        models.append(
            GuessingModel(
                alias,
                **means,
                harmonic=harmonic_of_means(means["comprehension"].mean, means["confusion"].mean),
                zeros=share_of_matches(zeros, run.method),
                guessed=share_of_matches(guessed, run.method),
                scored=len(scores["age"]),
                missing=sum(
                    row.missing for row in run.results if (row.alias, row.metric) == (alias, "age")
                ),
            )
        )
    return GuessingResult(matches, tuple(models))


def select_rows(
    rows: Sequence[tuple[str, bool]], among: Sequence[tuple[str, bool]]
) -> list[tuple[str, bool]]:
    """The rows of matches for which `among` holds."""
    return [row for row, (_, holds) in zip(rows, among, strict=True) if holds]


def harmonic_of_means(comprehension: float | None, confusion: float | None) -> float | None:
    """The harmonic mean of two means, if both are known. It is at least the mean of harmonic
    means."""
    return None if comprehension is None or confusion is None else age(comprehension, confusion)


def mean_over_matches(rows: Sequence[tuple[str, float]], method: str) -> MeanOverMatches:
    """The mean of all matches, each counted once, and an interval over blocks, of which some may
    have more matches than others.

    A ratio estimator (Cochran 1977, §6.4): a block of average size contributes its mean, a smaller
    or larger one contributes its effect on the overall mean.
    """
    if not rows:
        return MeanOverMatches(None, None, None)
    mean, blocks = fmean(value for _, value in rows), defaultdict[str, list[float]](list)
    for block, value in rows:
        blocks[block].append(value)
    usual = len(rows) / len(blocks)
    worth = [(sum(values) + mean * (usual - len(values))) / usual for values in blocks.values()]
    low, high, _ = compute_interval(worth, (0.0, 1.0), method=method)
    return MeanOverMatches(mean, low, high)


def share_of_matches(rows: Sequence[tuple[str, bool]], method: str) -> ShareOfMatches:
    """The count, the total, and the share with its interval."""
    found = mean_over_matches([(block, float(holds)) for block, holds in rows], method)
    count = sum(holds for _, holds in rows)
    return ShareOfMatches(count, len(rows), found.mean, found.low, found.high)


def guessing_tables(found: GuessingResult, style: Style) -> list[Table]:
    """How matches of word guessing went, and every model's means."""
    went = [
        [each.what, f"{each.count} of {each.of}", *format_share(each)] for each in found.matches
    ]
    rows = [
        [each.alias, *(format_number(getattr(each, name).mean, 3) for name in MEANS)]
        + [format_interval(each.age.low, each.age.high, 3), format_number(each.harmonic, 3)]
        + [*format_share(each.zeros), *format_share(each.guessed)]
        + [str(each.scored), str(each.missing)]
        for each in found.models
    ]
    header = ["model", *MEANS, "95% interval", "harmonic", "age is 0", "95% interval"]
    header += ["both words guessed", "95% interval", "scored matches", "missing"]
    note = (
        "means over scored matches, with equal weight for every match, while the main table "
        "gives equal weight to every pair of words\nharmonic: harmonic mean of mean "
        f"comprehension and mean confusion, never below the mean of age{style.fixed_blocks_note}"
    )
    return [
        Table(["matches", "", "share", "95% interval"], went),
        Table(header, rows, note=note),
    ]


def format_share(share: ShareOfMatches) -> list[str]:
    """A share and its interval."""
    return [format_number(share.share), format_interval(share.low, share.high)]


def guessing_rows(found: GuessingResult) -> Rows:
    """All numbers as rows with the same columns; rows about a model have its alias."""
    rows = [guessing_row("", each.what, each.share, vars(each)) for each in found.matches]
    for each in found.models:
        counts = {"of": each.scored, "missing": each.missing}
        for name in MEANS:
            mean = getattr(each, name)
            rows.append(guessing_row(each.alias, name, mean.mean, {**vars(mean), **counts}))
        rows.append(guessing_row(each.alias, "harmonic mean of the means", each.harmonic, counts))
        zeros = {**vars(each.zeros), "missing": each.missing}
        rows.append(guessing_row(each.alias, "age is 0", each.zeros.share, zeros))
        guessed = vars(each.guessed)
        rows.append(guessing_row(each.alias, "both words guessed", each.guessed.share, guessed))
    return rows


def guessing_row(
    alias: str, what: str, value: float | None, found: dict[str, Any]
) -> dict[str, Any]:
    """A number, and what is known about it."""
    facts = {name: found.get(name) for name in ("low", "high", "count", "of", "missing")}
    return {"alias": alias, "what": what, "value": value, **facts}


PARTS = (
    Part(
        "guessing",
        "How words were guessed",
        GuessingResult,
        compute_guessing,
        tables=guessing_tables,
        rows=guessing_rows,
        absent="not applicable: this run has no finished match of word guessing",
    ),
)

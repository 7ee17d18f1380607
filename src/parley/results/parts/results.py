"""The main table of a run: every model in every role and metric.

`list_scores` orders the rows and annotates them; text, pages, notebooks and lists lay them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from parley.results.part import Part, Rows, Style
from parley.results.run_facts import NAMED
from parley.results.scores import RunScores
from parley.results.types import Figure, Intervals, Point, ScoreRow, as_json
from parley.rules.task import name_unprotected
from parley.statistics.estimates import Rank
from parley.tables import Table, draw_interval, format_interval, format_number, plural

COUNTS = ("blocks", "matches", "missing", "violations")
DIRECTION = {True: "lower is better", False: "higher is better"}
INTERVAL_NOTES = {  # by the kind of interval
    "bounded": (
        "* this interval uses a method for bounded scores, because a Student's t interval "
        "would be too narrow: many scores are at the ends of their range, or hardly vary"
    ),
    "anytime": (
        "Intervals stay valid although the run stopped depending on its scores "
        "(anytime-valid), and hold for all models of a metric together."
    ),
}
COLUMN_NOTES = {
    "blocks": "a block is all matches on one item, or of one repeat; intervals are computed "
    "over blocks",
    "missing": "`missing` counts scores that could not be computed; they are left out of the mean",
    "violations": "`violations` counts replies that broke the required format or a rule of the "
    "task",
}
Scores = tuple[ScoreRow, ...]
Row = Sequence[str]


def score_rows(found: Scores) -> Rows:
    """Every number unrounded, without the model names that endpoints reported."""
    return [
        {name: value for name, value in as_json(row).items() if name != "model_served"}
        for row in found
    ]


@dataclass(frozen=True)
class ShownScore:
    """A row of the main table, ready to show. The marks stand at the mean and at the interval;
    `describe_intervals` and `describe_defaults` explain them."""

    row: ScoreRow
    rank: Rank | None
    mean: str
    interval: str
    digits: int
    mean_mark: str = ""
    interval_mark: str = ""

    @property
    def rank_text(self) -> str:
        """The rank, or the range of ranks."""
        if self.rank is None:
            return "–"
        low, high = self.rank.low, self.rank.high
        return str(low) if low == high else f"{low}–{high}"


@dataclass(frozen=True)
class ScoreGroup:
    """All models in one role and metric, the best mean first."""

    role: str
    metric: str
    scores: tuple[ShownScore, ...]

    @property
    def rows(self) -> Scores:
        return tuple(score.row for score in self.scores)


def list_scores(found: Scores, style: Style, metrics: Sequence[str] = ()) -> tuple[ScoreGroup, ...]:
    """The scores of these metrics, by default of those that each role is ranked by, ready to
    show."""
    ranked = ranking_metrics(found, style)
    groups: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in found:
        if row.metric in (metrics or ranked[row.role]):
            groups.setdefault((row.role, row.metric), []).append(row)
    ranks = {(rank.role, rank.metric, rank.alias): rank for rank in style.ranks}
    return tuple(
        ScoreGroup(
            role,
            metric,
            tuple(
                annotate_score(row, ranks.get((role, metric, row.alias)), style)
                for row in order_scores(own, style)
            ),
        )
        for (role, metric), own in groups.items()
    )


def order_scores(rows: Iterable[ScoreRow], style: Style) -> list[ScoreRow]:
    """Rows of one metric, the best mean first; models without a mean come last."""

    def place(row: ScoreRow) -> tuple[bool, float, str]:
        mean = row.mean or 0.0
        return row.mean is None, mean if row.metric in style.lower_is_better else -mean, row.alias

    return sorted(rows, key=place)


def annotate_score(row: ScoreRow, rank: Rank | None, style: Style) -> ShownScore:
    """One row with its rank and its marks."""
    digits = style.digits_of(row.metric)
    return ShownScore(
        row,
        rank,
        format_number(row.mean, digits),
        format_interval(row.low, row.high, digits),
        digits,
        "†" if row.defaulted and row.mean is not None else "",
        "*" if row.interval == "bounded" else "",
    )


def ranking_metrics(found: Scores, style: Style) -> dict[str, list[str]]:
    """The metrics shown for each role: the one it is ranked by, and the judges' score if that
    metric is measured."""
    known: dict[str, list[str]] = {}
    for row in found:
        own = known.setdefault(row.role, [])
        if row.metric not in own:
            own.append(row.metric)
    ranked = {}
    for role, own in known.items():
        leading = style.leading.get(role, own[0])
        judged = [name for name in own if name in style.judged]
        ranked[role] = [leading, *(judged[:1] if leading not in style.judged else [])]
    return ranked


def score_table(found: Scores, style: Style, metrics: Sequence[str] = ()) -> Table:
    """Mean, interval and n of every model, the best mean first. Facts that all rows share are in
    the title."""
    shown = [score for group in list_scores(found, style, metrics) for score in group.scores]
    rows = tuple(score.row for score in shown)
    names = name_columns(shown, style)
    columns = [*names, *number_columns(shown, style)]
    header = [name for name, _ in columns]
    return Table(
        header,
        [[cells[at] for _, cells in columns] for at in range(len(shown))],
        left=len(names),
        note="\n".join(list_notes(found, shown, header, style)),
        title=make_title(rows, style),
        drawings=draw_score_intervals(rows),
        optional={"sd": describe_sd(rows)},
    )


def name_columns(shown: Sequence[ShownScore], style: Style) -> list[tuple[str, Row]]:
    """The columns that say which score a row has: rank, model, and role and metric where there are
    several."""
    rows = tuple(score.row for score in shown)
    columns: list[tuple[str, Row]] = []
    if len({(row.role, row.metric) for row in rows}) < len(rows):
        columns.append(("rank", [score.rank_text for score in shown]))
    columns.append(("model", [row.alias for row in rows]))
    if len({row.role for row in rows}) > 1:
        columns.append(("role", [row.role for row in rows]))
    if len({row.metric for row in rows}) > 1:
        columns.append(
            ("metric", [name_metric(row) + mark_lower(row, rows, style) for row in rows])
        )
    return columns


def number_columns(shown: Sequence[ShownScore], style: Style) -> list[tuple[str, Row]]:
    """Means with their intervals, and counts that differ from row to row."""
    rows = tuple(score.row for score in shown)
    columns: list[tuple[str, Row]] = [("mean", [score.mean + score.mean_mark for score in shown])]
    if any(row.low is not None for row in rows):
        ends = [score.interval + score.interval_mark for score in shown]
        columns.append((f"{style.level} interval", ends))
    if any(row.sd is not None for row in rows):
        columns.append(("sd", [format_number(row.sd, style.digits_of(row.metric)) for row in rows]))
    for name in COUNTS:
        counts = [getattr(row, name) for row in rows]
        if len(set(counts)) > 1 and not (name == "blocks" and blocks_are_matches(rows)):
            columns.append((name, list(map(str, counts))))
    return columns


def blocks_are_matches(shown: Scores) -> bool:
    """Whether every block is one match."""
    return all(row.blocks == row.matches for row in shown)


def describe_sd(shown: Scores) -> str:
    """What the column `sd` means."""
    what = "matches" if blocks_are_matches(shown) else "block means"
    return f"`sd` is the standard deviation over {what}"


def name_metric(row: ScoreRow) -> str:
    """A metric with its unit."""
    return f"{row.metric} ({row.unit})" if row.unit else row.metric


def mark_lower(row: ScoreRow, shown: Scores, style: Style) -> str:
    """An arrow where lower is better, in a table that also has metrics where higher is better."""
    lower = {row.metric in style.lower_is_better for row in shown}
    return " ↓" if len(lower) > 1 and row.metric in style.lower_is_better else ""


def describe_intervals(shown: Sequence[ShownScore]) -> list[str]:
    """What the kinds of intervals in these rows mean, with their mark."""
    kinds = {score.row.interval for score in shown}
    return [note for kind, note in INTERVAL_NOTES.items() if kind in kinds]


def describe_defaults(shown: Sequence[ShownScore]) -> list[str]:
    """In how many matches of each model the task's default replaced a reply that could not be
    read."""
    found = {
        (row.alias, row.role): f"{row.alias} as {row.role} in {row.defaulted:,} of "
        f"{plural(row.matches, 'match', 'matches')}"
        for row in (score.row for score in shown if score.mean_mark)
    }
    if not found:
        return []
    named = [*list(found.values())[:NAMED], *(["and others"] if len(found) > NAMED else [])]
    return [
        "† if a reply could not be read, the task used a default instead, so this mean "
        f"includes defaults ({', '.join(named)})"
    ]


def describe_unprotected(found: Scores, style: Style) -> list[str]:
    """How many matches have an unprotected verdict, which stands apart from the metrics that models
    are ranked by."""
    ranked = dict.fromkeys(chain.from_iterable(ranking_metrics(found, style).values()))
    lines = []
    for metric in ranked:
        name = name_unprotected(metric)
        apart = [row.matches for row in found if row.metric == name and row.matches]
        if apart:
            lines.append(
                f"`{metric}` leaves out {format_range(apart, 'match', 'matches')} of each model, "
                f"because the verdicts could be forged: they are in `{name}`"
            )
    return lines


def make_title(shown: Scores, style: Style) -> str:
    """What is measured, which direction is better, and n."""
    roles = dict.fromkeys(row.role for row in shown)
    metrics = dict.fromkeys(name_metric(row) for row in shown)
    lower = {row.metric in style.lower_is_better for row in shown}
    direction = (
        "higher is better (lower where marked ↓)" if len(lower) > 1 else DIRECTION[lower.pop()]
    )
    where = ", ".join([style.task, *(roles if len(roles) == 1 else ())])
    matches = format_range([row.matches for row in shown], "match", "matches")
    blocks = format_range([row.blocks for row in shown], "block")
    size = f"n = {matches}" + ("" if blocks_are_matches(shown) else f" in {blocks}")
    each = " each" if len(shown) > 1 else ""
    parts = [f"{where}: {', '.join(metrics)}", direction, f"{size}{each}"]
    if style.exact:
        parts.append("exact for these prompts")
    for name, words in (("missing", "score"), ("violations", "violation")):
        counts = {getattr(row, name) for row in shown}
        if len(counts) == 1 and counts != {0}:
            gone = " missing" if name == "missing" else ""
            parts.append(f"{plural(counts.pop(), words)}{gone}{each}")
    return "; ".join(parts)


def format_range(counts: Sequence[int], one: str, many: str = "") -> str:
    """The smallest and the largest of some counts, in words."""
    low, high = min(counts), max(counts)
    return plural(high, one, many) if low == high else f"{low:,} to {plural(high, one, many)}"


def list_notes(found: Scores, shown: Sequence[ShownScore], header: Row, style: Style) -> list[str]:
    """What the columns and marks of the table mean."""
    rows = tuple(score.row for score in shown)
    sure = f"{style.level}, {'anytime-valid' if style.sequential else 'Holm-corrected'}"
    places = (
        "`rank` gives all ranks that are compatible with the paired differences between "
        f"models ({sure})"
    )
    if style.exact:
        places = "`rank` orders the scores, which are exact for these prompts"
    notes = [places] if "rank" in header else []
    single = blocks_are_matches(rows)
    if not style.exact and not any(row.low is not None for row in rows):
        notes.append(
            "the interval is missing, because it needs at least two "
            f"{'matches' if single else 'blocks'}"
        )
    explained = [*header, *([] if single else ["blocks"])]
    if "sd" in header:
        notes.append(describe_sd(rows))
    notes += [note for name, note in COLUMN_NOTES.items() if name in explained]
    notes += describe_intervals(shown) + describe_defaults(shown)
    known = {row.metric for row in rows}
    if hidden := list(dict.fromkeys(row.metric for row in found if row.metric not in known)):
        notes.append(
            f"the task has more metrics ({', '.join(hidden)}); to show them, use `parley show "
            'RUN --metrics all`, or `result.table(metrics="all")` in Python'
        )
    return notes


def draw_score_intervals(shown: Scores) -> list[str]:
    """Every interval drawn in one line, on a scale shared by all rows of a metric."""
    spans: dict[str, tuple[float, float]] = {}
    for metric in {row.metric for row in shown}:
        known = [end for r in shown if r.metric == metric for end in (r.low, r.mean, r.high)]
        ends = [value for value in known if value is not None]
        spans[metric] = (min(ends), max(ends)) if ends else (0, 0)
    return [draw_interval(row.low, row.mean, row.high, spans[row.metric]) for row in shown]


def score_figures(found: Scores, style: Style) -> Sequence[Figure]:
    """Models with their intervals, for each role in the metric that it is ranked by."""
    return [
        draw_group(group, style)
        for group in list_scores(found, style)
        if style.leading.get(group.role, group.metric) == group.metric
    ]


def draw_group(group: ScoreGroup, style: Style) -> Intervals:
    """The scores of one role as a figure."""
    metric, role = name_metric(group.rows[0]), name_role(group.role)
    better = DIRECTION[group.metric in style.lower_is_better]
    sure = "exact for these prompts" if style.exact else f"{style.level} confidence interval"
    caption = f"{role}: mean {metric} per match, {better}; {sure}"
    notes = [*describe_intervals(group.scores), *describe_defaults(group.scores)]
    if any(score.rank and score.rank.low < score.rank.high for score in group.scores):
        notes.insert(0, "a range of ranks means that the data cannot tell these models apart")
    return replace(
        draw_points(group.scores, f"Result: {role}"),
        points=tuple(
            replace(
                make_point(score),
                rank=score.rank_text,
                detail=score.row.model_requested,
                mark=score.mean_mark,
                cells=(score.interval + score.interval_mark, f"{score.row.matches:,}"),
            )
            for score in group.scores
        ),
        columns=(f"{style.level} interval", "matches"),
        caption=caption,
        alt=f"{caption}. {describe_scores(group.scores)}",
        legend=" ".join(f"{note[:1].upper()}{note[1:].removesuffix('.')}." for note in notes),
        role=group.role,
    )


def draw_points(scores: Sequence[ShownScore], title: str) -> Intervals:
    """Means with their intervals, without what a figure has beside them."""
    row = scores[0].row
    return Intervals(
        title,
        describe_scores(scores),
        row.unit,
        tuple(map(make_point, scores)),
        scores[0].digits,
        "mean",
    )


def make_point(score: ShownScore) -> Point:
    row = score.row
    return Point(row.alias, row.mean, row.low, row.high, model=row.alias)


def describe_scores(scores: Sequence[ShownScore]) -> str:
    """Means with their intervals in words."""
    return "; ".join(
        f"{score.row.alias} {score.mean}"
        + (f" ({score.interval})" if score.row.low is not None else "")
        + (", includes defaults" if score.mean_mark else "")
        for score in scores
    )


def name_role(role: str) -> str:
    """A role at the start of a sentence."""
    return role.replace("_", " ").capitalize()


def compute_results(run: RunScores) -> Scores:
    return run.results


PARTS = (
    Part(
        "results",
        "Results",
        Scores,
        compute_results,
        tables=lambda found, style: [score_table(found, style)],
        rows=score_rows,
        figures=score_figures,
        absent="no match was played",
        section="result",
    ),
)

"""Parts of a KIEval result besides its scores: how interviews ended (KIEval, figure 4), and all
metrics side by side (tables 8 to 12)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parley.results.part import Part, Rows, Style
from parley.results.scores import RunScores
from parley.results.types import Bar, Bars, Figure, HeatMap, ScoreRow, Share
from parley.tables import Table, format_interval, format_number, plural
from parley.tasks.kieval.rule import ASPECTS, RECORD, SILENT, InterviewEnd

NONE = "none"  # the interview reached its last round
# not ended early: played to its last round, or ended by the record or the interactor
NOT_EARLY = (NONE, RECORD, SILENT)


@dataclass(frozen=True)
class StopRow:
    """How the interviews of one model ended, and first answers that could not be read."""

    role: str
    alias: str
    interviews: int
    reasons: dict[str, int]
    early: Share
    unreadable: Share


def count_stops(run: RunScores) -> tuple[StopRow, ...]:
    """By model, the reasons that ended its interviews."""
    held: dict[tuple[str, str], dict[int, tuple[str, InterviewEnd]]] = defaultdict(dict)
    for match, end in run.notes(InterviewEnd):
        for seat, alias in run.contestants_of(match):
            held[seat.role, alias][match.number] = (match.block, end)  # the last note counts
    return tuple(
        StopRow(
            role,
            alias,
            len(ends),
            count_reasons(end.stop for _, end in ends.values()),
            run.share((block, end.stop not in NOT_EARLY) for block, end in ends.values()),
            run.share((block, end.first is None) for block, end in ends.values()),
        )
        for (role, alias), ends in sorted(held.items())
    )


def count_reasons(ends: Iterable[str]) -> dict[str, int]:
    """How often each reason occurred; NONE comes last."""
    found = Counter(ends)
    return {
        reason: found[reason]
        for reason in sorted(found, key=lambda reason: (reason == NONE, reason))
    }


def stop_tables(found: Sequence[StopRow], style: Style) -> list[Table]:
    """Why interviews ended, and first answers that could not be read."""
    ends = list(dict.fromkeys(end for row in found for end in row.reasons))
    lines = [
        [row.alias, row.role, str(row.interviews)]
        + [str(row.reasons.get(end, 0)) for end in ends]
        + [*format_percentage(row.early), *format_percentage(row.unreadable)]
        for row in found
    ]
    header = ["model", "role", "interviews", *(end.replace("_", " ") for end in ends)]
    header += ["ended early", "95% interval", "first answer unreadable", "95% interval"]
    note = (
        "the table counts interviews by the reason why they ended; `none` means that the "
        "interview was played to its last round; intervals are computed over "
        f"questions{style.fixed_blocks_note}"
    )
    return [Table(header, lines, left=2, note=note)]


def format_percentage(share: Share) -> list[str]:
    """A share in percent, and its interval."""
    low, high = (None if end is None else 100 * end for end in (share.low, share.high))
    return [f"{format_number(100 * share.share, 1)}%", format_interval(low, high, 1)]


def stop_rows(found: Sequence[StopRow]) -> Rows:
    """One row per model, one column per reason."""
    ends = dict.fromkeys(end for row in found for end in row.reasons)
    return [
        {
            "alias": row.alias,
            "role": row.role,
            "interviews": row.interviews,
            **{f"stop_{end}": row.reasons.get(end, 0) for end in ends},
            **{f"early_{name}": value for name, value in vars(row.early).items()},
            **{f"unreadable_{name}": value for name, value in vars(row.unreadable).items()},
        }
        for row in found
    ]


def stop_figures(found: Sequence[StopRow], style: Style) -> Sequence[Figure]:
    """Interviews that ended early, by model and reason."""
    bars = stop_bars([(row.alias, row.interviews, row.reasons) for row in found])
    return [bars] if bars else []


def stop_bars(rows: Iterable[tuple[str, int, dict[str, int]]]) -> Bars | None:
    """Interviews that ended early, by model and reason, as a share of all interviews of a model."""
    models: dict[str, Counter[str]] = {}
    held: Counter[str] = Counter()
    for alias, interviews, reasons in rows:
        held[alias] += interviews
        early = {reason: n for reason, n in reasons.items() if reason not in NOT_EARLY}
        models.setdefault(alias, Counter()).update(early)
    if not any(models.values()):
        return None
    bars = tuple(
        Bar(
            model,
            {name.replace("_", " "): n / held[model] for name, n in sorted(found.items())},
            f"{100 * found.total() / held[model]:.0f}% of {held[model]}",
        )
        for model, found in models.items()
    )
    title = "Why interviews ended early, as a share of all interviews of a model"
    alt = "; ".join(f"{bar.label}: {bar.note}" for bar in bars)
    return Bars(title, f"{title}: {alt}", "share", bars)


def compute_aspects(run: RunScores) -> tuple[ScoreRow, ...]:
    return run.results


def aspect_tables(found: Sequence[ScoreRow], style: Style) -> list[Table]:
    """All metrics of a model in one row."""
    metrics = list(dict.fromkeys(row.metric for row in found))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in found:
        digits, key = style.digits_of(row.metric), (row.alias, row.role)
        shown = f"{format_number(row.mean, digits)} ({format_interval(row.low, row.high, digits)})"
        cells.setdefault(key, {})[row.metric] = shown
        counts[key] = max(counts.get(key, 0), row.blocks)
    lines = [
        [*key, *(by.get(metric, "–") for metric in metrics), str(counts[key])]
        for key, by in cells.items()
    ]
    header = ["model", "role", *metrics, "blocks"]
    return [Table(header, lines, left=2, note=f"means with {style.level} intervals")]


def aspect_figures(found: Sequence[ScoreRow], style: Style) -> Sequence[Figure]:
    """The evaluator's marks by aspect, the best interviews first."""
    marks = {f"mark_{aspect}": aspect for aspect in ASPECTS}
    by = {(row.alias, row.metric): row for row in found if row.metric in marks}
    columns = [metric for metric in marks if any(metric == known for _, known in by)]
    if not columns:
        return []
    scores = {row.alias: row.mean or 0.0 for row in found if row.metric == "kieval"}
    models = sorted(dict.fromkeys(alias for alias, _ in by), key=lambda a: -scores.get(a, 0.0))
    values, low, high = (
        tuple(tuple(getattr(by.get((model, m)), name, None) for m in columns) for model in models)
        for name in ("mean", "low", "high")
    )
    title = "Marks of the evaluator by aspect, 0 to 100"
    alt = f"{title}, with {style.level} intervals, for {plural(len(models), 'model')}"
    names = tuple(marks[metric] for metric in columns)
    shown = HeatMap(
        title, alt, "mark", tuple(models), names, values, low, high, 0, "model", "aspect"
    )
    return [shown]


def aspect_rows(found: Sequence[ScoreRow]) -> Rows:
    """One row per model and aspect."""
    names = ("alias", "role", "metric", "mean", "low", "high", "blocks", "matches", "missing")
    return [{name: getattr(row, name) for name in names} for row in found]


PARTS = (
    Part(
        "stops",
        "How interviews ended",
        tuple[StopRow, ...],
        count_stops,
        tables=stop_tables,
        rows=stop_rows,
        figures=stop_figures,
        absent="not applicable: this run has no interviews",
    ),
    Part(
        "aspects",
        "All metrics side by side",
        tuple[ScoreRow, ...],
        compute_aspects,
        tables=aspect_tables,
        rows=aspect_rows,
        figures=aspect_figures,
        absent="not applicable: no match was played",
    ),
)

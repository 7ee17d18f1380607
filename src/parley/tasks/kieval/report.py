"""The KIEval report on several runs: interviews and benchmarks by model and dataset, contamination,
how interviews ended, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parley.money import format_usd
from parley.results.compared_runs import ComparedRuns, ComparisonPart
from parley.results.human_votes import HUMAN_NOTE, human_cells
from parley.results.part import Rows, Style, no_rows
from parley.results.types import Dot, Figure, Intervals, Point, Scatter, Series, as_json
from parley.statistics.agreement import BlockEstimate
from parley.statistics.contamination import (
    LOOK,
    SUSPECTED,
    Contamination,
    CorrelationRow,
    Fit,
    Position,
    SideTest,
)
from parley.statistics.estimates import PairedDifference
from parley.statistics.matched_controls import Matched
from parley.tables import (
    Table,
    format_interval,
    format_number,
    format_p_value,
    format_signed,
    plural,
)
from parley.tasks.kieval.analysis import NONE, stop_bars
from parley.tasks.kieval.comparison import (
    Analysis,
    ComparedModels,
    InterviewCosts,
    analyse_runs,
)
from parley.tasks.kieval.entries import TASKS, comparable_facts
from parley.tasks.kieval.entries import MeasuredMean as Mean
from parley.tasks.kieval.model_table import CONVENTIONS, FIRST, ModelCell
from parley.tasks.kieval.rule import ASPECTS

LEVEL = "95% interval"
CONVENTION_TITLES = dict(zip(CONVENTIONS, ("KIEval", "KIEval, zero"), strict=True))
LEGEND = (
    "The line and the band show the score expected from the other models; 5% of honest models lie "
    "below the band and 5% above it. Models outside the band have a ring, a word beside their "
    "name, and their 95% intervals."
)
FEWEST_MODELS = 3  # for a correlation: two models always lie on a line


def analyse(runs: ComparedRuns) -> Analysis:
    """What all parts below are taken from."""
    return runs.once(analyse_runs)


def caution_tables(found: Analysis, style: Style) -> list[Table]:
    return [Table(["caution"], [[line] for line in found.cautions])] if found.cautions else []


def model_tables(found: Analysis, style: Style) -> Iterator[Table]:
    """All models over all datasets, then one dataset after the other."""
    if found.comparison.models:
        yield overview_table(found)
    for dataset in found.comparison.datasets:
        yield from dataset_tables(found, dataset)


def control_tables(found: Analysis, style: Style) -> list[Table]:
    return [control_table(found.matched)] if found.matched else []


def stop_tables(found: Analysis, style: Style) -> list[Table]:
    return [stop_table(found)] if found.record.stops else []


def violation_tables(found: Analysis, style: Style) -> list[Table]:
    return [violation_table(found)] if found.record.violations else []


def stop_figures(found: Analysis, style: Style) -> list[Figure]:
    """Interviews that ended early, by model and reason."""
    rows = ((row["alias"], row["interviews"], row["reasons"]) for row in found.record.stops)
    bars = stop_bars(rows)
    return [bars] if bars else []


def overview_table(found: Analysis) -> Table:
    """Every model on every dataset and over all datasets (table 2), with overall intervals; the
    intervals by dataset are in the tables of datasets. Measures without any value have no column.
    """
    shown, header = found.comparison, ["model"]
    measures = {
        dataset: list_measures([cell for cell in shown.cells if cell.dataset == dataset])
        for dataset in shown.datasets
    }
    by_dataset = {"accuracy": ("acc.", 1), "kieval_played": ("KIEval", 1), "rounds": ("rounds", 2)}
    for dataset in shown.datasets:
        titles = [title for name, (title, _) in by_dataset.items() if name in measures[dataset]]
        header += [f"{dataset} {titles[0]}", *titles[1:]] if titles else []
    known = list_measures(shown.cells)
    overall = {
        name: title
        for name, title in {"accuracy": "acc.", **CONVENTION_TITLES}.items()
        if name in known
    }
    counts = {
        name: title
        for name, title in {"accuracy": "questions", "kieval_played": "interviews"}.items()
        if name in known
    }
    for at, title in enumerate(overall.values()):
        header += [title if at else f"overall {title}", LEVEL]
    header += [*counts.values(), *shown.columns]
    header += [] if found.human is None else ["Human", LEVEL, "pairs"]
    rows = []
    for model in shown.models:
        row = [model]
        for dataset in shown.datasets:
            cell = shown.by.get((model, dataset))
            row += [
                format_measure(cell, measure, digits)
                for measure, (_, digits) in by_dataset.items()
                if measure in measures[dataset]
            ]
        whole = shown.overall[model]
        for measure in overall:
            figure = whole.get(measure, Mean(None))
            row += [format_number(figure.value, 1), format_interval(figure.low, figure.high, 1)]
        row += [format_count(whole.get(measure, Mean(None)).n) for measure in counts]
        row += [format_number(by.get(model)) for by in shown.columns.values()]
        row += [] if found.human is None else human_cells(found.human.win_rates.get(model))
        rows.append(row)
    meanings = {
        "accuracy": "`acc.` is the benchmark accuracy in percent",
        "kieval_played": "`KIEval` is the score over the rounds that were played",
        "kieval_zero": "`KIEval, zero` counts rounds after an early end as 0",
    }
    notes = [
        "; ".join(text for name, text in meanings.items() if name in known),
        "`overall` is the unweighted mean over datasets, for models that have results on all "
        "of them; the tables below show intervals, n and signatures by dataset",
        "" if found.human is None else f"{HUMAN_NOTE}. {found.human.describe()}",
    ]
    return Table(header, rows, note="\n".join(filter(None, notes)))


def list_measures(cells: Sequence[ModelCell]) -> set[str]:
    """The measures that at least one of these cells has a value of."""
    return {
        name for cell in cells for name, figure in cell.figures.items() if figure.value is not None
    }


def format_measure(cell: ModelCell | None, measure: str, digits: int = 1) -> str:
    """A mean, or a dash."""
    return (
        format_number(cell.figures[measure].value, digits)
        if cell is not None and measure in cell.figures
        else "–"
    )


def format_count(n: int | None) -> str:
    return "–" if n is None else f"{n:,}"


def dataset_tables(found: Analysis, dataset: str) -> Iterator[Table]:
    """One dataset: accuracies, scores by both conventions and rounds, with intervals and n; aspects
    (tables 8 to 12)."""
    cells = [cell for cell in found.comparison.cells if cell.dataset == dataset]
    known = list_measures(cells)
    titles = {
        "accuracy": ("acc.", 1), "first_answers": ("interviewed", 1),
        "kieval_played": (CONVENTION_TITLES["kieval_played"], 1),
        "kieval_zero": (CONVENTION_TITLES["kieval_zero"], 1), "rounds": ("rounds", 2),
    }  # fmt: skip
    measures = {name: shown for name, shown in titles.items() if name in known}
    header = ["model", "acc. from"]
    for title, _ in measures.values():
        header += [title, LEVEL, "n"]
    rows = []
    for cell in cells:
        row = [cell.model, cell.source or "–"]
        for measure, (_, digits) in measures.items():
            figure = cell.figures.get(measure, Mean(None))
            row += [
                format_number(figure.value, digits),
                format_interval(figure.low, figure.high, digits),
                format_count(figure.n),
            ]
        rows.append(
            [*row, str(max((figure.missing for figure in cell.figures.values()), default=0))]
        )
    interviewed = "`interviewed` is the accuracy of the first answers in the interviews"
    notes = [
        "; ".join([*([interviewed] if "first_answers" in known else []), "n counts questions"])
    ]
    if any(cell.source == FIRST for cell in cells):
        notes.append(
            f"`{FIRST}` means that no benchmark was run, so `acc.` is the accuracy in "
            "the interviews"
        )
    yield Table(
        [*header, "missing"],
        rows,
        left=2,
        note="\n".join([*notes, *signature_lines(cells)]),
        title=f"Results on {dataset}",
    )
    if any(cell.aspects for cell in cells):
        yield aspect_table([cell for cell in cells if cell.aspects], dataset)


def aspect_table(cells: list[ModelCell], dataset: str) -> Table:
    """The KIEval score of every aspect, by the run's convention for rounds that were not played."""
    rows = [
        [cell.model]
        + [
            f"{format_number(f.value, 1)} ({format_interval(f.low, f.high, 1)})"
            for name in ASPECTS
            if (f := cell.aspects.get(name))
        ]
        + [format_count(max((figure.n or 0 for figure in cell.aspects.values()), default=None))]
        for cell in cells
    ]
    return Table(
        ["model", *(f"mark_{aspect}" for aspect in ASPECTS), "n"],
        rows,
        note=(
            f"the evaluator's ratings by aspect, as KIEval scores with {LEVEL}s; the signature "
            "says how rounds after an early end count; n counts interviews"
        ),
        title=f"Ratings by aspect on {dataset}",
    )


def signature_lines(cells: list[ModelCell]) -> list[str]:
    """The signatures of the scores of a dataset, each once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for task in ("kieval", "qa"):
        for cell in cells:
            if task in cell.signatures:
                found.setdefault(comparable_facts(cell.signatures[task]), []).append(cell.model)
    return [
        f"signature ({', '.join(models)}): {'|'.join(facts)}" for facts, models in found.items()
    ]


def has_correlation(found: Analysis) -> bool:
    """Whether there are enough models for a correlation."""
    return max((row.correlation.n for row in found.correlations), default=0) >= FEWEST_MODELS


def correlation_tables(found: Analysis, style: Style) -> list[Table]:
    return [correlation_table(found)] if has_correlation(found) else []


def correlation_words(found: Analysis, style: Style) -> str:
    """How many models a correlation needs, if there are too few."""
    if not found.correlations or has_correlation(found):
        return ""
    most = max(row.correlation.n for row in found.correlations)
    return (
        f"A correlation needs at least {FEWEST_MODELS} models with both an accuracy and a KIEval "
        f"score. There {'is' if most == 1 else 'are'} {most} here: add models, or runs with other "
        "models."
    )


def correlation_table(found: Analysis) -> Table:
    """Pearson's r of benchmark accuracy and KIEval score, with all models and without the excluded
    ones (table 5); no r for fewer than three models."""
    rows = [
        [
            row.dataset or "overall",
            ", ".join(row.without) or "none",
            format_number(row.correlation.r if row.correlation.n >= FEWEST_MODELS else None, 3),
        ]
        + [format_interval(row.correlation.interval.low, row.correlation.interval.high, 3)]
        + ["–" if row.correlation.p is None else f"{row.correlation.p:.2e}", str(row.correlation.n)]
        for row in found.correlations
    ]
    note = (
        "Pearson's r over models, with p from a two-sided t-test and an interval from Fisher's "
        "z; in `overall`, every model on every dataset is one point, as in the paper. These "
        "points are not independent, so its p is too small and its interval too narrow"
    )
    return Table(["dataset", "without", "r", LEVEL, "p", "n"], rows, left=2, note=note)


def describe_verdict(found: Analysis, style: Style) -> str:
    """The verdict on models, in one sentence for each level."""
    said = found.contamination
    if said is None:
        return ""
    lines = [
        f"Suspected of contamination: {', '.join(said.suspected)}." if said.suspected else "",
        (f"Worth a look, but not significant after correction: {', '.join(said.worth_a_look)}.")
        if said.worth_a_look
        else "",
        f"Above the line, that is, better in interviews than expected: {', '.join(said.above)}."
        if said.above
        else "",
    ]
    tested = any(one.datasets for one in said.standings)
    return " ".join(filter(None, lines)) or (
        "No model differs significantly from the others." if tested else "No model could be tested."
    )


def stop_table(found: Analysis) -> Table:
    """Why interviews ended early, by model and dataset, with first answers that could not be read
    (figure 4)."""
    reasons = dict.fromkeys(
        reason for row in found.record.stops for reason in row["reasons"] if reason != NONE
    )
    rows = [
        [
            row["alias"],
            row["dataset"],
            row["run"],
            str(row["interviews"]),
            *format_share_of(row["early"]),
        ]
        + [str(row["reasons"].get(reason, 0)) for reason in reasons]
        + format_share_of(row["unreadable"])
        for row in found.record.stops
    ]
    header = [
        "model",
        "dataset",
        "run",
        "interviews",
        "ended early",
        LEVEL,
        *(reason.replace("_", " ") for reason in reasons),
    ]
    header += ["first answer unreadable", LEVEL]
    return Table(
        header,
        rows,
        left=3,
        note="the table counts interviews by the reason why they ended; intervals are computed "
        "over questions",
    )


def violation_table(found: Analysis) -> Table:
    """Violations by model, role and run."""
    rows = [
        [
            row["alias"],
            row["role"],
            row["dataset"],
            row["run"],
            row["kind"],
            str(row["count"]),
            str(row["matches"]),
        ]
        for row in found.record.violations
    ]
    note = (
        "`count` is the number of violations, and `matches` the number of matches with at "
        "least one violation; instruments (unranked models, such as the evaluator) are listed "
        "under their own names"
    )
    return Table(
        ["model", "role", "dataset", "run", "violation", "count", "matches"],
        rows,
        left=5,
        note=note,
    )


def interview_cost_tables(found: Analysis, style: Style) -> Iterator[Table]:
    """Tokens by role and conversation (table 14), and the cost of more models (table 15)."""
    if not found.record.spent:
        return
    rows = []
    for one in found.record.spent:
        least = "" if one.counted == one.calls else "≥ "
        tokens = [one.each(one.tokens_in), one.each(one.tokens_cached), one.each(one.tokens_out)]
        shown = ["–" if each is None else f"{least}{each:,.0f}" for each in tokens]
        usd = "–" if one.usd is None else format_usd(one.usd / one.models) if one.models else "–"
        rows.append(
            [
                one.dataset,
                one.role,
                str(one.models),
                str(one.conversations),
                f"{one.calls:,}",
                *shown,
                usd,
            ]
        )
    header = [
        "dataset",
        "role",
        "models",
        "conversations",
        "calls",
        "tokens in",
        "cached",
        "tokens out",
        "usd per model",
    ]
    note = (
        "tokens are means per conversation; ≥ means that endpoints did not report the tokens "
        "of all calls; – means that no tokens were reported, or that the price is unknown"
    )
    yield Table(header, rows, left=2, note=note)
    if found.record.scaling:
        lines = [
            [each.dataset, each.run, how, *(format_usd(row[key]) for row in each.rows)]
            for each in found.record.scaling
            for how, key in (("one by one", "single"), ("in pairs", "pairwise"))
        ]
        note = (
            "USD for interactor and evaluator, extrapolated from this run; `in pairs` assumes "
            "that the evaluator compares each pair of models on every question, with one reply "
            "to both full conversations"
        )
        models = [
            f"{row['models']:g} models" if row["models"] != 1 else "1 model"
            for row in found.record.scaling[0].rows
        ]
        yield Table(["dataset", "run", "graded", *models], lines, left=3, note=note)


def contamination_tables(found: Analysis, style: Style) -> list[Table]:
    """Every model over all datasets, then dataset by dataset."""
    said = found.contamination
    if said is None:
        return []
    rows = [
        [
            one.model,
            str(one.datasets),
            format_p_value(one.below.p),
            format_p_value(one.below.adjusted),
            level_word(one.below),
            format_p_value(one.above.p),
        ]
        + [format_p_value(one.above.adjusted), level_word(one.above)]
        for one in said.standings
    ]
    header = [
        "model",
        "datasets",
        "p below",
        "corrected",
        "below the line",
        "p above",
        "corrected",
        "above the line",
    ]
    notes = [f"reference models: {', '.join(said.reference)}"] if said.reference else []
    whole = Table(header, rows, note="\n".join([said.method, *notes]))
    return [whole, *(position_table(fit) for fit in said.fits)]


def position_table(fit: Fit) -> Table:
    """Every model of a dataset, compared with the line of the others."""
    rows = [
        [
            one.model,
            format_number(one.accuracy, 1),
            format_number(one.score, 1),
            format_number(one.expected, 1),
            format_signed(one.studentised),
        ]
        + [
            format_p_value(one.below.p),
            level_word(one.below),
            format_p_value(one.above.p),
            level_word(one.above),
        ]
        for one in fit.positions
    ]
    header = [
        fit.dataset,
        "accuracy",
        "KIEval",
        "expected",
        "distance",
        "p below",
        "",
        "p above",
        "",
    ]
    notes = [fit.note] if fit.note else []
    if fit.line is not None:
        sign, slope = "+" if fit.line.slope >= 0 else "−", format_number(abs(fit.line.slope))
        line = f"KIEval = {format_number(fit.line.intercept)} {sign} {slope} · accuracy"
        notes.append(
            f"the line is fitted to {plural(fit.line.n, 'model')} ({', '.join(fit.fitted)}): {line}"
        )
    if fit.aside:
        notes.append(f"these outliers were not used to fit the line: {', '.join(fit.aside)}")
    if fit.missing:
        notes.append(
            "these models are not tested, because their accuracy or score is missing: "
            f"{', '.join(fit.missing)}"
        )
    notes.append(
        "`expected` is the score predicted from the other models; `distance` is the difference "
        "from it in standard errors; p is one-sided and for this dataset alone"
    )
    return Table(header, rows, note="\n".join(notes))


def control_table(found: Sequence[Matched]) -> Table:
    """A suspect minus its control, question by question (table 3)."""
    rows = [
        [
            one.dataset,
            one.suspect,
            one.control,
            *difference_cells(one.accuracy),
            *difference_cells(one.score),
            *difference_cells(one.excess),
        ]
        for one in found
    ]
    header = ["dataset", "suspect", "control"]
    for title in ("accuracy", "KIEval", "excess"):
        header += [title, "95% interval", "p", "n"]
    note = (
        "differences are suspect minus control, in points, on the questions that both "
        "answered; `excess` is the difference in accuracy minus the difference in KIEval "
        "score; p is not corrected for several comparisons"
    )
    return Table(header, rows, left=3, note=note)


def difference_cells(pair: PairedDifference | None) -> list[str]:
    """A difference with its interval, p and n."""
    if pair is None:
        return ["–", "–", "–", "0"]
    return [
        format_signed(pair.difference, 1),
        format_interval(pair.low, pair.high, 1),
        format_p_value(pair.p),
        str(pair.blocks),
    ]


def level_word(side: SideTest) -> str:
    """The level that was reached, if any."""
    return side.level or ("not tested" if side.p is None else "")


COLUMNS = ("model", "dataset", "measure", "value", "low", "high", "interval", "n", "missing", "p",
           "from", "signature")  # of the rows for CSV  # fmt: skip


def fill_columns(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows with all columns in their order."""
    return [{name: row.get(name) for name in COLUMNS} for row in rows]


def model_rows(found: Analysis) -> Rows:
    """One row per number: by model and dataset, over all datasets, from a file, and from people."""
    rows: list[dict[str, Any]] = []
    for cell in found.comparison.cells:
        for measure, figure in {
            **cell.figures,
            **{f"aspect {name}": each for name, each in cell.aspects.items()},
        }.items():
            source = cell.source if measure == "accuracy" else None
            signature = (
                cell.signatures.get("qa" if source == "benchmark" else "kieval")
                if figure.n is not None
                else None
            )
            rows.append(
                {
                    "model": cell.model,
                    "dataset": cell.dataset,
                    "measure": measure,
                    **vars(figure),
                    "from": source,
                    "signature": signature,
                }
            )
    for model, measures in found.comparison.overall.items():
        rows += [
            {"model": model, "measure": f"overall {name}", **vars(figure)}
            for name, figure in measures.items()
        ]
    for column, by in found.comparison.columns.items():
        rows += [
            {"model": model, "measure": column, "value": value, "from": "file"}
            for model, value in by.items()
        ]
    if found.human is not None:
        rows += [
            {"model": model, "measure": "human win rate", **human_facts(estimate)}
            for model, estimate in found.human.win_rates.items()
        ]
        rows.append({"measure": "human agreement", **human_facts(found.human.agreement)})
    return fill_columns(rows)


def correlation_rows(found: Analysis) -> Rows:
    """One row per correlation."""
    rows = []
    for row in found.correlations:
        r, without = row.correlation, f" without {', '.join(row.without)}" if row.without else ""
        facts = {
            "value": r.r,
            "low": r.interval.low,
            "high": r.interval.high,
            "n": r.n,
            "missing": r.dropped,
            "p": r.p,
        }
        rows.append({"dataset": row.dataset, "measure": f"pearson{without}", **facts})
    return fill_columns(rows)


def stop_rows(found: Analysis) -> Rows:
    """One row per reason, and shares of interviews."""
    rows: list[dict[str, Any]] = []
    for each in found.record.stops:
        place = {
            "model": each["alias"],
            "dataset": each["dataset"],
            "n": each["interviews"],
            "from": each["run"],
        }
        rows += [
            {**place, "measure": f"stop {reason}", "value": count}
            for reason, count in each["reasons"].items()
        ]
        for kind, name in (("early", "ended early"), ("unreadable", "first answer unreadable")):
            share = each[kind]
            ends = {"value": share["share"], "low": share["low"], "high": share["high"]}
            rows.append({**place, "measure": name, **ends})
    return fill_columns(rows)


def human_facts(found: BlockEstimate) -> dict[str, Any]:
    """What people said, as the columns of the flat table; shares, not percent."""
    low, high, kind = found.interval
    facts = {"value": found.value, "low": low, "high": high, "interval": kind}
    return {**facts, "n": found.n, "missing": found.dropped, "from": "people"}


def contamination_figures(found: Analysis, style: Style) -> list[Figure]:
    """Score against accuracy by dataset, with the fitted line, and both with their intervals."""
    figures: list[Figure] = []
    for fit in found.contamination.fits if found.contamination else ():
        if fit.positions:
            cells = {
                one.model: found.comparison.by[one.model, fit.dataset] for one in fit.positions
            }
            figures += [fit_figure(fit, cells), score_figure(fit, cells)]
    return figures


def score_figure(fit: Fit, cells: Mapping[str, ModelCell]) -> Intervals:
    """One dataset: accuracy and KIEval score of each model, the best interviews first."""
    words = {one.model: describe_level(one) for one in fit.positions}
    points = []
    for one in sorted(fit.positions, key=lambda one: -one.score):
        label = f"{one.model} ({words[one.model]})" if words[one.model] else one.model
        for measure, group in (("accuracy", "accuracy, %"), ("kieval_played", "KIEval score")):
            mean = cells[one.model].figures.get(measure, Mean(None))
            points.append(Point(label, mean.value, mean.low, mean.high, group, one.model))
    title = f"{fit.dataset}: accuracy and KIEval score"
    said = "; ".join(
        f"{one.model}: {one.accuracy:.1f} and {one.score:.1f}" for one in fit.positions
    )
    return Intervals(title, f"{title}, with 95% intervals: {said}", "0 to 100", tuple(points), 1)


def fit_figure(fit: Fit, cells: Mapping[str, ModelCell] | None = None) -> Scatter:
    """One dataset: every model as a dot, the line of the others and its band. Models that lie apart
    have their intervals."""
    band = fit.band or []
    line: Series | None = Series(
        "expected",
        tuple(step.x for step in band),
        tuple(step.y for step in band),
        tuple(step.low for step in band),
        tuple(step.high for step in band),
    )
    title = f"{fit.dataset}: KIEval score against accuracy"
    apart = [f"{one.model} ({words})" for one in fit.positions if (words := describe_level(one))]
    said = f"apart from the line: {', '.join(apart)}" if apart else "no model lies apart"
    legend = LEGEND if band else ""
    if not is_tested(fit):  # a line without tests would look like a finding
        said, line, band = describe_untested(fit), None, []
        legend = f"{fit.dataset}: {said}."
    alt = f"{title} of {plural(len(fit.positions), 'model')}; {said}"
    dots = tuple(position_dot(one, (cells or {}).get(one.model)) for one in fit.positions)
    return Scatter(
        title,
        alt,
        "accuracy, %",
        "KIEval score",
        dots,
        line if band else None,
        legend,
        x_bounds=(0.0, 100.0),
        y_bounds=(0.0, 100.0),
    )


def is_tested(fit: Fit) -> bool:
    """Whether at least one model of a dataset was compared with the others."""
    return any(one.below.p is not None or one.above.p is not None for one in fit.positions)


def describe_untested(fit: Fit) -> str:
    """Why no model of a dataset was compared with the others."""
    reason = (fit.note or "").removeprefix("no verdict, because ")
    return f"not tested: {reason}" if reason else "not tested"


def describe_level(one: Position) -> str:
    """How a model compares with the line of the others, if it lies apart."""
    return one.below.level or one.above.level or ""


def position_dot(one: Position, cell: ModelCell | None) -> Dot:
    """A model, marked and with its intervals if it is far from the line."""
    level = describe_level(one)
    said = f"{one.model}: accuracy {one.accuracy:.1f}, KIEval {one.score:.1f}"
    mark = {SUSPECTED: "suspected", LOOK: "look"}.get(one.below.level or "", "")
    mark = mark or ("above" if one.above.level is not None else "")
    note = f"{said}, {level}" if level else said
    dot = Dot(one.model, one.accuracy, one.score, mark, note)  # type: ignore[arg-type]
    if not mark or cell is None:
        return dot
    accuracy, score = (cell.figures.get(name, Mean(None)) for name in ("accuracy", "kieval_played"))
    return replace(
        dot, x_low=accuracy.low, x_high=accuracy.high, y_low=score.low, y_high=score.high
    )


def format_share_of(share: Mapping[str, Any]) -> list[str]:
    """A share in percent, and its interval."""
    low, high = (None if share[end] is None else 100 * share[end] for end in ("low", "high"))
    return [f"{format_number(100 * share['share'], 1)}%", format_interval(low, high, 1)]


def part(
    name: str,
    title: str,
    result: Any,
    choose: Callable[[Analysis], Any],
    tables: Callable[[Analysis, Style], Iterable[Table]],
    **more: Any,
) -> ComparisonPart[Analysis]:
    """A part of the analysis; `choose` takes from it what JSON has."""
    return ComparisonPart(
        name,
        title,
        result,
        analyse,
        tables=lambda found, style: list(tables(found, style)),
        data=lambda found: as_json(choose(found)),
        takes=TASKS,
        **{"rows": no_rows, **more},
    )


# in the order of the paper
COMPARISONS = (
    part(
        "cautions",
        "Read this first",
        tuple[str, ...],
        lambda found: found.cautions,
        caution_tables,
    ),
    part(
        "models",
        "Models and datasets",
        ComparedModels,
        lambda found: found.models,
        model_tables,
        rows=model_rows,
        spread=True,
    ),
    part(
        "correlations",
        "Correlation of accuracy and KIEval score",
        tuple[CorrelationRow, ...],
        lambda found: found.correlations,
        correlation_tables,
        rows=correlation_rows,
        words=correlation_words,
    ),
    part(
        "contamination",
        "Contamination",
        Contamination | None,
        lambda found: found.contamination,
        contamination_tables,
        figures=contamination_figures,
        words=describe_verdict,
    ),
    part(
        "matched",
        "Matched control",
        tuple[Matched, ...],
        lambda found: found.matched,
        control_tables,
    ),
    part(
        "stops",
        "How interviews ended",
        tuple[dict[str, Any], ...],
        lambda found: found.record.stops,
        stop_tables,
        rows=stop_rows,
        figures=stop_figures,
        alone=False,
    ),
    part(
        "violations",
        "Violations",
        tuple[dict[str, Any], ...],
        lambda found: found.record.violations,
        violation_tables,
        alone=False,
    ),
    part(
        "interview_cost",
        "Cost of interviews",
        InterviewCosts,
        lambda found: found.costs,
        interview_cost_tables,
        spread=True,
    ),
)

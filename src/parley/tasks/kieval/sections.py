"""An analysis as tables, each under its title."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from parley.money import money
from parley.providers._secrets import covered, secrets
from parley.results.parts.courses import share
from parley.tables import Table, between, number
from parley.tasks.kieval.analysis import NONE
from parley.tasks.kieval.comparison import Analysis
from parley.tasks.kieval.entries import Figure, alike
from parley.tasks.kieval.model_table import ASPECTS, CONVENTIONS, FIRST, Cell
from parley.tasks.kieval.verdicts import contaminated, controlled

LEVEL = "95% interval"
Clean = Callable[[str], str]


class Section(NamedTuple):
    """A title, what to know before reading, and tables; a figure of the same kind stands beside
    them on the page."""

    title: str
    tables: list[Table]
    words: str = ""
    figure: str = ""


def sections(found: Analysis) -> Iterator[Section]:
    """All that there is something to say of, in the order of the paper."""
    if found.cautions:
        yield Section("Read this first", [Table(["caution"], [[line] for line in found.cautions])])
    if found.comparison.models:
        yield Section("Models and datasets", [overview(found)])
    for dataset in found.comparison.datasets:
        yield Section(f"Results on {dataset}", list(by_dataset(found, dataset)))
    if found.correlations:
        yield Section("Accuracy and KIEval score: correlation", [correlated(found)])
    if found.contamination is not None:
        yield Section("Contamination", contaminated(found.contamination), verdict(found), "scatter")
    if found.matched:
        yield Section("Matched control", [controlled(found.matched)])
    if found.record.stops:
        yield Section("How interviews ended", [ended(found)], "", "stops")
    if found.record.violations:
        yield Section("Violations", [violated(found)])
    if found.record.spent:
        yield Section("Cost", list(cost(found)))


def overview(found: Analysis) -> Table:
    """Every model on every dataset and over all (table 2); the intervals over all stand here, the
    others by dataset."""
    shown, header = found.comparison, ["model"]
    for dataset in shown.datasets:
        header += [f"{dataset} acc.", "KIEval", "rounds"]
    header += [
        "overall acc.",
        LEVEL,
        "KIEval",
        LEVEL,
        "KIEval, zero",
        LEVEL,
        "questions",
        "interviews",
        *shown.columns,
    ]
    rows = []
    for model in shown.models:
        row = [model]
        for dataset in shown.datasets:
            cell = shown.by.get((model, dataset))
            row += [value(cell, "accuracy"), value(cell, "kieval_played"), value(cell, "rounds", 2)]
        whole = shown.overall[model]
        for measure in ("accuracy", *CONVENTIONS):
            figure = whole.get(measure, Figure(None))
            row += [number(figure.value, 1), between(figure.low, figure.high, 1)]
        row += [
            count(whole.get(measure, Figure(None)).n) for measure in ("accuracy", "kieval_played")
        ]
        row += [number(by.get(model)) for by in shown.columns.values()]
        rows.append(row)
    notes = [
        (
            "acc.: benchmark accuracy, in percent; KIEval: rounds that were played count (zero: "
            "those lost to an early end count 0)"
        ),
        (
            "overall: unweighted means over datasets, for models that have all of them; "
            "intervals, n, signatures: by dataset, below"
        ),
    ]
    return Table(header, rows, note="\n".join(notes))


def value(cell: Cell | None, measure: str, digits: int = 1) -> str:
    """A mean, or a dash."""
    return (
        number(cell.figures[measure].value, digits)
        if cell is not None and measure in cell.figures
        else "–"
    )


def count(n: int | None) -> str:
    return "–" if n is None else f"{n:,}"


def by_dataset(found: Analysis, dataset: str) -> Iterator[Table]:
    """One dataset: accuracies, scores by both conventions and rounds with all that belongs to them;
    aspects (tables 8 to 12)."""
    cells = [cell for cell in found.comparison.cells if cell.dataset == dataset]
    measures = {
        "accuracy": ("acc.", 1), "first_answers": ("interviewed", 1),
        "kieval_played": ("KIEval", 1),
        "kieval_zero": ("KIEval, zero", 1), "rounds": ("rounds", 2),
    }  # fmt: skip
    header = ["model", "acc. from"]
    for title, _ in measures.values():
        header += [title, LEVEL, "n"]
    rows = []
    for cell in cells:
        row = [cell.model, cell.source or "–"]
        for measure, (_, digits) in measures.items():
            figure = cell.figures.get(measure, Figure(None))
            row += [
                number(figure.value, digits),
                between(figure.low, figure.high, digits),
                count(figure.n),
            ]
        rows.append(
            [*row, str(max((figure.missing for figure in cell.figures.values()), default=0))]
        )
    notes = [
        "interviewed: accuracy of the first answers to the interviewed questions; n: questions"
    ]
    if any(cell.source == FIRST for cell in cells):
        notes.append(f"{FIRST}: no benchmark was run, so acc. is that of the interviewed questions")
    yield Table([*header, "missing"], rows, left=2, note="\n".join([*notes, *signed(cells)]))
    if any(cell.aspects for cell in cells):
        yield aspects([cell for cell in cells if cell.aspects])


def aspects(cells: list[Cell]) -> Table:
    """The KIEval score of every aspect, as the run counts rounds that were not played."""
    rows = [
        [cell.model]
        + [
            f"{number(f.value, 1)} ({between(f.low, f.high, 1)})"
            for name in ASPECTS
            if (f := cell.aspects.get(name))
        ]
        + [count(max((figure.n or 0 for figure in cell.aspects.values()), default=None))]
        for cell in cells
    ]
    return Table(
        ["model", *ASPECTS, "n"],
        rows,
        note=(
            f"KIEval scores by aspect with their {LEVEL}s, by the convention that the signature "
            f"names; n: interviews"
        ),
    )


def signed(cells: list[Cell]) -> list[str]:
    """The signatures that the figures of a dataset rest on, each once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for task in ("kieval", "qa"):
        for cell in cells:
            if task in cell.signatures:
                found.setdefault(alike(cell.signatures[task]), []).append(cell.model)
    return [
        f"signature ({', '.join(models)}): {'|'.join(facts)}" for facts, models in found.items()
    ]


def correlated(found: Analysis) -> Table:
    """Pearson's r of benchmark accuracy and KIEval score, with all models and without the excluded
    ones (table 5)."""
    rows = [
        [row.dataset or "overall", ", ".join(row.without) or "nobody", number(row.correlation.r, 3)]
        + [between(row.correlation.interval.low, row.correlation.interval.high, 3)]
        + ["–" if row.correlation.p is None else f"{row.correlation.p:.2e}", str(row.correlation.n)]
        for row in found.correlations
    ]
    note = (
        "Pearson's r over models, p two-sided by Student's t, interval by Fisher's z; overall "
        "takes every model on every dataset for a point of its own, as the paper does: they are "
        "not independent, so its p and interval are too sure"
    )
    return Table(["dataset", "without", "r", LEVEL, "p", "n"], rows, left=2, note=note)


def verdict(found: Analysis) -> str:
    """What the analysis says of models, in a sentence for each level."""
    assert found.contamination is not None
    said = found.contamination
    lines = [
        f"Suspected of knowing a benchmark better than its subject: {', '.join(said.suspected)}."
        if said.suspected
        else "",
        (
            f"Worth a look, which is an invitation to look and no finding: "
            f"{', '.join(said.worth_a_look)}."
        )
        if said.worth_a_look
        else "",
        f"Above the line, where the benchmark does not show what they can: {', '.join(said.above)}."
        if said.above
        else "",
    ]
    tested = any(one.datasets for one in said.standings)
    return " ".join(filter(None, lines)) or (
        "No model lies apart from the others." if tested else "There is no verdict."
    )


def ended(found: Analysis) -> Table:
    """Why interviews ended early, by model and dataset, with first answers that could not be read
    (figure 4)."""
    reasons = dict.fromkeys(
        reason for row in found.record.stops for reason in row["reasons"] if reason != NONE
    )
    rows = [
        [row["alias"], row["dataset"], row["run"], str(row["interviews"]), *share(row["early"])]
        + [str(row["reasons"].get(reason, 0)) for reason in reasons]
        + share(row["unreadable"])
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
        note="numbers of interviews by what ended them; shares with intervals over questions",
    )


def violated(found: Analysis) -> Table:
    """Replies that were too long, answers given away, forms not kept."""
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
        "count: how often, in how many matches; what an instrument did is counted by its own name"
    )
    return Table(
        ["model", "role", "dataset", "run", "violation", "count", "matches"],
        rows,
        left=5,
        note=note,
    )


def cost(found: Analysis) -> Iterator[Table]:
    """Tokens by role and conversation (table 14); what more models would cost (table 15)."""
    rows = []
    for one in found.record.spent:
        least = "" if one.counted == one.calls else "≥ "
        tokens = [one.each(one.tokens_in), one.each(one.tokens_cached), one.each(one.tokens_out)]
        shown = ["–" if each is None else f"{least}{each:,.0f}" for each in tokens]
        usd = "–" if one.usd is None else money(one.usd / one.models) if one.models else "–"
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
        "usd a model",
    ]
    note = (
        "tokens: means over conversations; ≥: not all calls were counted by their endpoints; –: "
        "none was, or no price is known"
    )
    yield Table(header, rows, left=2, note=note)
    if found.record.scaling:
        lines = [
            [each.dataset, each.run, how, *(money(row[key]) for row in each.rows)]
            for each in found.record.scaling
            for how, key in (("one by one", "single"), ("in pairs", "pairwise"))
        ]
        note = (
            "USD for interactor and evaluator, by what they cost here; in pairs: every two models "
            "are compared on every question by one reply to both conversations in full"
        )
        models = [
            f"{row['models']:g} models" if row["models"] != 1 else "1 model"
            for row in found.record.scaling[0].rows
        ]
        yield Table(["dataset", "run", "graded", *models], lines, left=3, note=note)


def cleaned() -> Clean:
    """What takes the secrets out of a text, before it is escaped."""
    known = secrets()
    return lambda text: covered(text, known)


def tidy(table: Table, clean: Clean) -> Table:
    """A table without any secret in it."""
    rows = [[clean(cell) for cell in row] for row in table.rows]
    return replace(
        table, header=[clean(cell) for cell in table.header], rows=rows, note=clean(table.note)
    )

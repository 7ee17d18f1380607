"""What is said of contamination, as tables: the line of every dataset, every model beside it, a
suspect beside its control."""

from __future__ import annotations

from collections.abc import Sequence

from parley.statistics.contamination import Contamination, Fit, Side
from parley.statistics.estimates import Pair
from parley.statistics.matched_controls import Matched
from parley.tables import Table, between, number, signed


def contaminated(found: Contamination) -> list[Table]:
    """Every model over all datasets, then dataset by dataset."""
    rows = [
        [
            one.model,
            str(one.datasets),
            p(one.below.p),
            p(one.below.adjusted),
            word(one.below),
            p(one.above.p),
        ]
        + [p(one.above.adjusted), word(one.above)]
        for one in found.standings
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
    notes = [f"reference models: {', '.join(found.reference)}"] if found.reference else []
    whole = Table(header, rows, note="\n".join([found.method, *notes]))
    return [whole, *(placed(fit) for fit in found.fits)]


def placed(fit: Fit) -> Table:
    """Every model of a dataset beside the line of the others."""
    rows = [
        [
            one.model,
            number(one.accuracy, 1),
            number(one.score, 1),
            number(one.expected, 1),
            signed(one.studentised),
        ]
        + [p(one.below.p), word(one.below), p(one.above.p), word(one.above)]
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
        sign, slope = "+" if fit.line.slope >= 0 else "−", number(abs(fit.line.slope))
        line = f"KIEval = {number(fit.line.intercept)} {sign} {slope} · accuracy"
        notes.append(f"line of {fit.line.n} models ({', '.join(fit.fitted)}): {line}")
    if fit.aside:
        notes.append(f"lie apart, and are not in the line: {', '.join(fit.aside)}")
    if fit.missing:
        notes.append(f"without accuracy or score: {', '.join(fit.missing)}")
    notes.append(
        "expected: by the line of the others; distance: from it, in standard errors; p "
        "one-sided, for this dataset alone"
    )
    return Table(header, rows, note="\n".join(notes))


def controlled(found: Sequence[Matched]) -> Table:
    """A suspect less its control, question by question (table 3)."""
    rows = [
        [
            one.dataset,
            one.suspect,
            one.control,
            *parts(one.accuracy),
            *parts(one.score),
            *parts(one.excess),
        ]
        for one in found
    ]
    header = ["dataset", "suspect", "control"]
    for title in ("accuracy", "KIEval", "excess"):
        header += [title, "95% interval", "p", "n"]
    note = (
        "suspect less control, in points, on the questions that both answered; excess: what it "
        "gains in accuracy and not in conversation; p not corrected"
    )
    return Table(header, rows, left=3, note=note)


def parts(pair: Pair | None) -> list[str]:
    """A difference with its interval, p and n."""
    if pair is None:
        return ["–", "–", "–", "0"]
    return [
        signed(pair.difference, 1),
        between(pair.low, pair.high, 1),
        p(pair.p),
        str(pair.blocks),
    ]


def p(value: float | None) -> str:
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def word(side: Side) -> str:
    """The level that is reached, if one is."""
    return side.level or ("not tested" if side.p is None else "")

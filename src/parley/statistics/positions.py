"""Where models lie on one dataset, score against accuracy: each beside the line of the others (KIEval, figure 3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from parley.statistics.line_fit import Errors, Line, Spot, Step, differs, line
from parley.statistics.student_t import t_cdf

FEWEST = 4  # models that a line takes, one of them left out


@dataclass(frozen=True)
class Point:
    """A model on a dataset, both means in percent; None is missing. Errors are those of the means over questions, if known."""

    model: str
    dataset: str
    accuracy: float | None
    score: float | None
    errors: Errors | None = None


class Side(NamedTuple):
    """A one-sided p, the same after correction, and the level that they reach; a point is corrected over the model's datasets."""

    p: float | None = None
    adjusted: float | None = None
    level: str | None = None


UNTESTED = Side()


@dataclass(frozen=True)
class Position:
    """Where a model lies on one dataset: what the others' line expects of it, and its distance in standard errors."""

    model: str
    accuracy: float
    score: float
    expected: float | None = None
    studentised: float | None = None
    below: Side = UNTESTED
    above: Side = UNTESTED


@dataclass(frozen=True)
class Fit:
    """A dataset's points, the line, a band that honest models leave at α on either side, and why there is none."""

    dataset: str
    positions: list[Position]
    missing: list[str]
    fitted: list[str]
    aside: list[str]  # models found to lie apart, where no reference set was declared
    line: Line | None = None
    band: list[Step] | None = None
    note: str | None = None


def fit(points: Sequence[Point], reference: Collection[str], alpha: float) -> Fit:
    """One dataset: the line, and each model against the line of the others."""
    spots = {p.model: Spot(p.accuracy, p.score, p.errors) for p in points if p.accuracy is not None and p.score is not None}
    if any(spot.errors is None for spot in spots.values()):
        spots = {model: spot._replace(errors=None) for model, spot in spots.items()}
    found = Fit(
        dataset=points[0].dataset,
        positions=[Position(model, spot.x, spot.y) for model, spot in spots.items()],
        missing=[point.model for point in points if point.model not in spots],
        fitted=[model for model in spots if not reference or model in reference],
        aside=[],
    )
    kind = "models of the reference set" if reference else "models"
    if len(found.fitted) < FEWEST:
        return replace(
            found, note=f"no verdict: {len(found.fitted)} {kind} with accuracy and score, at least {FEWEST} are needed"
        )
    if not differs([spots[model].x for model in found.fitted]):
        return replace(found, note=f"no verdict: the {kind} do not differ in accuracy, so there is no line")
    return against_reference(found, spots, alpha) if reference else without_reference(found, spots, alpha)


def against_reference(found: Fit, spots: dict[str, Spot], alpha: float) -> Fit:
    """Student's t for each model's distance from the line of the reference models, itself left out."""
    positions = []
    for position in found.positions:
        spot, others = spots[position.model], line([spots[model] for model in found.fitted if model != position.model])
        t = None if others is None else others.studentised(spot)
        if others is not None and t is not None:
            below, above = (Side(t_cdf(distance, others.freedom)) for distance in (t, -t))
            position = replace(position, expected=others.at(spot.x), studentised=t, below=below, above=above)
        positions.append(position)
    note = None
    if all(position.below.p is None for position in positions):
        note = "no verdict: the models of the reference set lie exactly on a line, so nothing says how far honest models scatter"
    return drawn(replace(found, positions=positions, note=note), spots, alpha)


def without_reference(found: Fit, spots: dict[str, Spot], alpha: float) -> Fit:
    """p by drawing honest models; those that lie apart are set aside, and the line is fitted to the others."""
    from parley.statistics import robust_line as trimming

    models, x, y = list(spots), [spot.x for spot in spots.values()], [spot.y for spot in spots.values()]
    slope = trimming.slope(x, y)
    known = [spot.errors.variance(slope) for spot in spots.values() if spot.errors is not None]
    low, high = (trimming.below(x, [sign * value for value in y], known or None, alpha) for sign in (1, -1))
    if low is None or high is None:
        return replace(found, note="no verdict: models lie exactly on a line, so nothing says how far honest models scatter")
    aside = [model for place, model in enumerate(models) if place in low.aside | high.aside]
    fitted = [model for model in models if model not in aside]
    positions = []
    for position, below, above in zip(found.positions, low.p, high.p, strict=True):
        others = line([spots[model] for model in fitted if model != position.model])
        if others is not None:
            spot = spots[position.model]
            position = replace(position, expected=others.at(spot.x), studentised=others.studentised(spot))
        positions.append(replace(position, below=Side(below), above=Side(above)))
    return drawn(replace(found, positions=positions, fitted=fitted, aside=aside), spots, alpha)


def drawn(found: Fit, spots: dict[str, Spot], alpha: float) -> Fit:
    """With the line and the band that a figure shows."""
    shown = line([spots[model] for model in found.fitted])
    places = [spot.x for spot in spots.values()]
    return replace(found, line=shown, band=None if shown is None else shown.band(min(places), max(places), alpha))

"""Find models that know a benchmark better than its subject: KIEval score against benchmark
accuracy (KIEval §4.2).

For each dataset, each model is tested against the line of the other models, one-sided below and
above (`positions`). The p-values of a model over several datasets are combined with the Cauchy
combination test (Liu & Xie 2020). It stays valid if the datasets depend on each other, as they do
when the same models are tested on all of them. Holm's correction is applied over models; a model
that is significant only without it is worth a look.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from parley.errors import UsageError, unknown_name
from parley.statistics import robust_line as trimming
from parley.statistics.correlation import Correlation, pearson
from parley.statistics.intervals import ALPHA
from parley.statistics.line_fit import (
    BandPoint,
    Errors,
    FittedLine,
    MeasuredPoint,
    fit_line,
    has_spread,
)
from parley.statistics.multiple_comparisons import holm
from parley.statistics.student_t import t_cdf

SUSPECTED = "suspected"
ABOVE = "above the line"
LOOK = "worth a look"


@dataclass(frozen=True)
class Standing:
    """The result for a model over all datasets that could test it: p combined over datasets and
    corrected over models."""

    model: str
    datasets: int
    below: SideTest
    above: SideTest


@dataclass(frozen=True)
class Contamination:
    """The whole analysis: the method, the datasets, and the verdict on each model."""

    method: str
    alpha: float
    reference: list[str]
    fits: list[Fit]
    standings: list[Standing]

    @property
    def suspected(self) -> list[str]:
        return [one.model for one in self.standings if one.below.level == SUSPECTED]

    @property
    def worth_a_look(self) -> list[str]:
        """Models that are significantly below the line before the correction over models, but
        not after it."""
        return [one.model for one in self.standings if one.below.level == LOOK]

    @property
    def above(self) -> list[str]:
        """Models that do better in interviews than their benchmark accuracy predicts, at either
        level."""
        return [one.model for one in self.standings if one.above.level is not None]


def assess_contamination(
    points: Sequence[ModelPoint], reference: Collection[str] = (), alpha: float = ALPHA
) -> Contamination:
    """The verdict on every model; the reference set is used if there is one."""
    check_points(points, reference, alpha)
    fits = [
        fit_dataset([one for one in points if one.dataset == name], reference, alpha)
        for name in unique_names(p.dataset for p in points)
    ]
    standings = combine_datasets(unique_names(point.model for point in points), fits, alpha)
    return Contamination(
        describe_method(reference, alpha),
        alpha,
        sorted(set(reference)),
        locate_suspicion(fits, standings, alpha),
        standings,
    )


def check_points(points: Sequence[ModelPoint], reference: Collection[str], alpha: float) -> None:
    """Refuse points that cannot be analysed."""
    if not 0 < alpha < 0.5:
        raise UsageError(
            "`alpha` (the share of honest models that may be suspected by mistake) must be "
            f"between 0 and 0.5, not {alpha}"
        )
    models = {point.model for point in points}
    for name in reference:
        if name not in models:
            raise unknown_name("model in the reference set", name, models)
    seen = set()
    for point in points:
        where = f"{point.model} on {point.dataset}"
        numbers = [point.accuracy, point.score, *(point.errors or ())]
        if any(number is not None and not math.isfinite(number) for number in numbers):
            raise UsageError(
                f"{where}: accuracy, score and errors must be finite numbers, found {numbers}; "
                "use None for missing values"
            )
        if point.errors is not None and min(point.errors.x, point.errors.y) < 0:
            raise UsageError(
                f"{where}: standard errors cannot be negative, "
                f"found {point.errors.x} and {point.errors.y}"
            )
        if (point.model, point.dataset) in seen:
            raise UsageError(
                f"{where} appears twice: give a single mean over all questions of the dataset"
            )
        seen.add((point.model, point.dataset))


def unique_names(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def combine_datasets(models: Sequence[str], fits: Sequence[Fit], alpha: float) -> list[Standing]:
    """Combine the p-values of every model over its datasets."""
    own = {
        model: [
            p for one in fits for p in one.positions if p.model == model and p.below.p is not None
        ]
        for model in models
    }
    below = [
        combine_p_values([p.below.p for p in own[model] if p.below.p is not None])
        for model in models
    ]
    above = [
        combine_p_values([p.above.p for p in own[model] if p.above.p is not None])
        for model in models
    ]
    return [
        Standing(
            model,
            len(own[model]),
            judge_side(low, low_all, SUSPECTED, alpha),
            judge_side(high, high_all, ABOVE, alpha),
        )
        for model, low, low_all, high, high_all in zip(
            models, below, holm(below), above, holm(above), strict=True
        )
    ]


def judge_side(
    p: float | None, corrected: float | None, sure: str | None, alpha: float
) -> SideTest:
    """The level that a p-value reaches, where the given name is the highest level."""
    if p is None or corrected is None or p > alpha or sure is None:
        return SideTest(p, corrected)
    return SideTest(p, corrected, sure if corrected <= alpha else LOOK)


def locate_suspicion(fits: Sequence[Fit], standings: Sequence[Standing], alpha: float) -> list[Fit]:
    """The datasets on which a listed model is an outlier, at most at the level that it reaches
    overall; corrected over its datasets."""
    whole = {one.model: one for one in standings}
    low, high = {}, {}
    for model in whole:
        own = [(one.dataset, p) for one in fits for p in one.positions if p.model == model]
        for (dataset, _), below, above in zip(
            own,
            holm([p.below.p for _, p in own]),
            holm([p.above.p for _, p in own]),
            strict=True,
        ):
            low[model, dataset], high[model, dataset] = below, above
    return [
        replace(
            one,
            positions=[
                replace(
                    p,
                    below=judge_side(
                        p.below.p, low[p.model, one.dataset], whole[p.model].below.level, alpha
                    ),
                    above=judge_side(
                        p.above.p, high[p.model, one.dataset], whole[p.model].above.level, alpha
                    ),
                )
                for p in one.positions
            ],
        )
        for one in fits
    ]


def combine_p_values(values: Sequence[float]) -> float | None:
    """Combine p-values that may depend on each other, with the Cauchy combination test.

    A p above one half counts as one half: good performance on one dataset does not compensate for
    memorising another.
    """
    if not values:
        return None
    if min(values) <= 0:
        return 0.0
    mean = math.fsum(1 / math.tan(math.pi * min(value, 0.5)) for value in values) / len(values)
    return math.atan2(1.0, mean) / math.pi


def describe_method(reference: Collection[str], alpha: float) -> str:
    """The method in one line."""
    how = (
        (
            f"the line is fitted to the {len(set(reference))} reference models that you named; "
            "p-values from leave-one-out studentised residuals and Student's t"
        )
        if reference
        else (
            "without reference models, the line is a repeated median line that ignores groups "
            "of up to a third of the models; p-values by simulating honest models"
        )
    )
    return (
        f"{how}; the tests are one-sided; datasets are combined with the Cauchy combination "
        f"test; {SUSPECTED}: p ≤ {alpha:g} after Holm's correction over models; {LOOK}: p ≤ "
        f"{alpha:g} before the correction"
    )


@dataclass(frozen=True)
class CorrelationRow:
    """The correlation of accuracy and score on one dataset or over all of them, where every
    point counts once (KIEval, table 5)."""

    dataset: str | None
    without: tuple[str, ...]
    correlation: Correlation


def correlation_rows(
    points: Sequence[ModelPoint], without: Sequence[str] = (), alpha: float = ALPHA
) -> list[CorrelationRow]:
    """Correlations overall and by dataset; first with all models, then without the excluded
    ones."""
    models = {point.model for point in points}
    for name in without:
        if name not in models:
            raise unknown_name("model to leave out", name, models)
    found = []
    for left_out in dict.fromkeys([(), tuple(without)]):
        kept = [point for point in points if point.model not in left_out]
        for dataset in [None, *unique_names(point.dataset for point in points)]:
            chosen = [point for point in kept if dataset in (None, point.dataset)]
            found.append(
                CorrelationRow(
                    dataset,
                    left_out,
                    pearson([p.accuracy for p in chosen], [p.score for p in chosen], alpha),
                )
            )
    return found


FEWEST = 4  # models that a line takes, one of them left out


@dataclass(frozen=True)
class ModelPoint:
    """A model on a dataset. Both means are in percent; None means missing. `errors` are the
    standard errors of the means over questions, if known."""

    model: str
    dataset: str
    accuracy: float | None
    score: float | None
    errors: Errors | None = None


class SideTest(NamedTuple):
    """A one-sided p, the corrected p, and the level that they reach. For a single point, the
    correction is over the model's datasets."""

    p: float | None = None
    adjusted: float | None = None
    level: str | None = None


UNTESTED = SideTest()


@dataclass(frozen=True)
class Position:
    """The position of a model on one dataset: the score expected from the line of the other
    models, and its distance in standard errors."""

    model: str
    accuracy: float
    score: float
    expected: float | None = None
    studentised: float | None = None
    below: SideTest = UNTESTED
    above: SideTest = UNTESTED


@dataclass(frozen=True)
class Fit:
    """The points of a dataset, the line, a band with a share α of honest models on either side,
    and the reason if there is no line."""

    dataset: str
    positions: list[Position]
    missing: list[str]
    fitted: list[str]
    aside: list[str]  # models found to lie apart, where no reference set was declared
    line: FittedLine | None = None
    band: list[BandPoint] | None = None
    note: str | None = None


def fit_dataset(points: Sequence[ModelPoint], reference: Collection[str], alpha: float) -> Fit:
    """Analyse one dataset: fit the line, and test each model against the line of the other
    models."""
    spots = {
        p.model: MeasuredPoint(p.accuracy, p.score, p.errors)
        for p in points
        if p.accuracy is not None and p.score is not None
    }
    if any(spot.errors is None for spot in spots.values()):
        spots = {model: spot._replace(errors=None) for model, spot in spots.items()}
    found = Fit(
        dataset=points[0].dataset,
        positions=[Position(model, spot.x, spot.y) for model, spot in spots.items()],
        missing=[point.model for point in points if point.model not in spots],
        fitted=[model for model in spots if not reference or model in reference],
        aside=[],
    )
    kind = "reference models" if reference else "models"
    if len(found.fitted) < FEWEST:
        return replace(
            found,
            note=(
                f"no verdict, because only {len(found.fitted)} {kind} have both accuracy and "
                f"score; at least {FEWEST} are needed"
            ),
        )
    if not has_spread([spots[model].x for model in found.fitted]):
        return replace(
            found,
            note=f"no verdict, because the {kind} all have the same accuracy, so no line can be "
            "fitted",
        )
    return (
        compare_with_reference(found, spots, alpha)
        if reference
        else compare_without_reference(found, spots, alpha)
    )


def compare_with_reference(found: Fit, spots: dict[str, MeasuredPoint], alpha: float) -> Fit:
    """Student's t test of each model's distance from the line of the reference models, without
    the model itself."""
    positions = []
    for position in found.positions:
        spot, others = (
            spots[position.model],
            fit_line([spots[model] for model in found.fitted if model != position.model]),
        )
        t = None if others is None else others.studentised(spot)
        if others is not None and t is not None:
            below, above = (SideTest(t_cdf(distance, others.freedom)) for distance in (t, -t))
            position = replace(
                position, expected=others.at(spot.x), studentised=t, below=below, above=above
            )
        positions.append(position)
    note = None
    if all(position.below.p is None for position in positions):
        note = (
            "no verdict, because the reference models lie exactly on a line, so the scatter of "
            "honest models is unknown"
        )
    return with_line_and_band(replace(found, positions=positions, note=note), spots, alpha)


def compare_without_reference(found: Fit, spots: dict[str, MeasuredPoint], alpha: float) -> Fit:
    """p-values by simulating honest models. Outliers are removed, and the line is fitted to the
    other models."""
    models, x, y = (
        list(spots),
        [spot.x for spot in spots.values()],
        [spot.y for spot in spots.values()],
    )
    slope = trimming.repeated_median_slope(x, y)
    known = [spot.errors.variance(slope) for spot in spots.values() if spot.errors is not None]
    low, high = (
        trimming.find_outliers_below(x, [sign * value for value in y], known or None, alpha)
        for sign in (1, -1)
    )
    if low is None or high is None:
        return replace(
            found,
            note=(
                "no verdict, because the models lie exactly on a line, so the scatter of "
                "honest models is unknown"
            ),
        )
    aside = [model for place, model in enumerate(models) if place in low.aside | high.aside]
    fitted = [model for model in models if model not in aside]
    positions = []
    for position, below, above in zip(found.positions, low.p, high.p, strict=True):
        others = fit_line([spots[model] for model in fitted if model != position.model])
        if others is not None:
            spot = spots[position.model]
            position = replace(
                position, expected=others.at(spot.x), studentised=others.studentised(spot)
            )
        positions.append(replace(position, below=SideTest(below), above=SideTest(above)))
    return with_line_and_band(
        replace(found, positions=positions, fitted=fitted, aside=aside), spots, alpha
    )


def with_line_and_band(found: Fit, spots: dict[str, MeasuredPoint], alpha: float) -> Fit:
    """Add the line and the band for the figure."""
    shown = fit_line([spots[model] for model in found.fitted])
    places = [spot.x for spot in spots.values()]
    return replace(
        found,
        line=shown,
        band=None if shown is None else shown.band(min(places), max(places), alpha),
    )

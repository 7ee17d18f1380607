"""Compare a suspect with a control from the same base model that was not trained on the
suspected data (KIEval, table 3), on the questions that both answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from parley.errors import UsageError
from parley.statistics.contamination import ModelPoint
from parley.statistics.estimates import PairedDifference, compare_two_models
from parley.statistics.intervals import ALPHA
from parley.statistics.line_fit import Errors

PERCENT = (0.0, 100.0)


@dataclass(frozen=True)
class Answers:
    """The results of a model on a dataset by question, in percent. The accuracy may cover more
    questions than the interviews."""

    model: str
    dataset: str
    accuracy: Mapping[str, float]
    score: Mapping[str, float]

    def __post_init__(self) -> None:
        for metric, answers in (("accuracy", self.accuracy), ("score", self.score)):
            for question, value in answers.items():
                if not PERCENT[0] <= value <= PERCENT[1]:
                    where = f"{self.model} on {self.dataset}: {metric} of question {question!r}"
                    raise UsageError(f"{where} must be a percentage from 0 to 100, not {value}")

    @property
    def point(self) -> ModelPoint:
        """The means over questions, and their standard errors if each is based on at least two
        questions."""
        right, spoken = list(self.accuracy.values()), list(self.score.values())
        errors = None
        if min(len(right), len(spoken)) > 1:
            errors = Errors(
                stdev(right) / len(right) ** 0.5,
                stdev(spoken) / len(spoken) ** 0.5,
                self.covariance,
            )
        return ModelPoint(
            self.model,
            self.dataset,
            fmean(right) if right else None,
            fmean(spoken) if spoken else None,
            errors,
        )

    @property
    def covariance(self) -> float:
        """The covariance of the two means, which comes from the questions that they share."""
        both = [
            (self.accuracy[question], self.score[question])
            for question in self.accuracy
            if question in self.score
        ]
        if len(both) < 2:
            return 0.0
        right, spoken = (fmean(side) for side in zip(*both, strict=True))
        product = sum((one - right) * (other - spoken) for one, other in both) / (len(both) - 1)
        return len(both) * product / (len(self.accuracy) * len(self.score))


@dataclass(frozen=True)
class Matched:
    """Suspect minus control, with paired intervals over questions: what the suspected data raised
    on the benchmark but not in conversation.

    A part is None if the two models share no question for it. The excess covers questions that have
    both values. The p-values are not corrected.
    """

    dataset: str
    suspect: str
    control: str
    accuracy: PairedDifference | None
    score: PairedDifference | None
    excess: PairedDifference | None  # the difference in accuracy less the difference in score


def compare_with_control(suspect: Answers, control: Answers, alpha: float = ALPHA) -> Matched:
    """Compare two models from the same base model on one dataset."""
    if suspect.dataset != control.dataset:
        raise UsageError(
            f"a matched control must be on the same dataset as the suspect, {suspect.dataset!r}, "
            f"not {control.dataset!r}"
        )
    if suspect.model == control.model:
        raise UsageError(
            f"a matched control must be another model than the suspect, but both are "
            f"{suspect.model!r}"
        )
    parts = {}
    for metric, bounds in (
        ("accuracy", PERCENT),
        ("score", PERCENT),
        ("excess", (-PERCENT[1], PERCENT[1])),
    ):
        table = {
            (metric, "", one.model): values_by_question(one, metric) for one in (suspect, control)
        }
        parts[metric] = compare_two_models(
            table, metric, "", suspect.model, control.model, bounds, alpha, "block"
        )
    return Matched(
        suspect.dataset,
        suspect.model,
        control.model,
        parts["accuracy"],
        parts["score"],
        parts["excess"],
    )


def values_by_question(answers: Answers, metric: str) -> Mapping[str, float]:
    """The differences by question."""
    if metric == "excess":
        return {
            question: right - answers.score[question]
            for question, right in answers.accuracy.items()
            if question in answers.score
        }
    return answers.accuracy if metric == "accuracy" else answers.score

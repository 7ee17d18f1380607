"""A table of models by dataset and over all datasets (KIEval, table 2), as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from parley.errors import UsageError
from parley.statistics.contamination import ModelPoint
from parley.statistics.matched_controls import Answers
from parley.tasks.kieval.entries import (
    Entry,
    MeasuredMean,
    clamp_percentages,
    describe_differences,
    overall_mean,
)
from parley.tasks.kieval.rule import ASPECTS
from parley.tasks.kieval.scores_file import ScoresFile

BENCHMARK, FIRST, GIVEN = "benchmark", "first answers", "file"  # where an accuracy comes from
CONVENTIONS = ("kieval_played", "kieval_zero")
MEASURES = ("accuracy", "first_answers", *CONVENTIONS, "rounds")


@dataclass(frozen=True)
class ModelCell:
    """A model on a dataset: accuracies and scores in percent. `source` says what the accuracy
    is."""

    model: str
    dataset: str
    source: str | None
    figures: dict[str, MeasuredMean]  # by measure
    aspects: dict[str, MeasuredMean]
    signatures: dict[str, str]  # by task
    runs: list[str]
    answers: Answers | None = field(default=None, repr=False)

    @property
    def point(self) -> ModelPoint:
        """The point of the model in the regression of score on accuracy, with standard errors if
        both were measured question by question."""
        accuracy, score = (
            self.figures[name].value if name in self.figures else None
            for name in ("accuracy", "kieval_played")
        )
        if self.answers is not None and self.source != GIVEN and "kieval_played" in self.figures:
            return self.answers.point
        return ModelPoint(self.model, self.dataset, accuracy, score)


@dataclass(frozen=True)
class ModelTable:
    """All models on all datasets, means over datasets, and further columns from a file."""

    datasets: list[str]
    models: list[str]
    cells: list[ModelCell]
    columns: dict[str, dict[str, float]] = field(default_factory=dict)
    cautions: list[str] = field(default_factory=list)

    @cached_property
    def by(self) -> dict[tuple[str, str], ModelCell]:
        return {(cell.model, cell.dataset): cell for cell in self.cells}

    @cached_property
    def overall(self) -> dict[str, dict[str, MeasuredMean]]:
        """Unweighted means over datasets by model and measure; None for a model that lacks a
        dataset."""
        wanted = {
            measure: [
                name
                for name in self.datasets
                if any(measure in c.figures for c in self.cells if c.dataset == name)
            ]
            for measure in MEASURES
        }
        return {
            model: {
                measure: overall_mean([self.figure(model, name, measure) for name in names])
                for measure, names in wanted.items()
                if names
            }
            for model in self.models
        }

    def figure(self, model: str, dataset: str, measure: str) -> MeasuredMean | None:
        """One figure, if there is one."""
        found = self.by.get((model, dataset))
        return None if found is None else found.figures.get(measure)

    @property
    def points(self) -> list[ModelPoint]:
        """The points of all datasets on which a model has both an accuracy and a score."""
        found = [cell.point for cell in self.cells]
        both = {
            point.dataset
            for point in found
            if point.accuracy is not None and point.score is not None
        }
        return [point for point in found if point.dataset in both]


def build_model_table(entries: Iterable[Entry], scores: ScoresFile | None = None) -> ModelTable:
    """Combine entries and a scores file by model and dataset."""
    known = {(entry.model, entry.dataset, entry.task): entry for entry in entries}
    scores = scores or ScoresFile()
    scores.refuse_strangers({model for model, _, _ in known})
    places = dict.fromkeys([*((m, d) for m, d, _ in known), *((m, d) for m, d, _ in scores.given)])
    models, datasets = (list(dict.fromkeys(place[side] for place in places)) for side in (0, 1))
    made = {
        place: make_model_cell(
            *place, known.get((*place, "kieval")), known.get((*place, "qa")), scores
        )
        for place in sorted(
            places, key=lambda place: (datasets.index(place[1]), models.index(place[0]))
        )
    }
    return ModelTable(
        datasets,
        models,
        list(made.values()),
        scores.columns,
        find_cautions(list(known.values()), list(made.values())),
    )


def make_model_cell(
    model: str, dataset: str, interviews: Entry | None, benchmark: Entry | None, scores: ScoresFile
) -> ModelCell:
    """One model on one dataset. The accuracy comes from the benchmark, else from the file, else
    from the first answers."""
    figures: dict[str, MeasuredMean] = {}
    given = {
        measure: value
        for (m, d, measure), value in scores.given.items()
        if (m, d) == (model, dataset)
    }
    entries = [entry for entry in (interviews, benchmark) if entry is not None]
    if interviews is not None:
        figures |= {
            name: interviews.figures[name]
            for name in (*CONVENTIONS, "rounds")
            if name in interviews.figures
        }
        figures["first_answers"] = interviews.figures["answer_accuracy"]
    source = None
    if benchmark is not None:
        figures["accuracy"], source = benchmark.figures["accuracy"], BENCHMARK
    elif "accuracy" in given:
        source = GIVEN
    elif interviews is not None:
        figures["accuracy"], source = figures["first_answers"], FIRST
    for measure, value in given.items():
        name = "kieval_played" if measure == "kieval" else measure
        if name in figures:
            raise UsageError(
                f"{scores.source} has a value of {measure}@{dataset} for {model}, but run "
                f"{entries[0].runs[0]} already measured it: remove the value from "
                f"{scores.source}"
            )
        figures[name] = MeasuredMean(value)
    right = (
        benchmark.questions["accuracy"]
        if benchmark
        else interviews.questions["answer_accuracy"]
        if interviews
        else {}
    )
    spoken = interviews.questions.get("kieval_played", {}) if interviews else {}
    return ModelCell(
        model,
        dataset,
        source,
        {name: figures[name] for name in MEASURES if name in figures},
        {
            aspect: interviews.figures[f"mark_{aspect}"]
            for aspect in ASPECTS
            if f"mark_{aspect}" in interviews.figures
        }
        if interviews
        else {},
        {entry.task: entry.signature for entry in entries},
        [run for entry in entries for run in entry.runs],
        Answers(model, dataset, clamp_percentages(right), clamp_percentages(spoken))
        if entries
        else None,
    )


def find_cautions(entries: Sequence[Entry], cells: Sequence[ModelCell]) -> list[str]:
    """Cautions about comparisons: different settings, sources or models."""
    said = []
    for dataset, task in dict.fromkeys((entry.dataset, entry.task) for entry in entries):
        signatures = [
            entry.signature for entry in entries if (entry.dataset, entry.task) == (dataset, task)
        ]
        if apart := describe_differences(signatures):
            said.append(
                f"`{task}` on {dataset}: models were measured with different settings, so their "
                f"scores may not be comparable ({apart})"
            )
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        sources = sorted(
            {cell.source for cell in cells if cell.dataset == dataset and cell.source is not None}
        )
        if len(sources) > 1:
            by = []
            for name in sources:
                here = [each for each in cells if (each.dataset, each.source) == (dataset, name)]
                by.append(f"{name} ({', '.join(each.model for each in here)})")
            said.append(
                f"the accuracies on {dataset} come from different sources, so they may not be "
                f"comparable: {', '.join(by)}"
            )
    for model in dict.fromkeys(entry.model for entry in entries):
        names = sorted({entry.requested for entry in entries if entry.model == model})
        if len(names) > 1 and not all(name.startswith("bot/") for name in names):
            said.append(
                f"the alias {model} means different models in these runs ({', '.join(names)}), "
                "but their scores are combined: use different aliases"
            )
    return said

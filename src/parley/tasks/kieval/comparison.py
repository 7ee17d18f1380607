"""Several runs analysed together: the comparison of models, and signs of contamination (KIEval
§4.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.errors import StoreError, UsageError, unknown_name
from parley.results.compared_runs import ComparedRuns
from parley.results.human_votes import HumanVotes, read_human_votes
from parley.results.run_facts import group_attempts
from parley.results.types import as_json
from parley.statistics.contamination import (
    Contamination,
    CorrelationRow,
    assess_contamination,
    correlation_rows,
)
from parley.statistics.matched_controls import Matched, compare_with_control
from parley.store import read_run
from parley.store.reader import RunReader
from parley.store.types import RunRef
from parley.tasks.kieval.analysis import count_stops
from parley.tasks.kieval.entries import (
    Entry,
    MeasuredMean,
    collect_entries,
    dataset_name,
    merge_entries,
)
from parley.tasks.kieval.model_table import ModelTable, build_model_table
from parley.tasks.kieval.scores_file import read_scores_file
from parley.tasks.kieval.token_costs import (
    RoleSpending,
    Scaling,
    forecast_scaling,
    merge_by_dataset,
    spending_by_role,
)


@dataclass
class ReportRecord:
    """The entries, stops, violations, costs and cautions of several runs."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    stops: list[dict[str, Any]] = field(default_factory=list)
    violations: list[dict[str, Any]] = field(default_factory=list)
    spent: list[RoleSpending] = field(default_factory=list)
    scaling: list[Scaling] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Analysis:
    """The contents of a report on interviews and benchmarks, as plain data."""

    comparison: ModelTable
    correlations: list[CorrelationRow]
    contamination: Contamination | None
    matched: list[Matched]
    record: ReportRecord
    human: HumanVotes | None = None

    @property
    def cautions(self) -> list[str]:
        return [*self.record.cautions, *self.comparison.cautions]

    @property
    def models(self) -> ComparedModels:
        found = self.comparison
        cells = [
            {
                "model": cell.model,
                "dataset": cell.dataset,
                "accuracy_from": cell.source,
                **cell.figures,
                "aspects": cell.aspects,
                "signatures": cell.signatures,
                "runs": cell.runs,
            }
            for cell in found.cells
        ]
        human = None if self.human is None else self.human.data
        return ComparedModels(
            self.record.runs,
            found.datasets,
            found.models,
            cells,
            found.overall,
            found.columns,
            human,
        )

    @property
    def costs(self) -> InterviewCosts:
        return InterviewCosts(self.record.spent, self.record.scaling)


@dataclass(frozen=True)
class ComparedModels:
    """The runs, every model on every dataset and over all datasets, columns of a scores file, and
    the votes of people."""

    runs: list[dict[str, Any]]
    datasets: list[str]
    models: list[str]
    cells: list[dict[str, Any]]
    overall: dict[str, dict[str, MeasuredMean]]  # by model and measure
    columns: dict[str, dict[str, float]]
    human: dict[str, Any] | None


@dataclass(frozen=True)
class InterviewCosts:
    """What the interviews have cost by role, and what more models would cost."""

    cost: list[RoleSpending]
    scaling: list[Scaling]


def analyse_runs(runs: ComparedRuns) -> Analysis:
    """The analysis of runs of these tasks."""
    asked, record = runs.options, collect_record(runs)
    found = build_model_table(
        merge_entries(record.entries, asked.newest),
        read_scores_file(asked.scores) if asked.scores else None,
    )
    if asked.newest:
        record = keep_used_runs(record, found)
    record.spent = merge_by_dataset(record.spent)
    points = found.points
    for name in (*asked.reference, *asked.without):
        if name not in found.models:
            raise unknown_name("model", name, found.models)
    return Analysis(
        found,
        correlation_rows(points, list(asked.without)) if points else [],
        assess_contamination(points, list(asked.reference)) if points else None,
        [
            each
            for suspect, control in asked.controls.items()
            for each in compare_controls(found, suspect, control)
        ],
        record,
        read_votes_on(runs.refs, record),
    )


def read_votes_on(refs: Sequence[RunRef], record: ReportRecord) -> HumanVotes | None:
    """The votes of people on these runs. A file of votes that cannot be read is a caution."""
    used = {each["run"] for each in record.runs}
    by_id = {}
    for ref in refs:
        with read_run(ref) as reader:
            if reader.info.id in used:
                by_id[reader.info.id] = ref
    try:
        return read_human_votes(by_id)
    except StoreError as wrong:
        record.cautions.append(f"the votes of people are left out: {wrong}")
        return None


def collect_record(runs: ComparedRuns) -> ReportRecord:
    """Collect the data of all runs. Runs that only screened questions are left out, with a
    caution."""
    found = ReportRecord()
    for run in runs.each():
        reader, config = run.reader, run.config
        place = {
            "run": reader.info.id,
            "task": reader.info.identity["task"],
            "dataset": dataset_name(config.dataset),
        }
        if config.screening is not None:
            found.cautions.append(
                f"{reader.info.id} only screened questions for another run, so it has no "
                "scores and is left out"
            )
            continue
        found.entries += collect_entries(run)
        found.runs.append(
            {
                **place,
                "name": config.name or None,
                "state": reader.info.state,
                "matches": len(run.matches),
            }
        )
        found.stops += [{**place, **row} for row in as_json(count_stops(run))]
        found.violations += [{**place, **row} for row in violation_counts(reader)]
        if config.stop is not None:
            sure = f"{100 * (1 - config.stop.alpha):g}%"
            found.cautions.append(
                f"{reader.info.id} stopped depending on its scores (sequential stopping), "
                f"so its intervals are anytime-valid ({sure}) and wider than those of a run "
                "with a fixed number of matches"
            )
        if reader.info.state != "done":
            found.cautions.append(
                f"{reader.info.id} is not finished ({reader.info.state}, "
                f"{reader.info.reason or 'still being played'}), so its scores may still "
                "change"
            )
        if place["task"] == "kieval":
            found.spent += spending_by_role(run)
            found.scaling += filter(None, [forecast_scaling(run)])
    return found


def violation_counts(reader: RunReader) -> list[dict[str, Any]]:
    """Violations by model, role and kind."""
    by, attempts = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    kept: dict[tuple[str, str, str], set[int]] = {}
    for tries in group_attempts(reader.violations.read()):
        fault = tries[0]
        key = (fault.alias, fault.seat.role, fault.kind)
        by[key] += 1
        attempts[key] += len(tries)
        kept.setdefault(key, set()).add(fault.match)
    return [
        {
            "alias": alias,
            "role": role,
            "kind": kind,
            "count": count,
            "attempts": attempts[alias, role, kind],
            "matches": len(kept[alias, role, kind]),
        }
        for (alias, role, kind), count in sorted(by.items())
    ]


def keep_used_runs(record: ReportRecord, found: ModelTable) -> ReportRecord:
    """Drop the data of runs that were replaced by newer ones."""
    used = {(cell.model, run) for cell in found.cells for run in cell.runs}
    runs = {run for _, run in used}
    aside = [each["run"] for each in record.runs if each["run"] not in runs]
    return ReportRecord(
        [each for each in record.runs if each["run"] in runs],
        record.entries,
        [each for each in record.stops if (each["alias"], each["run"]) in used],
        [each for each in record.violations if each["run"] in runs],
        [each for each in record.spent if each.run in runs],
        [each for each in record.scaling if each.run in runs],
        [
            *record.cautions,
            *(
                [f"these runs are left out, because newer runs replace them: {', '.join(aside)}"]
                if aside
                else []
            ),
        ],
    )


def compare_controls(found: ModelTable, suspect: str, control: str) -> list[Matched]:
    """Compare a suspect with its control on all datasets that have results for both."""
    for name in (suspect, control):
        if name not in found.models:
            raise unknown_name("model", name, found.models)
    both = []
    for dataset in found.datasets:
        cells = [
            found.by[name, dataset] for name in (suspect, control) if (name, dataset) in found.by
        ]
        sides = [cell.answers for cell in cells if cell.answers is not None]
        if len(sides) < 2:
            continue
        asked = {
            cell.model: "a benchmark" if "qa" in cell.signatures else "first answers"
            for cell in cells
        }
        if len(set(asked.values())) > 1:
            said = ", ".join(f"{model} from {source}" for model, source in asked.items())
            raise UsageError(
                f"--control {suspect}={control}: the accuracies of the two models on {dataset} "
                f"are not comparable ({said}): run the task `qa` on {dataset} for both models"
            )
        both.append(compare_with_control(sides[0], sides[1]))
    if not both:
        raise UsageError(
            f"--control {suspect}={control}: no dataset has results for both models: add runs "
            "of both models on the same dataset"
        )
    return both

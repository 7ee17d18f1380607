"""Results of interviews and benchmarks by model and dataset: every number with its interval, n and
signature."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from parley.errors import UsageError
from parley.results.scores import RunScores
from parley.statistics.intervals import Interval, compute_interval
from parley.statistics.matched_controls import PERCENT
from parley.tasks.kieval.rule import ASPECTS

TASKS = ("kieval", "qa")
# of qa and kieval: from 0 to 1 there, in percent here
SHARES = ("accuracy", "answer_accuracy")
# names of metrics in runs of version 1 of the task
EARLIER_NAMES = {
    **{aspect: f"mark_{aspect}" for aspect in ASPECTS},
    "first_answer": "answer_accuracy",
}


@dataclass(frozen=True)
class MeasuredMean:
    """A mean over n questions with its interval; a mean from a file has neither n nor interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    missing: int = 0
    interval: str | None = None


@dataclass(frozen=True)
class Entry:
    """One model on one dataset in one task: the mean of every metric, and the values by
    question."""

    model: str
    dataset: str
    task: str
    signature: str
    figures: dict[str, MeasuredMean]
    questions: dict[str, dict[str, float]] = field(repr=False)
    bounds: dict[str, tuple[float, float]] = field(repr=False)
    runs: tuple[str, ...] = ()
    requested: str = ""
    created: float = 0.0
    fixed: bool = True  # the number of questions was fixed: no sequential stopping


def collect_entries(run: RunScores) -> list[Entry]:
    """The entries of a run, one per model."""
    reader, config = run.reader, run.config
    task, role = reader.info.identity["task"], run.roles[0]
    means, found = run.block_means, list[Entry]()
    rows = [row for row in run.results if row.role == role]
    for alias in dict.fromkeys(row.alias for row in rows):
        figures, questions, bounds = {}, {}, {}
        for row in (row for row in rows if row.alias == alias):
            metric, (lowest, highest) = row.metric, run.bounds[row.metric]
            name = metric_name(task, metric, config.params)
            times = 100.0 if name in SHARES else 1.0
            bounds[name] = (lowest * times, highest * times)
            mean, low, high = (
                None if end is None else end * times for end in (row.mean, row.low, row.high)
            )
            figures[name] = MeasuredMean(mean, low, high, row.blocks, row.missing, row.interval)
            by = means.get((metric, role, alias), {})
            questions[name] = {block: value * times for block, value in by.items()}
        signature = next(row.signature for row in rows if row.alias == alias)
        model = str(config.models[alias]["model"])
        facts = (
            figures,
            questions,
            bounds,
            (reader.info.id,),
            model,
            reader.info.created,
            config.stop is None,
        )
        found.append(Entry(alias, dataset_name(config.dataset), task, signature, *facts))
    return found


def metric_name(task: str, metric: str, params: dict[str, Any]) -> str:
    """The common name of a metric: the KIEval score with its convention, and names of version 1
    translated to current ones."""
    if task != "kieval":
        return metric
    if metric == "kieval":
        return f"kieval_{params.get('missing', 'played')}"
    return EARLIER_NAMES.get(metric, metric)


def dataset_name(given: str | None) -> str:
    """The common name of a dataset, with a normalised path."""
    return "own items" if given is None else os.path.normpath(given) if os.sep in given else given


def comparable_facts(signature: str) -> tuple[str, ...]:
    """The facts of a signature without the number of matches, which is n."""
    return tuple(fact for fact in signature.split("|") if not fact.startswith("matches:"))


def merge_entries(found: Iterable[Entry], newest: bool = False) -> list[Entry]:
    """One entry per model, dataset and task. Runs with the same settings are pooled, others are
    refused."""
    kept: dict[tuple[str, str, str], Entry] = {}
    for entry in sorted(found, key=lambda entry: entry.created):
        key = (entry.model, entry.dataset, entry.task)
        before = kept.get(key)
        if before is None:
            kept[key] = entry
            continue
        if set(entry.runs) & set(before.runs):
            raise UsageError(f"run {entry.runs[0]} is given twice: name each run only once")
        if (
            comparable_facts(entry.signature) == comparable_facts(before.signature)
            and entry.fixed
            and before.fixed
        ):
            kept[key] = pool_entries(before, entry)
        elif newest:
            kept[key] = entry
        else:
            apart = describe_differences([before.signature, entry.signature])
            there = f"{' and '.join(before.runs)} and {' and '.join(entry.runs)}"
            raise UsageError(
                f"{there} both measure {entry.model} on {entry.dataset} ({entry.task}), but "
                f"with different settings ({apart or 'one used sequential stopping'}): leave "
                "one of the runs out, or add --newest to keep only the newest run"
            )
    return list(kept.values())


def pool_entries(one: Entry, other: Entry) -> Entry:
    """Pool two runs with the same settings: questions in both runs count once, by their mean."""
    figures, questions = {}, {}
    for metric in one.questions:
        sides = [each.questions.get(metric, {}) for each in (one, other)]
        by = {
            key: fmean(side[key] for side in sides if key in side)
            for key in {**sides[0], **sides[1]}
        }
        low, high, kind = compute_interval(list(by.values()), one.bounds[metric])
        missing = sum(
            each.figures[metric].missing for each in (one, other) if metric in each.figures
        )
        figures[metric] = MeasuredMean(
            fmean(by.values()) if by else None, low, high, len(by), missing, kind
        )
        questions[metric] = by
    facts = (one.bounds, (*one.runs, *other.runs), other.requested, other.created)
    return Entry(one.model, one.dataset, one.task, other.signature, figures, questions, *facts)


def describe_differences(signatures: Sequence[str]) -> str:
    """The facts that signatures do not share, in words."""
    facts = [comparable_facts(signature) for signature in dict.fromkeys(signatures)]
    shared = set(facts[0]).intersection(*facts[1:])
    said = [", ".join(fact for fact in each if fact not in shared) for each in facts]
    return (
        " versus ".join(part or "none of these" for part in dict.fromkeys(said))
        if any(said)
        else ""
    )


def overall_mean(figures: Sequence[MeasuredMean | None]) -> MeasuredMean:
    """The unweighted mean over datasets, if all have a value, with its interval.

    Distances from the means to the ends of their intervals add up in squares (Zou & Donner 2008).
    """
    known = [figure for figure in figures if figure is not None and figure.value is not None]
    if not known or len(known) < len(figures):
        return MeasuredMean(None)
    value, total = (
        fmean(figure.value for figure in known if figure.value is not None),
        sum(figure.n or 0 for figure in known),
    )
    missing = sum(figure.missing for figure in known)
    n = total if all(figure.n is not None for figure in known) else None
    if len(known) == 1:
        return known[0]
    ends = interval_of_means([(figure.value, figure.low, figure.high) for figure in known])
    return MeasuredMean(value, ends.low, ends.high, n, missing, ends.kind)


def interval_of_means(parts: Sequence[tuple[float | None, float | None, float | None]]) -> Interval:
    """The interval of a mean of independent means, from their intervals; unknown if one is
    unknown."""
    below = above = 0.0
    for value, low, high in parts:
        if value is None or low is None or high is None:
            return Interval(None, None, None)
        below, above = below + (value - low) ** 2, above + (high - value) ** 2
    mean = fmean(value for value, _, _ in parts if value is not None)
    return Interval(mean - below**0.5 / len(parts), mean + above**0.5 / len(parts), "of means")


def clamp_percentages(values: dict[str, float]) -> dict[str, float]:
    """Values clamped to 0 to 100, which rounding errors may exceed."""
    return {key: min(max(value, PERCENT[0]), PERCENT[1]) for key, value in values.items()}

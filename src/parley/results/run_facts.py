"""The facts of a run besides its scores: configuration and state, workers, batches at providers,
seals, violations. Lists and pages read them without computing scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import Any

from parley.results.types import (
    BatchAtProvider,
    LeftOut,
    MatchCounts,
    Programs,
    RunFacts,
    RunLimits,
    RunWorkers,
    Seal,
    Stop,
    Unfinished,
    ViolationCount,
)
from parley.store.reader import RunReader
from parley.store.types import ViolationRow
from parley.tables import plural

NAMED = 8  # models or batches that are named at most


def collect_run_facts(reader: RunReader) -> RunFacts:
    """The `run` object of results and of `parley ls`."""
    info, config, counts = reader.info, reader.info.config, reader.matches.counts()
    return RunFacts(
        id=info.id,
        name=config.name or None,
        task=info.identity["task"],
        params=config.params,
        models=config.models,
        excluded=config.excluded,
        plan=config.plan,
        seed=config.seed,
        sandbox=config.sandbox if info.identity.get("runs_code") else None,
        budget=RunLimits(config.budget_usd, config.max_calls),
        state=info.state,
        stop=Stop(info.status, info.reason),
        matches=MatchCounts(
            info.planned,
            counts.get("done", 0) + counts.get("aborted", 0),
            counts.get("failed", 0),
        ),
        parley=info.identity["parley"],
        created=format_time(info.created),
        workers=count_workers(reader),
    )


def format_time(at: float) -> str:
    """A time on record, as results have it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def count_workers(reader: RunReader) -> RunWorkers | None:
    """How many workers play a run, and how many have left or died."""
    states = Counter(worker.state for worker in reader.snapshot.workers())
    if not states:
        return None
    return RunWorkers(*(states[state] for state in ("alive", "left", "dead")))


def describe_workers(found: RunWorkers) -> str:
    """The workers of a run that is not over."""
    playing = f"{plural(found.alive, 'worker')} playing" if found.alive else "no worker playing"
    return f"{playing}, {found.dead} died" if found.dead else playing


def list_earlier_seals(reader: RunReader) -> list[Seal]:
    """The seals of a run that was opened again later, the oldest first."""
    return [
        Seal(
            each.digest,
            format_time(each.at),
            each.facts["state"],
            each.facts["status"],
            each.facts["matches"],
        )
        for each, after in pairwise(reader.run.history())
        if each.kind == "sealed" and after.kind == "opened"
    ]


def describe_earlier_seals(seals: Sequence[Seal]) -> list[str]:
    """A line for a run that was opened again after it had stopped."""
    if not seals:
        return []
    last, times = seals[-1], "" if len(seals) == 1 else f" {len(seals)} times"
    return [
        f"opened again{times} after it had stopped, the last time with "
        f"{plural(last.matches, 'finished match', 'finished matches')} and the digest "
        f"{last.digest}"
    ]


def unfinished_models(reader: RunReader) -> tuple[Unfinished, ...]:
    """The models of a stopped run with unfinished matches, and how many were planned for them."""
    if reader.info.state not in ("stopped", "failed"):
        return ()
    planned, ended = Counter[str](), Counter[str]()
    for match in reader.matches.read():
        aliases = set(match.seats.values())
        planned.update(aliases)
        ended.update(aliases if match.has_ended else ())
    return tuple(
        Unfinished(alias, planned[alias] - ended[alias], planned[alias])
        for alias in reader.info.config.models
        if planned[alias] > ended[alias]
    )


def describe_unfinished(found: Sequence[Unfinished]) -> list[str]:
    """A line on the models with unfinished matches."""
    named = [
        f"{each.alias} {each.matches:,} of {plural(each.planned, 'match', 'matches')}"
        for each in found[:NAMED]
    ]
    more = [f"and {plural(len(found) - NAMED, 'more model')}"] if len(found) > NAMED else []
    return [f"unfinished: {', '.join([*named, *more])}"] if named else []


def list_open_batches(reader: RunReader) -> list[BatchAtProvider]:
    """The batches whose replies are not on record."""
    return [
        BatchAtProvider(batch.number, batch.alias, len(requests), batch.provider_id)
        for batch, requests in reader.batches.at_providers()
    ]


def describe_open_batches(found: Sequence[BatchAtProvider], run: str, state: str) -> list[str]:
    """A line for each of the first batches that are still with a provider."""
    lines = []
    for each in found[:NAMED]:
        there = "is still with the provider and will be billed"
        if each.provider_id is None:
            there = "may be with the provider, and is billed if it is"
        resume = "" if state == "running" else f"; `parley resume {run}` collects its replies"
        lines.append(f"{name_batch(each)} {there}{resume}")
    more = len(found) - len(lines)
    return (
        [*lines, f"{plural(more, 'more batch', 'more batches')} with providers"] if more else lines
    )


def name_batch(batch: BatchAtProvider) -> str:
    """A batch by its number, its model and its size."""
    return f"batch {batch.number} of {batch.alias} ({plural(batch.requests, 'request')})"


def group_attempts(found: Iterable[ViolationRow]) -> list[list[ViolationRow]]:
    """Violations with their attempts: attempts at one reply that went wrong in the same way are one
    violation."""
    groups: dict[tuple[Any, ...], list[ViolationRow]] = {}
    for number, row in enumerate(found):
        alone = row.outcome in ("ruled", "masked")
        key = (row.match, row.round, row.seat, row.kind, number if alone else None)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def count_violations(reader: RunReader) -> tuple[ViolationCount, ...]:
    """Violations by model and kind, with the number of attempts."""
    violations, attempts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for _, rows in groupby(reader.violations.read(), lambda each: each.match):
        for tries in group_attempts(rows):
            violations[tries[0].alias, tries[0].kind] += 1
            attempts[tries[0].alias, tries[0].kind] += len(tries)
    return tuple(
        ViolationCount(*key, count, attempts[key]) for key, count in sorted(violations.items())
    )


def describe_left_out(left_out: Sequence[LeftOut]) -> list[str]:
    """A line for every model whose endpoint rejected some of its options."""
    said = {"system": "a system role"}
    return [
        f"{found.alias}: {plural(found.calls, 'call')} sent without "
        f"{', '.join(said.get(option, option) for option in found.options)}, because the "
        "endpoint does not support this"
        for found in left_out
    ]


def count_programs(reader: RunReader) -> Programs | None:
    """How many programs were run, judged inside their own process, and not judged; None if the task
    runs no programs."""
    if not reader.info.identity.get("runs_code"):
        return None
    found = reader.effects.verdict_kinds()
    return Programs(found.total(), found["inside"], found["none"])

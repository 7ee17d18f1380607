"""Pairs of interviews for people to compare: two models on one question, whose scores differ; the
draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

from parley.errors import UsageError
from parley.statistics.preferences import Pair, Side
from parley.store import RunReader
from parley.store.sqlite.rows import encoded

TASK, METRIC = "kieval", "kieval"
SAME = 1e-9  # scores that are nearer than this do not differ


class Interview(NamedTuple):
    """An interview on record; scores compare only where the basis is the same."""

    dataset: str
    item: str
    basis: str
    side: Side


def interviews(readers: Sequence[RunReader]) -> list[Interview]:
    """All finished interviews of these runs that have a score."""
    seen: dict[str, str] = {}
    for reader in readers:
        refuse_others(reader)
        again = reader.info.config.rejudged
        origin = reader.info.id if again is None else again.root or again.run
        if origin in seen:
            raise UsageError(
                f"{reader.info.id} and {seen[origin]} hold the same interviews, judged "
                f"twice: give one of them"
            )
        seen[origin] = reader.info.id
    names = model_names(readers)
    found = []
    for reader in readers:
        config, identity = reader.info.config, reader.info.identity
        panels = {
            role: [config.models[alias] for alias in panel]
            for role, panel in config.instruments.items()
        }
        rule = [identity["rule"], identity["version"], identity["prompts"], config.params, panels]
        items = {item["id"]: item for item in reader.items()}
        played = {
            match.number: match.item
            for match in reader.matches()
            if match.state == "done" and match.item is not None
        }
        for score in reader.scores():
            if (
                score.metric == METRIC
                and score.value is not None
                and score.match in played
                and not score.idle
            ):
                item = played[score.match]
                run = reader.info.id
                side = Side(run, score.match, names[run, score.alias], score.value)
                found.append(
                    Interview(config.dataset or "", item, encoded([*rule, items[item]]), side)
                )
    return found


def refuse_others(reader: RunReader) -> None:
    """Only interviews are compared by people."""
    if reader.info.identity["task"] != TASK:
        raise UsageError(
            f"{reader.info.id} is a run of {reader.info.identity['task']}: only interviews can be "
            f"annotated, which are runs of {TASK}"
        )


def model_names(readers: Iterable[RunReader]) -> dict[tuple[str, str], str]:
    """Contestants by run and alias: the alias, and the run where one alias stands for different
    models."""
    meant: dict[str, dict[str, str]] = {}
    for reader in readers:
        for alias in reader.info.config.contestants:
            meant.setdefault(alias, {})[reader.info.id] = encoded(reader.info.config.models[alias])
    return {
        (run, alias): alias if len(set(by.values())) == 1 else f"{alias}@{run}"
        for alias, by in meant.items()
        for run in by
    }


def candidates(found: Iterable[Interview]) -> list[Pair]:
    """All pairs that may be drawn: different models, the same question and rule, different
    scores."""
    groups: dict[tuple[str, str, str], list[Side]] = {}
    for interview in found:
        groups.setdefault((interview.dataset, interview.item, interview.basis), []).append(
            interview.side
        )
    return [
        Pair(dataset, item, one, other)
        for (dataset, item, _), sides in sorted(groups.items())
        for one, other in combinations(sorted(sides), 2)
        if one.model != other.model and abs(one.score - other.score) > SAME
    ]


def drawn(
    possible: Sequence[Pair], count: int, seed: int, before: Sequence[Pair] = ()
) -> list[Pair]:
    """So many pairs more, balanced over datasets, in each over pairs of models, and there over
    questions; sides by chance."""
    rng = Random(f"{seed}|{len(before)}")
    taken = {frozenset((pair.a[:2], pair.b[:2])) for pair in before}
    cells: dict[tuple[str, Any], list[Pair]] = {}
    for pair in rng.sample(possible, len(possible)):
        if frozenset((pair.a[:2], pair.b[:2])) not in taken:
            cells.setdefault(cell(pair), []).append(pair)
    datasets, met, asked = (
        Counter(key(pair) for pair in before) for key in (lambda pair: pair.dataset, cell, question)
    )
    found: list[Pair] = []
    while len(found) < count and cells:
        order = rng.sample(sorted(cells), len(cells))
        place = min(order, key=lambda each: (datasets[each[0]], met[each]))
        pair = min(cells[place], key=lambda each: asked[question(each)])
        cells[place].remove(pair)
        if not cells[place]:
            del cells[place]
        datasets[pair.dataset] += 1
        met[place] += 1
        asked[question(pair)] += 1
        found.append(pair if rng.random() < 0.5 else pair._replace(a=pair.b, b=pair.a))
    return found


def cell(pair: Pair) -> tuple[str, tuple[str, ...]]:
    return pair.dataset, tuple(sorted(pair.models))


def question(pair: Pair) -> tuple[str, str]:
    return pair.dataset, pair.item

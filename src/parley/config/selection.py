"""Chooses the items of a run: those of a dataset that fit its task, or a random sample of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from random import Random
from typing import Any, NamedTuple

from parley.datasets.catalogue import describe_reading, load_items
from parley.datasets.files import LocatedRow, PathCheck, allow_every_path
from parley.datasets.formats import make_item, make_items
from parley.datasets.item_rows import find_unstorable, item_from_record, item_type_of_task
from parley.errors import UsageError, unknown_name
from parley.match.task_errors import errors_of_task
from parley.rules.task import Task
from parley.store.config import Config
from parley.tables import format_item_count

GAMES = 20  # per stage of the plan evolve, if the task has no items


class Selection(NamedTuple):
    """The items, the pool that they were chosen from, the configuration with their number, and
    notices about how they were read."""

    items: dict[str, Any]
    pool: dict[str, Any]
    config: Config
    read: list[str]


def select_items(
    config: Config,
    task: Task,
    items: Sequence[Any] | None,
    check_path: PathCheck = allow_every_path,
) -> Selection:
    """The items of a new run, from a dataset or as given, that fit its task."""
    kind, odd = type(task), list[str]()
    if items is None and config.dataset is not None:
        items = load_items(config.dataset, item_type_of_task(kind), config.columns, check_path)
        odd = describe_reading(config.dataset, item_type_of_task(kind), config.columns)
    if items is None and task.items is not None and task.items.bundled:
        items = task.items.bundled
    refuse_no_items(items or (), task)
    known = as_items(items or (), kind)
    refuse_unknown_picks(known, task)
    pool = by_id(drop_unfit(known, task))
    fit = f", of which {len(pool)} fit the parameters of {task.name}"
    others = fit if len(pool) < len(known) else ""
    read = (
        [f"dataset {config.dataset}: read {format_item_count(len(known))}{others}", *odd]
        if config.dataset is not None
        else []
    )
    if task.items is not None and not config.screening:  # otherwise they are already in order
        pool = by_id(stratified_order(list(pool.values()), task.items.stratum, config.seed))
        if config.items is None and task.items.sample is not None:
            config = replace(config, items=min(task.items.sample, len(pool)))
    if task.items is None and config.evolve is not None:
        games = GAMES if config.items is None else config.items
        return Selection({}, {}, replace(config, items=games), read)
    if config.items is not None:
        if task.items is None:
            raise UsageError(
                f"--items {config.items} has no effect, because the task {task.name} has no "
                "items: use --repeats N to set how often it is played"
            )
        if not 1 <= config.items <= len(pool):
            raise UsageError(
                f"--items {config.items} is too high, because the dataset has only "
                f"{format_item_count(len(pool))}"
            )
    return Selection(dict(list(pool.items())[: config.items]), pool, config, read)


def as_items(items: Sequence[Any], task: type[Task]) -> list[Any]:
    """Convert plain rows to items of the task, as if they came from a file."""
    if isinstance(items, str | bytes | Mapping):
        raise UsageError(
            "`items` must be a list of the task's item objects, or of rows with the fields of "
            "an item; to read items from a file, use `dataset`"
        )
    if not items:
        return []
    kind = item_type_of_task(task)
    rows = [LocatedRow(f"item {n}", n, item) for n, item in enumerate(items, 1)]
    if not any(isinstance(item, kind) for item in items):
        return make_items(rows, kind)
    return [each.row if isinstance(each.row, kind) else make_item(each, kind) for each in rows]


def refuse_unknown_picks(items: Sequence[Any], task: Task) -> None:
    """Refuse a parameter that picks items by a name that none of them has, most likely a typo."""
    for parameter, field in task.items.picks.items() if task.items is not None else ():
        known = {getattr(item, field) for item in items}
        for name in getattr(task, parameter):
            if name not in known:
                raise unknown_name(field, name, known - {""})


def recorded_items(items: Sequence[Any], task: Task) -> dict[str, Any]:
    """The stored items of a run, by id."""
    refuse_no_items(items, task)
    if not items:
        return {}
    kind = item_type_of_task(type(task))
    return by_id(
        item if isinstance(item, kind) else item_from_record(item, kind, f"item {n}")
        for n, item in enumerate(items, 1)
    )


def refuse_no_items(items: Sequence[Any], task: Task) -> None:
    """Refuse a task that needs items but has none."""
    if task.items is not None and not items:
        raise UsageError(
            f"the task {task.name} needs items: choose a dataset with --dataset "
            "NAME or --dataset PATH"
        )


def drop_unfit(items: Sequence[Any], task: Task) -> list[Any]:
    """The items that fit the task and its parameters; others are never played."""
    with errors_of_task(task, "reject_reason"):
        rejected = [task.reject_reason(item) for item in items]
    found = [item for item, reason in zip(items, rejected, strict=True) if not reason]
    if items and not found:
        reasons = [
            f"{format_item_count(count)} {reason}"
            for reason, count in Counter(rejected).most_common()
        ]
        said = "; ".join([*reasons[:8], "and so on"] if len(reasons) > 8 else reasons)
        raise UsageError(
            f"no item of the dataset fits the task {task.name} with these parameters: {said}"
        )
    return found


def by_id(items: Iterable[Any]) -> dict[str, Any]:
    """Items by id; refuses two items with the same id."""
    found: dict[str, Any] = {}
    places: dict[str, int] = {}
    for number, item in enumerate(items, 1):
        if (first := places.setdefault(str(item.id), number)) != number:
            raise UsageError(
                f"items {first} and {number} have the same id {item.id!r}: give "
                "each item its own id"
            )
        found[str(item.id)] = item
    return found


def stratified_order(items: Sequence[Any], stratum: str | None, seed: int) -> list[Any]:
    """Shuffle items so that every prefix has each value of the field `stratum` in about its share;
    without a stratum they stay in order."""
    if stratum is None:
        return list(items)
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(str(getattr(item, stratum)), []).append(item)
    placed = []
    for name, members in groups.items():
        rng = Random(f"{seed}|items|{name}")
        shift, order = rng.random(), rng.sample(members, len(members))
        placed += [((at + shift) / len(order), name, item) for at, item in enumerate(order)]
    return [item for _, _, item in sorted(placed, key=lambda each: each[:2])]


def stored_items(items: Sequence[Any]) -> list[tuple[str, bytes]]:
    """Items as a run stores them."""
    found = []
    for item in items:
        try:
            row = json.dumps(asdict(item), ensure_ascii=False).encode()
        except (TypeError, ValueError):
            raise UsageError(f"item {item.id!r}: {find_unstorable(item)}") from None
        found.append((str(item.id), row))
    return found

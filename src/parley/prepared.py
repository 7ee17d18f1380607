"""A configuration made playable: everything that can be wrong with it is looked at before the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from parley import participants
from parley.budget import END, endless
from parley.catalogue import task_class
from parley.config import Config, chosen_prompts, identity
from parley.costs import costs, prices_of, total
from parley.datasets import items_from, unread
from parley.datasets.files import Located
from parley.datasets.forms import item_of
from parley.errors import UsageError, unknown
from parley.items import by_id, how_many, kind_of, stored
from parley.pace import Limits
from parley.participants import Participant
from parley.plan import Plan
from parley.plan.choice import metrics_of, planned
from parley.prices import Prices, is_free, place
from parley.seating import counted
from parley.store.archive import Archive
from parley.task import Prompt, Task


@dataclass(frozen=True)
class Prepared:
    """A configuration found to be playable: everything that can be wrong was looked at before the first call."""

    config: Config
    task: Task
    prompts: dict[str, Prompt]
    plan: Plan
    items: dict[str, Any]
    functions: Mapping[str, Callable[..., Any]]
    cautions: list[str]
    identity: dict[str, Any]
    prices: Prices

    @property
    def attended(self) -> bool:
        """Whether a person plays: one match at a time then, and the terminal is theirs."""
        return any(str(options["model"]).startswith("human/") for options in self.config.models.values())

    def participants(self) -> Iterator[tuple[str, Participant, Limits]]:
        """Who plays under which alias, and how much at a time; made new, because they belong to the loop that plays."""
        for alias, options in self.config.models.items():
            rest = {name: value for name, value in options.items() if name != "model"}
            model = self.functions.get(alias, options["model"])
            limits = Limits(*(participants.limit(rest, name, alias) for name in participants.LIMITS))
            yield alias, participants.make(model, rest, type(self.task), alias), limits


def prepare(
    config: Config,
    *,
    task: Task | None = None,
    items: Sequence[Any] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    seated: bool = True,
    prices: Prices | None = None,
    again: bool = False,
) -> Prepared:
    """Look at everything that can be wrong before anything is paid; who only reads a run seats nobody, and needs no key."""
    task = task or task_class(config.task).configured(config.params)
    prompts = chosen_prompts(type(task), config.prompts)
    for alias in [*config.contestants, *(alias for panel in config.instruments.values() for alias in panel)]:
        if alias not in config.models:
            raise unknown("model", alias, config.models)
    if len(set(config.contestants)) != len(config.contestants):
        raise UsageError("a contestant is named twice: give each an alias, -m a=PROVIDER/NAME -m b=PROVIDER/NAME")
    odd: list[str] = []
    if items is None and config.dataset is not None:
        items = items_from(config.dataset, kind_of(type(task)), config.columns)
        odd = unread(config.dataset, kind_of(type(task)), config.columns)
    if type(task).item_type is not None and not items:
        raise UsageError(f"{task.name} is played on items: name them with --dataset NAME|PATH")
    chosen = by_id(fitting(items or (), type(task)))
    read = [f"dataset {config.dataset}: {how_many(len(chosen))} read", *odd] if config.dataset is not None else []
    if config.items is not None:
        if not 1 <= config.items <= len(chosen):
            raise UsageError(f"--items {config.items}: the dataset has {how_many(len(chosen))}")
        chosen = dict(list(chosen.items())[: config.items])
    plan = planned(
        config.plan,
        task,
        config.contestants,
        config.instruments,
        list(chosen),
        config.repeats,
        config.seed,
        size=config.seats,
        stop=config.stop,
        max_blocks=config.max_blocks,
    )
    table = counted(plan.opening.seats, task)
    metrics_of(task, table)
    prices = prices or Prices(config.models)
    kept = {"prices": prices.keep()} if seated and any(not is_free(model) for model in config.models.values()) else {}
    prepared = Prepared(
        config,
        task,
        prompts,
        plan,
        chosen,
        functions or {},
        [] if again else [*read, *task.cautions(table), *plan.cautions()],
        {**identity(task, table, prompts, stored(list(chosen.values()))), **kept},
        prices,
    )
    # Each is made once, so that a wrong name or option fails here.
    made = {alias: who for alias, who, _ in prepared.participants()} if seated else {}
    if seated and config.budget_usd is not None:
        refuse_unpriced(prices)
        if not again and (open_ended := endless(made, prices)):  # what a run began with cannot be changed
            return with_ends(prepared, open_ended)
    return prepared


def with_ends(prepared: Prepared, aliases: Sequence[str]) -> Prepared:
    """A bound in USD only holds where replies have an end: these models get one, and the person and the record are told."""
    models = {**prepared.config.models, **{alias: {**prepared.config.models[alias], "max_tokens": END} for alias in aliases}}
    notice = (
        f"a bound in USD needs an end of replies: {', '.join(aliases)} may take {END:,} tokens for one "
        f"(otherwise: {' '.join(f'-M {alias}.max_tokens=N' for alias in aliases)})"
    )
    config, cautions = replace(prepared.config, models=models), [*prepared.cautions, notice]
    return replace(prepared, config=config, cautions=cautions, prices=prepared.prices)


def refuse_unpriced(prices: Prices) -> None:
    """No money can be held back for what nobody knows the price of."""
    if unpriced := prices.unknown():
        said = ", ".join(f"{alias} ({prices.model(alias)})" for alias in unpriced)
        raise UsageError(
            f"a bound in USD needs the price of every model, and {said} has none: write it into {place()} "
            f"({unpriced[0]}: {{input: USD, output: USD}} per million tokens, or {unpriced[0]}: free), "
            "or bound the calls instead: --max-calls N"
        )


def fitting(items: Sequence[Any], task: type[Task]) -> list[Any]:
    """Items as the task knows them; plain rows are taken as from a file."""
    if isinstance(items, str | bytes | Mapping):
        raise UsageError("items are a list of the task's items, or of rows with their fields; a file is named by dataset")
    if not items:
        return []
    kind = kind_of(task)
    return [item if isinstance(item, kind) else item_of(Located(f"item {n}", n, item), kind) for n, item in enumerate(items, 1)]


def prepare_again(
    path: Path,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    task: Task | None = None,
    seated: bool = True,
    max_blocks: int | None = None,
    budget_usd: float | None = None,
    max_calls: int | None = None,
) -> Prepared:
    """A run's own configuration and items, made playable again; its bounds may be set anew."""
    with Archive(path) as archive:
        config = archive.config if max_blocks is None else bounded(archive, max_blocks)
        if budget_usd is not None:
            config = replace(config, budget_usd=budget_usd)
        if max_calls is not None:
            config = replace(config, max_calls=max_calls)
        prices = prices_of(archive) if seated else None
        if prices is not None and config.budget_usd is not None:
            refuse_unpriced(prices)
            refuse_unknown_past(archive, prices)
        items = archive.items()
    return prepare(config, task=task, items=items or None, functions=functions, seated=seated, prices=prices, again=True)


def refuse_unknown_past(archive: Archive, prices: Prices) -> None:
    """A bound on all that is spent needs to know what was spent before."""
    if archive.left()[1] is None and total(costs(archive, prices)).usd is None:
        raise UsageError(
            f"{archive.id} has calls whose tokens the endpoint did not count, so it is not known what was spent: "
            "leave --budget-usd out, or bound the calls instead: --max-calls N"
        )


def bounded(archive: Archive, max_blocks: int) -> Config:
    """The configuration with another bound on its blocks; what was played cannot be undone by it."""
    config = archive.config
    if config.stop is None:
        raise UsageError("--max-blocks is for runs that look at what was played (--until-stable, --plan race)")
    if max_blocks < (played := len({match["block"] for match in archive.matches()})):
        raise UsageError(f"--max-blocks {max_blocks}: {played} blocks are planned or played already")
    return replace(config, max_blocks=max_blocks)


def names_of(config: Config) -> Iterator[str]:
    """The names by which the models of a run could give themselves away."""
    for options in config.models.values():
        family, _, name = str(options["model"]).partition("/")
        if family not in participants.kinds():
            yield name.rstrip("/").rpartition("/")[2]

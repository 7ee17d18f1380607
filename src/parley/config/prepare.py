"""A configuration made playable: everything that can be wrong with it is looked at before the first
call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from parley.config.identity import identity
from parley.config.prices import PriceList, place, prices_for
from parley.config.prompt_overrides import about_prompts, chosen_prompts, unused_prompts
from parley.config.recorded_matches import Recorded
from parley.config.selection import selected, stored
from parley.config.task_catalogue import task_class
from parley.datasets.open_references import works_of
from parley.errors import KeyMissing, UsageError, unknown
from parley.match.protocol import Participant
from parley.match.seating import counted
from parley.money import Prices, costs, is_free, money, prices_of, total
from parley.options import OPTIONS, Given
from parley.participants import _registry as participants
from parley.participants._registry import Limits
from parley.plans import Plan
from parley.plans.choice import metrics_of, planned
from parley.rules.prompts import Prompt
from parley.rules.references import Work
from parley.rules.task import Task
from parley.store import RunReader
from parley.store.config import Config
from parley.store.sqlite.reader import SqliteReader


@dataclass(frozen=True)
class Prepared:
    """A configuration found to be playable: everything that can be wrong was looked at before the
    first call."""

    config: Config
    task: Task
    prompts: dict[str, Prompt]
    plan: Plan
    items: dict[str, Any]
    functions: Mapping[str, Callable[..., Any]]
    cautions: list[str]
    identity: dict[str, Any]
    prices: Prices
    works: Mapping[str, Work]
    source: Path | None = None  # of matches that are judged again: the file that has their replies
    # all items that could be played on, in the order of choice
    pool: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attended(self) -> bool:
        """Whether a person plays: one match at a time then, and the terminal is theirs."""
        return any(
            str(options["model"]).startswith("human/") for options in self.config.asked.values()
        )

    def participants(self, keyless: bool = False) -> Iterator[tuple[str, Participant, Limits]]:
        """Who plays under which alias, and how much at a time; made new, because they belong to the
        loop that plays.

        `keyless`: who only lacks a key is left out, and a caution says so.
        """
        for alias, options in self.config.asked.items():
            rest = {name: value for name, value in options.items() if name != "model"}
            model = self.functions.get(alias, options["model"])
            limits = Limits(
                *(participants.limit(rest, name, alias) for name in participants.LIMITS)
            )
            try:
                who = participants.make(model, rest, type(self.task), alias)
            except KeyMissing as wrong:
                if not keyless:
                    raise
                self.cautions.append(f"{alias}: {wrong}, before it is played")
                continue
            yield alias, who, limits


def prepare(
    config: Config,
    *,
    task: Task | None = None,
    items: Sequence[Any] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    seated: bool = True,
    prices: Prices | None = None,
    again: bool = False,
    keyless: bool = False,
    recorded: Recorded | None = None,
) -> Prepared:
    """Look at everything that can be wrong before anything is paid; who only reads a run seats
    nobody, and needs no key.

    `keyless`: models are looked at, but for what is only wrong for want of a key. `recorded`:
    matches that are judged again.
    """
    task = task or task_class(config.task).configured(config.params)
    chosen_prompts(type(task), config.prompts)  # what is wrong with them is told first
    for alias in config.seated:
        if alias not in config.models:
            raise unknown("model", alias, config.models)
    if len(set(config.contestants)) != len(config.contestants):
        raise UsageError(
            "a contestant is named twice: give each an alias, -m a=PROVIDER/NAME -m b=PROVIDER/NAME"
        )
    chosen = selected(config, task, items, again=again or recorded is not None)
    config = chosen.config
    plan = (
        recorded.plan
        if recorded
        else planned(
            config.plan,
            task,
            config.contestants,
            config.instruments,
            list(chosen.items),
            config.repeats,
            config.seed,
            size=config.seats,
            stop=config.stop,
            max_blocks=config.max_blocks,
            verify=None
            if config.verify is None
            else (config.verify.wanted, config.verify.metric, config.verify.theta),
            adversary=config.adversary,
        )
    )
    table = counted(plan.opening.seats, task)
    metrics_of(task, table)
    unused = unused_prompts(task, table, config.standardise)
    prompts = chosen_prompts(type(task), config.prompts, unused)
    worded = [] if again else list(about_prompts(type(task), config.prompts, unused))
    prices = prices or prices_for(config.asked)
    # What they answered is on record: who only reads a run needs none.
    works = (
        works_of(task, config.dataset, list(chosen.items.values()))
        if seated and not recorded
        else {}
    )
    kept = (
        {"prices": prices.keep()}
        if seated and any(not is_free(model) for model in config.asked.values())
        else {}
    )
    read = [*chosen.read, *(f"{name} {work.told}" for name, work in works.items())]
    found = (
        {"works": {name: work.facts for name, work in works.items()}}
        if works
        else recorded.facts
        if recorded
        else {}
    )
    prepared = Prepared(
        config,
        task,
        prompts,
        plan,
        chosen.items,
        functions or {},
        worded if again or recorded else [*read, *worded, *task.cautions(table), *plan.cautions()],
        {**identity(task, table, prompts, stored(list(chosen.items.values()))), **found, **kept},
        prices,
        works,
        recorded.path if recorded else None,
        chosen.pool,
    )
    # Each is made once, so that a wrong name or option fails here.
    made = {alias: who for alias, who, _ in prepared.participants(keyless)} if seated else {}
    if seated and config.budget_usd is not None:
        refuse_unpriced(prices)
        if not again:  # what a run began with cannot be changed
            if open_ended := endless(made, prices):
                prepared = with_ends(prepared, open_ended)
            refuse_too_little(prepared.config, made, prices)
    return prepared


def refuse_too_little(config: Config, made: Mapping[str, Participant], prices: Prices) -> None:
    """A bound in USD that no single call fits in plays nothing: whatever is asked, its reply may be
    as long as it is allowed."""
    for alias, who in made.items():
        price = prices.of(alias)
        limit = limit_of(who) or (
            END if hasattr(getattr(who, "provider", None), "max_tokens") else LONGEST_REPLY
        )
        if (
            price is None
            or config.budget_usd is None
            or (most := price.most(REQUEST, limit)) <= config.budget_usd
        ):
            continue
        raise UsageError(
            f"--budget-usd {config.budget_usd:g} is not enough for one call of {alias}: a reply of "
            f"{limit:,} tokens may cost {money(most)} USD, which is set aside before it is "
            f"asked; allow more, or shorter replies: -M {alias}.max_tokens=N"
        )


def with_ends(prepared: Prepared, aliases: Sequence[str]) -> Prepared:
    """A bound in USD only holds where replies have an end: these models get one, and the person and
    the record are told."""
    models = {
        **prepared.config.models,
        **{alias: {**prepared.config.models[alias], "max_tokens": END} for alias in aliases},
    }
    notice = (
        f"a bound in USD needs an end of replies: "
        f"{', '.join(aliases)} may take {END:,} tokens for one (otherwise: "
        f"{' '.join(f'-M {alias}.max_tokens=N' for alias in aliases)})"
    )
    config, cautions = replace(prepared.config, models=models), [*prepared.cautions, notice]
    return replace(prepared, config=config, cautions=cautions, prices=prepared.prices)


def refuse_unpriced(prices: Prices) -> None:
    """No money can be held back for what nobody knows the price of."""
    if unpriced := prices.unknown():
        said = ", ".join(f"{alias} ({prices.model(alias)})" for alias in unpriced)
        raise UsageError(
            f"a bound in USD needs the price of every model, and {said} has none: "
            f"write it into {place()} ({unpriced[0]}: {{input: USD, output: USD}} per million "
            f"tokens, or {unpriced[0]}: free), "
            "or bound the calls instead: --max-calls N"
        )


def prepare_again(
    path: Path,
    given: Mapping[str, Given] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    task: Task | None = None,
    seated: bool = True,
) -> Prepared:
    """A run's own configuration and items, made playable again; its limits may be given anew."""
    changes = {
        name: OPTIONS[name].check(each.value, each.said) for name, each in (given or {}).items()
    }
    with SqliteReader(path) as reader:
        if "max_blocks" in changes:
            refuse_fewer_blocks(reader, changes["max_blocks"])
        config = replace(reader.info.config, **changes)
        prices = prices_of(reader, PriceList().find) if seated else None
        if prices is not None and config.budget_usd is not None:
            refuse_unpriced(prices)
            refuse_unknown_past(reader, prices)
            refuse_spent(reader, prices, changes.get("budget_usd"))
        items, recorded = reader.items(), Recorded.of(reader) if config.rejudged else None
    return prepare(
        config,
        task=task,
        items=items or None,
        functions=functions,
        seated=seated,
        prices=prices,
        again=True,
        recorded=recorded,
    )


def refuse_unknown_past(reader: RunReader, prices: Prices) -> None:
    """A bound on all that is spent needs to know what was spent before."""
    if reader.spent_at_most()[1] is None and total(costs(reader, prices)).usd is None:
        raise UsageError(
            f"{reader.info.id} has calls whose tokens the endpoint did not count, or that may have "
            f"been paid without a reply, "
            "so it is not known what was spent: "
            "leave --budget-usd out, or bound the calls instead: --max-calls N"
        )


def refuse_spent(reader: RunReader, prices: Prices, budget_usd: float | None) -> None:
    """A new bound below what is spent already lets nothing leave."""
    spent = max(reader.spent_at_most()[1] or 0.0, total(costs(reader, prices)).at_least or 0.0)
    if budget_usd is not None and budget_usd < spent and reader.info.state != "done":
        raise UsageError(
            f"--budget-usd {budget_usd:g}: {money(spent)} USD are spent by "
            f"{reader.info.id} already, and the bound is on all of it; "
            "allow more than that"
        )


def refuse_fewer_blocks(reader: RunReader, max_blocks: int) -> None:
    """A new limit on the blocks of a run cannot undo what was played."""
    if reader.info.config.stop is None:
        raise UsageError(
            "--max-blocks is for runs that look at what was played (--until-stable, --plan race)"
        )
    if max_blocks < (played := len({match.block for match in reader.matches()})):
        raise UsageError(
            f"--max-blocks {max_blocks}: {played} blocks are planned or played already"
        )


def names_of(config: Config) -> Iterator[str]:
    """The names by which the models of a run could give themselves away."""
    # what its seats were shown was masked by the names of the run that played it
    if config.rejudged is not None:
        yield from config.rejudged.names
        return
    for options in config.models.values():
        family, _, name = str(options["model"]).partition("/")
        if family not in participants.kinds():
            yield name.rstrip("/").rpartition("/")[2]


# tokens that are set aside for a reply at least, at first and later on
LONGEST_REPLY, SHORTEST_REPLY = 1024, 256
# tokens of a reply at the most, where a bound in USD needs an end and nobody has said one
END = 4096
TURN, REQUEST = 16, 64  # tokens that a turn and a request may have besides their words


def limit_of(participant: Any) -> int | None:
    """The most tokens that a model's endpoint is told to reply with, if it is told."""
    provider = getattr(participant, "provider", None)
    limit = getattr(provider, "reply_limit", None) or getattr(provider, "max_tokens", None)
    return limit if isinstance(limit, int) else None


def endless(participants: Mapping[str, Any], prices: Prices) -> list[str]:
    """Models with a price whose replies nothing limits, though it could. What takes no max_tokens
    goes by experience."""
    priced = {
        alias: who
        for alias, who in participants.items()
        if (price := prices.of(alias)) and not price.free
    }
    takes = {
        alias: hasattr(getattr(who, "provider", None), "max_tokens")
        for alias, who in priced.items()
    }
    return [alias for alias, who in priced.items() if takes[alias] and limit_of(who) is None]

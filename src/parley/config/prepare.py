"""Validate a configuration and build everything a run needs, before the first paid call.

There are four ways to prepare: for a new run, for one that goes on, for recorded matches that are
judged again, and only to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from parley.config.evolved_task import evolve_task
from parley.config.identity import form_facts, run_identity
from parley.config.models_file import keys_at_trusted_hosts
from parley.config.prices import PriceList, prices_for, prices_path
from parley.config.prompt_overrides import about_prompts, chosen_prompts, unused_prompts
from parley.config.prompt_variables import check_prompt_variables
from parley.config.recorded_matches import Recorded
from parley.config.recorded_task import (
    check_recorded_paths,
    source_facts,
    task_to_read,
    task_to_resume,
)
from parley.config.selection import recorded_items, select_items, stored_items
from parley.config.task_catalogue import task_class
from parley.config.trust import (
    NOTHING_MORE,
    Allowed,
    check_models,
    locate_model_fault,
    mark_recorded,
)
from parley.datasets.open_references import open_references
from parley.errors import KeyMissing, UsageError, unknown_name
from parley.match.masking import Masking
from parley.match.protocol import Participant
from parley.match.seating import seat_counts
from parley.match.task_errors import errors_of_task
from parley.memory.retrievers._registry import make_retriever
from parley.money import Prices, cost_rows, format_usd, is_free, prices_of, total_cost
from parley.options import OPTIONS, Given
from parley.participants import _registry as participants
from parley.participants._registry import ModelLimits
from parley.plans import MatchSpec, Plan
from parley.plans.choice import choose_plan, metrics_for_seats
from parley.rules.prompts import Prompt
from parley.rules.references import DrawOrder, Reference
from parley.rules.task import Task
from parley.store import RunReader, RunRef, read_run
from parley.store.config import MAY_MOVE, Config, ScreeningTarget


@dataclass(frozen=True)
class Prepared:
    """A configuration that was checked, with all that is needed to play it."""

    config: Config
    task: Task
    prompts: dict[str, Prompt]
    plan: Plan
    items: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]
    cautions: list[str]
    identity: dict[str, Any]
    prices: Prices
    works: Mapping[str, Reference] = field(default_factory=dict)
    source: RunRef | None = None  # the run whose matches are judged again
    # all items that could be played on, in the order of choice
    pool: Mapping[str, Any] = field(default_factory=dict)
    read: Sequence[str] = ()  # the cautions that say how items were read
    screening: Prepared | None = None  # a run of its own that finds the items, to be played first

    @property
    def attended(self) -> bool:
        """Whether a person plays: one match at a time then, and the terminal is theirs."""
        return any(
            str(options["model"]).startswith("human/")
            for options in self.config.live_models.values()
        )

    @property
    def seats(self) -> dict[str, int]:
        """How many seats each role has."""
        seats: dict[str, int] = self.identity["seats"]
        return seats

    def check_participants(self, need_keys: bool = True) -> dict[str, Participant]:
        """Make each participant once, so that a wrong name or option fails before the run."""
        return {alias: who for alias, who, _ in self.participants(need_keys)}

    def participants(
        self, need_keys: bool = True
    ) -> Iterator[tuple[str, Participant, ModelLimits]]:
        """Who plays under which alias, and how much at a time; made new, because they belong to the
        loop that plays.

        Without `need_keys`, those whose key is missing are left out, with a caution.
        """
        for alias, options in self.config.live_models.items():
            rest = {name: value for name, value in options.items() if name != "model"}
            model = self.functions.get(alias, options["model"])
            try:
                limits = ModelLimits(
                    *(participants.read_limit(rest, name, alias) for name in participants.LIMITS)
                )
                who = participants.make_participant(model, rest, type(self.task), alias)
            except KeyMissing as wrong:
                if need_keys:
                    raise
                self.cautions.append(f"{alias}: {wrong}, before it is played")
                continue
            except UsageError as wrong:
                raise locate_model_fault(wrong, options) from wrong.__cause__
            yield alias, who, limits


def prepare_new(
    config: Config,
    *,
    task: Task | None = None,
    items: Sequence[Any] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    need_keys: bool = True,
) -> Prepared:
    """A run that is about to begin, and the run that finds its items where its task screens them.

    Without `need_keys`, models whose key is missing are only warned about: for a forecast.
    """
    task = task or task_class(config.task).from_params(config.params)
    task = evolve_task(task, config.evolve)
    check_names(config, task)
    if not type(task).__module__.startswith("parley.tasks."):  # ours are held to it by a test
        check_prompt_variables(type(task))
    chosen = select_items(config, task, items)
    config = chosen.config
    plan = make_plan(config, task, chosen.items)
    prices = prices_for(config.live_models)
    works = open_references(task, config.dataset, list(chosen.items.values()))
    facts = {**works_facts(works), **price_facts(config, prices), **retriever_facts(config)}
    read = [*chosen.read, *(f"{name} {work.told}" for name, work in works.items())]
    prepared = assemble(config, task, plan, chosen.items, prices, facts, functions)
    with errors_of_task(task, "cautions"):
        said = list(task.cautions(prepared.seats))
    cautions = [*read, *prompt_cautions(prepared), *said, *plan.cautions()]
    prepared = replace(prepared, works=works, pool=chosen.pool, read=read, cautions=cautions)
    prepared = within_budget(prepared, need_keys)
    screening = screening_config(prepared)
    if screening is None:
        return prepared
    pool, functions = list(prepared.pool.values()), prepared.functions
    return replace(
        prepared,
        screening=prepare_new(screening, items=pool, functions=functions, need_keys=need_keys),
    )


def prepare_resume(
    ref: RunRef,
    given: Mapping[str, Given] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    task: Task | None = None,
    task_file: str | None = None,
    allowed: Allowed = NOTHING_MORE,
    model_options: Mapping[str, Mapping[str, Any]] | None = None,
    unsafe: bool = False,
) -> Prepared:
    """A run that goes on, with its own configuration and items; its limits may be given anew.

    `task_file` is the file of the task, where the user names it. `model_options` are by alias:
    where a model is served now, and how fast it may be asked. The run's own file may come from
    somebody else, and does only what is usual, or allowed.
    """
    changes = {
        name: OPTIONS[name].check(each.value, each.said) for name, each in (given or {}).items()
    }
    with read_run(ref) as reader:
        if "max_blocks" in changes:
            refuse_fewer_blocks(reader, changes["max_blocks"])
        config = replace(reader.info.config, **changes)
        config = replace(config, models=moved_models(config, model_options or {}))
        prices = prices_of(reader, PriceList().find)
        if config.budget_usd is not None:
            refuse_unpriced(prices)
            refuse_unknown_past(reader, prices)
            refuse_spent(reader, prices, changes.get("budget_usd"))
        items, recorded = reader.items(), Recorded.of(reader) if config.rejudged else None
        identity_then = reader.info.identity
    # what is given anew comes from the user, not from the file
    anew = model_options or {}
    live = {
        alias: {key: value for key, value in each.items() if key not in anew.get(alias, ())}
        for alias, each in config.live_models.items()
        if alias not in (functions or ())
    }
    recorded_models = mark_recorded(live, ref.location)
    for alias, options in (model_options or {}).items():  # what the user says now
        recorded_models.get(alias, {}).update(options)
    # paths in a run's record are seen from where it was played
    here = allowed.with_keys_at(keys_at_trusted_hosts()).with_paths([str(Path.cwd())])
    check_models(recorded_models, here)
    check_recorded_paths(config, ref.location, allowed, bool(task or task_file))
    if config.sandbox == "none" and not unsafe:
        raise UsageError(
            f"{ref.location} was played without isolation, and so would be model-written code now: "
            f"if you want that, add --unsafe-run-code-without-isolation"
        )
    if task is None:
        kind = task_to_resume(config.task, identity_then, task_file)
        task = kind.from_params(config.params)
    prepared = with_facts(
        from_record(config, task, items, recorded, prices, functions),
        {**price_facts(config, prices), **({} if recorded else retriever_facts(config))},
    )
    if recorded is None:
        works = open_references(task, config.dataset, list(prepared.items.values()))
        prepared = replace(with_facts(prepared, works_facts(works)), works=works)
    prepared.check_participants()
    return prepared


def moved_models(
    config: Config, given: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The models of a run, some of them at another address; what they are cannot change."""
    models = {alias: dict(model) for alias, model in config.models.items()}
    for alias, options in given.items():
        if alias not in models:
            raise unknown_name("model of this run:", alias, models)
        for name, value in options.items():
            if name not in MAY_MOVE:
                raise UsageError(
                    f"-M {alias}.{name}: a run goes on with the same models; only "
                    f"{', '.join(MAY_MOVE)} may be given anew; start a new run for another {name}"
                )
            models[alias][name] = value
    return models


def prepare_rejudge(
    config: Config,
    task: Task,
    items: Sequence[Any],
    recorded: Recorded,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    need_keys: bool = True,
) -> Prepared:
    """A new run in which recorded matches are judged again."""
    prices = prices_for(config.live_models)
    prepared = from_record(config, task, items, recorded, prices, functions)
    prepared = with_facts(prepared, price_facts(config, prices))
    prepared.cautions.extend(prompt_cautions(prepared))
    return within_budget(prepared, need_keys)


def prepare_to_read(ref: RunRef, task_file: str | None = None) -> Prepared:
    """A run as it was, to check its record: nobody is seated, no key or price is needed."""
    with read_run(ref) as reader:
        config, items = reader.info.config, reader.items()
        recorded = Recorded.of(reader) if config.rejudged else None
    task = task_to_read(config.task, task_file).from_params(config.params)
    return from_record(config, task, items, recorded, Prices(config.live_models))


def replan(prepared: Prepared, config: Config, items: Mapping[str, Any]) -> Prepared:
    """The same task under a changed configuration, on other items of its pool: nothing is read or
    configured again."""
    task, plan = prepared.task, make_plan(config, prepared.task, items)
    prices, works = (
        prices_for(config.live_models),
        open_references(task, config.dataset, list(items.values())),
    )
    facts = {**works_facts(works), **price_facts(config, prices)}
    again = assemble(config, task, plan, items, prices, facts, prepared.functions)
    outdated = {*prepared.read, *prepared.plan.cautions()}
    kept = [caution for caution in prepared.cautions if caution not in outdated]
    return replace(again, works=works, pool=prepared.pool, cautions=[*kept, *plan.cautions()])


def from_record(
    config: Config,
    task: Task,
    items: Sequence[Any],
    recorded: Recorded | None,
    prices: Prices,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Prepared:
    """A run on items that are stored with it; `recorded`: its matches are those of another run."""
    task = evolve_task(task, config.evolve)
    check_names(config, task)
    own = recorded_items(items, task)
    plan = recorded.plan if recorded else make_plan(config, task, own)
    facts = recorded.facts if recorded else {}
    prepared = assemble(config, task, plan, own, prices, facts, functions)
    return replace(prepared, source=recorded.ref if recorded else None)


def assemble(
    config: Config,
    task: Task,
    plan: Plan,
    items: Mapping[str, Any],
    prices: Prices,
    facts: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]] | None,
) -> Prepared:
    """The parts of a run put together; `facts` are what its identity has besides the rule."""
    seats = seat_counts(plan.first_match.seats, task)
    metrics_for_seats(task, seats)  # a task that cannot say fails here
    unused = unused_prompts(task, seats, config.standardise)
    prompts = chosen_prompts(type(task), config.prompts, unused)
    own = run_identity(task, seats, prompts, stored_items(list(items.values())))
    return Prepared(
        config,
        task,
        prompts,
        plan,
        items,
        functions or {},
        [],
        {
            **own,
            **form_facts(config),
            **stratum_facts(config, task),
            **source_facts(config.task),
            **facts,
        },
        prices,
    )


def with_facts(prepared: Prepared, facts: Mapping[str, Any]) -> Prepared:
    """The same run with more facts in its identity."""
    return replace(prepared, identity={**prepared.identity, **facts})


def check_names(config: Config, task: Task) -> None:
    """Refuse prompts and models that do not exist, and a contestant that is named twice."""
    chosen_prompts(type(task), config.prompts)
    for alias in config.aliases_in_use:
        if alias not in config.models:
            raise unknown_name("model", alias, config.models)
    if len(set(config.contestants)) != len(config.contestants):
        raise UsageError(
            "a contestant is named twice: give each an alias, -m a=PROVIDER/NAME -m b=PROVIDER/NAME"
        )


def make_plan(config: Config, task: Task, items: Mapping[str, Any]) -> Plan:
    """Which matches are played, and when to stop."""
    verify = config.verify
    return choose_plan(
        config.plan,
        task,
        config.contestants,
        config.instruments,
        block_names(config, items),
        config.repeats,
        config.seed,
        size=config.seats,
        stop=config.stop,
        max_blocks=config.max_blocks,
        verify=None if verify is None else (verify.wanted, verify.metric, verify.theta),
        adversary=config.adversary,
        evolve=config.evolve,
    )


def block_names(config: Config, items: Mapping[str, Any]) -> list[str]:
    """The items of a run; for a game without items that evolves, the numbers of the games of a
    round."""
    if items or config.evolve is None:
        return list(items)
    return [str(number) for number in range(1, (config.items or 0) + 1)]


def order_of_draws(config: Config, spec: MatchSpec) -> DrawOrder:
    """How a match draws from works of reference; every game of a run draws differently."""
    game = spec.repeat - 1
    if config.evolve is not None and spec.item is None:
        game = game * (config.items or 0) + int(spec.block) - 1
    return DrawOrder(config.seed, game)


def prompt_cautions(prepared: Prepared) -> Iterator[str]:
    """What the user should know about replaced prompts."""
    config, task = prepared.config, prepared.task
    unused = unused_prompts(task, prepared.seats, config.standardise)
    return about_prompts(type(task), config.prompts, unused)


def works_facts(works: Mapping[str, Reference]) -> dict[str, Any]:
    """What a record keeps about the works of reference that its matches consult."""
    return {"works": {name: work.facts for name, work in works.items()}} if works else {}


def retriever_facts(config: Config) -> dict[str, Any]:
    """The names and versions of the retrievers of a run that evolves, by arm, for its record.
    Refuses an unknown name."""
    if config.evolve is None:
        return {}
    found = {name: make_retriever(arm.retriever) for name, arm in config.evolve.arms.items()}
    return {"retrievers": {name: f"{each.name}, {each.version}" for name, each in found.items()}}


def stratum_facts(config: Config, task: Task) -> dict[str, str]:
    """What a record of a run that evolves keeps about the field by which held out items are drawn,
    where it is not the subject."""
    field = task.items.stratum if task.items is not None else None
    return {"stratum": field} if config.evolve and field not in (None, "subject") else {}


def price_facts(config: Config, prices: Prices) -> dict[str, Any]:
    """What a record keeps about prices: those at its beginning."""
    paid = any(not is_free(model) for model in config.live_models.values())
    return {"prices": prices.keep()} if paid else {}


def screening_config(prepared: Prepared) -> Config | None:
    """The run that finds items of which the instruments are sure (KIEval §3.2), if the task wants
    one."""
    with errors_of_task(prepared.task, "screening"):
        screening = prepared.task.screening()
    config = prepared.config
    if screening is None or config.verified:
        return None
    models: dict[str, dict[str, Any]] = {}
    for alias in dict.fromkeys(
        alias for role in screening.roles for alias in config.instruments.get(role, [])
    ):
        # one model in two roles is asked once
        if alias in prepared.functions or config.models[alias] not in models.values():
            models[alias] = model_for_screening(config.models[alias], screening.samples)
    return Config(
        task=screening.task,
        params=dict(screening.params),
        models=models,
        contestants=list(models),
        plan="each",
        repeats=screening.samples,
        seed=config.seed,
        dataset=config.dataset,
        columns=config.columns,
        budget_usd=config.budget_usd,
        max_calls=config.max_calls,
        concurrency=config.concurrency,
        name=f"items for {config.name}" if config.name else "",
        verify=ScreeningTarget(
            config.items or len(prepared.pool), screening.metric, screening.theta
        ),
    )


def model_for_screening(model: Mapping[str, Any], samples: int) -> dict[str, Any]:
    """A model as it is asked for answers: bots without what they are in the interview; several
    answers need some chance."""
    if str(model["model"]).startswith("bot/"):
        return {"model": model["model"]}
    if samples > 1 and is_zero(model.get("temperature")):
        return {**model, "temperature": 1.0}
    return dict(model)


def is_zero(temperature: Any) -> bool:
    """Whether a temperature, a number or as it was typed, is 0."""
    try:
        return float(temperature) == 0
    except (TypeError, ValueError):  # none was given, or what is no number: its provider says so
        return False


def within_budget(prepared: Prepared, need_keys: bool = True) -> Prepared:
    """Make every participant once, so that wrong names and options fail here, and check that a
    budget can hold."""
    seats = prepared.check_participants(need_keys)
    if prepared.config.budget_usd is None:
        return prepared
    refuse_unpriced(prepared.prices)
    if open_ended := models_without_limit(seats, prepared.prices):
        prepared = with_default_limit(prepared, open_ended)
    refuse_too_little(prepared.config, seats, prepared.prices)
    return prepared


def refuse_too_little(config: Config, made: Mapping[str, Participant], prices: Prices) -> None:
    """A bound in USD that no single call fits in plays nothing: whatever is asked, its reply may be
    as long as it is allowed."""
    for alias, who in made.items():
        price = prices.of(alias)
        limit = limit_of(who) or (
            DEFAULT_MAX_TOKENS
            if hasattr(getattr(who, "provider", None), "max_tokens")
            else LONGEST_REPLY
        )
        if (
            price is None
            or config.budget_usd is None
            or (most := price.most(REQUEST, limit)) <= config.budget_usd
        ):
            continue
        raise UsageError(
            f"--budget-usd {config.budget_usd:g} is not enough for one call of {alias}: a reply of "
            f"{limit:,} tokens may cost {format_usd(most)} USD, which is set aside before it is "
            f"asked; allow more, or shorter replies: -M {alias}.max_tokens=N"
        )


def with_default_limit(prepared: Prepared, aliases: Sequence[str]) -> Prepared:
    """A bound in USD only holds where replies have an end: these models get one, and the person and
    the record are told."""
    models = {
        **prepared.config.models,
        **{
            alias: {**prepared.config.models[alias], "max_tokens": DEFAULT_MAX_TOKENS}
            for alias in aliases
        },
    }
    limits = " ".join(f"-M {alias}.max_tokens=N" for alias in aliases)
    notice = (
        f"--budget-usd needs a reply limit: max_tokens={DEFAULT_MAX_TOKENS} is set for "
        f"{', '.join(aliases)} "
        f"(override with {limits})"
    )
    config, cautions = replace(prepared.config, models=models), [*prepared.cautions, notice]
    return replace(prepared, config=config, cautions=cautions, prices=prepared.prices)


def refuse_unpriced(prices: Prices) -> None:
    """No money can be held back for what nobody knows the price of."""
    if unpriced := prices.unknown():
        said = ", ".join(f"{alias} ({prices.model(alias)})" for alias in unpriced)
        raise UsageError(
            f"a bound in USD needs the price of every model, and {said} has none: "
            f"write it into {prices_path()} "
            f"({unpriced[0]}: {{input: USD, output: USD}} per million "
            f"tokens, or {unpriced[0]}: free), "
            "or bound the calls instead: --max-calls N"
        )


def refuse_unknown_past(reader: RunReader, prices: Prices) -> None:
    """A bound on all that is spent needs to know what was spent before."""
    if reader.spent_at_most()[1] is None and total_cost(cost_rows(reader, prices)).usd is None:
        raise UsageError(
            f"{reader.info.id} has calls whose tokens the endpoint did not count, or that may have "
            f"been paid without a reply, "
            "so it is not known what was spent: "
            "leave --budget-usd out, or bound the calls instead: --max-calls N"
        )


def refuse_spent(reader: RunReader, prices: Prices, budget_usd: float | None) -> None:
    """A new bound below what is spent already lets nothing leave."""
    spent = max(
        reader.spent_at_most()[1] or 0.0, total_cost(cost_rows(reader, prices)).at_least or 0.0
    )
    if budget_usd is not None and budget_usd < spent and reader.info.state != "done":
        raise UsageError(
            f"--budget-usd {budget_usd:g}: {format_usd(spent)} USD are spent by "
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


def names_to_mask(config: Config) -> Iterator[str]:
    """The names by which the models of a run could give themselves away."""
    # what its seats were shown was masked by the names of the run that played it
    if config.rejudged is not None:
        yield from config.rejudged.names
        return
    for options in config.models.values():
        family, _, name = str(options["model"]).partition("/")
        if family not in participants.participant_kinds():
            yield name.rstrip("/").rpartition("/")[2]


def masking_of_run(config: Config, identity: Mapping[str, Any]) -> Masking:
    """How a run is masked, by the scheme that its record says. Contestants whose replies are judged
    again were shown what the run that played them has masked."""
    names, scheme = frozenset(names_to_mask(config)), int(identity.get("masking", 1))
    if config.rejudged is None:
        return Masking(names, scheme, scheme)
    return Masking(names, scheme, config.rejudged.masking, frozenset(config.rejudged.roles))


# tokens that are set aside for a reply at least, at first and later on
LONGEST_REPLY, SHORTEST_REPLY = 1024, 256
# tokens of a reply at the most, where a bound in USD needs an end and nobody has said one
DEFAULT_MAX_TOKENS = 4096
TURN, REQUEST = 16, 64  # tokens that a turn and a request may have besides their words


def limit_of(participant: Any) -> int | None:
    """The most tokens that a model's endpoint is told to reply with, if it is told."""
    provider = getattr(participant, "provider", None)
    limit = getattr(provider, "reply_limit", None) or getattr(provider, "max_tokens", None)
    return limit if isinstance(limit, int) else None


def models_without_limit(participants: Mapping[str, Any], prices: Prices) -> list[str]:
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

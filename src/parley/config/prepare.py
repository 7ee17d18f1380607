"""Validate a configuration and build everything a run needs, before the first paid call.

There are four ways to prepare: for a new run, for a resumed run, for recorded matches that are
judged again, and for reading only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from parley.config.batch_api import batch_cautions, uses_batch_api
from parley.config.evolved_task import evolve_task
from parley.config.identity import items_digest, run_identity
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
from parley.datasets.files import PathCheck, allow_every_path
from parley.datasets.open_references import open_references
from parley.errors import KeyMissing, UsageError, unknown_name
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
from parley.store import read_run
from parley.store.config import MAY_MOVE, Config, ScreeningTarget
from parley.store.reader import RunReader
from parley.store.types import RunRef
from parley.tables import plural


class PreparedParticipant(NamedTuple):
    """A participant, and the limits that the user sets for it."""

    participant: Participant
    limits: ModelLimits


@dataclass(frozen=True)
class Prepared:
    """A checked configuration with everything that is needed to play it."""

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
    # all items to choose from, in the order of choice
    pool: Mapping[str, Any] = field(default_factory=dict)
    read: Sequence[str] = ()  # the notices about how items were read
    screening: Prepared | None = None  # a separate run that finds the items and is played first
    # by alias; whoever plays the run closes them
    participants: Mapping[str, PreparedParticipant] = field(default_factory=dict)

    @property
    def attended(self) -> bool:
        """Whether a person plays; then matches run one at a time."""
        return any(
            str(options["model"]).startswith("human/")
            for options in self.config.live_models.values()
        )

    @property
    def terminal_taken(self) -> bool:
        """Whether a person plays at the terminal, so that nothing else may be shown there."""
        return bool(self._played_by("human/terminal"))

    @property
    def people_in_browser(self) -> list[str]:
        """The aliases of the people who play in a browser."""
        return self._played_by("human/web")

    def _played_by(self, model: str) -> list[str]:
        models = self.config.live_models
        return [alias for alias, options in models.items() if options["model"] == model]

    @property
    def seats(self) -> dict[str, int]:
        """How many seats each role has."""
        seats: dict[str, int] = self.identity["seats"]
        return seats


def make_participants(
    models: Mapping[str, Mapping[str, Any]],
    task: Task,
    functions: Mapping[str, Callable[..., Any]],
    need_keys: bool = True,
) -> tuple[dict[str, PreparedParticipant], list[str]]:
    """The participants of a run, so that a wrong name or option fails before it begins, and what
    the user should know about them.

    Without `need_keys`, participants whose key is missing are left out, with a warning.
    """
    found, cautions = dict[str, PreparedParticipant](), list[str]()
    for alias, options in models.items():
        rest = {name: value for name, value in options.items() if name != "model"}
        model = functions.get(alias, options["model"])
        try:
            limits = ModelLimits(
                *(participants.read_limit(rest, name, alias) for name in participants.LIMITS)
            )
            if uses_batch_api(rest):  # the limits are for ordinary calls
                limits = ModelLimits()
            made = participants.make_participant(model, rest, type(task), alias)
            found[alias] = PreparedParticipant(made, limits)
        except KeyMissing as wrong:
            if need_keys:
                raise
            cautions.append(f"{alias}: {wrong} before you start the run")
        except UsageError as wrong:
            raise locate_model_fault(wrong, options) from wrong.__cause__
    return found, cautions


def prepare_new(
    config: Config,
    *,
    task: Task | None = None,
    items: Sequence[Any] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    need_keys: bool = True,
    check_path: PathCheck = allow_every_path,
) -> Prepared:
    """Prepare a new run, and the run that finds its items if its task screens them.

    Without `need_keys`, models whose key is missing are only warned about: for a forecast.
    `check_path` refuses files that the dataset must not lead to.
    """
    task = task or task_class(config.task).from_params(config.params)
    task = evolve_task(task, config.evolve)
    check_names(config, task)
    if not type(task).__module__.startswith("parley.tasks."):  # a test checks our own tasks
        check_prompt_variables(type(task))
    chosen = select_items(config, task, items, check_path)
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
    cautions += [*batch_cautions(config.live_models), *unprotected_cautions(chosen.items)]
    prepared = replace(prepared, works=works, pool=chosen.pool, read=read, cautions=cautions)
    prepared = within_budget(with_participants(prepared, need_keys))
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
    """Prepare to resume a run with its own configuration and items; its limits may change.

    `task_file` is the file of the task, if the user names it. `model_options` are by alias: where a
    model is served now, and its rate limits. The run's file may come from somebody else, and may
    use only what files may use by default, or what is allowed.
    """
    changes = {
        name: OPTIONS[name].check(each.value, each.said) for name, each in (given or {}).items()
    }
    with read_run(ref) as reader:
        if "max_blocks" in changes:
            refuse_fewer_blocks(reader, changes["max_blocks"])
        config = replace(reader.info.config, **changes)
        config = replace(config, models=moved_models(config, model_options or {}))
        if "max_calls" in changes:
            refuse_spent_calls(reader, changes["max_calls"])
        prices = prices_of(reader, PriceList().find)
        if config.budget_usd is not None:
            refuse_unpriced(prices)
            refuse_unknown_past(reader, prices)
            refuse_spent(reader, prices, changes.get("budget_usd"))
        items, recorded = reader.run.items(), Recorded.of(reader) if config.rejudged else None
        identity_then = reader.info.identity
    # new model options come from the user, not from the file
    anew = model_options or {}
    live = {
        alias: {key: value for key, value in each.items() if key not in anew.get(alias, ())}
        for alias, each in config.live_models.items()
        if alias not in (functions or ())
    }
    recorded_models = mark_recorded(live, ref.location)
    for alias, options in (model_options or {}).items():  # from the user
        recorded_models.get(alias, {}).update(options)
    # paths in a run's record are relative to the folder where it was played
    here = allowed.with_keys_at(keys_at_trusted_hosts()).with_paths([str(Path.cwd())])
    check_models(recorded_models, here)
    check_recorded_paths(config, ref.location, allowed, bool(task or task_file))
    if config.sandbox == "none" and not unsafe:
        raise UsageError(
            f"{ref.location} was started without a sandbox for model-written code: if you want "
            "to resume it without a sandbox, add --unsafe-run-code-without-isolation"
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
    return with_participants(prepared)


def moved_models(
    config: Config, given: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The models of a run, some of them at a new address; the models themselves cannot change."""
    models = {alias: dict(model) for alias, model in config.models.items()}
    for alias, options in given.items():
        if alias not in models:
            raise unknown_name("model of this run:", alias, models)
        for name, value in options.items():
            if name not in MAY_MOVE:
                raise UsageError(
                    f"-M {alias}.{name} cannot change in a resumed run: start a new run to use "
                    f"another {name}. Only {', '.join(MAY_MOVE)} can change"
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
    """Prepare a new run that judges recorded matches again."""
    prices = prices_for(config.live_models)
    prepared = from_record(config, task, items, recorded, prices, functions)
    prepared = with_facts(prepared, price_facts(config, prices))
    prepared.cautions.extend(prompt_cautions(prepared))
    return within_budget(with_participants(prepared, need_keys))


def prepare_to_read(ref: RunRef, task: type[Task] | str | None = None) -> Prepared:
    """Prepare a run for checking its record, without participants, keys and prices. `task` is the
    class of a task that is not installed, or its file."""
    with read_run(ref) as reader:
        config, items = reader.info.config, reader.run.items()
        recorded = Recorded.of(reader) if config.rejudged else None
    kind = task if isinstance(task, type) else task_to_read(config.task, task)
    rule = kind.from_params(config.params)
    return from_record(config, rule, items, recorded, Prices(config.live_models))


def replan(prepared: Prepared, config: Config, items: Mapping[str, Any]) -> Prepared:
    """The same task with a changed configuration and other items of its pool; nothing is read
    again."""
    task, plan = prepared.task, make_plan(config, prepared.task, items)
    prices, works = (
        prices_for(config.live_models),
        open_references(task, config.dataset, list(items.values())),
    )
    facts = {**works_facts(works), **price_facts(config, prices)}
    again = assemble(config, task, plan, items, prices, facts, prepared.functions)
    outdated = {*prepared.read, *prepared.plan.cautions()}
    kept = [caution for caution in prepared.cautions if caution not in outdated]
    again = replace(again, works=works, pool=prepared.pool, cautions=[*kept, *plan.cautions()])
    if config.models == prepared.config.models:
        return replace(again, participants=prepared.participants)
    return with_participants(again)


def from_record(
    config: Config,
    task: Task,
    items: Sequence[Any],
    recorded: Recorded | None,
    prices: Prices,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Prepared:
    """A run on its stored items; with `recorded`, its matches come from another run."""
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
    """Put a run together; `facts` are the parts of its identity besides the rule."""
    seats = seat_counts(plan.first_match.seats, task)
    metrics_for_seats(task, seats)  # fails here if the task cannot name its metrics
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
            **stratum_facts(config, task),
            **source_facts(config.task),
            **facts,
        },
        prices,
    )


def with_facts(prepared: Prepared, facts: Mapping[str, Any]) -> Prepared:
    """The same run with more facts in its identity."""
    return replace(prepared, identity={**prepared.identity, **facts})


def with_items(prepared: Prepared, items: Mapping[str, Any]) -> Prepared:
    """The same run with more facts on its items."""
    found = replace(prepared, items=items)
    return with_facts(found, {"items": items_digest(stored_items(list(items.values())))})


def check_names(config: Config, task: Task) -> None:
    """Refuse unknown prompts and models, and a contestant that is listed twice."""
    chosen_prompts(type(task), config.prompts)
    for alias in config.aliases_in_use:
        if alias not in config.models:
            raise unknown_name("model", alias, config.models)
    if len(set(config.contestants)) != len(config.contestants):
        raise UsageError(
            "the same contestant is listed twice: give each its own alias, like -m "
            "a=PROVIDER/NAME -m b=PROVIDER/NAME"
        )


def make_plan(config: Config, task: Task, items: Mapping[str, Any]) -> Plan:
    """Which matches are played, and when to stop."""
    screening = config.screening
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
        screening=(
            None if screening is None else (screening.wanted, screening.metric, screening.theta)
        ),
        adversary=config.adversary,
        evolve=config.evolve,
        at_once=config.at_once,
    )


def block_names(config: Config, items: Mapping[str, Any]) -> list[str]:
    """The items of a run; for a game without items in the plan evolve, the numbers of the games of
    a stage."""
    if items or config.evolve is None:
        return list(items)
    return [str(number) for number in range(1, (config.items or 0) + 1)]


def order_of_draws(config: Config, spec: MatchSpec) -> DrawOrder:
    """The order in which a match draws from works of reference; it differs for every game."""
    game = spec.repeat - 1
    if config.evolve is not None and spec.item is None:
        game = game * (config.items or 0) + int(spec.block) - 1
    return DrawOrder(config.seed, game)


def prompt_cautions(prepared: Prepared) -> Iterator[str]:
    """What the user should know about replaced prompts."""
    config, task = prepared.config, prepared.task
    unused = unused_prompts(task, prepared.seats, config.standardise)
    return about_prompts(type(task), config.prompts, unused)


def unprotected_cautions(items: Mapping[str, Any]) -> list[str]:
    """How many items have a result that a model could forge, as far as it is known."""
    count = sum(getattr(item, "is_unprotected", False) for item in items.values())
    if not count:
        return []
    are = "is" if count == 1 else "are"
    return [
        f"{count} of {plural(len(items), 'item')} {are} unprotected: a model could forge these "
        "results, so they count apart (`parley datasets check` shows why)"
    ]


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
    """The run that finds items that the instruments answer reliably (KIEval §3.2), if the task
    needs one."""
    with errors_of_task(prepared.task, "screening"):
        screening = prepared.task.screening()
    config = prepared.config
    if screening is None or config.screening_run:
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
        screening=ScreeningTarget(
            config.items or len(prepared.pool), screening.metric, screening.theta
        ),
    )


def model_for_screening(model: Mapping[str, Any], samples: int) -> dict[str, Any]:
    """A model for screening: bots without their role in the interview, and a temperature above 0 if
    several samples are needed."""
    if str(model["model"]).startswith("bot/"):
        return {"model": model["model"]}
    if samples > 1 and is_zero(model.get("temperature")):
        return {**model, "temperature": 1.0}
    return dict(model)


def is_zero(temperature: Any) -> bool:
    """Whether a temperature, a number or a string, is 0."""
    try:
        return float(temperature) == 0
    except (TypeError, ValueError):  # missing, or not a number, which its provider reports
        return False


def with_participants(prepared: Prepared, need_keys: bool = True) -> Prepared:
    """The same run with its participants."""
    made, cautions = make_participants(
        prepared.config.live_models, prepared.task, prepared.functions, need_keys
    )
    return replace(prepared, participants=made, cautions=[*prepared.cautions, *cautions])


def within_budget(prepared: Prepared) -> Prepared:
    """The same run, if its budget can be enforced."""
    if prepared.config.budget_usd is None:
        return prepared
    refuse_unpriced(prepared.prices)
    if open_ended := models_without_limit(prepared):
        prepared = with_default_limit(prepared, open_ended)
    refuse_too_little(prepared)
    return prepared


def refuse_too_little(prepared: Prepared) -> None:
    """Refuse a budget in USD that does not cover a single call with a reply of maximum length."""
    config = prepared.config
    for alias, (who, _) in prepared.participants.items():
        price = prepared.prices.of(alias)
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
            f"--budget-usd {config.budget_usd:g} is too low for a single call to {alias}, "
            f"because Parley reserves {format_usd(most)} USD for a reply of up to {limit:,} "
            f"tokens: raise the budget, or limit replies with -M {alias}.max_tokens=N"
        )


def with_default_limit(prepared: Prepared, aliases: Sequence[str]) -> Prepared:
    """A budget in USD needs a limit on the length of replies: set one for these models, with a
    notice for the user and the record."""
    models = {
        **prepared.config.models,
        **{
            alias: {**prepared.config.models[alias], "max_tokens": DEFAULT_MAX_TOKENS}
            for alias in aliases
        },
    }
    limits = " ".join(f"-M {alias}.max_tokens=N" for alias in aliases)
    notice = (
        "--budget-usd needs a limit on the length of replies, so Parley sets "
        f"max_tokens={DEFAULT_MAX_TOKENS} for {', '.join(aliases)}; to change this, use {limits}"
    )
    config, cautions = replace(prepared.config, models=models), [*prepared.cautions, notice]
    limited = {alias: models[alias] for alias in aliases}
    made, _ = make_participants(limited, prepared.task, prepared.functions)
    return replace(
        prepared,
        config=config,
        cautions=cautions,
        participants={**prepared.participants, **made},
    )


def refuse_unpriced(prices: Prices) -> None:
    """Refuse a budget in USD if the price of a model is unknown."""
    if unpriced := prices.unknown():
        said = ", ".join(f"{alias} ({prices.model(alias)})" for alias in unpriced)
        raise UsageError(
            f"--budget-usd needs the price of every model, but the price of {said} is unknown. "
            f"Add a line to {prices_path()}, either `{unpriced[0]}: {{input: USD, output: "
            f"USD}}` with prices per million tokens or `{unpriced[0]}: free`, or limit the "
            "number of calls with --max-calls N"
        )


def refuse_unknown_past(reader: RunReader, prices: Prices) -> None:
    """Refuse a budget in USD if the cost so far is unknown."""
    # requests of open batches are reserved as soon as their matches go on
    so_far = total_cost(cost_rows(reader, prices, with_open_batches=False))
    if reader.run.spent_at_most()[1] is None and so_far.usd is None:
        raise UsageError(
            f"the cost of {reader.info.id} so far is unknown, because an endpoint did not count "
            "all tokens or may have billed requests without a reply: remove --budget-usd, or "
            "limit the number of calls with --max-calls N"
        )


def refuse_spent(reader: RunReader, prices: Prices, budget_usd: float | None) -> None:
    """Refuse a new budget that is lower than the cost so far."""
    spent = max(
        reader.run.spent_at_most()[1] or 0.0, total_cost(cost_rows(reader, prices)).at_least or 0.0
    )
    if budget_usd is not None and budget_usd < spent and reader.info.state != "done":
        raise UsageError(
            f"--budget-usd {budget_usd:g} is too low, because the budget covers the whole run "
            f"and {reader.info.id} has already spent {format_usd(spent)} USD: raise the budget"
        )


def refuse_spent_calls(reader: RunReader, max_calls: int) -> None:
    """Refuse a limit that is lower than the number of calls so far."""
    calls, _ = reader.run.spent_at_most()
    if max_calls < calls and reader.info.state != "done":
        raise UsageError(
            f"--max-calls {max_calls} is too low, because the limit covers the whole run and "
            f"{reader.info.id} has already made {plural(calls, 'call')}: raise the limit"
        )


def refuse_fewer_blocks(reader: RunReader, max_blocks: int) -> None:
    """Refuse a limit that is lower than the number of blocks so far."""
    if reader.info.config.stop is None:
        raise UsageError(
            "--max-blocks only works for runs that were started with --until-stable or --plan "
            "race: remove --max-blocks"
        )
    if max_blocks < (played := len({match.block for match in reader.matches.read()})):
        raise UsageError(
            f"--max-blocks {max_blocks} is too low, because the run already has "
            f"{plural(played, 'block')}: give a larger number"
        )


# the minimum of tokens to reserve for a reply, at first and later on
LONGEST_REPLY, SHORTEST_REPLY = 1024, 256
# the token limit of a reply if a budget in USD needs one and the user has set none
DEFAULT_MAX_TOKENS = 4096
TURN, REQUEST = 16, 64  # tokens of a turn and of a request besides their text


def limit_of(participant: Any) -> int | None:
    """The token limit that a model's requests carry, if any."""
    provider = getattr(participant, "provider", None)
    limit = getattr(provider, "reply_limit", None) or getattr(provider, "max_tokens", None)
    return limit if isinstance(limit, int) else None


def models_without_limit(prepared: Prepared) -> list[str]:
    """The models with a price whose replies have no limit, although they take one. Models without
    `max_tokens` are estimated from their replies so far."""
    return [
        alias
        for alias, (who, _) in prepared.participants.items()
        if (price := prepared.prices.of(alias))
        and not price.free
        and hasattr(getattr(who, "provider", None), "max_tokens")
        and limit_of(who) is None
    ]

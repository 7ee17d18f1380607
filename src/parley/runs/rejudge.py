"""`parley rejudge`: lets other judges score recorded matches again; no contestant is called.

The result is a new run in its own file, with the replies of the original run. You can stop, resume,
show, audit and rejudge it like any other, and it has its own cost. Contestants never see what their
judges say, so everything that they were shown must equal the record word by word; otherwise nothing
is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parley.config import models_file
from parley.config.batch_api import with_batch_api
from parley.config.evolved_task import evolve_task
from parley.config.experiment import Experiment, with_temperature_zero
from parley.config.identity import refuse_changes
from parley.config.models_file import keys_at_trusted_hosts
from parley.config.prepare import Prepared, is_zero, prepare_rejudge
from parley.config.recorded_matches import Recorded, facts_on_record
from parley.config.recorded_task import check_recorded_paths, task_to_resume
from parley.config.trust import check_models, mark_recorded
from parley.errors import ReplayError, UsageError
from parley.memory.feedback import CRITIC, SELF_CRITIC
from parley.options import check_options
from parley.plans import MatchSpec
from parley.plans.arrangements import seat_instruments
from parley.plans.feedback_seats import FeedbackWanted, find_wanted_feedback
from parley.plans.fixed import FixedPlan
from parley.providers import _registry as providers
from parley.providers._traits import traits_of
from parley.rules.pool import Seat
from parley.rules.task import Task
from parley.store import read_run
from parley.store.config import Config, Rejudged
from parley.store.reader import RunReader
from parley.store.types import RunRef
from parley.tables import plural


def experiment_for_judges(ref: RunRef) -> Experiment:
    """An experiment with the models of a run, for which you may choose judges, their options and
    prompts; everything else stays as it was played."""
    with read_run(ref) as reader:
        return Experiment(
            reader.info.config.task,
            models=mark_recorded(reader.info.config.models, ref.location),
        )


def prepare_judging(
    ref: RunRef,
    experiment: Experiment,
    *,
    seed: int | None = None,
    task: Task | None = None,
    need_keys: bool = True,
    task_file: str | None = None,
) -> Prepared:
    """The matches of a run, ready to be judged by the instruments of an experiment."""
    with read_run(ref) as reader:
        named = bool(task or task_file)
        check_recorded_paths(reader.info.config, ref.location, experiment.allowed, named)
        if task is None:
            kind = task_to_resume(reader.info.config.task, reader.info.identity, task_file)
            task = kind.from_params(reader.info.config.params)
        task = evolve_task(task, reader.info.config.evolve)
        config = config_with_judges(reader, experiment, task, seed)
        check_models(config.live_models, experiment.allowed.with_keys_at(keys_at_trusted_hosts()))
        judges = seat_instruments(task, instruments_of_task(config))
        matches = [match.spec for match in reader.matches.read() if match.has_ended]
        if not matches:
            raise UsageError(
                f"{reader.info.id} has no finished match, so there is nothing to judge"
            )
        plan = FixedPlan(
            [
                replace(
                    spec,
                    seats=contestants_of(spec, task) | judges | critics_of(spec, config),
                )
                for spec in matches
            ]
        )
        recorded = Recorded(ref, plan, facts_on_record(reader))
        prepared = prepare_rejudge(
            config, task, reader.run.items(), recorded, experiment.functions, need_keys
        )
        return replace(
            prepared,
            cautions=[*rejudge_cautions(reader, prepared, len(matches)), *prepared.cautions],
        )


def contestants_of(spec: MatchSpec, task: Task) -> dict[Seat, str]:
    """The seats that were judged, with their aliases."""
    return {
        seat: alias for seat, alias in spec.seats.items() if not task.roles[seat.role].instrument
    }


def instruments_of_task(config: Config) -> dict[str, list[str]]:
    """The instruments that sit in every match; critics of the plan `evolve` do not."""
    evolve = config.evolve
    roles = () if evolve is None else find_wanted_feedback(evolve).roles
    return {role: panel for role, panel in config.instruments.items() if role not in roles}


def critics_of(spec: MatchSpec, config: Config) -> dict[Seat, str]:
    """The seats that are asked after a match of the plan `evolve`, with the new critic."""
    if config.evolve is None:
        return {}
    roles = find_wanted_feedback(config.evolve).roles
    return {
        seat: config.instruments[CRITIC][0] if seat.role == CRITIC else alias
        for seat, alias in spec.seats.items()
        if seat.role in roles
    }


def config_with_judges(
    reader: RunReader, experiment: Experiment, task: Task, seed: int | None
) -> Config:
    """The configuration of a run, with other judges."""
    config, panels, options = (
        reader.info.config,
        experiment.instruments,
        check_options(experiment.given),
    )
    if not panels:
        roles = [name for name, role in task.roles.items() if role.instrument]
        raise UsageError(
            f"name a model that judges {reader.info.id} again: add --role "
            f"{roles[0]}=[ALIAS=]PROVIDER/NAME"
            if roles
            else f"{reader.info.id} cannot be judged again, because the task {task.name} has no "
            "judge"
        )
    if heard := [
        role for role in panels if role in task.roles and task.roles[role].heard_by_contestants
    ]:
        raise UsageError(
            f"--role {heard[0]}: contestants of the task {task.name} read what the {heard[0]} "
            f"says, so another {heard[0]} would change the recorded matches: start a new run"
        )
    refuse_lessons(reader, panels)
    instruments = {**config.instruments, **{role: list(panel) for role, panel in panels.items()}}
    kept = {
        *config.players,
        *(alias for role, panel in instruments.items() if role not in panels for alias in panel),
    }
    for alias in kept:
        if experiment.models[alias] != config.models[alias]:
            raise UsageError(
                f"the alias {alias!r} belongs to another model in {reader.info.id}: give the "
                f"judge another alias with --role {next(iter(panels))}=ALIAS=PROVIDER/NAME"
            )
    seated = dict.fromkeys(
        [*config.players, *(alias for panel in instruments.values() for alias in panel)]
    )
    models = {
        alias: experiment.models[alias]
        if alias in kept
        else models_file.with_defaults(experiment.models[alias])
        for alias in seated
    }
    if options.batch:
        judges = {alias: model for alias, model in models.items() if alias not in kept}
        models |= with_batch_api(judges)
    return replace(
        config,
        models={
            alias: with_temperature_zero(model)
            if task.temperature_zero and alias not in kept
            else model
            for alias, model in models.items()
        },
        instruments=instruments,
        stop=None,  # all matches are played already
        max_blocks=None,
        prompts={**config.prompts, **experiment.prompts},
        budget_usd=options.budget_usd,
        max_calls=options.max_calls,
        concurrency=options.concurrency,
        name=options.name,
        rejudged=Rejudged(
            reader.info.id,
            list(panels),
            {
                role: [config.models[alias]["model"] for alias in config.instruments.get(role, [])]
                for role in panels
            },
            seed,
            reader.info.id
            if config.rejudged is None
            else config.rejudged.root or config.rejudged.run,
        ),
    )


def refuse_lessons(reader: RunReader, panels: Mapping[str, Sequence[str]]) -> None:
    """Refuse to judge again where players saw the verdict, or judged themselves."""
    evolve = reader.info.config.evolve
    wanted = FeedbackWanted() if evolve is None else find_wanted_feedback(evolve)
    if wanted.lessons:
        raise UsageError(
            f"{reader.info.id} cannot be judged again, because its players wrote lessons from "
            "the outcomes, and other judges would change these outcomes: start a new run"
        )
    for role in panels:
        if role == SELF_CRITIC and role in wanted.roles:
            raise UsageError(
                f"--role {role}: the players of {reader.info.id} judged themselves, so there is "
                "no critic to replace: to use a critic, start a new run with --evolve "
                f"feedback=critic --role {CRITIC}=PROVIDER/NAME"
            )
    if wanted.critic and len(panels.get(CRITIC, "1")) != 1:
        raise UsageError(
            f"--role {CRITIC}: `--plan evolve` needs exactly one critic, not {len(panels[CRITIC])}"
        )


def rejudge_cautions(reader: RunReader, prepared: Prepared, matches: int) -> list[str]:
    """What the user should know before judges are called."""
    found = [
        f"judging {plural(matches, 'match', 'matches')} of {reader.info.id} again; contestants are "
        "not called"
    ]
    if left := sum(reader.matches.counts().values()) - matches:
        found.append(
            f"{plural(left, 'unfinished match is', 'unfinished matches are')} left "
            "out, because only finished matches can be judged again"
        )
    if reader.info.config.stop is not None:
        found.append(
            f"{reader.info.id} was stopped by a stopping rule, but the confidence intervals here "
            "assume a fixed number of matches, so they may be too narrow"
        )
    found += seed_cautions(reader.info.config, prepared.config)
    now = prepared.identity["prompts"]
    then = {
        **reader.info.identity["prompts"],
        **{address: now[address] for address in prepared.config.prompts},
    }
    try:
        refuse_changes({**reader.info.identity, "prompts": then}, prepared.identity, reader.info.id)
    except ReplayError:
        found.append(
            f"the task {prepared.task.name} (its rule, prompts or data) has changed since "
            f"{reader.info.id} was played; the scores are computed with the current version"
        )
    return found


def seed_cautions(before: Config, config: Config) -> Iterator[str]:
    """Judges on which `--seed` has no effect, and judges that repeat themselves without it."""
    if config.rejudged is None:
        return
    seed = config.rejudged.seed
    for role in config.rejudged.roles:
        known = [before.models[alias] for alias in before.instruments.get(role, [])]
        for alias in config.instruments[role]:
            model = config.models[alias]
            if seed is not None and (fixed := why_seed_is_idle(alias, model)):
                yield f"--seed {seed} has no effect on {role} {alias}: {fixed}"
            elif (
                seed is None
                and config.instruments == before.instruments
                and model in known
                and takes_derived_seed(model)
            ):
                yield (
                    f"{role} {alias} has judged these matches before and gets the same random "
                    "seeds again, so it may repeat its earlier replies; add --seed N to get "
                    "new ones"
                )


def why_seed_is_idle(alias: str, model: Mapping[str, Any]) -> str:
    """Why the seed of the run does not change the replies of a model, as far as that is known."""
    family = str(model["model"]).partition("/")[0]
    if not providers.is_provider(family):
        return ""
    from parley.providers._endpoint import DERIVED  # late: it needs the HTTP client

    kind = providers.provider_class(family)
    options = getattr(kind, "__dataclass_fields__", {})
    usual = options["temperature"].default if "temperature" in options else None
    if is_zero(model.get("temperature", usual)):
        return f"its temperature is 0; to get new replies, add -M {alias}.temperature=1"
    own = str(model.get("seed", "none")).lower()
    if own not in ("none", DERIVED) and not traits_of(kind).seed_per_call:
        return f"it has its own option seed={own}; remove that option"
    return ""


def takes_derived_seed(model: Mapping[str, Any]) -> bool:
    """Whether calls of a model get seeds derived from the run's seed, and its replies depend on
    them."""
    family = str(model["model"]).partition("/")[0]
    if not providers.is_provider(family) or "seed" in model:
        return False
    from parley.providers._endpoint import DERIVED  # late: it needs the HTTP client

    options = getattr(providers.provider_class(family), "__dataclass_fields__", {})
    derived = "seed" in options and options["seed"].default == DERIVED
    return derived and not is_zero(model.get("temperature"))

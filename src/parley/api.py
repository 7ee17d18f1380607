"""`parley.run`, `resume`, `rejudge` and `Result`, for scripts and notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial, update_wrapper, wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec

from parley.config.experiment import Experiment, Models, sandbox_choice
from parley.config.experiment_file import open_experiment
from parley.config.prepare import Prepared, prepare_resume
from parley.config.prices import PriceList
from parley.config.task_catalogue import task_class, task_of_run
from parley.config.trust import Allowed
from parley.errors import ParleyError, ParticipantError, UsageError, unknown_name
from parley.money import FindPrice
from parley.options import from_keywords
from parley.report.notebook_table import for_notebook
from parley.results.part import check_parts
from parley.results.parts_to_store import compute_parts_to_store
from parley.results.remarks import REMARKS
from parley.results.result import RunResult
from parley.rules.task import Task
from parley.runs import screening, start
from parley.runs.event_loop import run_sync
from parley.runs.progress import Progress, ProgressEvent
from parley.runs.progress_display import show_progress
from parley.runs.rejudge import experiment_for_judges, prepare_judging
from parley.runs.run_context import Play, RunContext, Summary
from parley.runs.run_outcome import RunOutcome, raised_by_code
from parley.store import Store, open_store
from parley.store.types import RunRef
from parley.tables import Table, make_visible

OnEvent = Callable[[ProgressEvent], None]
P = ParamSpec("P")


class Result(RunResult):
    """The result of a run so far. `interval="bootstrap"` asks for a bootstrap over blocks instead
    of Student's t.

    `scores` is a file with external scores (a column `alias`, and columns of scores) for the part
    `external`. `task` is the class of the task; without it the installed task of that name is
    used. The task's own parts are computed; if there is no class, the stored ones are shown.
    """

    def __init__(
        self,
        run: RunRef | str | Path,
        interval: str = "block",
        reasoned: bool = True,
        scores: str | Path | None = None,
        look_up: FindPrice | None = None,
        task: type[Task] | None = None,
    ) -> None:
        """`reasoned`: whether the table says why a run stopped. `look_up` finds prices that the run
        did not record, by default in the price list."""
        super().__init__(run, interval, reasoned, scores, look_up or PriceList().find, task)

    @cached_property
    def task(self) -> type[Task] | None:
        """The class of the task; None if it was not given and is not installed."""
        if self._given_task is not None:
            return self._given_task
        return task_of_run(self.info)

    def table(self, metrics: str | Sequence[str] = ()) -> Table:
        """The models, the best mean first: interval, n and notes. By default each role has the
        metric that it is ranked by; `metrics` may be "all", or names."""
        return for_notebook(super().table(metrics))

    def tables(self, name: str) -> list[Table]:
        """The tables of a part; none if the run has no data for it."""
        return [for_notebook(table) for table in super().tables(name)]

    def report(
        self, path: str | Path, *, audit: bool | None = None, matches: str | int = "notable"
    ) -> Path:
        """Write all parts of the result to one self-contained HTML page.

        The run is audited first, unless it has more than 10,000 calls; `audit=True` audits it in
        any case, `audit=False` never. `matches` chooses the transcripts on the page: "notable",
        "none", or how many (the notable ones first, then by number).
        """
        from parley.report.for_result import write_result_page  # late: not every script draws

        return write_result_page(self, path, audit, matches)

    def _repr_html_(self) -> str:
        from parley.report.for_result import render_notebook

        self.compute(REMARKS)
        return render_notebook(self)

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """What a notebook shows: the first part of the report, and the table as text."""
        from parley.report.for_result import write_text

        makers: dict[str, Callable[[], Any]] = {
            "text/plain": lambda: write_text(self),
            "text/html": self._repr_html_,
        }
        left_out = set(exclude or ())
        wanted = set(include) if include else set(makers)
        return {name: make() for name, make in makers.items() if name in wanted - left_out}


async def run_async(
    task: str | Path | Task,
    models: Models | None = None,
    *,
    roles: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    items: Sequence[Any] | int | None = None,
    dataset: str | Path | Mapping[str, Any] | None = None,
    plan: str | None = None,
    adversary: Any = None,
    repeats: int | None = None,
    seats: int | None = None,
    until_stable: bool | None = None,
    half_width: float | None = None,
    alpha: float | None = None,
    target: str | None = None,
    top: int | None = None,
    max_blocks: int | None = None,
    budget_usd: float | None = None,
    max_calls: int | None = None,
    sandbox: str | None = None,
    unsafe_run_code_without_isolation: bool = False,
    seed: int | None = None,
    evolve: Mapping[str, Any] | None = None,
    prompts: Mapping[str, str] | None = None,
    standardise: str | None = None,
    name: str | None = None,
    store: str | Path | None = None,
    concurrency: int | None = None,
    batch: bool | None = None,
    fresh: bool = False,
    progress: bool | OnEvent = False,
    allow_hosts: Sequence[str] = (),
    allow_paths: Sequence[str] = (),
    allow_env: Sequence[str] = (),
    **params: Any,
) -> Result:
    """Play a task inside an event loop, and return its result.

    A task is a name, a path or an instance; its parameters are further keywords. Models are names,
    aliases of `models.yaml`, functions, or {"model": name, option: value} under an alias. Instead
    of a task, you can give the path of an experiment file; keywords override the file. A run that
    stops early, for example at its budget (`budget_usd`, `max_calls`), returns its partial result,
    marked as such. Model-written code only runs in a `sandbox` (bubblewrap, docker or podman).
    `fresh` screens questions again, even if the store has an earlier screening. `progress=True`
    shows the progress on stderr; a function gets every `parley.ProgressEvent`. If it raises an
    exception, the run stops, is saved, and the exception is raised here.
    `allow_hosts`, `allow_paths` and `allow_env` let files use hosts, paths and environment
    variables that files may not use otherwise.
    """
    experiment = open_experiment(task, Allowed.of(allow_hosts, allow_paths, allow_env))
    experiment.params |= params
    refuse_misspelt_options(experiment, params)
    item_list = None if isinstance(items, int) else items
    experiment.override(
        models=models,
        roles=roles,
        exclude=exclude,
        evolve=evolve,
        prompts=prompts,
        dataset=dataset,
        item_list=item_list,
        given=from_keywords(
            items=items if item_list is None else None,
            plan=plan,
            adversary=adversary,
            repeats=repeats,
            seats=seats,
            until_stable=until_stable,
            half_width=half_width,
            alpha=alpha,
            target=target,
            top=top,
            max_blocks=max_blocks,
            budget_usd=budget_usd,
            max_calls=max_calls,
            sandbox=sandbox_choice(sandbox, unsafe_run_code_without_isolation),
            seed=seed,
            standardise=standardise,
            name=name,
            store=str(store) if store else None,
            concurrency=concurrency,
            batch=batch,
        ),
    )
    place = open_store(experiment.store)
    prepared = experiment.prepare()
    check_parts(type(prepared.task))
    play = partial(screening.screen_and_play, prepared, place, fresh=fresh)
    return result_of(await watch(progress, with_browser(play, prepared, place)))


def with_options_of(
    work: Callable[P, Any],
) -> Callable[[Callable[..., Result]], Callable[P, Result]]:
    """Let `help()` and type checkers see the options of another function."""
    return lambda call: update_wrapper(call, work, assigned=(), updated=())


@with_options_of(run_async)
def run(task: str | Path | Task, models: Models | None = None, **options: Any) -> Result:
    """Play a task and return its result; the options are those of `run_async`."""
    return run_sync(run_async(task, models, **options))


def with_known_keywords(call: Callable[P, Result]) -> Callable[P, Result]:
    """Suggest the nearest name for a misspelt keyword."""
    known = list(signature(call).parameters)

    @wraps(call)
    def checked(*given: P.args, **options: P.kwargs) -> Result:
        for name in options:
            if name not in known:
                raise unknown_name(f"option of parley.{call.__name__}:", name, known)
        return call(*given, **options)

    return checked


@with_known_keywords
def resume(
    run: str | Path | RunResult,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    task: Task | None = None,
    store: str | Path | None = None,
    concurrency: int | None = None,
    max_blocks: int | None = None,
    budget_usd: float | None = None,
    max_calls: int | None = None,
    model_options: Mapping[str, Mapping[str, Any]] | None = None,
    unsafe_run_code_without_isolation: bool = False,
    progress: bool | OnEvent = False,
    allow_hosts: Sequence[str] = (),
    allow_paths: Sequence[str] = (),
    allow_env: Sequence[str] = (),
) -> Result:
    """Resume a run that stopped. Give its functions, or its task instance, again.

    Limits count the whole run, including what it has spent already; limits that you do not give
    stay as they are. `model_options` moves models to other endpoints: {"a": {"base_url": …}}.
    """
    given = from_keywords(
        concurrency=concurrency,
        max_blocks=max_blocks,
        budget_usd=budget_usd,
        max_calls=max_calls,
    )
    ref = ref_of_run(run, open_store(store))
    allowed = Allowed.of(allow_hosts, allow_paths, allow_env)
    prepared = prepare_resume(
        ref,
        given,
        functions,
        task,
        allowed=allowed,
        model_options=model_options,
        unsafe=unsafe_run_code_without_isolation,
    )
    play = with_browser(partial(start.resume_run, prepared, ref), prepared, open_store(ref.store))
    return result_of(run_sync(watch(progress, play)))


@with_known_keywords
def rejudge(
    run: str | Path | RunResult,
    roles: Mapping[str, Any],
    *,
    prompts: Mapping[str, str] | None = None,
    seed: int | None = None,
    task: Task | None = None,
    name: str | None = None,
    store: str | Path | None = None,
    concurrency: int | None = None,
    batch: bool | None = None,
    budget_usd: float | None = None,
    max_calls: int | None = None,
    progress: bool | OnEvent = False,
    allow_hosts: Sequence[str] = (),
    allow_paths: Sequence[str] = (),
    allow_env: Sequence[str] = (),
) -> Result:
    """Judge the matches of a run again. The scores go into a new run, and no contestant is called.
    `roles` is as in `run`."""
    place = open_store(store)
    ref = ref_of_run(run, place)
    experiment = experiment_for_judges(ref)
    experiment.allowed = Allowed.of(allow_hosts, allow_paths, allow_env)
    experiment.override(
        roles=roles,
        prompts=prompts,
        given=from_keywords(
            budget_usd=budget_usd,
            max_calls=max_calls,
            name=name,
            concurrency=concurrency,
            batch=batch,
        ),
    )
    prepared = prepare_judging(ref, experiment, seed=seed, task=task)
    play = with_browser(partial(start.play_new_run, prepared, place), prepared, place)
    return result_of(run_sync(watch(progress, play)))


def with_browser(play: Play, prepared: Prepared, store: Store) -> Play:
    """The same way to play, with pages for the people who play in a browser. Their links are
    printed on stderr."""
    if not prepared.people_in_browser:
        return play
    from parley.web.play_server import with_people  # late: it needs an extra

    return with_people(play, prepared, store, print_notice)


async def watch(progress: bool | OnEvent, play: Play) -> RunOutcome:
    """Play a run and show its progress: on stderr if True; a function gets every event."""
    if progress is True:
        shown = Progress(estimates_calls=True)
        async with show_progress(shown, print_notice):
            return await play(RunContext(shown, summarise=summarise))
    if progress is not False and not callable(progress):
        raise UsageError(f"progress must be True, False or a function, not {progress!r}")
    watched = Progress(on_event=progress or None)
    ending = await play(RunContext(watched, summarise=summarise))
    if watched.failure is not None:
        reason = f" ({ending.reason})" if ending.reason else ""
        watched.failure.add_note(
            "the function that you passed as `progress` raised this error; the run is "
            f"{ending.state}{reason} and is stored in {ending.ref.location}"
        )
        raise watched.failure
    return ending


def summarise(ref: RunRef, task: type[Task]) -> Summary:
    """Compute what is stored with a run; the rest is computed when it is asked for."""
    result = Result(ref, task=task)
    return Summary(result, *compute_parts_to_store(result))


def print_notice(text: str) -> None:
    """Print a message for the user on stderr."""
    print(make_visible(text), file=sys.stderr, flush=True)


def ref_of_run(run: str | Path | RunResult, store: Store) -> RunRef:
    """The run of a result, or the one that `Store.find` finds."""
    return run.ref if isinstance(run, RunResult) else store.find(str(run))


def result_of(ending: RunOutcome) -> Result:
    """The result of a run that is done or can be resumed. Raises what a task, a bot or a function
    raised, with its traceback; the run stays in the store."""
    if ending.state == "failed":
        if ending.fault is None:
            raise ParleyError(ending.reason)
        raise ending.fault from find_root_cause(ending.fault)
    if raised_by_code(ending.fault):
        assert isinstance(ending.fault, ParticipantError)
        raise ending.fault.with_message(
            f"{ending.fault}; the matches played so far are stored in {ending.ref.location}. "
            "Fix the code, then continue with `parley.resume`. If the code is a bot in the "
            "task's file, also pass `task=…`"
        ) from find_root_cause(ending.fault) or ending.fault
    result: Result = ending.result or Result(ending.ref, task=ending.task)
    return result


def find_root_cause(fault: BaseException) -> BaseException | None:
    """The first exception of the chain; None if there is no other than `fault`."""
    cause = fault.__cause__
    while cause is not None and cause.__cause__ is not None:
        cause = cause.__cause__
    return cause


def refuse_misspelt_options(experiment: Experiment, params: Mapping[str, Any]) -> None:
    """Refuse keywords that are neither run options nor parameters of the task, and suggest the
    nearest name."""
    if not params:
        return
    options = [name for name in signature(run_async).parameters if name != "params"]
    if experiment.instance is not None:
        name = next(iter(params))
        if name not in experiment.instance.params:
            raise unknown_name("option of parley.run:", name, options)
        raise UsageError(
            f"`{name}` cannot be combined with a task instance: set it when you create the instance"
        )
    known = {each.name for each in fields(task_class(experiment.task)) if each.init}  # type: ignore[arg-type]
    for name in params:
        if name not in known:
            raise unknown_name(
                f"option of parley.run or parameter of {experiment.task}:", name, {*options, *known}
            )

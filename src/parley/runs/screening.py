"""Screens items before a run (KIEval §3.2): interactor and evaluator answer them in a separate run,
and the items that they answer correctly are used.

The result is kept, and used again with the same models, dataset and settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import orjson

from parley.config.prepare import Prepared, refuse_too_little, replan
from parley.config.prices import PriceList
from parley.errors import UsageError
from parley.money import cost_rows, prices_of, total_cost
from parley.participants._registry import LIMITS
from parley.plans import MatchSpec
from parley.plans.confident_items import all_confident
from parley.runs.forecast import Forecast, forecast_run
from parley.runs.new_names import refuse_taken_name
from parley.runs.run_context import PlayNew, Resume, RunContext
from parley.runs.run_outcome import RunOutcome
from parley.runs.start import play_new_run, resume_run
from parley.store import Store, read_run
from parley.store.config import MAY_CHANGE, Config, ScreeningTarget
from parley.store.reader import RunReader
from parley.store.types import RunInfo, RunRef
from parley.tables import format_item_count


async def screen_and_play(
    prepared: Prepared,
    store: Store,
    context: RunContext,
    *,
    fresh: bool = False,
    play_new: PlayNew = play_new_run,
    resume: Resume = resume_run,
) -> RunOutcome:
    """Play a new run; if its task asks for it, screen its items first. An earlier screening is used
    or resumed unless `fresh` is set. A screening that does not end with "done" ends this too."""
    screening = prepared.screening
    if screening is None:
        if fresh:
            raise UsageError(
                f"--fresh has no effect, because the task {prepared.task.name} screens no "
                "questions with these parameters: remove --fresh"
            )
        return await play_new(prepared, store, context)
    refuse_taken_name(prepared.config, store)
    ref, spent = None if fresh else find_earlier(screening, store), (0, 0.0)
    if ref is None:
        ending = await play_new(screening, store, context)
    else:
        with store.read(ref) as reader:
            spent, before = spent_by(reader), reader.info.config
        config = continued_config(screening.config, before, spent)
        screening = replan(screening, config, screening.items)
        ending = await resume(screening, ref, context)
    if ending.state != "done":
        return replace(ending, during_screening=True)
    return await play_new(run_on_found_items(prepared, ending.ref, spent), store, context)


def spent_by(reader: RunReader) -> tuple[int, float]:
    """The calls and the money that a run has spent so far."""
    calls, usd = reader.run.spent_at_most()
    return calls, max(
        usd or 0.0,
        total_cost(cost_rows(reader, prices_of(reader, PriceList().find))).at_least or 0.0,
    )


def forecast_with_screening(prepared: Prepared) -> Forecast:
    """Forecast a run together with the screening of its items."""
    found = forecast_run(prepared)
    if prepared.screening is not None:
        asking = forecast_run(prepared.screening)
        found.rows += asking.rows
        found.notes.append(
            f"before the run, {' and '.join(row['alias'] for row in asking.rows)} answer the "
            f"items as {asking.rows[0]['role']} (screening); items that are not answered "
            "correctly are replaced by others, which takes more calls"
        )
    return found


def continued_config(config: Config, before: Config, spent: tuple[int, float]) -> Config:
    """The configuration to continue a screening: with its own models, with at least as many items
    as it wanted, and with limits that leave out what it had `spent` before."""
    assert config.screening is not None
    assert before.screening is not None
    wanted = max(config.screening.wanted, before.screening.wanted)
    return replace(
        config,
        models=before.models,
        contestants=before.contestants,
        screening=replace(before.screening, wanted=wanted),
        budget_usd=None if config.budget_usd is None else config.budget_usd + spent[1],
        max_calls=None if config.max_calls is None else config.max_calls + spent[0],
    )


def find_earlier(asking: Prepared, store: Store) -> RunRef | None:
    """An earlier screening of the same items in the same way, finished or not. There is none for
    functions, whose answers may change.

    A screening without a single right answer is not used again: the questions, the key or the
    endpoint may have been wrong.
    """
    if asking.config.models.keys() & asking.functions.keys():
        return None
    wanted = screening_key(asking.config, asking.identity)
    for run in store.runs():
        if (
            isinstance(run, RunInfo)
            and run.config.screening is not None
            and screening_key(run.config, run.identity) == wanted
            and (run.state != "done" or any_right(run.ref, asking.config.screening))
        ):
            return run.ref
    return None


def screening_key(config: Config, identity: Mapping[str, Any]) -> bytes:
    """Everything that determines how models answer. The number of items and the threshold do not:
    they are applied to the answers."""
    asked = {
        name: value
        for name, value in asdict(config).items()
        if name not in (*MAY_CHANGE, "models", "contestants")
    }
    models = [
        {name: value for name, value in model.items() if name not in (*LIMITS, "max_tokens")}
        for model in config.models.values()
    ]
    metric = config.screening.metric if config.screening else ""
    rests = [identity.get(name) for name in ("version", "rule", "prompts", "items")]
    return orjson.dumps([asked, models, metric, *rests], option=orjson.OPT_SORT_KEYS)


def any_right(ref: RunRef, screening: ScreeningTarget | None) -> bool:
    """Whether a finished screening has found an item."""
    assert screening is not None
    with read_run(ref) as reader:
        return bool(items_answered_right(reader, screening.metric, screening.theta)[1])


def items_answered_right(reader: RunReader, metric: str, theta: float) -> tuple[int, list[str]]:
    """How many items were screened, and those that all models answered correctly."""
    items: dict[str, list[MatchSpec]] = {}
    for match in reader.matches.read():
        items.setdefault(match.block, []).append(match.spec)
    scores = reader.scores.by_match()
    asked = {
        item: specs for item, specs in items.items() if all(each.number in scores for each in specs)
    }
    return len(asked), [
        item for item, specs in asked.items() if all_confident(specs, scores, metric, theta)
    ]


def run_on_found_items(prepared: Prepared, ref: RunRef, before: tuple[int, float]) -> Prepared:
    """The run on the items that were found; its limits are reduced by what the screening spent."""
    screening, config = prepared.task.screening(), prepared.config
    assert screening is not None
    with read_run(ref) as reader:
        run, asked = reader.info.id, reader.info.config.contestants
        looked_at, sure = items_answered_right(reader, screening.metric, screening.theta)
        calls, usd = spent_by(reader)
    wanted, names = config.items or len(prepared.pool), " and ".join(asked)
    if not sure:
        raise UsageError(
            f"{names} answered none of the {looked_at} screened questions correctly ({run}), so "
            "no question is left for an interview: choose other questions or another model. "
            "The next run repeats the screening"
        )
    items = {name: prepared.pool[name] for name in sure[:wanted]}
    left: dict[str, Any] = {
        "max_calls": None
        if config.max_calls is None
        else max(0, config.max_calls - (calls - before[0])),
        "budget_usd": None
        if config.budget_usd is None
        else max(0.0, config.budget_usd - (usd - before[1])),
    }
    own = replace(config, items=len(items), screening_run=run, **left)
    again = replan(prepared, own, items)
    refuse_too_little(again)
    few = f"; {wanted} were requested" if len(items) < wanted else ""
    notice = (
        f"using {format_item_count(len(items))} that {names} answered correctly, out of "
        f"{looked_at} screened items ({run}){few}"
    )
    return replace(again, cautions=[notice, *again.cautions])

"""Starts and resumes runs: what is checked and created before their first match."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from parley.config.batch_api import concurrency_of, uses_batch_api
from parley.config.identity import changed_bots, refuse_changes, refuse_other, refuse_secrets
from parley.config.prepare import Prepared, unprotected_cautions, with_items
from parley.config.recorded_matches import copied_matches
from parley.config.selection import stored_items
from parley.errors import UsageError
from parley.rules.items.problem import Problem
from parley.runs.earlier_sessions import EarlierSessions
from parley.runs.new_names import new_id, refuse_taken_name
from parley.runs.player import play_run
from parley.runs.recall import prepare_retrievers
from parley.runs.run_context import RunContext
from parley.runs.run_outcome import RunOutcome
from parley.runs.run_sandbox import open_sandbox
from parley.runs.transfer import load_transferred
from parley.store import Store, open_store, read_run
from parley.store.types import NewRun, RunRef
from parley.tables import plural

if TYPE_CHECKING:
    from parley.sandbox.executor import Sandbox


def make_new_run(prepared: Prepared, store: Store) -> NewRun:
    """What a store needs to create a run. Refuses a name that is taken, and secrets."""
    refuse_taken_name(prepared.config, store)
    refuse_secrets(prepared.config)
    run = NewRun(
        new_id(prepared.task.name),
        prepared.config,
        prepared.identity,
        stored_items(list(prepared.items.values())),
        copied_matches(prepared.source, prepared) if prepared.source else (),
        transferred=load_transferred(prepared, store),
    )
    if prepared.source is None:
        return run
    with read_run(prepared.source) as reader:  # what is copied was read between its marks
        return replace(run, quotation_secret=reader.run.quotation_secret())


async def play_new_run(
    prepared: Prepared, store: Store, context: RunContext | None = None
) -> RunOutcome:
    """Play a new run and keep it in a store."""
    check_concurrency(prepared)
    run = make_new_run(prepared, store)
    if any(map(uses_batch_api, prepared.config.live_models.values())):
        from parley.runs.batches import check_batch_interfaces  # late: it needs the HTTP client

        await check_batch_interfaces(prepared)
    retrievers = await prepare_retrievers(prepared)
    async with open_sandbox(prepared) as sandbox:
        prepared, run = await try_references(prepared, run, sandbox)
        journal, earlier = await store.create(run), EarlierSessions(run.quotation_secret)
        return await play_run(
            prepared, journal, earlier, context or RunContext(), sandbox, retrievers
        )


def check_resumed(prepared: Prepared, ref: RunRef) -> RunOutcome | None:
    """Refuse to resume a run with another configuration, rule or prompts. Returns how it ended if
    there is nothing left to play."""
    with read_run(ref) as reader:
        refuse_other(reader.info.config, prepared.config, reader.info.id)
        refuse_changes(reader.info.identity, prepared.identity, reader.info.id)
        prepared.cautions.extend(changed_bots(reader.info.identity, prepared.identity))
        # more items may be wanted now
        if (
            reader.info.state == "done"
            and reader.info.config.screening == prepared.config.screening
        ):
            status, reason = reader.info.status, reader.info.reason or ""
            return RunOutcome(ref, "done", status, reason, task=type(prepared.task))
    return None


async def resume_run(
    prepared: Prepared, ref: RunRef, context: RunContext | None = None
) -> RunOutcome:
    """Resume a run where it stopped."""
    check_concurrency(prepared)
    context = context or RunContext()
    if (over := check_resumed(prepared, ref)) is not None:
        return over
    retrievers = await prepare_retrievers(prepared)
    async with open_sandbox(prepared) as sandbox:
        refuse_secrets(prepared.config)
        journal = await open_store(ref.store).open(ref, context.progress.notify)
        try:
            with read_run(ref) as reader:
                earlier, before = EarlierSessions.read(reader, prepared), reader.info.config
            if before != prepared.config:  # its limits
                await journal.reconfigure(prepared.config)
        except BaseException:
            await journal.close()
            raise
        return await play_run(prepared, journal, earlier, context, sandbox, retrievers)


def check_concurrency(prepared: Prepared, concurrency: int | None = None) -> int:
    """How many matches to play at a time, as given or as the run is configured. Raises an error
    below 1."""
    most = concurrency_of(prepared.config) if concurrency is None else concurrency
    if most < 1:
        raise UsageError(f"concurrency must be at least 1, not {most}")
    return most


def problems_with_references(prepared: Prepared) -> list[Problem]:
    """The programming problems whose own reference says how programs are judged."""
    if prepared.source or not prepared.task.runs_code:
        return []
    items = prepared.items.values()
    return [item for item in items if isinstance(item, Problem) and item.reference]


async def try_references(
    prepared: Prepared, run: NewRun, sandbox: Sandbox | None
) -> tuple[Prepared, NewRun]:
    """Find out for each programming problem how its programs are judged, and whether its reference
    passes at all. A new run stores the former with its items, so that nothing that is played later
    has a part in it."""
    problems = problems_with_references(prepared)
    if sandbox is None or not problems:
        return prepared, run
    from parley.datasets.checks import try_reference

    found = await asyncio.gather(*(try_reference(sandbox, problem) for problem in problems))
    items = {**prepared.items, **{str(problem.id): problem for problem, _ in found}}
    broken = [(problem.id, next(filter(None, faults))) for problem, faults in found if any(faults)]
    before = unprotected_cautions(prepared.items)
    cautions = [each for each in prepared.cautions if each not in before]
    cautions += unprotected_cautions(items)
    if broken:
        first, fault = broken[0]
        cautions.append(
            f"the references of {len(broken)} of {plural(len(items), 'problem')} fail their own "
            f"tests, so perhaps no program can pass them (the first is {first}: {fault}): "
            "`parley datasets check` shows all of them"
        )
    prepared = replace(with_items(prepared, items), cautions=cautions)
    stored = stored_items(list(items.values()))
    return prepared, replace(run, identity=prepared.identity, items=stored)

"""A run: a plan played from its first match to its last, stopped and resumed without losing a
reply."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from parley.config.identity import refuse_changes, refuse_other, refuse_secrets
from parley.config.prepare import Prepared, names_to_mask
from parley.config.recorded_matches import RecordedReplies, copied_matches
from parley.config.selection import stored_items
from parley.errors import (
    Halted,
    ParleyError,
    ParticipantError,
    ReplayError,
    SandboxError,
    StoreError,
    TaskError,
    UsageError,
)
from parley.match.match import Match, Outcome
from parley.money import costs, total
from parley.options import CONCURRENCY
from parley.plans import Done, MatchSpec, finished_blocks
from parley.rules.references import DrawOrder
from parley.rules.task import Task
from parley.runs.budget import Budget
from parley.runs.endings import Ending, least, reasons, remedy
from parley.runs.progress import Brake, Tally
from parley.runs.scheduler import Crew, MatchSlot
from parley.runs.seats import LimitedParticipant
from parley.runs.spending import Ledger
from parley.store import Journal, NewRun, RunReader, RunRef, Store, StoredPart, open_store, read_run

if TYPE_CHECKING:
    from parley.sandbox.executor import Sandbox

# What is kept of the analyses that a task brings, and what to say of those that failed. It never
# raises: what was played stands, whatever becomes of its analyses.
Summarise = Callable[[RunRef, type[Task]], tuple[Sequence[StoredPart], Sequence[str]]]
HEARTBEAT = 10.0  # seconds


def new_id(task: str) -> str:
    """A name for a run that sorts by time and is not given twice."""
    return f"{task}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"


async def start(
    prepared: Prepared, store: Store, *, concurrency: int | None = None, **watching: Any
) -> Ending:
    """Play a new run, and keep it in a store."""
    most = at_once(prepared, concurrency)
    refuse_secrets(prepared.config)
    async with proven(prepared) as sandbox:
        run = NewRun(
            new_id(prepared.task.name),
            prepared.config,
            prepared.identity,
            stored_items(list(prepared.items.values())),
            copied_matches(prepared.source, prepared.config, prepared.plan)
            if prepared.source
            else (),
        )
        journal = await store.create(run)
        return await play(prepared, journal, most, sandbox=sandbox, **watching)


async def go_on(
    prepared: Prepared, ref: RunRef, *, concurrency: int | None = None, **watching: Any
) -> Ending:
    """Play on where a run stopped."""
    most = at_once(prepared, concurrency)
    with read_run(ref) as reader:
        refuse_other(reader.info.config, prepared.config, reader.info.id)
        refuse_changes(reader.info.identity, prepared.identity, reader.info.id)
        # more items may be wanted now
        if reader.info.state == "done" and reader.info.config.verify == prepared.config.verify:
            status, reason = reader.info.status, reader.info.reason or ""
            return Ending(ref, "done", status, reason, task=type(prepared.task))
        raised = reader.info.config != prepared.config
    async with proven(prepared) as sandbox:
        refuse_secrets(prepared.config)
        journal = await open_store(ref.store).open(ref)
        if raised:
            await journal.reconfigure(prepared.config)
        return await play(prepared, journal, most, sandbox=sandbox, **watching)


def bounds(prepared: Prepared, journal: Journal, brake: Brake, reader: RunReader) -> Budget | None:
    """What holds the run within its bounds, where it has some; what was spent before is part of
    it."""
    config = prepared.config
    if config.budget_usd is None and config.max_calls is None:
        return None
    calls, usd = reader.spent_at_most()
    if config.budget_usd is not None:
        usd = max(usd or 0.0, total(costs(reader, prepared.prices)).at_least or 0.0)
    return Budget(
        config.budget_usd, config.max_calls, prepared.prices, brake, journal, calls, usd or 0.0
    )


def at_once(prepared: Prepared, concurrency: int | None) -> int:
    """How many matches are in flight: as is said now, else as the run keeps it; at least one, or
    nothing is played."""
    most = prepared.config.concurrency if concurrency is None else concurrency
    most = CONCURRENCY if most is None else most
    if most < 1:
        raise UsageError(f"concurrency must be at least 1, not {most}")
    return most


async def play(
    prepared: Prepared,
    journal: Journal,
    concurrency: int,
    *,
    sandbox: Sandbox | None = None,
    tally: Tally | None = None,
    brake: Brake | None = None,
    summarise: Summarise | None = None,
) -> Ending:
    """Ask the plan for matches, play them, ask again, until it is done or something stops the
    run."""
    places: list[LimitedParticipant] = []
    beating: asyncio.Task[None] | None = None
    playing: Playing | None = None
    if tally is not None:
        tally.place = journal.ref.location
    try:
        with read_run(journal.ref) as reader:
            playing = Playing(
                prepared, journal, tally or Tally(), brake or Brake(), reader, sandbox
            )
        places, beating = list(playing.places.values()), asyncio.create_task(playing.beat())
        state, status, reason = await playing.season(1 if prepared.attended else concurrency)
        # a store that cannot be written is the reason itself, and stands in it
        with suppress(StoreError):
            await playing.ledger.settle(playing.places)
            await playing.ledger.keep_prices(prepared)
            await journal.set_state(state, status, reason)
            if summarise is not None:
                parts, notices = summarise(journal.ref, type(prepared.task))
                for notice in notices:
                    playing.tally.hear(notice)
                await journal.keep_parts(parts)
    except asyncio.CancelledError:
        with suppress(StoreError):
            if playing is not None:
                await playing.ledger.settle(playing.places)
            await journal.set_state("stopped", "interrupted", "stopped at once")
        raise
    finally:
        if beating is not None:
            beating.cancel()
        await asyncio.gather(*(placed.close() for placed in places), return_exceptions=True)
        await journal.close()
    brake = playing.brake
    flag = brake.limit or ("--max-blocks" if status == "budget" else "")
    return Ending(
        journal.ref,
        state,
        status,
        reason,
        flag,
        least(brake.limit, brake.needed, playing.budget),
        remedy(playing.faults.values()),
        task=type(prepared.task),
    )


class Playing:
    """A run while it is played."""

    def __init__(
        self,
        prepared: Prepared,
        journal: Journal,
        tally: Tally,
        brake: Brake,
        reader: RunReader,
        sandbox: Sandbox | None,
    ) -> None:
        self.prepared, self.journal, self.tally, self.brake = prepared, journal, tally, brake
        self.scores = finished = reader.scores_by_match()
        self.mends = "mends" in reader.info.identity
        self.budget = bounds(prepared, journal, brake, reader)
        self.ledger = Ledger(reader, journal, self.budget, tally)
        self.places: dict[str, LimitedParticipant] = {}
        for alias, who, limits in prepared.participants():
            self.places[alias] = LimitedParticipant(alias, who, limits, tally, self.budget)
            if self.budget is not None and (
                notice := self.budget.seat(alias, who, prepared.config.models[alias])
            ):
                tally.notices.append(notice)
        self.names = frozenset(names_to_mask(prepared.config))
        self.execute = None if sandbox is None else awaited(sandbox, tally)
        self.faults: dict[str, ParticipantError] = {}  # by what they say
        self.failed: Counter[str] = Counter()  # how many matches each of them has cost
        self.fatal: ParleyError | None = None
        tally.done = len(finished)
        tally.notices += [*prepared.cautions, *filter(None, [journal.notice])]
        if sandbox is not None and prepared.config.sandbox == "none":
            tally.hear(
                "code that models write runs on this machine WITHOUT isolation, as you asked"
            )

    async def season(
        self, concurrency: int
    ) -> tuple[Literal["done", "stopped", "failed"], str | None, str]:
        specs: dict[int, MatchSpec] = {}
        crew = Crew(
            concurrency,
            self.turn,
            lambda alias: self.places[alias].resting > 0,
            self.brake,
            self.tally,
            spare=not self.prepared.attended,
        )
        while True:
            try:
                batch = self.prepared.plan.next(finished_blocks(specs, self.scores))
            except TaskError as fault:
                return "failed", None, str(fault)
            self.tally.outlook = self.prepared.plan.status_line
            if isinstance(batch, Done):
                return (
                    ("stopped" if batch.status == "budget" else "done"),
                    batch.status,
                    batch.reason,
                )
            specs |= {spec.number: spec for spec in batch}
            if specs.keys() <= self.scores.keys():
                continue  # all of it was played before this process began
            self.tally.planned = len(specs)
            try:
                await self.journal.add_matches(batch)
                await crew.season(spec for spec in batch if spec.number not in self.scores)
            except StoreError as fault:
                self.stop(fault)
            if self.fatal is not None:
                lost = isinstance(self.fatal, StoreError | SandboxError) and not isinstance(
                    self.fatal, ReplayError
                )
                return (
                    ("stopped" if lost else "failed"),
                    ("interrupted" if lost else None),
                    str(self.fatal),
                )
            if self.brake.reason:
                failed = (
                    self.budget.failures
                    if self.budget is not None and self.brake.status == "budget"
                    else ""
                )
                return "stopped", self.brake.status, self.brake.reason + failed
            if self.faults:
                return "stopped", "interrupted", reasons(self.failed)

    async def turn(self, spec: MatchSpec, slot: MatchSlot) -> bool:
        """One match more, unless nothing new may begin; whether anything may."""
        if self.brake.reason or self.fatal is not None:
            return False
        self.tally.in_flight += 1
        try:
            await self.match(spec, slot)
        finally:
            self.tally.in_flight -= 1
        return True

    async def match(self, spec: MatchSpec, slot: MatchSlot) -> None:
        """One match, and what becomes of it."""
        try:
            try:
                outcome = await self.played(spec, slot)
                await self.journal.finish(spec.number, outcome)
            except ParticipantError as fault:
                # After three failures in a row the participant raises Refused as well: what it
                # failed by then stays.
                self.faults.setdefault(str(fault), fault)
                self.failed[str(fault)] += 1
                self.tally.failed += 1
                await self.journal.fail(spec.number, str(fault))
                return
        except Exception as fault:
            if not (isinstance(fault, Halted) and self.brake.reason):
                self.stop(fault)
            return
        self.scores[spec.number] = outcome.scores
        self.tally.done += 1
        self.tally.aborted += outcome.state == "aborted"

    async def played(self, spec: MatchSpec, slot: MatchSlot) -> Outcome:
        prepared, config = self.prepared, self.prepared.config
        match = Match(
            prepared.task,
            {
                seat: self.places[alias] if config.is_live_role(seat.role) else RecordedReplies()
                for seat, alias in spec.seats.items()
            },
            seed=spec.seed,
            number=spec.number,
            item=prepared.items[spec.item] if spec.item is not None else None,
            prompts=prepared.prompts,
            record=self.journal.claim(spec.number),
            names=self.names,
            standardise=config.standardise,
            call=slot,
            works=prepared.works,
            execute=self.execute,
            repair_json=self.mends,
            participant_seed=config.rejudged.seed if config.rejudged else None,
            draw_order=DrawOrder(config.seed, spec.repeat - 1),
        )
        return await match.play()

    def stop(self, fault: Exception) -> None:
        """End the run for a fault that no further match would mend."""
        if not isinstance(fault, ParleyError):
            where = traceback.extract_tb(fault.__traceback__)[-1]
            fault = ParleyError(
                f"unexpected {type(fault).__name__}: {fault} ({Path(where.filename).name}, "
                f"line {where.lineno})"
            )
        self.fatal = self.fatal or fault
        self.brake.pull(str(fault))

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self.journal.heartbeat()
                await self.ledger.beat(self.places)
            except ParleyError as fault:
                self.stop(fault)


PLACE = "the sandbox"  # as whoever waits for it is told


@asynccontextmanager
async def proven(prepared: Prepared) -> AsyncIterator[Sandbox | None]:
    """The sandbox of a task that runs code, found to hold before anything is written or paid;
    closed whatever happens."""
    # what is judged again has its verdicts on record
    if not prepared.task.runs_code or prepared.source:
        yield None
        return
    from parley.sandbox.executor import Sandbox

    sandbox = Sandbox(prepared.config.sandbox)
    try:
        await sandbox.prove()
        yield sandbox
    finally:
        await asyncio.to_thread(sandbox.close)


def awaited(sandbox: Sandbox, tally: Tally) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    """Run programs, and let it be known since when each is waited for."""
    since, tickets = tally.waiting.setdefault(PLACE, {}), count()

    async def execute(program: Mapping[str, Any]) -> Any:
        ticket = next(tickets)
        since[ticket] = time.monotonic()
        try:
            return await sandbox.execute(program)
        finally:
            del since[ticket]

    return execute

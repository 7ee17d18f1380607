"""A worker: plays matches of a shared run beside other workers, on this machine or others.

Workers meet only in the store. Each one renews its lease, leases matches and plays them; one of
them also plans. A worker that finds nothing more to play leaves, and the last one to leave ends the
run.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from parley import __version__
from parley.config.batch_api import uses_batch_api
from parley.config.identity import changed_bots, refuse_changes
from parley.config.prepare import Prepared, prepare_resume
from parley.config.trust import Allowed
from parley.errors import Replaced, StoreAway, StoreError, TaskError, UsageError
from parley.memory import Retriever
from parley.plans import Done, MatchSpec, PlanCursor
from parley.providers import _registry as providers
from parley.runs.earlier_sessions import EarlierSessions
from parley.runs.player import Player, concerns_machine, describe_plan_end
from parley.runs.recall import prepare_retrievers
from parley.runs.run_context import RunContext
from parley.runs.run_outcome import format_reasons
from parley.runs.run_sandbox import open_sandbox
from parley.runs.scheduler import Scheduler
from parley.runs.start import check_concurrency
from parley.store import open_store, read_run
from parley.store.shared_runs import (
    LEASE,
    RunEnd,
    WorkerFacts,
    WorkerSession,
    require_shared,
)
from parley.store.types import WAITING, RunRef

if TYPE_CHECKING:
    from parley.plans import Marks
    from parley.sandbox.executor import Sandbox

HEARTBEAT = 1.0  # seconds between two signs of life
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds until a worker looks for matches again
PLAN_PAUSE = 0.1  # seconds until the planner looks again whether matches have ended
END_PAUSE = 0.2  # seconds until a worker looks again whether the others have left


class WorkerOutcome(NamedTuple):
    """How a worker has left a run."""

    fault: str = ""  # why it cannot play matches of this run; empty if it can
    was_replaced: bool = False  # it was declared dead, and may join again
    store_is_away: bool = False  # the store did not answer, so it may join again


def refuse_on_workers(prepared: Prepared) -> None:
    """Refuse participants that only the process that starts a run can call."""
    models = prepared.config.live_models
    people = [alias for alias, each in models.items() if str(each["model"]).startswith("human/")]
    if people:
        raise UsageError(
            f"{', '.join(people)} cannot play on workers, because a person needs a terminal or a "
            "page of the process that starts the run: leave out --workers"
        )
    if functions := [alias for alias in models if alias in prepared.functions]:
        raise UsageError(
            f"{', '.join(functions)} cannot play on workers, because a function exists only in the "
            "program that starts the run: put it into a module and use python/MODULE:FUNCTION, or "
            "leave out the workers"
        )
    families = {alias: str(each["model"]).partition("/")[0] for alias, each in models.items()}
    if served := [
        alias
        for alias, options in models.items()
        if providers.find_traits(families[alias]).will_start_server(options)
    ]:
        raise UsageError(
            f"Parley starts no server for {', '.join(served)} on workers, because they may be on "
            f"several machines: start it yourself and set -M {served[0]}.base_url=URL"
        )
    if batched := [alias for alias, options in models.items() if uses_batch_api(options)]:
        raise UsageError(
            f"{', '.join(batched)} cannot be called through a batch API by workers, because one "
            "process sends all requests and waits: leave out --workers or --batch"
        )


def prepare_worker(
    ref: RunRef, *, task_file: str | None, allowed: Allowed, unsafe: bool
) -> Prepared:
    """Prepare to play matches of a run, and check that this machine would play them as others do:
    with the same rule, prompts and reference works, and with keys for its models. Items come from
    the store."""
    prepared = prepare_resume(ref, task_file=task_file, allowed=allowed, unsafe=unsafe)
    refuse_on_workers(prepared)
    with read_run(ref) as reader:
        old, new, id = reader.info.identity, prepared.identity, reader.info.id
        refuse_changes(old, new, id)
        if bots := changed_bots(old, new):
            raise UsageError(f"{id}: {bots[0]}; workers must have the same bots")
    return prepared


async def serve_run(
    ref: RunRef,
    prepared: Prepared,
    context: RunContext,
    concurrency: int | None,
) -> WorkerOutcome:
    """Play matches of a run until it ends or this worker is stopped."""
    most = check_concurrency(prepared, concurrency)
    retrievers = await prepare_retrievers(prepared)
    async with open_sandbox(prepared) as sandbox:
        facts = WorkerFacts(socket.gethostname(), os.getpid(), __version__)
        session = await require_shared(open_store(ref.store)).join(
            ref, facts, context.progress.notify
        )
        try:
            with read_run(ref) as reader:
                earlier = EarlierSessions(reader.run.quotation_secret(), session.spent_before)
            player = WorkerPlayer(prepared, session, earlier, context, sandbox, retrievers)
            return await player.play(most)
        finally:
            await session.close()


class FinishedInStore:
    """The matches of a shared run that have ended, for its plan."""

    def __init__(self, ref: RunRef, session: WorkerSession) -> None:
        self._ref, self._session = ref, session

    def have_ended(self, first: int, last: int) -> bool:
        return self._session.have_ended(first, last)

    def scores_between(self, first: int, last: int) -> Mapping[int, Marks]:
        def read() -> Mapping[int, Marks]:
            with read_run(self._ref) as reader:
                return reader.scores.by_match(first, last)

        return self._session.wait_for_store(read)


class WorkerPlayer(Player):
    """Plays the matches that a worker leases, and plans if no other worker does."""

    def __init__(
        self,
        prepared: Prepared,
        session: WorkerSession,
        earlier: EarlierSessions,
        context: RunContext,
        sandbox: Sandbox | None,
        retrievers: Mapping[str, Retriever],
    ) -> None:
        super().__init__(
            prepared, session.journal, earlier, context, sandbox, retrievers, session.grants
        )
        self.session = session
        self.end: RunEnd | None = None  # how the run ends, once that is known
        self._cannot_go_on = ""  # why this worker has to leave, although the run goes on

    async def play(self, concurrency: int) -> WorkerOutcome:
        """Play until the run ends, or until this worker cannot or shall not go on."""
        scheduler = self.make_scheduler(concurrency)
        tasks: list[asyncio.Task[None]] = []
        try:
            self.open()
            await self._stop_on_fault(self._heartbeat)  # the run may be about to end
            tasks += [
                asyncio.create_task(self._stop_on_fault(work))
                for work in (partial(self._keep_lease, scheduler), self._plan)
            ]
            await self._stop_on_fault(partial(self._lease_and_play, scheduler))
            await scheduler.wait_until_idle()
        except asyncio.CancelledError:
            self.session.give_up()
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await scheduler.cancel()
            await self._stop_on_fault(self._leave)
        if self.session.was_replaced:
            return WorkerOutcome(was_replaced=True)
        if isinstance(self.fatal, StoreAway):
            return WorkerOutcome(store_is_away=True)
        fault = self._cannot_go_on
        if self.fatal is not None and concerns_machine(self.fatal):
            fault = str(self.fatal)
        if self.end is not None:
            await self._end_run()
        return WorkerOutcome(fault)

    async def _stop_on_fault(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do some work; an error stops this worker."""
        try:
            await work()
        except Exception as fault:
            self.stop_for(fault)

    async def _lease_and_play(self, scheduler: Scheduler) -> None:
        pause = FIRST_PAUSE
        while not (self.stop_signal.reason or self.fatal is not None):
            if given_up := [each for each in self.participants.values() if each.given_up]:
                # others may reach the model: the matches of this worker go back to them
                self._cannot_go_on = str(given_up[0].given_up)
                self.stop_signal.stop(self._cannot_go_on)
                return
            if free := scheduler.free:
                if specs := await self.session.lease(free):
                    await self._recall(specs)
                    scheduler.add(specs)
                    pause = FIRST_PAUSE
                    continue
                pause = min(LONGEST_PAUSE, pause * 2)
            with suppress(TimeoutError):
                await asyncio.wait_for(scheduler.wait_for_change(), pause)

    async def _recall(self, specs: list[MatchSpec]) -> None:
        """Read what the seats of leased matches are shown."""
        if self.recaller is not None:
            first = await self.session.first_of_stage(specs[0].stage)
            await self.recaller.recall_matches(specs, first)

    async def _keep_lease(self, scheduler: Scheduler) -> None:
        """Say again and again that this worker is alive."""
        try:
            while True:
                await asyncio.sleep(HEARTBEAT)
                await self._heartbeat()
        except Replaced as fault:  # others play its matches: it need not wait for their calls
            self.stop_for(fault)
            await scheduler.cancel()

    async def _heartbeat(self) -> None:
        """Say that this worker is alive, and learn how the run ends."""
        state = await self.session.heartbeat(self.progress.in_flight)
        for worker in state.died:
            self.progress.notify(
                f"a worker ({worker}) gave no sign of life: its matches are free again"
            )
        if state.end is not None or state.is_over:
            self.end = state.end
            self.stop_signal.stop("the run ends")

    async def _plan(self) -> None:
        """Plan, as long as no other worker does."""
        cursor: PlanCursor | None = None
        while self.end is None:
            if not await self.session.take_plan():
                cursor = None
                await asyncio.sleep(HEARTBEAT)
                continue
            if cursor is None:
                finished = FinishedInStore(self.journal.ref, self.session)
                cursor = PlanCursor(self.prepared.plan, finished)
            if not await self._plan_matches(cursor):
                await asyncio.sleep(PLAN_PAUSE)

    async def _plan_matches(self, cursor: PlanCursor) -> bool:
        """Record the next matches of the plan. Returns whether there were any."""
        try:
            matches = await asyncio.to_thread(cursor.next_matches)
        except TaskError as fault:
            await self._decide(RunEnd("failed", None, str(fault)))
            return False
        if matches is None:
            # the plan waits for matches that have failed, and no match is left to play
            if failed := await self.session.failed_matches():
                await self._decide(
                    RunEnd("stopped", "interrupted", format_reasons(Counter(failed)))
                )
            return False
        if isinstance(matches, Done):
            await self._decide(describe_plan_end(matches))
            return False
        if matches:
            if self.recaller is not None:
                if missing := await self.recaller.collect_votes(matches):
                    await self._decide(RunEnd("stopped", WAITING, missing))
                    return False
                # before anybody can lease a match of this stage
                await self.recaller.record_stage(matches)
                for caution in self.recaller.cautions():
                    self.progress.notify(caution)
            new = max(0, await self.session.last_match() + 1 - matches[0].number)
            # also if there are none to add, because they may not be counted yet
            if new <= len(matches):
                await self.journal.add_matches(matches[n] for n in range(new, len(matches)))
        await self.session.set_plan_line(self.prepared.plan.status_line)
        return True

    async def _decide(self, end: RunEnd) -> None:
        """Decide how the run ends; all workers then leave."""
        await self.session.end_run(end)
        self.end = self.end or end
        self.stop_signal.stop("the run ends")

    async def _leave(self) -> None:
        """Record what is left to record, give all matches back, and say how the run ends if this
        worker knows."""
        with suppress(StoreError):
            if not self.session.was_replaced:
                await self.recorder.save_final(self.participants)
        await self.close()
        if self.session.was_replaced:
            return
        if self.end is None and (end := self._own_end()) is not None:
            await self.session.end_run(end)
            self.end = end
        await self.session.leave()

    def _own_end(self) -> RunEnd | None:
        """How this worker ends the run for all: a limit is reached, or the task has an error."""
        if self.fatal is not None and not concerns_machine(self.fatal):
            return RunEnd("failed", None, str(self.fatal))
        return self.describe_stop() if self.stop_signal.status == "budget" else None

    async def _end_run(self) -> None:
        """Set the end of the run on record if no other worker is left, with its results. Others may
        have died, so this worker looks again until their leases would have lapsed."""
        ref, wait, summarise = (
            self.journal.ref,
            self.session.wait_for_store,
            self.context.summarise,
        )
        prices = await asyncio.to_thread(wait, lambda: self.recorder.find_prices(self.prepared))
        deadline = time.monotonic() + LEASE + HEARTBEAT
        found = await self.session.seal(prices)
        while found == "busy" and time.monotonic() < deadline:
            await asyncio.sleep(END_PAUSE)
            found = await self.session.seal(prices)
        if found == "sealed" and summarise is not None:
            summary = await asyncio.to_thread(summarise, ref, type(self.prepared.task))
            for notice in summary.notices:
                self.progress.notify(notice)
            store = require_shared(open_store(ref.store))
            await asyncio.to_thread(wait, lambda: store.keep_parts(ref, summary.parts))

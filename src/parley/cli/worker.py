"""`parley worker`: play matches of shared runs."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from parley.cli.interruption import call_when_interrupted
from parley.cli.progress_line import say, show_downloads
from parley.cli.shared_options import (
    allow_options,
    in_store,
    read_allowed,
    run_options,
    with_task,
    without_isolation,
)
from parley.cli.shell_completion import complete_runs
from parley.config.trust import Allowed
from parley.errors import NotShared, ParleyError, StoreAway, StoreError, UsageError
from parley.providers._secrets import redact
from parley.results.parts_to_store import compute_parts_to_store
from parley.results.result import RunResult
from parley.rules.task import Task
from parley.runs.event_loop import run_sync
from parley.runs.progress import Progress, StopSignal
from parley.runs.progress_display import show_progress
from parley.runs.run_context import RunContext, Summary
from parley.runs.worker import WorkerOutcome, prepare_worker, serve_run
from parley.store import Store, open_store
from parley.store.refusals import refuse_to_join
from parley.store.shared_runs import require_shared
from parley.store.types import RunRef

LOOK = 2.0  # seconds between two looks for runs, with --wait


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]…", shell_complete=complete_runs)
@click.option("--wait", is_flag=True, help="Wait for more runs when nothing is left to play.")
@run_options("concurrency")
@with_task
@without_isolation
@allow_options
@in_store
def command(
    runs: tuple[str, ...],
    wait: bool,
    concurrency: int | None,
    task: str | None,
    unsafe: bool,
    store: str | None,
    **options: Any,
) -> int:
    """Play matches of the shared runs in a store, or only of RUN, together with other workers.

    Runs for workers are created by `parley run … --workers N`. The worker leaves when nothing is
    left to play. Ctrl-C ends only this worker: it finishes its calls and gives its matches back.

    \b
    parley worker --store postgresql://me@db.example.org/parley
    parley worker --store postgresql://me@db.example.org/parley RUN --concurrency 16
    """
    place, allowed = open_store(store), read_allowed(options)
    require_shared(place)
    refs = [find_in(place, text) for text in runs]
    return run_sync(WorkerCommand(place, refs, wait, concurrency, task, unsafe, allowed).serve())


def find_in(store: Store, text: str) -> RunRef:
    """A run of this store, not of another one."""
    if (ref := store.find(text)).store != store.name:
        raise UsageError(
            f"{ref.location} is not in {store.name}, but a worker plays the runs of one store: "
            "give the store of the run with --store"
        )
    return ref


class WorkerCommand:
    """Serves one run after the other. A run that this machine cannot play is left out."""

    def __init__(
        self,
        store: Store,
        refs: list[RunRef],
        wait: bool,
        concurrency: int | None,
        task_file: str | None,
        unsafe: bool,
        allowed: Allowed,
    ) -> None:
        self.store, self.refs, self.wait, self.concurrency = store, refs, wait, concurrency
        self.task_file, self.unsafe, self.allowed = task_file, unsafe, allowed
        self.stop_signal = StopSignal()
        self.is_leaving = self.has_begun = False
        self.cannot_play: set[str] = set()  # ids
        self.has_played = False
        self._said = ""

    async def serve(self) -> int:
        """Play until nothing is left; the exit code."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def interrupt() -> None:
            if self.is_leaving:
                if task is not None:
                    task.cancel()
                return
            self.is_leaving = True
            self.stop_signal.stop("this worker was interrupted")
            say("this worker finishes its calls and leaves; press Ctrl-C again to leave at once")

        call_when_interrupted(loop, interrupt, lambda: self.is_leaving)
        try:
            while not self.is_leaving:
                try:
                    ref = await asyncio.to_thread(self._next_run)
                except StoreError as wrong:
                    # a store that has answered before may come back
                    if not (self.wait or (self.has_begun and isinstance(wrong, StoreAway))):
                        raise
                    self._say_once(str(wrong))
                    await asyncio.sleep(LOOK)
                    continue
                self.has_begun = True
                if self.is_leaving:
                    break
                if ref is not None:
                    await self._serve_run(ref)
                elif self.wait:
                    await asyncio.sleep(LOOK)
                else:
                    if not (self.has_played or self.cannot_play):
                        await asyncio.to_thread(self._explain_nothing)
                    break
        except asyncio.CancelledError:
            os._exit(130)  # does not wait for a function that still holds a thread
        return 1 if self.cannot_play else 0

    def _next_run(self) -> RunRef | None:
        found = require_shared(self.store).open_shared_runs()
        wanted = {ref.id for ref in self.refs}
        for ref in found:
            if ref.id not in self.cannot_play and (not wanted or ref.id in wanted):
                self._said = ""
                return ref
        if self.wait:
            self._say_once(f"waiting for runs in {self.store.name}")
        return None

    def _say_once(self, text: str) -> None:
        """Say something, unless it was said last."""
        if text != self._said:
            self._said = text
            say(redact(text))

    def _explain_nothing(self) -> None:
        """Say why there is nothing to play; raises an error for a run that cannot be played."""
        if not self.refs:
            say(f"no run in {self.store.name} is open for workers: there is nothing to play")
        for ref in self.refs:
            seen = require_shared(self.store).shared_progress(ref)
            if seen.state == "done":
                say(f"{ref.id} is done: there is nothing to play")
            elif seen.state == "running" and seen.end is not None:
                say(f"{ref.id} is stopping ({seen.end.reason}): there is nothing to play")
            else:
                refuse_to_join(ref.location, ref.id)

    async def _serve_run(self, ref: RunRef) -> None:
        """Play matches of one run until it ends or this worker leaves."""
        progress, self.stop_signal = Progress(location=ref.location), StopSignal()
        say(f"playing {ref.id}")
        self.has_played = True
        try:
            outcome = await self._play(ref, progress)
        except NotShared:  # it has just ended
            return
        except StoreAway as wrong:
            say(str(wrong))
            outcome = WorkerOutcome(store_is_away=True)
        except ParleyError as wrong:
            outcome = WorkerOutcome(str(wrong))
        if outcome.was_replaced:
            say(f"{ref.id}: this worker was taken for dead; it joins again")
        elif outcome.store_is_away:
            say(f"{ref.id}: this worker joins again when the database answers")
        elif outcome.fault:
            self.cannot_play.add(ref.id)
            say(redact(f"this worker cannot play {ref.id}: {outcome.fault}"))

    async def _play(self, ref: RunRef, progress: Progress) -> WorkerOutcome:
        with show_downloads():
            prepared = await asyncio.to_thread(
                prepare_worker,
                ref,
                task_file=self.task_file,
                allowed=self.allowed,
                unsafe=self.unsafe,
            )
        async with show_progress(progress, say):
            return await serve_run(
                ref,
                prepared,
                RunContext(progress, self.stop_signal, summarise),
                self.concurrency,
            )


def summarise(ref: RunRef, task: type[Task]) -> Summary:
    result = RunResult(ref, task=task)
    return Summary(result, *compute_parts_to_store(result))

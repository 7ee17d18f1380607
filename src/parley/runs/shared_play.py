"""Plays a run with workers: opens the run for them, starts them, and follows it in the store until
it is over."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from parley.config.model_variables import read_model_variables
from parley.config.prepare import Prepared
from parley.config.worker_allowances import list_allowances
from parley.errors import ParleyError, StoreError, UsageError
from parley.runs.budget import find_spent
from parley.runs.launchers import DRAIN, Launcher, LauncherState
from parley.runs.recall import prepare_retrievers
from parley.runs.run_context import RunContext
from parley.runs.run_outcome import VOTE_FIRST, RunOutcome
from parley.runs.run_sandbox import open_sandbox
from parley.runs.spending import find_used_prices
from parley.runs.start import (
    check_concurrency,
    check_resumed,
    make_new_run,
    problems_with_references,
    try_references,
)
from parley.runs.worker import refuse_on_workers
from parley.store import Store, open_store, read_run
from parley.store.shared_runs import (
    RunEnd,
    SealResult,
    SharedProgress,
    SharedRuns,
    SpentBefore,
    require_shared,
)
from parley.store.types import ENDED, WAITING, RunRef
from parley.tables import plural

T = TypeVar("T")

LOOK = 0.5  # seconds between two looks at the store
POLL = 2.0  # seconds between two questions to a launcher
ALONE = 30.0  # seconds after which the user learns that nobody plays


class WorkerSetup(NamedTuple):
    """Which workers a command starts, and how."""

    workers: int  # how many are started; 0: the user starts them
    launcher: Launcher | None = None
    words: Sequence[str] = ()  # for each `parley worker`, besides the store and the run


def parse_workers(text: str, words: Sequence[str] = ()) -> WorkerSetup:
    """The workers of `--workers N`, `ray:N` or `slurm:N`."""
    kind, _, number = text.rpartition(":")
    wanted = f"--workers must be a number, ray:N or slurm:N, not {text!r}"
    if kind not in ("", "ray", "slurm") or not number.isdecimal() or len(number) > 5:
        raise UsageError(wanted)
    workers = int(number)
    if kind and not workers:
        raise UsageError(f"{wanted}: N must be at least 1 (use --workers 0 to start none)")
    return WorkerSetup(workers, choose_launcher(kind) if workers else None, words)


def choose_launcher(kind: str) -> Launcher:
    if kind == "ray":
        from parley.runs.launchers.ray import RayLauncher  # late: it needs an extra

        return RayLauncher()
    if kind == "slurm":
        from parley.runs.launchers.slurm import SlurmLauncher

        return SlurmLauncher()
    from parley.runs.launchers.local import LocalLauncher

    return LocalLauncher()


async def check_machine(prepared: Prepared) -> None:
    """Refuse what workers cannot play before a run is created. Each worker checks its own
    machine."""
    refuse_on_workers(prepared)
    await prepare_retrievers(prepared)


async def play_new_on_workers(
    prepared: Prepared,
    store: Store,
    context: RunContext,
    *,
    setup: WorkerSetup,
) -> RunOutcome:
    """Create a run, and let workers play it."""
    shared, most = require_shared(store), check_concurrency(prepared)
    await check_machine(prepared)
    run = make_new_run(prepared, store)
    if problems_with_references(prepared):
        async with open_sandbox(prepared) as sandbox:
            prepared, run = await try_references(prepared, run, sandbox)
    ref = await shared.create_shared(run)
    follower = SharedRunFollower(prepared, ref, shared, setup, most, context)
    try:
        follower.start_workers()
    except BaseException:
        with suppress(ParleyError):  # if a waiting worker has joined, the run stays
            await asyncio.to_thread(store.delete, ref)
        raise
    return await follower.play()


async def resume_on_workers(
    prepared: Prepared,
    ref: RunRef,
    context: RunContext,
    *,
    setup: WorkerSetup,
) -> RunOutcome:
    """Let workers continue a run that has stopped, or help those that play it."""
    shared = require_shared(open_store(ref.store))
    most = check_concurrency(prepared)
    if (over := check_resumed(prepared, ref)) is not None:
        return over
    await check_machine(prepared)

    def find_before() -> SpentBefore:
        with read_run(ref) as reader:
            return find_spent(prepared, reader)

    state = await asyncio.to_thread(shared.share, ref, prepared.config, find_before)
    follower = SharedRunFollower(prepared, ref, shared, setup, most, context)
    try:
        follower.start_workers()
    except BaseException:
        if state == "shared":  # if others play the run, they go on
            end = RunEnd("stopped", "interrupted", "no worker was started")
            with suppress(ParleyError):
                await asyncio.to_thread(shared.ask_to_end, ref, end)
                await asyncio.to_thread(shared.seal_shared, ref)
        raise
    return await follower.play()


class SharedRunFollower:
    """Starts the workers of a run, and shows in `progress` how far they are."""

    def __init__(
        self,
        prepared: Prepared,
        ref: RunRef,
        shared: SharedRuns,
        setup: WorkerSetup,
        concurrency: int,
        context: RunContext,
    ) -> None:
        self.prepared, self.ref, self.shared, self.setup = prepared, ref, shared, setup
        self.concurrency, self.summarise = concurrency, context.summarise
        self.progress, self.stop_signal = context.progress, context.stop_signal
        self._asked_to_stop = self._is_away = False
        self._alone_since = time.monotonic()
        self._polled = 0.0
        self._launched: LauncherState | None = None
        self._base: tuple[int, int] | None = None  # matches and calls before this command

    async def play(self) -> RunOutcome:
        """Follow the run until its end is on record."""
        self.progress.location = self.ref.location
        with read_run(self.ref) as reader:
            counts = reader.matches.counts()
            self.progress.begin(sum(counts.get(state, 0) for state in ENDED))
        for caution in self.prepared.cautions:
            self.progress.notify(caution)
        self.progress.emit("started")
        patience = DRAIN
        try:
            while (seen := await self._look()) is None or seen.state == "running":
                if seen is not None:
                    await self._watch(seen)
                await asyncio.sleep(LOOK)
        except asyncio.CancelledError:
            patience = 0.0
            raise
        finally:
            if self.setup.launcher is not None:
                await asyncio.to_thread(self.setup.launcher.stop, patience)
        self.progress.emit("ended", text=seen.reason)
        return self._describe_end(seen)

    def start_workers(self) -> None:
        launcher, allowances = self.setup.launcher, list_allowances(self.prepared.config)
        if launcher is None:
            words = ["parley", "worker", "--store", self.ref.store, self.ref.id]
            command = shlex.join([*words, *self.setup.words, *allowances])
            self.progress.notify(f"start workers on any machine with: {command}")
            return
        words, secrets = self.shared.launch_words()
        limit = ["--concurrency", str(self.concurrency)]
        try:
            launcher.start(
                self.setup.workers,
                [*words, self.ref.id, *limit, *self.setup.words, *allowances],
                {**read_model_variables(self.prepared.config.live_models), **secrets},
            )
        except BaseException:
            launcher.stop(0.0)
            raise

    async def _look(self) -> SharedProgress | None:
        """How far the run is; None if the store does not answer."""
        seen = await self._ask(lambda: self.shared.shared_progress(self.ref))
        if seen is None:
            return None
        progress = self.progress
        if self._base is None:
            self._base = progress.done - seen.played, progress.calls - seen.calls
        progress.done, progress.calls = self._base[0] + seen.played, self._base[1] + seen.calls
        progress.planned, progress.failed = seen.planned, seen.failed
        progress.in_flight, progress.status_line = seen.playing, seen.plan_line
        progress.activity = "" if seen.alive else "no worker plays"
        return seen

    async def _ask(self, question: Callable[[], T]) -> T | None:
        """Ask the store; None if it does not answer."""
        try:
            answer = await asyncio.to_thread(question)
        except StoreError as wrong:
            if not self._is_away:
                self.progress.notify(f"the database does not answer, waiting for it: {wrong}")
            self._is_away = True
            return None
        if self._is_away:
            self.progress.notify("the database is back")
        self._is_away = False
        return answer

    async def _watch(self, seen: SharedProgress) -> None:
        """Do what is to be done besides playing: stop workers, end the run, tell what failed."""
        if self.stop_signal.reason and not self._asked_to_stop:
            end = RunEnd("stopped", self.stop_signal.status, self.stop_signal.reason)
            self._asked_to_stop = await self._end(end)
        await self._poll_launcher()
        if seen.alive:
            self._alone_since = time.monotonic()
        elif seen.end is not None:
            await self._seal()
        elif self._have_all_ended():
            await self._end(RunEnd("stopped", "interrupted", self._why_nobody_plays()))
        elif time.monotonic() - self._alone_since > ALONE and self.setup.launcher is None:
            self.progress.notify(f"no worker has played {self.ref.id} for {ALONE:.0f} seconds")

    async def _end(self, end: RunEnd) -> bool:
        """Decide how the run ends. Returns whether the store has it."""

        def ask() -> bool:
            with suppress(UsageError):  # it has just ended
                self.shared.ask_to_end(self.ref, end)
            return True

        return bool(await self._ask(ask))

    async def _poll_launcher(self) -> None:
        launcher = self.setup.launcher
        if launcher is None or time.monotonic() - self._polled < POLL:
            return
        self._launched = await asyncio.to_thread(launcher.poll)
        self._polled = time.monotonic()
        for failure in self._launched.failed:
            self.progress.notify(failure)

    def _have_all_ended(self) -> bool:
        """Whether all workers that this command started have ended."""
        launched = self._launched
        return launched is not None and not (launched.up or launched.waiting)

    def _why_nobody_plays(self) -> str:
        failed = self._launched.failed if self._launched is not None else ()
        if not failed:
            return "all workers have left before the run was over"
        last = failed[0].strip().splitlines()[-1].removeprefix("parley: ")
        return f"{plural(len(failed), 'worker')} failed, for example: {last}"

    async def _seal(self) -> None:
        """Set the end of the run on record, since no worker is left to do it."""

        def seal() -> SealResult:
            with read_run(self.ref) as reader:
                prices = find_used_prices(self.prepared, reader)
            return self.shared.seal_shared(self.ref, prices)

        if await self._ask(seal) != "sealed":
            return
        if self.summarise is not None:
            summary = await asyncio.to_thread(self.summarise, self.ref, type(self.prepared.task))
            for notice in summary.notices:
                self.progress.notify(notice)
            await self._ask(lambda: self.shared.keep_parts(self.ref, summary.parts))

    def _describe_end(self, seen: SharedProgress) -> RunOutcome:
        end = seen.end
        status = seen.status
        return RunOutcome(
            self.ref,
            seen.state,  # type: ignore[arg-type]
            status,
            seen.reason,
            "" if end is None else end.flag,
            "" if end is None else end.minimum_to_resume,
            VOTE_FIRST if status == WAITING else "" if end is None else end.advice,
            task=type(self.prepared.task),
        )

"""Plays a run: its plan from the first match to the last. Stops and resumes without losing a
reply."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from parley.config.batch_api import concurrency_of, uses_batch_api
from parley.config.identity import roster_of
from parley.config.prepare import Prepared, order_of_draws
from parley.config.recorded_matches import RecordedReplies
from parley.config.task_catalogue import is_task_path
from parley.errors import (
    Halted,
    ParleyError,
    ParticipantError,
    ReplayError,
    SandboxError,
    ShellDiffers,
    StoreError,
    TaskError,
    describe_exception,
)
from parley.masking.spans import Roster
from parley.match.effects import Execute
from parley.match.match import Match, Outcome
from parley.match.observers import MatchObserver
from parley.match.protocol import Participant
from parley.match.record import Record
from parley.memory import Retriever
from parley.plans import Done, MatchSpec
from parley.plans.evolve import EvolvePlan
from parley.rules.pool import Seat
from parley.rules.quotations import derive_match_key
from parley.runs.budget import Budget, make_budget
from parley.runs.desk_observer import DeskObserver
from parley.runs.earlier_sessions import EarlierSessions
from parley.runs.forecast import estimate_calls
from parley.runs.progress import ProgressObserver
from parley.runs.recall import Recaller
from parley.runs.repeat_notice import RepeatNotice, RepeatObserver
from parley.runs.run_context import RunContext
from parley.runs.run_outcome import (
    VOTE_FIRST,
    RunOutcome,
    find_advice,
    find_minimum_to_resume,
    format_reasons,
    raised_by_code,
)
from parley.runs.run_sandbox import in_shell, track_waiting
from parley.runs.scheduler import MatchSlot, Scheduler
from parley.runs.seats import LimitedParticipant
from parley.runs.spending import SpendingRecorder
from parley.store import read_run
from parley.store.config import Config
from parley.store.finished_matches import FinishedOnRecord
from parley.store.journal import Journal
from parley.store.shared_limits import Grants
from parley.store.shared_runs import RunEnd
from parley.store.types import WAITING
from parley.tables import plural

if TYPE_CHECKING:
    from parley.runs.batches import Batches
    from parley.sandbox.executor import Sandbox

HEARTBEAT = 10.0  # seconds
WITH_TRACEBACK = 20  # different errors that keep their traceback


async def play_run(
    prepared: Prepared,
    journal: Journal,
    earlier: EarlierSessions,
    context: RunContext,
    sandbox: Sandbox | None,
    retrievers: Mapping[str, Retriever],
) -> RunOutcome:
    """Play a run until its plan is done or something stops it, and record how it ended."""
    player = PlanPlayer(prepared, journal, earlier, context, sandbox, retrievers)
    try:
        player.open()
        end = await player.play_plan()
        result = await player.record_end(end)
    except asyncio.CancelledError:
        await player.record_interruption()
        raise
    finally:
        await player.close()
    context.progress.emit("ended", text=end.reason)
    return player.describe_end(end, result)


class Player:
    """Plays matches of a run, from `open` to `close`."""

    roster: Roster
    budget: Budget | None
    recorder: SpendingRecorder
    repeats: RepeatNotice

    def __init__(
        self,
        prepared: Prepared,
        journal: Journal,
        earlier: EarlierSessions,
        context: RunContext,
        sandbox: Sandbox | None,
        retrievers: Mapping[str, Retriever],
        grants: Grants | None = None,
    ) -> None:
        """`grants`: of a worker, which shares the limits of the run with others."""
        self.prepared, self.journal, self.earlier, self.context = (
            prepared,
            journal,
            earlier,
            context,
        )
        self.sandbox, self.retrievers, self.grants = sandbox, retrievers, grants
        self.progress, self.stop_signal = context.progress, context.stop_signal
        self.participants: dict[str, LimitedParticipant] = {}
        self.batches: Batches | None = None
        self.recaller: Recaller | None = None
        self.execute: Execute | None = None
        self.faults: dict[str, ParticipantError] = {}  # by message
        self.failed: Counter[str] = Counter()  # how many matches each of them has stopped
        self.fatal: ParleyError | None = None
        self._heartbeat_task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Seat the participants, go on with what earlier sessions left, and tell the user what to
        know."""
        prepared, journal, earlier, grants = self.prepared, self.journal, self.earlier, self.grants
        self.roster = roster_of(prepared.config)
        self.budget = make_budget(prepared, journal, self.stop_signal, earlier.spent, grants)
        self.recorder = SpendingRecorder(
            earlier, journal, self.budget, self.progress, is_worker=grants is not None
        )
        self.repeats = RepeatNotice(earlier.repeats, self.progress)
        if self.sandbox is not None:
            self.execute = track_waiting(self.sandbox, self.progress)
        self.progress.location = journal.ref.location
        self.progress.on_failure = self.stop_for_callback
        self._heartbeat_task = asyncio.create_task(self._keep_alive())
        open_ended = self._seat_participants()
        self._open_batches()
        if prepared.config.evolve is not None and prepared.source is None:
            self.recaller = Recaller(prepared, journal, self.retrievers)
        if self.progress.failure is not None:  # in a screening, or while the run was opened
            self.stop_for_callback(self.progress.failure)
        self.progress.emit("started")
        self.repeats.notify_if_found()
        notices = [*open_ended, *prepared.cautions, journal.notice]
        if self.sandbox is not None and prepared.config.sandbox == "none":
            notices.append(
                "model-written code runs on this machine WITHOUT a sandbox, as you requested"
            )
        for notice in notices:
            self.progress.notify(notice)

    def _seat_participants(self) -> list[str]:
        """Put every participant within its limits; notices about replies without a limit."""
        desk, notices = self.context.desk, []
        for alias, (who, limits) in self.prepared.participants.items():
            if desk is not None:
                desk.seat(alias, who)
            self.participants[alias] = LimitedParticipant(
                alias, who, limits, self.progress, self.budget, self.grants
            )
            if self.budget is not None:
                options = self.prepared.config.models[alias]
                notices.append(self.budget.add_model(alias, who, options))
        return notices

    def _open_batches(self) -> None:
        """Call models in batches that have a batch interface. Batches of earlier sessions go on."""
        models = self.prepared.config.live_models
        aliases = [alias for alias, options in models.items() if uses_batch_api(options)]
        if not aliases:
            return
        from parley.runs.batches import Batches, endpoint_of  # late: it needs the HTTP client

        self.batches = Batches(
            self.journal, self.progress, self.stop_signal, self.earlier.batches, self.budget
        )
        for alias in aliases:
            who, _ = self.prepared.participants[alias]
            self.batches.add_model(alias, endpoint_of(alias, who))
            if self.budget is not None:
                self.budget.batched.add(alias)
        self.batches.take_up(self.earlier.open_batches)

    async def close(self) -> None:
        """Close everything that is open, the journal last."""
        if self._heartbeat_task is not None:
            self._heartbeat_task.cancel()
        await asyncio.gather(
            *(each.close() for each in self.participants.values()), return_exceptions=True
        )
        await self.journal.close()

    async def _keep_alive(self) -> None:
        """Say again and again that the run is being played, and save what was spent."""
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self.journal.heartbeat()
                await self.recorder.save(self.participants)
            except Exception as fault:
                self.stop_for(fault)

    # Matches.

    def make_scheduler(self, concurrency: int) -> Scheduler:
        return Scheduler(
            concurrency,
            self.play_match,
            lambda alias: self.participants[alias].waiting_for_endpoint > 0,
            self.stop_signal,
            self.progress,
            give_up_slots=not self.prepared.attended,
        )

    async def play_match(self, spec: MatchSpec, slot: MatchSlot) -> bool:
        """Play one match unless the run is stopping, and record how it ended. Returns whether more
        may begin."""
        if self.stop_signal.reason or self.fatal is not None:
            return False
        try:
            try:
                outcome = await self._play(spec, slot)
                await self.journal.finish(spec.number, outcome)
            except ParticipantError as fault:
                await self._fail_match(spec, fault)
            else:
                self.count_ended(spec)
        except Exception as fault:
            if not (isinstance(fault, Halted) and self.stop_signal.reason):
                self.stop_for(fault)
        return True

    def count_ended(self, spec: MatchSpec) -> None:
        """Count a match that has ended and is on record."""
        self.progress.done += 1
        self.progress.emit("match_done", spec.number)

    async def _fail_match(self, spec: MatchSpec, fault: ParticipantError) -> None:
        """Leave a match unfinished, because a participant cannot answer."""
        # After three failures in a row the participant raises Refused as well: the first error
        # stays.
        self.keep_fault(fault)
        self.progress.failed += 1
        await self.journal.fail(spec.number, str(fault))
        self.progress.emit("match_failed", spec.number, str(fault))

    async def _play(self, spec: MatchSpec, slot: MatchSlot) -> Outcome:
        record = self.journal.lease(spec)
        try:
            return await self._play_record(spec, slot, record)
        except ShellDiffers as fault:
            record, gone = await self.journal.restart(spec.number)
            for seat, replies in gone.items():
                self.recorder.add_discarded(spec.seats[seat], seat.role, replies)
            self.progress.notify(
                f"match {spec.number} starts again, because {fault}; "
                f"{plural(gone.total(), 'recorded reply', 'recorded replies')} discarded"
            )
            return await self._play_record(spec, slot, record)

    async def _play_record(self, spec: MatchSpec, slot: MatchSlot, record: Record) -> Outcome:
        prepared, config = self.prepared, self.prepared.config
        shell = f"match {spec.number}"
        match = Match(
            prepared.task,
            {seat: self._seat_participant(spec, seat) for seat in spec.seats},
            quotation_key=derive_match_key(self.earlier.quotation_secret, spec.number),
            seed=spec.seed,
            item=prepared.items[spec.item] if spec.item is not None else None,
            prompts=prepared.prompts,
            record=record,
            roster=self.roster,
            standardise=config.standardise,
            call=slot,
            works=prepared.works,
            execute=None if self.execute is None else in_shell(self.execute, shell),
            draws=sampling_salt(config, spec),
            seating=str(spec.seating),
            draw_order=order_of_draws(config, spec),
            observers=self._make_observers(spec),
        )
        try:
            return await match.play()
        finally:
            if self.sandbox is not None and prepared.task.uses_shell:
                await self.sandbox.close_shells(shell)

    def _seat_participant(self, spec: MatchSpec, seat: Seat) -> Participant:
        """The participant in a seat of a match, with its experiences where the run evolves."""
        if not self.prepared.config.is_live_role(seat.role):
            return RecordedReplies()
        who = self.participants[spec.seats[seat]]
        return who if self.recaller is None else self.recaller.wrap(spec, seat, who)

    def _make_observers(self, spec: MatchSpec) -> list[MatchObserver]:
        found: list[MatchObserver] = [ProgressObserver(self.progress)]
        if self.repeats.is_watching:
            found.append(RepeatObserver(self.repeats, spec))
        if (desk := self.context.desk) is not None:
            found.append(DeskObserver(desk, self.progress, self.prepared.task, spec.seats))
        return found

    # Faults.

    def keep_fault(self, fault: ParticipantError) -> None:
        """Keep an error that has stopped a match. Its traceback holds the whole match, so only the
        first errors keep theirs."""
        first = self.faults.setdefault(str(fault), fault)
        if first is not fault or len(self.faults) > WITH_TRACEBACK:
            fault.__traceback__ = fault.__cause__ = fault.__context__ = None
        self.failed[str(fault)] += 1

    def stop_for_callback(self, fault: Exception) -> None:
        """Stop the run because the callback that watches it failed. The run itself is intact and
        can be resumed."""
        self.stop_signal.stop(f"the progress callback raised {describe_exception(fault)}")

    def stop_for(self, fault: Exception) -> None:
        """Stop the run because of an error that would affect every further match."""
        if not isinstance(fault, ParleyError):
            unexpected, fault = fault, ParleyError(f"unexpected {describe_exception(fault)}")
            fault.__cause__ = unexpected
        self.fatal = self.fatal or fault
        self.stop_signal.stop(str(fault))

    def find_end(self) -> RunEnd | None:
        """How the run ends before its plan is done, if it does."""
        if self.fatal is not None:
            if concerns_machine(self.fatal):
                reason = str(self.fatal)
                return RunEnd("stopped", "interrupted", reason, advice=self._find_advice())
            return RunEnd("failed", None, str(self.fatal))
        if self.stop_signal.reason:
            return self.describe_stop()
        if self.faults:
            reason = format_reasons(self.failed)
            return RunEnd("stopped", "interrupted", reason, advice=self._find_advice())
        return None

    def describe_stop(self) -> RunEnd:
        """How the run ends because it was asked to stop, or reached a limit."""
        stop, budget = self.stop_signal, self.budget
        failures = budget.failure_note if budget is not None and stop.status == "budget" else ""
        least = find_minimum_to_resume(stop.limit, stop.needed, budget)
        reason, advice = stop.reason + failures, self._find_advice()
        return RunEnd("stopped", stop.status, reason, stop.limit, least, advice)

    def _find_advice(self) -> str:
        task = self.prepared.config.task
        return find_advice(self.faults.values(), task if is_task_path(task) else "")


class PlanPlayer(Player):
    """Plays a whole run: the matches of its plan, some at a time."""

    finished: FinishedOnRecord

    def open(self) -> None:
        self.finished = FinishedOnRecord(self.earlier.ended, lambda: read_run(self.journal.ref))
        self.progress.begin(len(self.finished))
        super().open()

    def count_ended(self, spec: MatchSpec) -> None:
        self.finished.add(spec.number)
        super().count_ended(spec)

    async def play_plan(self) -> RunEnd:
        """Ask the plan for matches and play them until it is done or something stops the run."""
        prepared, planned = self.prepared, 0
        scheduler = self.make_scheduler(1 if prepared.attended else concurrency_of(prepared.config))
        handed_out = prepared.plan.matches(self.finished)
        try:
            while True:
                try:
                    matches = next(handed_out)
                except TaskError as fault:
                    self.stop_for(fault)
                    return RunEnd("failed", None, str(fault))
                self.progress.status_line = prepared.plan.status_line
                if isinstance(matches, Done):
                    return describe_plan_end(matches)
                planned += len(matches)
                if all(spec.number in self.finished for spec in matches):
                    continue  # everything was played before this process began
                self.progress.planned = (
                    prepared.plan.match_count if isinstance(prepared.plan, EvolvePlan) else planned
                )
                try:
                    if missing := await self._play_matches(matches, scheduler):
                        return RunEnd("stopped", WAITING, missing, advice=VOTE_FIRST)
                except ParleyError as fault:  # of the store, or of a retriever
                    self.stop_for(fault)
                if (end := self.find_end()) is not None:
                    return end
        finally:
            if self.batches is not None:
                await self.batches.close()

    async def _play_matches(self, matches: Sequence[MatchSpec], scheduler: Scheduler) -> str:
        """Record matches of the plan, and play those that have not ended. Returns what people must
        vote on before; empty if the matches were played."""
        finished, progress, recaller = self.finished, self.progress, self.recaller
        if progress.estimates_calls and progress.calls_per_match is None:
            progress.calls_per_match = await estimate_calls(self.prepared, matches, finished)
        if recaller is not None and (missing := await recaller.collect_votes(matches)):
            return missing
        await self.journal.add_matches(spec for spec in matches if spec.number not in finished)
        if recaller is not None:
            await recaller.begin_stage(matches)
            for caution in recaller.cautions():
                progress.notify(caution)
        await scheduler.play_all(spec for spec in matches if spec.number not in finished)
        return ""

    async def record_end(self, end: RunEnd) -> Any:
        """Record how the run ends, and the parts of its task. Returns the result that has them, if
        there is one."""
        summary = None
        # if the store cannot be written, that is the reason already
        with suppress(StoreError):
            await self.recorder.save_final(self.participants)
            await self.recorder.save_prices(self.prepared)
            await self.journal.set_state(end.state, end.status, end.reason)
            if (summarise := self.context.summarise) is not None:
                summary = summarise(self.journal.ref, type(self.prepared.task))
                for notice in summary.notices:
                    self.progress.notify(notice)
                await self.journal.keep_parts(summary.parts)
        return summary and summary.result

    async def record_interruption(self) -> None:
        """Record that the run was stopped at once."""
        with suppress(StoreError):
            await self.recorder.save_final(self.participants)
            await self.journal.set_state(
                "stopped", "interrupted", "stopped without waiting for the calls in flight"
            )

    def describe_end(self, end: RunEnd, result: Any) -> RunOutcome:
        return RunOutcome(
            self.journal.ref,
            end.state,
            end.status,
            end.reason,
            end.flag,
            end.minimum_to_resume,
            end.advice,
            task=type(self.prepared.task),
            fault=None if end.state == "done" else self._find_first_fault(),
            result=result,
        )

    def _find_first_fault(self) -> ParleyError | None:
        """What stopped the run: an error that affects every match, else the first error raised by a
        bot or function, else the first of a participant."""
        code = [fault for fault in self.faults.values() if raised_by_code(fault)]
        return self.fatal or next(iter([*code, *self.faults.values()]), None)


def describe_plan_end(done: Done) -> RunEnd:
    """How a run ends whose plan has no more matches."""
    if done.status == "budget":
        return RunEnd("stopped", done.status, done.reason, "--max-blocks")
    return RunEnd("done", done.status, done.reason)


def concerns_machine(fault: ParleyError) -> bool:
    """Whether an error comes from this machine or its store, and not from the run itself: then the
    run can go on elsewhere, or later."""
    return isinstance(fault, StoreError | SandboxError) and not isinstance(fault, ReplayError)


def sampling_salt(config: Config, spec: MatchSpec) -> str:
    """What changes the random draws of participants besides the match's seed: the stage, and the
    seed of a run that is judged again."""
    again = "" if config.rejudged is None or config.rejudged.seed is None else config.rejudged.seed
    return "|".join(filter(None, [spec.arm and f"{spec.arm}, stage {spec.stage}", str(again)]))

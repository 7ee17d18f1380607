"""Plays a run: its plan from the first match to the last. Stops and resumes without losing a
reply."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from parley.config.batch_api import uses_batch_api
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
from parley.match.match import Match, Outcome
from parley.match.observers import MatchObserver
from parley.match.protocol import Participant
from parley.match.record import Record
from parley.memory import Retriever
from parley.plans import Done, MatchSpec
from parley.plans.evolve import EvolvePlan
from parley.rules.pool import Seat
from parley.rules.quotations import derive_match_key
from parley.runs.budget import find_spent, make_budget
from parley.runs.desk_observer import DeskObserver
from parley.runs.forecast import estimate_calls
from parley.runs.progress import Progress, ProgressObserver, StopSignal
from parley.runs.recall import Recaller
from parley.runs.repeat_notice import RepeatNotice, RepeatObserver
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
from parley.runs.watching import Watching
from parley.store import WAITING, Journal, RunReader, read_run
from parley.store.config import Config
from parley.store.finished_matches import FinishedOnRecord
from parley.store.shared_limits import Grants
from parley.store.shared_runs import SpentBefore
from parley.tables import plural

if TYPE_CHECKING:
    from parley.participants._desk import Desk
    from parley.runs.batches import Batches
    from parley.sandbox.executor import Sandbox

HEARTBEAT = 10.0  # seconds
WITH_TRACEBACK = 20  # different errors that keep their traceback


async def play_run(
    prepared: Prepared,
    journal: Journal,
    concurrency: int,
    watching: Watching,
    sandbox: Sandbox | None,
    retrievers: Mapping[str, Retriever],
) -> RunOutcome:
    """Ask the plan for matches and play them until it is done or something stops the run."""
    participants: list[LimitedParticipant] = []
    heartbeat: asyncio.Task[None] | None = None
    player: PlanPlayer | None = None
    progress, summarise = watching.progress, watching.summarise
    progress.location = journal.ref.location
    try:
        with read_run(journal.ref) as reader:
            player = PlanPlayer(
                prepared,
                journal,
                progress,
                watching.stop_signal,
                reader,
                sandbox,
                retrievers,
                watching.desk,
            )
        participants, heartbeat = (
            list(player.participants.values()),
            asyncio.create_task(player.heartbeat_loop()),
        )
        try:
            state, status, reason = await player.play_plan(1 if prepared.attended else concurrency)
        finally:
            if player.batches is not None:
                await player.batches.close()
        # if the store cannot be written, that is the reason already
        with suppress(StoreError):
            await player.recorder.save_final(player.participants)
            await player.recorder.save_prices(prepared)
            await journal.set_state(state, status, reason)
            if summarise is not None:
                parts, notices = summarise(journal.ref, type(prepared.task))
                for notice in notices:
                    player.progress.notify(notice)
                await journal.keep_parts(parts)
    except asyncio.CancelledError:
        with suppress(StoreError):
            if player is not None:
                await player.recorder.save_final(player.participants)
            await journal.set_state(
                "stopped", "interrupted", "stopped without waiting for the calls in flight"
            )
        raise
    finally:
        if heartbeat is not None:
            heartbeat.cancel()
        await asyncio.gather(*(each.close() for each in participants), return_exceptions=True)
        await journal.close()
    player.progress.emit("ended", text=reason)
    stop_signal = player.stop_signal
    flag = stop_signal.limit or ("--max-blocks" if status == "budget" else "")
    return RunOutcome(
        journal.ref,
        state,
        status,
        reason,
        flag,
        find_minimum_to_resume(stop_signal.limit, stop_signal.needed, player.budget),
        VOTE_FIRST
        if status == WAITING
        else find_advice(
            player.faults.values(),
            prepared.config.task if is_task_path(prepared.config.task) else "",
        ),
        task=type(prepared.task),
        fault=None if state == "done" else player.first_fault,
    )


class Player:
    """Plays matches of a run."""

    def __init__(
        self,
        prepared: Prepared,
        journal: Journal,
        progress: Progress,
        stop_signal: StopSignal,
        reader: RunReader,
        sandbox: Sandbox | None,
        retrievers: Mapping[str, Retriever],
        desk: Desk | None = None,
        earlier: RunReader | None = None,
        grants: Grants | None = None,
        spent_before: SpentBefore | None = None,
    ) -> None:
        """`earlier`: the record of earlier sessions, which this one continues. `grants`: of a
        worker, which shares the limits of the run with others. `spent_before`: before there were
        workers."""
        self.desk = desk
        self.prepared, self.journal, self.progress, self.stop_signal = (
            prepared,
            journal,
            progress,
            stop_signal,
        )
        spent = spent_before or find_spent(prepared, reader)
        self.budget = make_budget(prepared, journal, stop_signal, spent, grants)
        self.recorder = SpendingRecorder(earlier, journal, self.budget, progress)
        notices = list[str]()
        self.participants: dict[str, LimitedParticipant] = {}
        made: dict[str, Participant] = {}
        for alias, (who, limits) in prepared.participants.items():
            made[alias] = who
            if desk is not None:
                desk.seat(alias, who)
            self.participants[alias] = LimitedParticipant(
                alias, who, limits, progress, self.budget, grants
            )
            if self.budget is not None and (
                notice := self.budget.add_model(alias, who, prepared.config.models[alias])
            ):
                notices.append(notice)
        self.batches = self.make_batches(made, reader)
        self._quotation_secret = reader.quotation_secret()
        self.roster = roster_of(prepared.config)
        self.sandbox = sandbox
        self.execute = None if sandbox is None else track_waiting(sandbox, progress)
        self.recaller = (
            None
            if prepared.config.evolve is None or prepared.source is not None
            else Recaller(prepared, journal, retrievers, made)
        )
        self.faults: dict[str, ParticipantError] = {}  # by message
        self.failed: Counter[str] = Counter()  # how many matches each of them has stopped
        self.fatal: ParleyError | None = None
        progress.on_failure = self.stop_for_callback
        if progress.failure is not None:  # in a screening, or while the run was opened
            self.stop_for_callback(progress.failure)
        progress.emit("started")
        self.repeats = RepeatNotice(earlier, progress)
        notices += [*prepared.cautions, journal.notice]
        if sandbox is not None and prepared.config.sandbox == "none":
            notices.append(
                "model-written code runs on this machine WITHOUT a sandbox, as you requested"
            )
        for notice in notices:
            progress.notify(notice)

    def make_batches(self, made: Mapping[str, Participant], reader: RunReader) -> Batches | None:
        """The batches of the run, if a model is called through a batch interface. Those of earlier
        sessions go on."""
        models = self.prepared.config.live_models
        aliases = [alias for alias, options in models.items() if uses_batch_api(options)]
        if not aliases:
            return None
        from parley.runs.batches import Batches, endpoint_of  # late: it needs the HTTP client

        batched = {alias: endpoint_of(alias, made[alias]) for alias in aliases}
        batches = Batches(
            self.journal, self.progress, self.stop_signal, reader.batches(), self.budget
        )
        for alias, provider in batched.items():
            batches.add_model(alias, provider)
            if self.budget is not None:
                self.budget.batched.add(alias)
        batches.take_up(reader.open_batches())
        return batches

    @property
    def first_fault(self) -> ParleyError | None:
        """What stopped the run: an error that affects every match, else the first error raised by a
        bot or function, else the first of a participant."""
        code = [fault for fault in self.faults.values() if raised_by_code(fault)]
        return self.fatal or next(iter([*code, *self.faults.values()]), None)

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
                await self.fail_match(spec, fault)
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

    async def fail_match(self, spec: MatchSpec, fault: ParticipantError) -> None:
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
            {seat: self.seat_participant(spec, seat) for seat in spec.seats},
            quotation_key=derive_match_key(self._quotation_secret, spec.number),
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
            observers=self.make_observers(spec),
        )
        try:
            return await match.play()
        finally:
            if self.sandbox is not None and prepared.task.uses_shell:
                await self.sandbox.close_shells(shell)

    def make_observers(self, spec: MatchSpec) -> list[MatchObserver]:
        """What follows a match."""
        found: list[MatchObserver] = [ProgressObserver(self.progress)]
        if self.repeats.is_watching:
            found.append(RepeatObserver(self.repeats, spec))
        if self.desk is not None:
            task = self.prepared.task
            found.append(DeskObserver(self.desk, self.progress, task, spec.seats))
        return found

    def seat_participant(self, spec: MatchSpec, seat: Seat) -> Participant:
        """The participant in a seat of a match, with its experiences where the run evolves."""
        if not self.prepared.config.is_live_role(seat.role):
            return RecordedReplies()
        who = self.participants[spec.seats[seat]]
        return who if self.recaller is None else self.recaller.wrap(spec, seat, who)

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

    async def heartbeat_loop(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self.journal.heartbeat()
                await self.recorder.save(self.participants)
            except ParleyError as fault:
                self.stop_for(fault)


class PlanPlayer(Player):
    """Plays a whole run: the matches of its plan, some at a time."""

    def __init__(
        self,
        prepared: Prepared,
        journal: Journal,
        progress: Progress,
        stop_signal: StopSignal,
        reader: RunReader,
        sandbox: Sandbox | None,
        retrievers: Mapping[str, Retriever],
        desk: Desk | None = None,
    ) -> None:
        self.finished = FinishedOnRecord(reader, lambda: read_run(journal.ref))
        progress.begin(len(self.finished))
        super().__init__(
            prepared, journal, progress, stop_signal, reader, sandbox, retrievers, desk, reader
        )

    def count_ended(self, spec: MatchSpec) -> None:
        self.finished.add(spec.number)
        super().count_ended(spec)

    async def play_plan(
        self, concurrency: int
    ) -> tuple[Literal["done", "stopped", "failed"], str | None, str]:
        """Ask the plan for matches and play them; the state in which the run ends, the status and
        the reason."""
        plan, finished, planned = self.prepared.plan, self.finished, 0
        scheduler = self.make_scheduler(concurrency)
        handed_out = plan.matches(finished)
        while True:
            try:
                matches = next(handed_out)
            except TaskError as fault:
                self.fatal = fault
                return "failed", None, str(fault)
            self.progress.status_line = plan.status_line
            if isinstance(matches, Done):
                return (
                    ("stopped" if matches.status == "budget" else "done"),
                    matches.status,
                    matches.reason,
                )
            planned += len(matches)
            if all(spec.number in finished for spec in matches):
                continue  # everything was played before this process began
            self.progress.planned = plan.match_count if isinstance(plan, EvolvePlan) else planned
            if self.progress.estimates_calls and self.progress.calls_per_match is None:
                self.progress.calls_per_match = await estimate_calls(
                    self.prepared, matches, finished
                )
            try:
                if self.recaller is not None and (
                    missing := await self.recaller.collect_votes(matches)
                ):
                    return "stopped", WAITING, missing
                await self.journal.add_matches(
                    spec for spec in matches if spec.number not in finished
                )
                if self.recaller is not None:
                    await self.recaller.begin_stage(matches)
                    for caution in self.recaller.cautions():
                        self.progress.notify(caution)
                await scheduler.play_all(spec for spec in matches if spec.number not in finished)
            except ParleyError as fault:  # of the store, or of a retriever
                self.stop_for(fault)
            if self.fatal is not None:
                if concerns_machine(self.fatal):
                    return "stopped", "interrupted", str(self.fatal)
                return "failed", None, str(self.fatal)
            if self.stop_signal.reason:
                failed = (
                    self.budget.failure_note
                    if self.budget is not None and self.stop_signal.status == "budget"
                    else ""
                )
                return "stopped", self.stop_signal.status, self.stop_signal.reason + failed
            if self.faults:
                return "stopped", "interrupted", format_reasons(self.failed)


def concerns_machine(fault: ParleyError) -> bool:
    """Whether an error comes from this machine or its store, and not from the run itself: then the
    run can go on elsewhere, or later."""
    return isinstance(fault, StoreError | SandboxError) and not isinstance(fault, ReplayError)


def sampling_salt(config: Config, spec: MatchSpec) -> str:
    """What changes the random draws of participants besides the match's seed: the stage, and the
    seed of a run that is judged again."""
    again = "" if config.rejudged is None or config.rejudged.seed is None else config.rejudged.seed
    return "|".join(filter(None, [spec.arm and f"{spec.arm}, stage {spec.stage}", str(again)]))

"""A run: a plan played from its first match to its last, stopped and resumed without losing a reply."""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from parley.config import refuse_changes, refuse_other
from parley.errors import Halted, ParleyError, ParticipantError, Refused, Rejected, ReplayError, StoreError, UsageError
from parley.expect import clip
from parley.items import stored
from parley.match import Match, Outcome
from parley.participants import Participant
from parley.plan import Block, Done, MatchSpec
from parley.pool import Seat, View
from parley.prepared import Prepared, names_of
from parley.providers.protocol import Reply
from parley.providers.transport import AGAIN
from parley.store import SUFFIX
from parley.store.archive import Archive
from parley.store.journal import Journal, SqliteJournal

CONCURRENCY = 32
FAILURES = 3  # in a row, after which a participant is not asked any more
HEARTBEAT = 10.0  # seconds


@dataclass
class Tally:
    """How a run stands, for whoever shows it."""

    planned: int = 0
    done: int = 0
    aborted: int = 0
    failed: int = 0
    in_flight: int = 0
    calls: int = 0
    began: float = field(default_factory=time.monotonic)
    notices: list[str] = field(default_factory=list)
    waiting: dict[str, dict[int, float]] = field(default_factory=dict)  # by alias: since when calls are under way

    def slowest(self) -> tuple[str, float] | None:
        """Who has been waited for longest, and for how many seconds."""
        began = [(min(since.values()), alias) for alias, since in self.waiting.items() if since]
        return (min(began)[1], time.monotonic() - min(began)[0]) if began else None


class Brake:
    """Stops a run gently: calls in flight are awaited and recorded, nothing new is asked."""

    def __init__(self) -> None:
        self.reason = ""

    def pull(self, reason: str) -> None:
        self.reason = self.reason or reason

    def gate(self) -> None:
        if self.reason:
            raise Halted(self.reason)


@dataclass(frozen=True)
class Ending:
    """How playing ended: done, or stopped and why; failed if a task or the store is at fault."""

    path: Path
    state: Literal["done", "stopped", "failed"]
    status: str | None
    reason: str


class Placed:
    """A participant under its alias: so many calls at a time, and none once it has proved unable to answer."""

    def __init__(self, alias: str, participant: Participant, most: int | None, tally: Tally, brake: Brake) -> None:
        self.alias, self.participant, self.privy = alias, participant, participant.privy
        self._tally, self._brake = tally, brake
        self._places = asyncio.Semaphore(most or 1)
        self.reply = self._queued if most else self._asked
        self._failures, self._down = 0, ""
        self._since = tally.waiting.setdefault(alias, {})

    async def _queued(self, view: View) -> Reply | str:
        async with self._places:
            self._brake.gate()  # it may have been pulled while this call waited for its place
            return await self._asked(view)

    async def _asked(self, view: View) -> Reply | str:
        if self._down:
            raise Refused(self._down)
        self._since[id(view)] = time.monotonic()
        try:
            reply = await self.participant.reply(view)
        except ParticipantError as fault:
            raise self._failed(fault) from fault
        finally:
            del self._since[id(view)]
        self._failures = 0
        self._tally.calls += 1
        return reply

    def _failed(self, fault: ParticipantError) -> ParticipantError:
        """The fault under the alias's name. What speaks against one request does not speak against the model."""
        message = f"{self.alias}: {fault}"
        self._failures += not isinstance(fault, Rejected)
        if isinstance(fault, Refused) or self._failures >= FAILURES:
            self._down = message
        return type(fault)(message)

    async def close(self) -> None:
        await self.participant.close()


def new_id(task: str) -> str:
    """A name for a run that sorts by time and is not given twice."""
    return f"{task}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"


async def start(prepared: Prepared, folder: Path, *, concurrency: int = CONCURRENCY, **watching: Any) -> Ending:
    """Play a new run, into a new file of the store."""
    refuse_none(concurrency)
    name = new_id(prepared.task.name)
    path = folder / f"{name}{SUFFIX}"
    facts, items = orjson.dumps(prepared.identity), stored(list(prepared.items.values()))
    journal = await SqliteJournal.create(path, name, prepared.config.encoded(), facts, items)
    return await play(prepared, journal, path, concurrency, **watching)


async def go_on(prepared: Prepared, path: Path, *, concurrency: int = CONCURRENCY, **watching: Any) -> Ending:
    """Play on where a run stopped."""
    refuse_none(concurrency)
    with Archive(path) as archive:
        refuse_other(archive.config, prepared.config, archive.id)
        refuse_changes(archive.identity, prepared.identity, archive.id)
    return await play(prepared, await SqliteJournal.open(path), path, concurrency, **watching)


def refuse_none(concurrency: int) -> None:
    """At least one match must be in flight, or nothing is played."""
    if concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, not {concurrency}")


async def play(
    prepared: Prepared,
    journal: Journal,
    path: Path,
    concurrency: int,
    *,
    tally: Tally | None = None,
    brake: Brake | None = None,
) -> Ending:
    """Ask the plan for matches, play them, ask again, until it is done or something stops the run."""
    places: list[Placed] = []
    beating: asyncio.Task[None] | None = None
    try:
        with Archive(path) as archive:
            finished = archive.finished()
        playing = Playing(prepared, journal, tally or Tally(), brake or Brake(), finished)
        places, beating = list(playing.places.values()), asyncio.create_task(playing.beat())
        AGAIN.set(playing.brake.gate)
        state, status, reason = await playing.season(1 if prepared.attended else concurrency)
        with suppress(StoreError):  # a store that cannot be written is the reason itself, and stands in it
            await journal.end(state, status, reason)
    except asyncio.CancelledError:
        with suppress(StoreError):
            await journal.end("stopped", "interrupted", "stopped at once")
        raise
    finally:
        if beating is not None:
            beating.cancel()
        await asyncio.gather(*(placed.close() for placed in places), return_exceptions=True)
        await journal.close()
    return Ending(path, state, status, reason)


class Playing:
    """A run while it is played."""

    def __init__(
        self,
        prepared: Prepared,
        journal: Journal,
        tally: Tally,
        brake: Brake,
        finished: dict[int, dict[Seat, dict[str, float | None]]],
    ) -> None:
        self.prepared, self.journal, self.tally, self.brake = prepared, journal, tally, brake
        self.scores = finished
        self.places = {alias: Placed(alias, who, most, tally, brake) for alias, who, most in prepared.participants()}
        self.names = frozenset(names_of(prepared.config))
        self.faults: Counter[str] = Counter()
        self.fatal: ParleyError | None = None
        tally.done = len(finished)
        tally.notices += [*prepared.cautions, *filter(None, [journal.notice])]

    async def season(self, concurrency: int) -> tuple[Literal["done", "stopped", "failed"], str | None, str]:
        specs: dict[int, MatchSpec] = {}
        while True:
            batch = self.prepared.plan.next(self.blocks(specs))
            if isinstance(batch, Done):
                return "done", batch.status, batch.reason
            specs |= {spec.number: spec for spec in batch}
            if specs.keys() <= self.scores.keys():
                continue  # all of it was played before this process began
            self.tally.planned = len(specs)
            try:
                await self.journal.plan(batch)
                waiting = iter([spec for spec in batch if spec.number not in self.scores])
                await asyncio.gather(*(self.worker(waiting) for _ in range(min(concurrency, len(batch)))))
            except StoreError as fault:
                self.stop(fault)
            if self.fatal is not None:
                lost = isinstance(self.fatal, StoreError) and not isinstance(self.fatal, ReplayError)
                return ("stopped" if lost else "failed"), ("interrupted" if lost else None), str(self.fatal)
            if self.brake.reason:
                return "stopped", "interrupted", self.brake.reason
            if self.faults:
                return "stopped", "interrupted", self.reasons()

    def reasons(self) -> str:
        """Why matches could not be played, the commonest first."""
        shown = [f"{clip(fault, 300)} ({count} matches)" for fault, count in self.faults.most_common(3)]
        rest = len(self.faults) - len(shown)
        return "; ".join(shown) + (f"; and {rest} more kinds of fault" if rest else "")

    def blocks(self, specs: Mapping[int, MatchSpec]) -> list[Block]:
        """The finished blocks, in the order in which the plan first named them."""
        members: dict[str, list[int]] = {}
        for number in sorted(specs):
            members.setdefault(specs[number].block, []).append(number)
        return [
            Block(name, {number: self.scores[number] for number in numbers})
            for name, numbers in members.items()
            if all(number in self.scores for number in numbers)
        ]

    async def worker(self, waiting: Iterator[MatchSpec]) -> None:
        for spec in waiting:
            if self.brake.reason or self.fatal is not None:
                return
            self.tally.in_flight += 1
            try:
                await self.match(spec)
            finally:
                self.tally.in_flight -= 1

    async def match(self, spec: MatchSpec) -> None:
        """One match, and what becomes of it."""
        try:
            try:
                outcome = await self.played(spec)
                await self.journal.finish(spec.number, outcome)
            except ParticipantError as fault:
                self.faults[str(fault)] += 1
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

    async def played(self, spec: MatchSpec) -> Outcome:
        prepared = self.prepared
        match = Match(
            prepared.task,
            {seat: self.places[alias] for seat, alias in spec.seats.items()},
            seed=spec.seed,
            item=prepared.items[spec.item] if spec.item is not None else None,
            prompts=prepared.prompts,
            record=self.journal.claim(spec.number),
            names=self.names,
            standardise=prepared.config.standardise,
            gate=self.brake.gate,
        )
        return await match.play()

    def stop(self, fault: Exception) -> None:
        """End the run for a fault that no further match would mend."""
        if not isinstance(fault, ParleyError):
            where = traceback.extract_tb(fault.__traceback__)[-1]
            fault = ParleyError(f"unexpected {type(fault).__name__}: {fault} ({Path(where.filename).name}, line {where.lineno})")
        self.fatal = self.fatal or fault
        self.brake.pull(str(fault))

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            try:
                await self.journal.heartbeat()
            except ParleyError as fault:
                self.stop(fault)

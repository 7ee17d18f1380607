"""The journal of a run: one writer thread, which commits all waiting rows together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple
from itertools import islice
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from parley.errors import StoreError
from parley.match.protocol import DeviceSetup, DeviceUse
from parley.match.record import Record, RecordedCall
from parley.memory.experiences import Recalled
from parley.plans import MatchSpec
from parley.rules.pool import Message, Seat
from parley.store.batch_records import Batch, BatchState, StoredRequest
from parley.store.call_rows import FIELDS, call_from, call_row
from parley.store.config import Config, split_config
from parley.store.digests import (
    CALL_SPECIAL,
    CHAINS,
    NOT_ENDED,
    ROUND_SPECIAL,
    ChainEnds,
    RunConnection,
    digest_match,
    digest_plan,
    digest_row,
    open_chain_ends,
)
from parley.store.rows import (
    CommitGroup,
    encode_json,
    match_row,
    note_row,
    recalled_row,
    round_row,
    setup_from,
    violation_row,
)
from parley.store.types import EndpointRecord, RunRef, StoredPart

if TYPE_CHECKING:
    from parley.match.match import Outcome
    from parley.memory.feedback import PeopleVerdict

ADDED_AT_ONCE = 4096  # planned matches of one transaction
# How many callers make it worth to wait for more of them, how many seconds, and with how many a
# commit begins at once.
CROWD, LINGER, ENOUGH = 16, 0.003, 32
COUNT_PLANNED = "UPDATE runs SET planned = (SELECT COUNT(*) FROM matches WHERE {run}) WHERE {run}"
FAILED_REQUEST = "UPDATE batch_requests SET failed = 1 WHERE {run} AND batch = ? AND number = ?"
VERDICT = (
    "UPDATE people_verdicts SET yes = ?, no = ?, unsure = ? "
    "WHERE {run} AND match = ? AND seat = ? AND yes IS NULL"
)


class GroupWriter(Protocol):
    """Writes the groups of one run, in the writer thread."""

    place: str  # what is written, for messages

    def write(self, group: CommitGroup) -> None:
        """Write a group in one transaction, durably; nothing is written if the run is no longer
        ours."""

    def close(self) -> None:
        """Release the run."""


class OpenMatches(NamedTuple):
    """What is on record of matches that have not ended, by match."""

    calls: dict[int, dict[tuple[int, str, int], RecordedCall]]
    effects: dict[int, dict[tuple[int, int], tuple[bytes, Any]]]
    chains: dict[int, ChainEnds]
    devices: dict[DeviceSetup, int]  # with their numbers; of all matches
    origin: str  # the digest that all chains begin with


def read_open_matches(
    connection: RunConnection, chosen: str = NOT_ENDED, values: Sequence[Any] = ()
) -> OpenMatches:
    """Read the records of all unfinished matches, or of some: `chosen` is a condition on their rows
    `m`."""
    (origin,) = connection.execute("SELECT origin FROM runs").fetchone()
    found = OpenMatches({}, {}, {}, {}, origin)
    for number, setup in connection.execute("SELECT number, setup FROM devices"):
        found.devices[setup_from(orjson.loads(setup))] = number
    open_matches = f"SELECT m.number FROM matches m WHERE {chosen}"
    # the rounds of an open match are written again from the first on, and so is their chain
    for match, ends in open_chain_ends(connection, chosen, values).items():
        found.chains[match] = ends._replace(rounds="")
    for match, *row in connection.execute(
        f"SELECT match, {FIELDS} FROM calls WHERE match IN ({open_matches})", values
    ):
        call = call_from(row)
        found.calls.setdefault(match, {})[call.round, call.seat.key, call.attempt] = call
    for match, round, number, request_digest, result in connection.execute(
        "SELECT match, round, number, request_digest, result FROM effects "
        f"WHERE match IN ({open_matches})",
        values,
    ):
        found.effects.setdefault(match, {})[round, number] = request_digest, orjson.loads(result)
    return found


class Journal:
    """Writes a run. A reply is durable before it is used."""

    def __init__(
        self, ref: RunRef, writer: GroupWriter, found: OpenMatches, notice: str = ""
    ) -> None:
        self.ref, self.writer, self.notice, self.commits = ref, writer, notice, 0
        self._kept, self._effects, self._chains, self._devices, self._origin = found
        self._fault = ""
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._group, self._idle = CommitGroup(), asyncio.Event()
        self._idle.set()
        self._queue: SimpleQueue[CommitGroup | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="journal", daemon=True)
        self._played: dict[int, MatchRecord] = {}
        self._linger: asyncio.TimerHandle | None = None  # the wait before a commit

    @classmethod
    async def start(
        cls, ref: RunRef, writer: GroupWriter, found: OpenMatches, notice: str = ""
    ) -> Journal:
        """Start to write a run that the writer has taken."""
        journal = cls(ref, writer, found, notice)
        journal._thread.start()
        return journal

    async def reconfigure(self, config: Config) -> None:
        """Store a configuration with a changed limit."""
        settings = split_config(config.encoded().decode()).settings
        self._group.entries.append(("settings", {"settings": settings}))
        await self.commit("UPDATE runs SET config = ? WHERE {run}", (config.encoded().decode(),))

    async def set_spending(self, calls: int, usd: float | None) -> None:
        """Store upper bounds of the calls sent and their cost."""
        await self.commit(
            "UPDATE runs SET spent = ? WHERE {run}", (encode_json({"calls": calls, "usd": usd}),)
        )

    async def set_unanswered(self, requests: Mapping[str, Mapping[str, int]]) -> None:
        """Store how many requests may have been billed without a reply, by alias and role."""
        await self.commit("UPDATE runs SET unanswered = ? WHERE {run}", (encode_json(requests),))

    async def set_endpoint_health(self, health: Mapping[str, EndpointRecord]) -> None:
        """Store how endpoints answer, by alias."""
        facts = {alias: each._asdict() for alias, each in health.items()}
        await self.commit("UPDATE runs SET health = ? WHERE {run}", (encode_json(facts),))

    async def set_prices(self, prices: Sequence[Mapping[str, Any]]) -> None:
        """Store the prices of the run."""
        self._group.entries.append(("prices", {"prices": prices}))
        await self.commit("UPDATE runs SET prices = ? WHERE {run}", (encode_json(prices),))

    async def add_matches(self, specs: Iterable[MatchSpec]) -> None:
        """Add planned matches, some at a time; known ones are not changed."""
        left = iter(specs)
        while rows := list(map(match_row, islice(left, ADDED_AT_ONCE))):
            self._group.inserts["matches"] += rows
            await self.commit(COUNT_PLANNED, ())

    async def add_recalled(self, rows: Sequence[Recalled]) -> None:
        """Store the experiences that seats will be shown."""
        self._group.inserts["recalled"] += map(recalled_row, rows)
        await self.acknowledged()

    async def ask_people(self, places: Sequence[tuple[int, Seat]]) -> None:
        """Store which seats people are asked about, by match; known ones are not changed."""
        self._group.inserts["people_verdicts"] += [
            (match, seat.key, None, None, None) for match, seat in places
        ]
        await self.acknowledged()

    async def set_people_verdicts(self, verdicts: Sequence[PeopleVerdict]) -> None:
        """Store the votes on these seats, all at once; those on record are not changed."""
        self._group.changes += [
            (VERDICT, (each.yes, each.no, each.unsure, each.match, each.seat.key))
            for each in verdicts
        ]
        await self.acknowledged()

    async def add_batch(self, batch: Batch, requests: Sequence[StoredRequest]) -> None:
        """Store a batch before it is sent."""
        self._group.inserts["batches"].append(tuple(batch))
        self._group.inserts["batch_requests"] += [
            (batch.number, each.number, *each.place, each.body, each.usd) for each in requests
        ]
        await self.acknowledged()

    async def set_batch(
        self, number: int, state: BatchState, provider_id: str | None = None
    ) -> None:
        """Store how far a batch has come, and the provider's id once it is known."""
        await self.commit(
            "UPDATE batches SET state = ?, provider_id = COALESCE(?, provider_id) "
            "WHERE {run} AND number = ?",
            (state, provider_id, number),
        )

    async def end_batch(self, number: int, failed: Sequence[int]) -> None:
        """Store that all results of a batch were read, and which of its requests got no reply."""
        self._group.changes += [(FAILED_REQUEST, (number, each)) for each in failed]
        await self.commit(
            "UPDATE batches SET state = 'ended', ended = ? WHERE {run} AND number = ?",
            (time.time(), number),
        )

    def lease(self, spec: MatchSpec) -> Record:
        """Lease a match to play it; returns what is already on record for it."""
        self._group.leases.append(spec.number)
        self.wake()
        return self.open_record(spec)

    def open_record(self, spec: MatchSpec) -> MatchRecord:
        """The record of a match that is leased."""
        number = spec.number
        record = self._played[number] = MatchRecord(
            self,
            number,
            digest_plan(match_row(spec), self._origin),
            self._kept.pop(number, {}),
            self._effects.pop(number, {}),
            self._chains.pop(number, ChainEnds()),
        )
        return record

    async def restart(self, number: int) -> tuple[Record, Counter[Seat]]:
        """Restart a leased match: its record is deleted. Returns an empty record, and how many
        replies of each seat were deleted."""
        played = self._played[number]
        gone = Counter(call.seat for call in played.kept_calls)
        for table in CHAINS:
            self._group.changes.append(
                (f"DELETE FROM {table} WHERE {{run}} AND match = ?", (number,))
            )
        record = self._played[number] = MatchRecord(self, number, played.first, {}, {}, ChainEnds())
        await self.acknowledged()
        return record, gone

    async def heartbeat(self) -> None:
        """Send a heartbeat; raises if another process has taken over."""
        await self.commit(
            "UPDATE runs SET heartbeat = ?, heartbeats = heartbeats + 1 WHERE {run}", (time.time(),)
        )

    async def finish(self, number: int, outcome: Outcome) -> None:
        """End a match, once."""
        if number not in self._played:
            raise StoreError(
                f"match {number} is not being played: it has not started yet, or has already ended"
            )
        group = self._group
        scores = [
            (number, seat.key, metric, value, "")
            for seat, by in outcome.scores.items()
            for metric, value in by.items()
        ]
        violations = [
            violation_row(number, n, violation) for n, violation in enumerate(outcome.violations)
        ]
        notes = [note_row(number, n, note) for n, note in enumerate(outcome.notes)]
        for table, rows in (("scores", scores), ("violations", violations), ("notes", notes)):
            if rows:
                group.inserts[table] += rows
        end = outcome.state, outcome.reason or None, outcome.rounds
        chains = self._played.pop(number).chains
        digest = digest_match(number, end, chains, scores, violations, notes)
        group.ends.append((number, *end, time.time(), digest))
        await self.acknowledged()

    async def fail(self, number: int, reason: str) -> None:
        """Leave a match unfinished, with a reason."""
        self._played.pop(number, None)
        await self.commit(
            "UPDATE matches SET state = 'failed', reason = ? WHERE {run} AND number = ?",
            (reason, number),
        )

    async def set_state(self, state: str, status: str | None, reason: str) -> None:
        """Set the state of the run; a run that stops is sealed by a digest of its whole record."""
        self._group.changes.append(
            ("UPDATE matches SET state = 'stopped' WHERE {run} AND state = 'running'", ())
        )
        self._group.seals = True
        await self.commit(
            "UPDATE runs SET state = ?, status = ?, reason = ? WHERE {run}",
            (state, status, reason or None),
        )

    async def keep_parts(self, parts: Sequence[StoredPart]) -> None:
        """Store the results of analyses, replacing earlier ones."""
        self._group.parts = [astuple(part) for part in parts]
        await self.acknowledged()

    async def close(self) -> None:
        """Release the run when everything is written."""
        if self._thread.is_alive():
            await self._idle.wait()
            self._queue.put(None)
            await self._ended

    def acknowledged(self) -> asyncio.Future[None]:
        """Wait until the current group is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self._fault:
            future.set_exception(StoreError(self._fault))
        else:
            self._group.waiting.append(future)
            self.wake()
            if self._linger is not None and len(self._group.waiting) == ENOUGH:
                self._linger.cancel()
                self._linger = None
                self._loop.call_soon(self._hand_over)  # with what others are about to add
        return future

    def number_device(self, used: DeviceUse) -> tuple[int, float]:
        """The number of a device and how a model is run on it, and the seconds used. A new one is
        recorded together with the call."""
        if used.setup not in self._devices:
            self._add_device(len(self._devices) + 1, used.setup)
        return self._devices[used.setup], used.seconds

    def _add_device(self, number: int, setup: DeviceSetup) -> None:
        self._devices[setup] = number
        self.add_row("devices", (number, encode_json(asdict(setup))))

    def add_row(self, table: str, row: tuple[Any, ...]) -> None:
        self._group.inserts[table].append(row)

    async def commit(self, statement: str, values: tuple[Any, ...]) -> None:
        self._group.changes.append((statement, values))
        await self.acknowledged()

    def wake(self) -> None:
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self.commits += 1
        self._linger = None
        group, self._group = self._group, CommitGroup()
        self._queue.put(group)

    def _acknowledge(self, group: CommitGroup, fault: str) -> None:
        """Wake the callers that wait. After a fault nothing more is written: an incomplete record
        would be worse."""
        self._fault = self._fault or fault
        for future in [*group.waiting, *(self._group.waiting if self._fault else ())]:
            if not future.done():
                if self._fault:
                    future.set_exception(StoreError(self._fault))
                else:
                    future.set_result(None)
        if self._fault:
            self._group = CommitGroup()
        if not self._group:
            self._idle.set()
        elif len(group.waiting) < CROWD or len(self._group.waiting) >= ENOUGH:
            self._hand_over()
        else:  # with many callers, a short wait lets one commit serve more of them
            self._linger = self._loop.call_later(LINGER, self._hand_over)

    def _write_all(self) -> None:
        """The writer thread: one transaction per group."""
        writer = self.writer
        try:
            while (group := self._queue.get()) is not None:
                fault = ""
                try:
                    writer.write(group)
                except Exception as wrong:  # whatever it is, no caller may wait forever
                    fault = f"{writer.place} could not be written: {wrong}"
                self._loop.call_soon_threadsafe(self._acknowledge, group, fault)
        finally:
            writer.close()
            self._loop.call_soon_threadsafe(self._ended.set_result, None)


class MatchRecord:
    """The journal of one match. Each row has a digest that covers the one before it."""

    __slots__ = (
        "_calls_end",
        "_effects",
        "_effects_end",
        "_journal",
        "_kept",
        "_number",
        "_rounds_end",
        "first",
    )

    def __init__(
        self,
        journal: Journal,
        number: int,
        first: str,
        kept: dict[tuple[int, str, int], RecordedCall],
        effects: dict[tuple[int, int], tuple[bytes, Any]],
        chains: ChainEnds,
    ) -> None:
        """`first`: the first link of the match's chains, which covers the match as planned."""
        self._journal, self._number, self._kept, self._effects = journal, number, kept, effects
        self.first = first
        self._calls_end, self._effects_end, self._rounds_end = (end or first for end in chains)

    @property
    def kept_calls(self) -> list[RecordedCall]:
        """The replies that were on record when the match was leased."""
        return list(self._kept.values())

    @property
    def chains(self) -> ChainEnds:
        """The last digests of the match's chains."""
        return ChainEnds(self._calls_end, self._effects_end, self._rounds_end)

    def call(self, round: int, seat: Seat, attempt: int) -> RecordedCall | None:
        return self._kept.get((round, seat.key, attempt)) if self._kept else None

    def append(self, call: RecordedCall) -> Awaitable[None]:
        used = call.reply.device
        device = None if used is None else self._journal.number_device(used)
        row = call_row(self._number, call, device=device)
        self._calls_end = digest_row(row, self._calls_end, CALL_SPECIAL)
        self._journal.add_row("calls", (*row, self._calls_end))
        return self._journal.acknowledged()

    def effect(self, round: int, number: int) -> tuple[bytes, Any] | None:
        return self._effects.get((round, number))

    async def append_effect(
        self, round: int, number: int, request_digest: bytes, result: Any
    ) -> None:
        row = self._number, round, number, request_digest, encode_json(result)
        self._effects_end = digest_row(row, self._effects_end)
        self._journal.add_row("effects", (*row, self._effects_end))
        await self._journal.acknowledged()

    def circulate(self, messages: list[Message], first: int) -> None:
        if messages:
            row = round_row(self._number, first, messages)
            self._rounds_end = digest_row(row, self._rounds_end, ROUND_SPECIAL)
            self._journal.add_row("rounds", (*row, self._rounds_end))
            self._journal.wake()

"""The journal as one SQLite file: one writer thread, which commits all waiting rows together."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import orjson

from parley.errors import StoreError
from parley.match.record import Record, RecordedCall
from parley.memory.experiences import Recalled
from parley.plans import MatchSpec
from parley.rules.pool import Message, Seat
from parley.store import EndpointRecord, StoredPart
from parley.store.config import Config
from parley.store.sqlite.digests import (
    CHAINS,
    SPECIAL,
    ChainEnds,
    digest_match,
    digest_row,
    open_chain_ends,
    refuse_changed,
)
from parley.store.sqlite.owner import STALE, Owner, is_running, process_id
from parley.store.sqlite.reader import ref_of
from parley.store.sqlite.rows import (
    ASKED,
    CALL,
    EFFECT,
    FIELDS,
    MATCH,
    NOTE,
    PART,
    RECALLED,
    ROUND,
    SCORE,
    VERDICT,
    VIOLATION,
    Batch,
    call_from,
    call_row,
    encode_json,
    match_row,
    note_row,
    recalled_row,
    release_and_checkpoint,
    round_row,
    set_durability,
    violation_row,
    write_batch,
)
from parley.store.sqlite.schema import migrate, version_of

if TYPE_CHECKING:
    from parley.match.match import Outcome
    from parley.memory.feedback import PeopleVerdict

WATCH = 1.0  # seconds between two checks of another machine's heartbeats
CROWD, LINGER = 16, 0.003  # how many callers make it worth waiting, and how many seconds


class SqliteJournal:
    """A run in one SQLite file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.token, self.notice, self.commits = path, os.urandom(8).hex(), "", 0
        self.ref = ref_of(path)
        self.keeps_digests = False
        self._fault = ""
        found = os.stat(path)
        self._file = found.st_dev, found.st_ino
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._batch, self._idle = Batch(), asyncio.Event()
        self._idle.set()
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._write_all, args=(connection,), name="journal", daemon=True
        )
        self._kept: dict[int, dict[tuple[int, str, int], RecordedCall]] = {}
        self._effects: dict[int, dict[tuple[int, int], tuple[bytes, Any]]] = {}
        self._chains: dict[int, ChainEnds] = {}  # of recorded matches that have not ended
        self._played: dict[int, MatchRecord] = {}

    @classmethod
    async def open(
        cls, path: Path, notify: Callable[[str], None] = lambda said: None
    ) -> SqliteJournal:
        """Claim a run exclusively, to play it. `notify` gets a message for the user if this takes
        long."""
        try:
            connection = sqlite3.connect(
                path,
                isolation_level=None,
                timeout=10,
                check_same_thread=False,
                cached_statements=512,
            )
            try:
                journal = cls(path, connection)
                migrate(connection, version_of(connection, str(path)))
                await journal._take(connection, notify)
                journal._load(connection)
                journal.notice = set_durability(connection, path)
            except BaseException:
                connection.close()
                raise
        except (OSError, sqlite3.Error) as wrong:
            raise StoreError(f"{path} cannot be written: {wrong}") from None
        journal._thread.start()
        await journal.commit(
            "UPDATE runs SET state = 'running', stop_status = NULL, stop_reason = NULL, "
            "digest = NULL",
            (),
        )
        return journal

    async def _take(self, connection: sqlite3.Connection, notify: Callable[[str], None]) -> None:
        """Claim the run. A process of this machine owns it while the process runs; one of another
        machine while its heartbeats continue."""
        seen: tuple[Any, ...] | None = None
        since = 0.0
        while True:
            connection.execute("BEGIN IMMEDIATE")
            # an older Parley writes only the time; it is enough that it changes
            found = connection.execute("SELECT owner, token, beats, beat FROM runs").fetchone()
            owner = Owner.of(found[0] or "")
            if not found[0] or (owner.is_near and not is_running(owner)):
                break
            if seen is None:
                seen, since = found, self._loop.time()
            silent = self._loop.time() - since
            if found == seen and not owner.is_near and silent >= STALE:
                break
            connection.execute("ROLLBACK")
            if owner.is_near or found != seen:
                raise StoreError(
                    f"{self.path} is already being played by {owner}: wait until that process "
                    "ends, or stop it"
                )
            if not silent:
                notify(
                    f"{owner} is still registered as playing this run; Parley waits {STALE:.0f} "
                    "seconds for a sign of life, and then takes the run over"
                )
            await asyncio.sleep(WATCH)
        try:
            refuse_changed(connection, str(self.path))
        except StoreError:
            connection.execute("ROLLBACK")
            raise
        connection.execute(
            "UPDATE runs SET owner = ?, token = ?, beat = ?, beats = beats + 1",
            (process_id(), self.token, time.time()),
        )
        connection.execute("COMMIT")

    def _load(self, connection: sqlite3.Connection) -> None:
        """Read whether the run keeps digests, and the records of unfinished matches."""
        (origin,) = connection.execute("SELECT origin FROM runs").fetchone()
        self.keeps_digests = origin is not None
        open_matches = "SELECT number FROM matches WHERE state NOT IN ('done', 'aborted')"
        # the rounds of an open match are written again from the first on, and so is their chain
        for match, ends in open_chain_ends(connection).items():
            self._chains[match] = ends._replace(rounds="")
        for match, *row in connection.execute(
            f"SELECT match, {FIELDS} FROM calls WHERE match IN ({open_matches})"
        ):
            call = call_from(row)
            self._kept.setdefault(match, {})[call.round, call.seat.key, call.attempt] = call
        for match, round, number, saw, result in connection.execute(
            f"SELECT match, round, number, saw, result FROM effects WHERE match IN ({open_matches})"
        ):
            self._effects.setdefault(match, {})[round, number] = saw, orjson.loads(result)

    async def reconfigure(self, config: Config) -> None:
        await self.commit("UPDATE runs SET config = ?", (config.encoded().decode(),))

    async def set_spending(self, calls: int, usd: float | None) -> None:
        await self.commit("UPDATE runs SET spent = ?", (encode_json({"calls": calls, "usd": usd}),))

    async def set_unanswered(self, requests: Mapping[str, Mapping[str, int]]) -> None:
        await self.commit("UPDATE runs SET lost = ?", (encode_json(requests),))

    async def set_endpoint_health(self, health: Mapping[str, EndpointRecord]) -> None:
        facts = {alias: each._asdict() for alias, each in health.items()}
        await self.commit("UPDATE runs SET health = ?", (encode_json(facts),))

    async def set_prices(self, prices: Sequence[Mapping[str, Any]]) -> None:
        await self.commit("UPDATE runs SET prices = ?", (encode_json(prices),))

    async def add_matches(self, specs: Sequence[MatchSpec]) -> None:
        for spec in specs:
            self._batch.inserts[MATCH].append(match_row(spec))
        await self.commit(
            "UPDATE runs SET planned = MAX(planned, (SELECT COUNT(*) FROM matches))", ()
        )

    async def add_recalled(self, rows: Sequence[Recalled]) -> None:
        self._batch.inserts[RECALLED] += map(recalled_row, rows)
        await self.acknowledged()

    async def ask_people(self, places: Sequence[tuple[int, Seat]]) -> None:
        self._batch.inserts[ASKED] += [(match, seat.key) for match, seat in places]
        await self.acknowledged()

    async def set_people_verdicts(self, verdicts: Sequence[PeopleVerdict]) -> None:
        self._batch.changes += [
            (VERDICT, (each.yes, each.no, each.unsure, each.match, each.seat.key))
            for each in verdicts
        ]
        await self.acknowledged()

    def claim(self, number: int) -> Record:
        self._batch.claims.append(number)
        self.wake()
        record = self._played[number] = MatchRecord(
            self,
            number,
            self._kept.pop(number, {}),
            self._effects.pop(number, {}),
            self._chains.pop(number, ChainEnds()),
        )
        return record

    async def restart(self, number: int) -> tuple[Record, Counter[Seat]]:
        gone = Counter(call.seat for call in self._played[number].kept_calls)
        for table in CHAINS:
            self._batch.changes.append((f"DELETE FROM {table} WHERE match = ?", (number,)))
        record = self._played[number] = MatchRecord(self, number, {}, {}, ChainEnds())
        await self.acknowledged()
        return record, gone

    async def heartbeat(self) -> None:
        await self.commit("UPDATE runs SET beat = ?, beats = beats + 1", (time.time(),))

    async def finish(self, number: int, outcome: Outcome) -> None:
        if number not in self._played:
            raise StoreError(
                f"match {number} is not being played: it has not started yet, or has already ended"
            )
        batch = self._batch
        scores = [
            (number, seat.key, metric, value)
            for seat, by in outcome.scores.items()
            for metric, value in by.items()
        ]
        violations = [
            violation_row(number, n, violation) for n, violation in enumerate(outcome.violations)
        ]
        notes = [note_row(number, n, note) for n, note in enumerate(outcome.notes)]
        for statement, rows in ((SCORE, scores), (VIOLATION, violations), (NOTE, notes)):
            if rows:
                batch.inserts[statement] += rows
        end = outcome.state, outcome.reason or None, outcome.rounds
        chains = self._played.pop(number).chains
        digest = (
            digest_match(number, end, chains, scores, violations, notes)
            if self.keeps_digests
            else None
        )
        batch.ends.append((number, *end, time.time(), digest))
        await self.acknowledged()

    async def fail(self, number: int, reason: str) -> None:
        self._played.pop(number, None)
        await self.commit(
            "UPDATE matches SET state = 'failed', reason = ? WHERE number = ?", (reason, number)
        )

    async def set_state(self, state: str, status: str | None, reason: str) -> None:
        self._batch.changes.append(
            ("UPDATE matches SET state = 'stopped' WHERE state = 'running'", ())
        )
        self._batch.seals = True
        await self.commit(
            "UPDATE runs SET state = ?, stop_status = ?, stop_reason = ?",
            (state, status, reason or None),
        )

    async def keep_parts(self, parts: Sequence[StoredPart]) -> None:
        self._batch.changes.append(("DELETE FROM part_results", ()))
        self._batch.changes += [(PART, astuple(part)) for part in parts]
        await self.acknowledged()

    async def close(self) -> None:
        """Release the run; afterwards everything is in one file."""
        if self._thread.is_alive():
            await self._idle.wait()
            self._queue.put(None)
            await self._ended

    def acknowledged(self) -> asyncio.Future[None]:
        """Wait until the current batch is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self._fault:
            future.set_exception(StoreError(self._fault))
        else:
            self._batch.waiting.append(future)
            self.wake()
        return future

    def add_row(self, statement: str, row: tuple[Any, ...]) -> None:
        self._batch.inserts[statement].append(row)

    async def commit(self, statement: str, values: tuple[Any, ...]) -> None:
        self._batch.changes.append((statement, values))
        await self.acknowledged()

    def wake(self) -> None:
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self.commits += 1
        batch, self._batch = self._batch, Batch()
        self._queue.put(batch)

    def _acknowledge(self, batch: Batch, fault: str) -> None:
        """Wake the callers that wait. After a fault nothing more is written: an incomplete record
        would be worse."""
        self._fault = self._fault or fault
        for future in [*batch.waiting, *(self._batch.waiting if self._fault else ())]:
            if not future.done():
                if self._fault:
                    future.set_exception(StoreError(self._fault))
                else:
                    future.set_result(None)
        if self._fault:
            self._batch = Batch()
        if self._batch and len(batch.waiting) >= CROWD:
            # with many callers, a short wait lets one commit serve more of them
            self._loop.call_later(LINGER, self._hand_over)
        elif self._batch:
            self._hand_over()
        else:
            self._idle.set()

    def _write_all(self, connection: sqlite3.Connection) -> None:
        """The writer thread: one transaction per batch."""
        try:
            while (batch := self._queue.get()) is not None:
                fault = ""
                try:
                    if not self._there():
                        raise StoreError("the file was moved or deleted during the run")
                    write_batch(connection, batch, self.token)
                except Exception as wrong:  # whatever it is, no caller may wait forever
                    fault = f"{self.path} could not be written: {wrong}"
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                self._loop.call_soon_threadsafe(self._acknowledge, batch, fault)
        finally:
            if self._there():
                release_and_checkpoint(connection, self.token)
            connection.close()
            self._loop.call_soon_threadsafe(self._ended.set_result, None)

    def _there(self) -> bool:
        """Whether the path still leads to the file that is being written."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._file


class MatchRecord:
    """The journal of one match. Each row has a digest that covers the one before it, unless the run
    began without digests."""

    __slots__ = (
        "_calls_end",
        "_effects",
        "_effects_end",
        "_journal",
        "_kept",
        "_number",
        "_rounds_end",
    )

    def __init__(
        self,
        journal: SqliteJournal,
        number: int,
        kept: dict[tuple[int, str, int], RecordedCall],
        effects: dict[tuple[int, int], tuple[bytes, Any]],
        chains: ChainEnds,
    ) -> None:
        self._journal, self._number, self._kept, self._effects = journal, number, kept, effects
        self._calls_end, self._effects_end, self._rounds_end = chains

    @property
    def kept_calls(self) -> list[RecordedCall]:
        """The replies that were on record when the match was claimed."""
        return list(self._kept.values())

    @property
    def chains(self) -> ChainEnds:
        """The last digests of the match's chains."""
        return ChainEnds(self._calls_end, self._effects_end, self._rounds_end)

    def call(self, round: int, seat: Seat, attempt: int) -> RecordedCall | None:
        return self._kept.get((round, seat.key, attempt)) if self._kept else None

    def append(self, call: RecordedCall) -> Awaitable[None]:
        row = call_row(self._number, call)
        if self._journal.keeps_digests:
            self._calls_end = digest_row(row, self._calls_end, SPECIAL)
        self._journal.add_row(CALL, (*row, self._calls_end or None))
        return self._journal.acknowledged()

    def effect(self, round: int, number: int) -> tuple[bytes, Any] | None:
        return self._effects.get((round, number))

    async def append_effect(self, round: int, number: int, saw: bytes, result: Any) -> None:
        row = self._number, round, number, saw, encode_json(result)
        if self._journal.keeps_digests:
            self._effects_end = digest_row(row, self._effects_end)
        self._journal.add_row(EFFECT, (*row, self._effects_end or None))
        await self._journal.acknowledged()

    def circulate(self, messages: list[Message], first: int) -> None:
        if messages:
            row = round_row(self._number, first, messages)
            if self._journal.keeps_digests:
                self._rounds_end = digest_row(row, self._rounds_end)
            self._journal.add_row(ROUND, (*row, self._rounds_end or None))
            self._journal.wake()

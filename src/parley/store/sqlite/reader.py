"""A run's file, read: nothing here writes, and a run may be read while it is played."""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import orjson

from parley.errors import StoreError, UsageError
from parley.match.record import Call
from parley.rules.pool import Seat, text_of
from parley.store import Score
from parley.store.config import Config
from parley.store.sqlite.owner import lives
from parley.store.sqlite.rows import FIELDS, call_from
from parley.store.sqlite.schema import VERSION, newer, summed, version_of
from parley.tables import clip

MATCH_FIELDS = (
    "number",
    "block",
    "item",
    "repeat",
    "seed",
    "seats",
    "idle",
    "state",
    "reason",
    "rounds",
    "began",
    "ended",
)


class Archive:
    """One run. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._connection = opened(path)
        except (OSError, sqlite3.Error) as wrong:
            raise StoreError(f"{path} cannot be read as a run: {wrong}") from None
        try:
            version = version_of(self._connection, str(path))
            if version < VERSION:
                self._connection = newer(self._connection, version)
            self._connection.execute("BEGIN")  # one moment of the run, however long it is looked at
            row = self._row(
                "SELECT id, created, config, identity, state, stop_status, stop_reason, planned, "
                "owner, beat FROM runs"
            )
            if row is None:
                raise StoreError(f"{path} holds no run")
        except sqlite3.Error as wrong:
            self._connection.close()
            raise StoreError(f"{path} cannot be read as a run: {wrong}") from None
        except StoreError:
            self._connection.close()
            raise
        (
            self.id,
            self.created,
            config,
            identity,
            self.state,
            self.status,
            self.reason,
            self.planned,
            owner,
            beat,
        ) = row
        try:
            self.config, self.identity = Config.decoded(config), decoded(identity)
            held = bool(owner) and lives(str(owner), float(beat or 0))
        except (ValueError, KeyError, TypeError, StoreError, UsageError) as wrong:
            self._connection.close()
            raise StoreError(
                f"{path} holds a run whose configuration cannot be read: {wrong}"
            ) from None
        if self.state == "running" and not held:
            self.state, self.status, self.reason = (
                "stopped",
                "interrupted",
                "the process ended without a word",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        if type(wrong) is StoreError and str(self.path) not in str(wrong):
            raise StoreError(f"{self.path}: {wrong}") from None
        if isinstance(
            wrong, KeyError | TypeError | ValueError | AttributeError | IndexError | ArithmeticError
        ):
            raise StoreError(
                f"{self.path} holds something unexpected: {type(wrong).__name__}: {wrong}"
            ) from wrong

    def _row(self, query: str, *values: Any) -> Any:
        found = self._rows(query, *values)
        return found[0] if found else None

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except (sqlite3.Error, OverflowError) as wrong:
            raise StoreError(f"{self.path} cannot be read: {wrong}") from None

    def items(self) -> list[dict[str, Any]]:
        """The items that the run is played on, as they were when it began."""
        return [decoded(data) for (data,) in self._rows("SELECT data FROM items ORDER BY number")]

    def counts(self) -> dict[str, int]:
        """Matches by state."""
        return dict(self._rows("SELECT state, COUNT(*) FROM matches GROUP BY state"))

    def matches(self) -> list[dict[str, Any]]:
        """All matches known so far."""
        return [
            match_from(row)
            for row in self._rows(f"SELECT {', '.join(MATCH_FIELDS)} FROM matches ORDER BY number")
        ]

    def match(self, number: int) -> dict[str, Any] | None:
        """One match."""
        row = self._row(f"SELECT {', '.join(MATCH_FIELDS)} FROM matches WHERE number = ?", number)
        return None if row is None else match_from(row)

    def scores(self, judge: str = "") -> list[Score]:
        """Every score of every finished match; a missing one has no value. `judge`: those that
        another run gave."""
        rows = self._rows(
            "SELECT match, block, seat, seats, idle, metric, value FROM scores "
            "JOIN matches ON match = matches.number "
            "WHERE judge = ? AND state IN ('done', 'aborted') ORDER BY match, seat, metric",
            judge,
        )
        casts: dict[str, dict[str, str]] = {}
        found = []
        for match, block, seat, seats, idle, metric, value in rows:
            if not (value is None or (isinstance(value, float | int) and math.isfinite(value))):
                raise StoreError(f"match {match} has a score that is no number: {clip(value)}")
            cast = casts.get(seats) or casts.setdefault(seats, decoded(seats))
            found.append(
                Score(
                    match,
                    block,
                    Seat.of(seat),
                    cast[seat],
                    metric,
                    value,
                    bool(idle) and seat in decoded(idle),
                )
            )
        return found

    def strangers(self) -> list[int]:
        """Matches that have scores but are not among the run's."""
        rows = self._rows(
            "SELECT DISTINCT match FROM scores WHERE match NOT IN (SELECT number FROM matches) "
            "ORDER BY match"
        )
        return [match for (match,) in rows]

    def scores_of(self, number: int) -> dict[Seat, dict[str, float | None]]:
        """The scores of one match, by seat and metric."""
        table: dict[Seat, dict[str, float | None]] = {}
        rows = self._rows(
            "SELECT seat, metric, value FROM scores WHERE match = ? AND judge = '' "
            "ORDER BY seat, metric",
            number,
        )
        for seat, metric, value in rows:
            table.setdefault(Seat.of(seat), {})[metric] = value
        return table

    def finished(self) -> dict[int, dict[Seat, dict[str, float | None]]]:
        """The scores of every match that has ended, by match."""
        ended = self._rows(
            "SELECT number FROM matches WHERE state IN ('done', 'aborted') ORDER BY number"
        )
        table: dict[int, dict[Seat, dict[str, float | None]]] = {number: {} for (number,) in ended}
        for score in self.scores():
            table[score.match].setdefault(score.seat, {})[score.metric] = score.value
        return table

    def effects(self, number: int) -> dict[tuple[int, int], tuple[bytes, Any]]:
        """A match's programs that were run, by round and number."""
        rows = self._rows("SELECT round, number, saw, result FROM effects WHERE match = ?", number)
        return {(round, n): (saw, decoded(result)) for round, n, saw, result in rows}

    def calls(self, number: int) -> list[Call]:
        """A match's calls in the order of round, seat and attempt."""
        rows = self._rows(
            f"SELECT {FIELDS} FROM calls WHERE match = ? ORDER BY round, seat, attempt", number
        )
        return [call_from(row) for row in rows]

    def lengths(self) -> dict[tuple[int, str], int]:
        """How many characters each seat has said in each match, by match and seat."""
        rows = self._rows(
            "SELECT match, seat, SUM(LENGTH(content)) FROM calls GROUP BY match, seat"
        )
        return {(match, seat): length for match, seat, length in rows}

    def calls_since(self, cursor: int) -> list[tuple[int, int, Call]]:
        """(cursor, match, call) for every call recorded after a cursor: how a page follows a
        run."""
        rows = self._rows(f"SELECT id, match, {FIELDS} FROM calls WHERE id > ? ORDER BY id", cursor)
        return [(id, match, call_from(row)) for id, match, *row in rows]

    def messages(self, number: int) -> list[dict[str, Any]]:
        """A match's record in order; replies carry the words of their call."""
        words = {
            (call.round, call.seat.key, call.attempt): text_of(call.reply.content)
            for call in self.calls(number)
        }
        found = []
        for first, messages in self._rows(
            "SELECT first, messages FROM rounds WHERE match = ? ORDER BY first", number
        ):
            for n, (round, kind, sender, audience, content, attempt) in enumerate(
                decoded(messages), first
            ):
                said = words.get((round, sender, attempt)) if kind == "reply" else content
                facts = {
                    "number": n,
                    "round": round,
                    "kind": kind,
                    "sender": sender,
                    "audience": audience,
                }
                found.append({**facts, "content": said, "attempt": attempt})
        return found

    def notes(self, number: int) -> list[dict[str, Any]]:
        """What the rule wrote down for reports."""
        rows = self._rows("SELECT round, facts FROM notes WHERE match = ? ORDER BY number", number)
        return [{"round": round, **decoded(facts)} for round, facts in rows]

    def guarantees(self) -> Counter[str]:
        """What the verdicts on programs rest on, in matches that have ended, and how often."""
        rows = self._rows(
            "SELECT result FROM effects e JOIN matches m ON e.match = m.number "
            "WHERE state IN ('done', 'aborted')"
        )
        verdicts = [decoded(result) for (result,) in rows]
        return Counter(
            str(each["guarantee"])
            for each in verdicts
            if isinstance(each, dict) and "guarantee" in each
        )

    def violations(self, number: int | None = None) -> list[dict[str, Any]]:
        """Violations of one match or of all, each with the alias that sat in the seat."""
        rows = self._rows(
            "SELECT v.match, s.value, v.round, v.seat, v.attempt, v.kind, v.detail, v.outcome "
            "FROM violations v "
            "JOIN matches m ON v.match = m.number JOIN json_each(m.seats) s ON s.key = v.seat "
            + ("" if number is None else "WHERE v.match = ? ")
            + "ORDER BY v.match, v.number",
            *(() if number is None else (number,)),
        )
        names = ("match", "alias", "round", "seat", "attempt", "kind", "detail", "outcome")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def usage(self) -> list[dict[str, Any]]:
        """Calls and tokens by alias and seat; what endpoints did not count is None."""
        names = (
            "alias",
            "seat",
            "calls",
            "tokens_in",
            "tokens_cached",
            "tokens_out",
            "tokens_reasoning",
        )
        rows = self._rows(f"SELECT {', '.join(names)} FROM usage ORDER BY alias, seat")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def spending(self, starts: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Calls and tokens by alias, seat and model served, calls of different size apart: from
        `starts` on prices change.

        `counted` are the calls whose tokens are known, `any` those of which something is; `least`
        is the smallest call.
        """
        size = "".join(f", COALESCE(c.tokens_in, 0) > {start:d}" for start in starts)
        names = (
            "alias",
            "seat",
            "model",
            "calls",
            "counted",
            "any",
            "least",
            "tokens_in",
            "tokens_cached",
            "tokens_out",
        )
        kinds = (*names[7:], "tokens_reasoning", "tokens_written")
        rows = self._rows(
            "SELECT s.value, c.seat, c.model, COUNT(*), COUNT(c.tokens_in + c.tokens_out), "
            f"COUNT(COALESCE(c.tokens_in, c.tokens_out)), MIN(c.tokens_in), "
            f"{', '.join(summed(f'c.{kind}') for kind in kinds)} "
            "FROM calls c JOIN matches m ON c.match = m.number JOIN json_each(m.seats) "
            "s ON s.key = c.seat "
            f"WHERE c.pinned IS NULL GROUP BY 1, 2, 3{size} ORDER BY 1, 2, 3"
        )
        return [dict(zip((*names[:7], *kinds), row, strict=True)) for row in rows]

    def named(self, pinned: bool = False) -> list[tuple[str, str | None]]:
        """Every alias with every name that its model was served under; None where an endpoint did
        not say.

        `pinned`: also in calls that were taken over from another run.
        """
        rows = self._rows(
            "SELECT DISTINCT s.value, c.model FROM calls c JOIN matches m ON c.match = m.number "
            f"JOIN json_each(m.seats) s ON s.key = c.seat "
            f"{'' if pinned else 'WHERE c.pinned IS NULL'} ORDER BY 1, 2"
        )
        return [(alias, model) for alias, model in rows]

    def served(self) -> dict[str, list[str]]:
        """The names that endpoints gave their models, by alias."""
        found: dict[str, list[str]] = {}
        for alias, model in self.named(pinned=True):
            if model is not None:
                found.setdefault(alias, []).append(model)
        return found

    def prices(self) -> list[dict[str, Any]]:
        """What models cost when the run was played, by alias and the name it was served under."""
        found: list[dict[str, Any]] = decoded(self._row("SELECT prices FROM runs")[0] or "[]")
        return found

    def left_out(self) -> list[dict[str, Any]]:
        """Options that were set and that endpoints did not take, by alias, with the calls that went
        without them."""
        rows = self._rows(
            "SELECT s.value, c.left_out, COUNT(*) FROM calls c "
            "JOIN matches m ON c.match = m.number "
            "JOIN json_each(m.seats) s ON s.key = c.seat WHERE c.left_out IS NOT NULL GROUP BY "
            "1, 2 ORDER BY 1, 2"
        )
        return [
            {"alias": alias, "options": str(options).split(","), "calls": calls}
            for alias, options, calls in rows
        ]

    def recorded(self) -> int:
        """How many replies are on record that were asked for here."""
        return int(self._row("SELECT COUNT(*) FROM calls WHERE pinned IS NULL")[0])

    def left(self) -> tuple[int, float | None]:
        """How many calls have left at the most, and what they cost at the most where that was
        kept."""
        kept = decoded(self._row("SELECT spent FROM runs")[0] or "{}")
        return max(self.recorded(), int(kept.get("calls") or 0)), kept.get("usd")

    def lost(self) -> dict[str, dict[str, int]]:
        """Requests that broke off after they had left, by alias and role: they may have been paid
        without a reply on record."""
        found: dict[str, dict[str, int]] = decoded(self._row("SELECT lost FROM runs")[0] or "{}")
        return found


def decoded(text: Any) -> Any:
    """JSON from a record; what is none has been tampered with, or torn."""
    try:
        return orjson.loads(text)
    except (ValueError, TypeError) as wrong:
        raise StoreError(f"the record holds something that is no JSON: {wrong}") from None


def match_from(row: Any) -> dict[str, Any]:
    """A match as a row keeps it."""
    facts = dict(zip(MATCH_FIELDS, row, strict=True))
    return {
        **facts,
        "seats": decoded(facts["seats"]),
        "idle": decoded(facts["idle"]) if facts["idle"] else [],
    }


def opened(path: Path) -> sqlite3.Connection:
    """A connection that only reads; in a folder that cannot be written, the file alone is read."""
    if not path.is_file():
        raise StoreError(f"there is no file {path}")
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=10, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if Path(f"{path}-wal").exists():
            raise
        connection = sqlite3.connect(f"{address}&immutable=1", uri=True, isolation_level=None)
    return connection

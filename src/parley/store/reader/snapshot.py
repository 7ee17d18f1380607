"""A snapshot of a run: queries, and checks of what they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, NoReturn

import orjson

from parley.errors import StoreError
from parley.rules.pool import Seat
from parley.store.decoding import find_misfit
from parley.store.dialect import Dialect
from parley.store.owner import Owner, seems_alive
from parley.store.tables import MATCHES, RUN_TABLES, list_names
from parley.store.types import DigestFault, RunInfo, RunRef, WorkerRow
from parley.tables import shorten

SEATS = MATCHES.types("seats")


class Snapshot(ABC):
    """A consistent snapshot of one run in its store.

    What cannot be read, or is not what a run holds, raises `StoreError`.
    """

    dialect: ClassVar[Dialect]
    remedy: ClassVar[str]  # for a damaged record
    info: RunInfo

    def __init__(self, ref: RunRef) -> None:
        self.ref = ref
        self._seats: dict[str, Seat] = {}
        self._seatings: dict[str, dict[Seat, str]] = {}
        self._unscored: dict[str, frozenset[Seat]] = {}

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def rows(self, query: str, *values: Any) -> Iterator[Any]:
        """Run a query on the tables of this run; values are marked by `?`."""

    def row(self, query: str, *values: Any) -> Any:
        return next(self.rows(query, *values), None)

    def rows_by_match(self, query: str, span: tuple[int, int]) -> dict[int, list[Any]]:
        """Rows whose first column is the number of a match, by this number."""
        groups = groupby(self.rows(query, *span), itemgetter(0))
        return {number: list(rows) for number, rows in groups}

    @abstractmethod
    def find_changes(
        self, report: Callable[[int], None] = lambda checked: None
    ) -> Iterator[DigestFault]:
        """Where the record does not match its digests, which are all recomputed. `report` is called
        now and then with the number of matches checked."""

    def moved_rows(self, table: str) -> Iterator[Any]:
        """The rows of a table as they move to another store."""
        spec = RUN_TABLES[table]
        return self.rows(f"SELECT {list_names(spec.moved)} FROM {table} ORDER BY {spec.order}")

    def workers(self) -> list[WorkerRow]:
        """The workers of a shared run, the oldest first."""
        return []

    def is_played(self, owner: Owner, heartbeat: float) -> bool:
        """Whether a process plays the run now."""
        return seems_alive(owner, heartbeat)

    def why_interrupted(self) -> str:
        """Why nobody plays a run that has not ended."""
        return "the process was killed or crashed"

    def counters(self) -> tuple[str | None, str | None, str | None]:
        """Spending, unanswered requests and the health of endpoints, as JSON."""
        found: tuple[str | None, str | None, str | None] = self.row(
            "SELECT spent, unanswered, health FROM runs"
        )
        return found

    def refuse(self, what: str) -> NoReturn:
        """Refuse the run: its record is damaged."""
        raise StoreError(f"{self.ref.location} is damaged: {what}; {self.remedy}")

    def check(self, row: Sequence[Any], kinds: Any, what: str) -> None:
        """Refuse a row whose columns have wrong types."""
        for value, allowed in zip(row, kinds, strict=True):
            if not isinstance(value, allowed):
                self.refuse(f"{what} has the invalid value {shorten(value)}")

    def decode(self, text: Any, kind: Any, what: str) -> Any:
        try:
            value = orjson.loads(text)
        except (ValueError, TypeError) as wrong:
            self.refuse(f"{what} is not valid JSON: {wrong}")
        if misfit := find_misfit(value, kind, what):
            self.refuse(misfit)
        return value

    def seat(self, key: Any, what: str) -> Seat:
        if key in self._seats:
            return self._seats[key]
        try:
            seat = Seat.of(key)
        except (ValueError, AttributeError):
            self.refuse(f"{what}: {shorten(key)} is not a seat")
        if seat.role not in self.info.identity["roles"]:
            self.refuse(f"{what}: {shorten(key)} is not a seat of this task")
        self._seats[key] = seat
        return seat

    def seating(self, text: str, what: str) -> dict[Seat, str]:
        """The model in each seat; many matches share a seating."""
        if text not in self._seatings:
            self.check((text,), SEATS, what)
            cast = self.decode(text, dict[str, str], f"the seats of {what}")
            for alias in cast.values():
                if alias not in self.info.config.models:
                    self.refuse(f"{what}: {shorten(alias)} is not a model in this run")
            self._seatings[text] = {self.seat(key, what): alias for key, alias in cast.items()}
        return self._seatings[text]

    def unscored_seats(self, text: str | None, what: str) -> frozenset[Seat]:
        if not text:
            return frozenset()
        if text not in self._unscored:
            keys = self.decode(text, list[str], f"the unscored seats of {what}")
            self._unscored[text] = frozenset(self.seat(key, what) for key in keys)
        return self._unscored[text]

    def alias_in(self, seats: Mapping[Seat, str], key: str, what: str) -> tuple[Seat, str]:
        """The model in one of these seats."""
        seat = self.seat(key, what)
        alias = seats.get(seat)
        if alias is None:
            self.refuse(f"{what}: no model held the seat {shorten(key)}")
        return seat, alias

    def known_alias(self, alias: Any) -> str:
        if alias not in self.info.config.models:
            self.refuse(f"{shorten(alias)} is not a model of the run")
        return str(alias)


class Section:
    """A part of a run, which is read from a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._dialect = snapshot, snapshot.dialect

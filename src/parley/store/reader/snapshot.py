"""What all readers of a run share: queries, and checks of what they give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, Self

import orjson

from parley.errors import StoreError
from parley.rules.pool import Seat
from parley.store.decoding import find_misfit
from parley.store.dialect import Dialect
from parley.store.tables import MATCHES
from parley.store.types import RunInfo, RunRef
from parley.tables import shorten

SEATS = MATCHES.types("seats")


class Snapshot(ABC):
    """A consistent snapshot of one run. Use it as a context manager.

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _rows(self, query: str, *values: Any) -> Iterator[Any]:
        """Run a query on the tables of this run; values are marked by `?`."""

    def _row(self, query: str, *values: Any) -> Any:
        return next(self._rows(query, *values), None)

    def _by_match(self, query: str, span: tuple[int, int]) -> dict[int, list[Any]]:
        """Rows whose first column is the number of a match, by this number."""
        groups = groupby(self._rows(query, *span), itemgetter(0))
        return {number: list(rows) for number, rows in groups}

    def _damaged(self, what: str) -> NoReturn:
        raise StoreError(f"{self.ref.location} is damaged: {what}; {self.remedy}")

    def _check(self, row: Sequence[Any], kinds: Any, what: str) -> None:
        """Refuse a row whose columns have wrong types."""
        for value, allowed in zip(row, kinds, strict=True):
            if not isinstance(value, allowed):
                self._damaged(f"{what} has the invalid value {shorten(value)}")

    def _json(self, text: Any, kind: Any, what: str) -> Any:
        try:
            value = orjson.loads(text)
        except (ValueError, TypeError) as wrong:
            self._damaged(f"{what} is not valid JSON: {wrong}")
        if misfit := find_misfit(value, kind, what):
            self._damaged(misfit)
        return value

    def _seat(self, key: Any, what: str) -> Seat:
        if key in self._seats:
            return self._seats[key]
        try:
            seat = Seat.of(key)
        except (ValueError, AttributeError):
            self._damaged(f"{what}: {shorten(key)} is not a seat")
        if seat.role not in self.info.identity["roles"]:
            self._damaged(f"{what}: {shorten(key)} is not a seat of this task")
        self._seats[key] = seat
        return seat

    def _seating(self, text: str, what: str) -> dict[Seat, str]:
        """The model in each seat; many matches share a seating."""
        if text not in self._seatings:
            self._check((text,), SEATS, what)
            cast = self._json(text, dict[str, str], f"the seats of {what}")
            for alias in cast.values():
                if alias not in self.info.config.models:
                    self._damaged(f"{what}: {shorten(alias)} is not a model in this run")
            self._seatings[text] = {self._seat(key, what): alias for key, alias in cast.items()}
        return self._seatings[text]

    def _unscored_seats(self, text: str | None, what: str) -> frozenset[Seat]:
        if not text:
            return frozenset()
        if text not in self._unscored:
            keys = self._json(text, list[str], f"the unscored seats of {what}")
            self._unscored[text] = frozenset(self._seat(key, what) for key in keys)
        return self._unscored[text]

    def _alias(self, seats: Mapping[Seat, str], key: str, what: str) -> tuple[Seat, str]:
        """The model in one of these seats."""
        seat = self._seat(key, what)
        alias = seats.get(seat)
        if alias is None:
            self._damaged(f"{what}: no model held the seat {shorten(key)}")
        return seat, alias

    def _known_alias(self, alias: Any) -> str:
        if alias not in self.info.config.models:
            self._damaged(f"{shorten(alias)} is not a model of the run")
        return str(alias)

"""The record of a run, read by SQL that both databases understand, and checked."""

from __future__ import annotations

import math
import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import median
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypedDict, get_args

import orjson

from parley.errors import StoreError, UsageError
from parley.match.protocol import CallPlace, DeviceSetup
from parley.match.record import RecordedCall
from parley.memory.experiences import Experience, Recalled, ShownExperience
from parley.memory.interactions import NOT_TAKEN, RecordedMatch, RecordedReply
from parley.plans import Marks
from parley.plans.evolve_settings import PROBE
from parley.rules.parsing import is_deeper_than
from parley.rules.pool import Example, Seat, text_of
from parley.store import (
    BlockScores,
    DeviceTime,
    DigestFault,
    EndpointRecord,
    HistoryEntry,
    HistoryKind,
    MatchRow,
    MedianLatency,
    NoteRow,
    RecentCall,
    RunInfo,
    RunRef,
    Score,
    ScoreCell,
    ScoreSum,
    SeatingCount,
    StageUsage,
    StoredPart,
    UsageRow,
    ViolationRow,
    WholeMatch,
    WorkerRow,
)
from parley.store.config import DEEPEST, Config, Identity, PriceFacts
from parley.store.decoding import find_misfit
from parley.store.owner import Owner, seems_alive
from parley.store.sql.call_rows import COLUMNS as CALL_COLUMNS
from parley.store.sql.call_rows import FIELDS, call_from
from parley.store.sql.dialect import AT_ONCE, ENDED_MATCHES, LARGEST, SMALLEST, Dialect
from parley.store.sql.rows import setup_from
from parley.store.tables import (
    BATCH_REQUESTS,
    BATCHES,
    HISTORY,
    MATCHES,
    PART_RESULTS,
    PEOPLE_VERDICTS,
    RECALLED,
    RUNS,
    SUMS,
)
from parley.tables import shorten

if TYPE_CHECKING:
    from parley.memory.feedback import PeopleVerdict
    from parley.store.batch_records import Batch, OpenBatch
    from parley.store.match_search import FoundMatches, MatchSearch

TEXT, WHOLE, NUMBER = (str,), (int,), (int, float)
TEXT_OR_NULL, WHOLE_OR_NULL, NUMBER_OR_NULL = (
    (*kinds, NoneType) for kinds in (TEXT, WHOLE, NUMBER)
)
Kinds = tuple[type, ...]
SECRET = re.compile(r"[0-9a-f]{32}")
OPEN_REQUESTS = (
    f"SELECT {BATCH_REQUESTS.row} FROM batch_requests AS r WHERE failed = 0 "
    "AND batch IN (SELECT number FROM batches WHERE state != 'dropped') "
    "AND NOT EXISTS (SELECT 1 FROM calls AS c WHERE c.match = r.match AND c.round = r.round "
    "AND c.seat = r.seat AND c.attempt = r.attempt) ORDER BY batch, number"
)
RUN = (
    *("id", "created", "config", "identity", "state", "status", "reason", "planned", "owner"),
    *("heartbeat", "digest"),
)
RUN_TYPES = RUNS.types(*RUN)
MATCH = [each.name for each in MATCHES.columns if each.name not in (*SUMS, "digest")]
MATCH_TYPES = MATCHES.types(*MATCH)
SCORE = (WHOLE, TEXT, TEXT, TEXT, TEXT_OR_NULL, TEXT)
NOTE = (WHOLE, WHOLE, TEXT_OR_NULL, TEXT)
VIOLATION = (WHOLE, TEXT, WHOLE, TEXT, WHOLE, TEXT, TEXT, TEXT)
USAGE = (TEXT, TEXT, TEXT_OR_NULL, WHOLE, WHOLE, WHOLE, *(WHOLE_OR_NULL,) * 6)
CALL = [column.types for column in CALL_COLUMNS]
DEVICE_TIME = (TEXT, WHOLE_OR_NULL, WHOLE, NUMBER, WHOLE_OR_NULL, WHOLE_OR_NULL)
RECENT = (WHOLE, TEXT, TEXT, WHOLE, NUMBER_OR_NULL, NUMBER, NUMBER_OR_NULL)
EFFECT = (WHOLE, WHOLE, (bytes,), TEXT)
REPLY = (WHOLE, TEXT, TEXT, TEXT)
SAID = (WHOLE, WHOLE, TEXT, WHOLE, TEXT, TEXT)
NOBODY: frozenset[Seat] = frozenset()
LATEST = 253_402_300_799  # seconds from 1970 to the end of the year 9999
ANY_VALUE = (-sys.float_info.max, sys.float_info.max)
# a seat, its alias, whether it is unscored, and the range of its scores in a metric
ScorePlace = tuple[Seat, str, bool, float, float]


class RecalledFacts(TypedDict):
    """The experiences that a seat was shown, as recorded."""

    shown: list[list[Any]]
    k: int
    dropped: int
    shuffle: str


class TransferredFacts(TypedDict):
    """An experience of another run, as recorded."""

    match: int
    seat: str
    alias: str
    role: str
    item: str
    stage: int
    arm: str
    series: int
    cue: str
    turns: list[list[str]]
    success: bool
    right: bool
    subject: str
    lesson: str


class SettingsFacts(TypedDict):
    """Settings of a run, as its history has them."""

    settings: dict[str, Any]


class SealFacts(TypedDict):
    """The end of a run when it was sealed, as its history has it."""

    state: str
    status: str | None
    reason: str | None
    matches: int


ENTRY_FACTS = {
    "began": SettingsFacts,
    "opened": dict[str, Any],
    "settings": SettingsFacts,
    "prices": dict[str, Any],
    "sealed": SealFacts,
}


class RecordReader(ABC):
    """One run in a store. Use it as a context manager."""

    dialect: ClassVar[Dialect]
    remedy: ClassVar[str]  # for a damaged record

    def __init__(self, ref: RunRef) -> None:
        self.ref = ref
        self._seats: dict[str, Seat] = {}
        self._seatings: dict[str, dict[Seat, str]] = {}
        self._unscored: dict[str, frozenset[Seat]] = {}
        self._ranges: dict[str, tuple[float, float]] = {}
        self._match_types: set[tuple[type, ...]] = set()  # of rows that were checked
        self._note_types: set[tuple[type, ...]] = set()
        self._usage_of_all: tuple[UsageRow, ...] | None = None

    def _set_info(self, row: Any) -> None:
        """Set the facts of the run from its row."""
        self.info = self._read_info(row)
        self._ranges = {
            metric["name"]: (metric["low"], metric["high"])
            for metric in self.info.identity["metrics"]
        }

    def _read_info(self, row: Any) -> RunInfo:
        if row is None:
            raise StoreError(f"{self.ref.location} contains no run: it may be incomplete")
        self._check(row, RUN_TYPES, "the run")
        id, created, config, identity, state, status, reason, planned, owner, heartbeat, digest = (
            row
        )
        try:
            known = Config.decoded(config)
        except (ValueError, TypeError, UsageError) as wrong:
            raise StoreError(
                f"{self.ref.location}: the configuration of the run cannot be read: {wrong}"
            ) from None
        if state == "running" and not self._is_played(Owner.of(owner or ""), float(heartbeat or 0)):
            state, status, reason = "stopped", "interrupted", self._why_interrupted()
        if not 0 <= created <= LATEST:
            self._damaged(f"its creation time {created:g} is not a valid time")
        rests: Identity = self._json(identity, Identity, "identity")
        if is_deeper_than(rests, DEEPEST):
            self._damaged(f"its identity has more than {DEEPEST} nested levels")
        for role in rests["seats"]:
            if role not in rests["roles"]:
                self._damaged(f"its identity has seats for {role!r}, which is not a role")
        if not rests["metrics"]:
            self._damaged("its identity has no metrics")
        for alias, price in rests.get("prices", {}).items():
            self._check_price(price, f"the price of {alias}")
        return RunInfo(
            self.ref,
            id,
            created,
            known,
            rests,
            state,
            status,
            reason,
            planned,
            digest=digest or "",
        )

    def _why_interrupted(self) -> str:
        """Why nobody plays a run that has not ended."""
        return "the process was killed or crashed"

    def workers(self) -> list[WorkerRow]:
        return []

    def _counts(self) -> tuple[str | None, str | None, str | None]:
        """Spending, unanswered requests and the health of endpoints, as JSON."""
        found: tuple[str | None, str | None, str | None] = self._row(
            "SELECT spent, unanswered, health FROM runs"
        )
        return found

    def _is_played(self, owner: Owner, heartbeat: float) -> bool:
        """Whether a process plays the run now."""
        return seems_alive(owner, heartbeat)

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    @abstractmethod
    def _rows(self, query: str, *values: Any) -> Iterator[Any]:
        """Run a query on the tables of this run; values are marked by `?`."""

    @abstractmethod
    def find_changes(
        self, report: Callable[[int], None] = lambda checked: None
    ) -> Iterator[DigestFault]: ...

    def _row(self, query: str, *values: Any) -> Any:
        return next(self._rows(query, *values), None)

    def moved_rows(self, table: str) -> Iterator[Any]:
        """The rows of a table as they move to another store."""
        from parley.store.sql.moved_rows import select_moved  # late: two commands

        return self._rows(select_moved(table))

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

    def _alias(self, seats: str, key: str, what: str) -> tuple[Seat, str]:
        seat = self._seat(key, what)
        alias = self._seating(seats, what).get(seat)
        if alias is None:
            self._damaged(f"{what}: no model held the seat {shorten(key)}")
        return seat, alias

    def items(self) -> list[dict[str, Any]]:
        found = []
        for id, data in self._rows("SELECT id, data FROM items ORDER BY number"):
            item = self._json(data, dict[str, Any], f"item {id}")
            if str(item.get("id")) != id:
                self._damaged(f"item {shorten(id)} has a different id in its data")
            found.append(item)
        return found

    def counts(self) -> dict[str, int]:
        return dict(self._rows("SELECT state, COUNT(*) FROM matches GROUP BY state"))

    def match(self, number: int) -> MatchRow | None:
        row = self._row(f"SELECT {', '.join(MATCH)} FROM matches WHERE number = ?", number)
        return None if row is None else self._match_from(row)

    def matches(self) -> Iterator[MatchRow]:
        rows = self._rows(f"SELECT {', '.join(MATCH)} FROM matches ORDER BY number")
        return map(self._match_from, rows)

    def whole_matches(self) -> Iterator[WholeMatch]:
        first = SMALLEST
        while page := list(
            map(
                self._match_from,
                self._rows(
                    f"SELECT {', '.join(MATCH)} FROM matches WHERE number >= ? ORDER BY number "
                    "LIMIT ?",
                    first,
                    AT_ONCE,
                ),
            )
        ):
            last = page[-1].number
            yield from self._whole_page(page, (page[0].number, last))
            if last == LARGEST:
                return
            first = last + 1

    def _whole_page(self, page: Sequence[MatchRow], span: tuple[int, int]) -> Iterator[WholeMatch]:
        calls = self._by_match(
            f"SELECT match, {FIELDS} FROM calls WHERE match BETWEEN ? AND ? "
            "ORDER BY match, round, seat, attempt",
            span,
        )
        rounds = self._by_match(
            "SELECT match, first, messages FROM rounds WHERE match BETWEEN ? AND ? "
            "ORDER BY match, first",
            span,
        )
        effects = self._by_match(
            "SELECT match, round, number, request_digest, result FROM effects "
            "WHERE match BETWEEN ? AND ? ORDER BY match, round, number",
            span,
        )
        scores = self._by_match(
            "SELECT match, seat, metric, value FROM scores WHERE match BETWEEN ? AND ? "
            f"AND {self.dialect.not_indexed}judge = '' ORDER BY match, seat, metric",
            span,
        )
        violations = self._by_match(
            "SELECT match, round, seat, attempt, kind, detail, outcome FROM violations "
            "WHERE match BETWEEN ? AND ? ORDER BY match, number",
            span,
        )
        notes = self._by_match(
            "SELECT match, round, kind, facts FROM notes WHERE match BETWEEN ? AND ? "
            "ORDER BY match, number",
            span,
        )
        for match in page:
            number = match.number
            said = [self._call_from(number, row[1:]) for row in calls.get(number, ())]
            yield WholeMatch(
                match,
                said,
                self._messages_from(
                    number, match, said, (row[1:] for row in rounds.get(number, ()))
                ),
                self._effects_from(number, (row[1:] for row in effects.get(number, ()))),
                self._scores_from(number, (row[1:] for row in scores.get(number, ()))),
                [self._violation_from(match, row) for row in violations.get(number, ())],
                [self._note_from(row) for row in notes.get(number, ())],
            )

    def _by_match(self, query: str, span: tuple[int, int]) -> dict[int, list[Any]]:
        """Rows whose first column is the number of a match, by this number."""
        groups = groupby(self._rows(query, *span), itemgetter(0))
        return {number: list(rows) for number, rows in groups}

    def _violation_from(self, match: MatchRow, row: Sequence[Any]) -> ViolationRow:
        what = f"a violation in match {match.number}"
        self._check(row, (*VIOLATION[:1], *VIOLATION[2:]), what)
        number, round, key, *rest = row
        seat = self._seat(key, what)
        if seat not in match.seats:
            self._damaged(f"{what}: no model held the seat {shorten(key)}")
        return ViolationRow(number, match.seats[seat], round, seat, *rest)

    def count_seatings(self) -> Iterator[SeatingCount]:
        rows = self._rows(
            "SELECT stage, arm, CASE WHEN item IS NULL THEN 'block ' || block "
            "ELSE 'item ' || item END AS place, seats, COUNT(*) FROM matches "
            "GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3"
        )
        for row in rows:
            stage, arm, place, seats, matches = row
            self._check(row, (WHOLE, TEXT, TEXT, TEXT, WHOLE), "a match")
            yield SeatingCount(stage, arm, place, self._seating(seats, "a match"), matches)

    def stages(self) -> list[tuple[int, str]]:
        rows = self._rows("SELECT stage, arm FROM matches GROUP BY 1, 2 ORDER BY MIN(number)")
        return list(rows)

    def stages_with_shared_tables(self) -> set[tuple[int, str]]:
        rows = self._rows(
            "SELECT DISTINCT stage, arm FROM (SELECT stage, arm FROM matches "
            "GROUP BY stage, arm, block, repeat HAVING COUNT(*) > 1) AS shared"
        )
        return set(rows)

    def find_matches(self, wanted: MatchSearch) -> FoundMatches:
        from parley.store.match_search import FoundMatch, FoundMatches  # late: few commands search
        from parley.store.sql.match_places import PlaceFinder

        seats = self.info.identity["seats"]
        finder = PlaceFinder(self._rows, self.dialect, wanted, seats)
        found = finder.find()
        places = found.places
        further = (found.end or places[-1]) if found.more else None
        back = finder.way_back(places)
        if wanted.before is not None:
            places, back, further = places[::-1], further, back
        rows = self._found_rows([place.number for place in places])
        listed = (FoundMatch(rows[at.number][0], at, *rows[at.number][1]) for at in places)
        return FoundMatches(tuple(listed), back, further, found.looked_at)

    def _found_rows(self, numbers: list[int]) -> dict[int, tuple[MatchRow, Any]]:
        """The matches with these numbers, each with what its record adds up to."""
        columns = ", ".join(f"m.{name}" for name in (*MATCH, *SUMS))
        found = {}
        for row in self._rows(
            f"SELECT {columns} FROM {self.dialect.chosen} "
            "CROSS JOIN matches m WHERE m.number = chosen.value",
            orjson.dumps(numbers).decode(),
        ):
            match, sums = self._match_from(row[: len(MATCH)]), row[len(MATCH) :]
            self._check(sums, MATCHES.types(*SUMS), f"match {row[0]}")
            found[match.number] = match, sums
        return found

    def _match_from(self, row: Any) -> MatchRow:
        number, block, item, repeat, seed, seats, unscored, *rest = row
        types = tuple(map(type, row))
        if types not in self._match_types:
            self._check(row, MATCH_TYPES, f"match {number}")
            self._match_types.add(types)
        cast = self._seatings.get(seats) or self._seating(seats, f"match {number}")
        fill = self._unscored_seats(unscored, f"match {number}") if unscored else NOBODY
        match = MatchRow(number, block, item, repeat, seed, cast, fill, *rest)
        if match.stage or match.arm:
            self._check_stage(match)
        return match

    def _check_stage(self, match: MatchRow) -> None:
        evolve = self.info.config.evolve
        arms = () if evolve is None else evolve.arms
        if match.stage < 1 or match.arm.removesuffix(PROBE) not in arms:
            self._damaged(
                f"match {match.number} is in stage {match.stage} of arm {shorten(match.arm)}, but "
                "the run has no such stage"
            )

    def scores(self, judge: str = "", metrics: Collection[str] = ()) -> Iterator[Score]:
        return self._scores(judge, metrics=metrics, ranges=self._ranges)

    def _scores(
        self,
        judge: str = "",
        between: tuple[int, int] = (SMALLEST, LARGEST),
        metrics: Collection[str] = (),
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Iterator[Score]:
        """The scores of matches that have ended, by match. With `ranges`, a score outside the range
        of its metric is refused."""
        marks = ", ".join("?" * len(metrics))
        chosen = f"AND {self.dialect.not_indexed}metric IN ({marks}) " if metrics else ""
        rows = self._rows(
            "SELECT match, seat, metric, value FROM scores WHERE judge = ? AND match BETWEEN ? "
            f"AND ? {chosen}ORDER BY match, seat, metric",
            judge,
            *between,
            *metrics,
        )
        # side by side with scores: a join would sort all scores, and repeat the seats for each
        matches = self._rows(
            "SELECT number, block, seats, unscored FROM matches WHERE number BETWEEN ? AND ? "
            f"AND {self.dialect.not_indexed}{ENDED_MATCHES} ORDER BY number",
            *between,
        )
        seatings: dict[tuple[Any, Any], dict[tuple[Any, Any], ScorePlace]] = {}
        number, block, seats, unscored = SMALLEST - 1, "", "", None
        places: dict[tuple[Any, Any], ScorePlace] = {}  # of the seating, by seat and metric
        for match, key, metric, value in rows:
            while number < match:
                row = next(matches, None)
                if row is None:
                    return
                number, block, seats, unscored = row
                places = seatings.setdefault((seats, unscored), {})
            if number != match:
                continue
            place = places.get((key, metric))
            if place is None or type(block) is not str:
                self._check((match, block, key, seats, unscored, metric), SCORE, "a score")
                what = f"a score of match {match}"
                self._check_value(value, "" if judge else metric, what)
                seat, alias = self._alias(seats, key, what)
                low, high = (ranges or {}).get(metric, ANY_VALUE)
                place = seat, alias, seat in self._unscored_seats(unscored, what), low, high
                places[key, metric] = place
            seat, alias, is_unscored, low, high = place
            if type(value) is not float or not low <= value <= high:
                self._check_score(match, metric, value, (low, high))
            yield Score(match, block, seat, alias, metric, value, is_unscored)

    def _check_score(
        self, match: int, metric: str, value: Any, bounds: tuple[float, float]
    ) -> None:
        """Refuse a score that is not a number, or is out of its range."""
        self._check_value(value, "", f"a score of match {match}")
        low, high = bounds
        if value is not None and not low <= value <= high:
            self._damaged(
                f"a score of match {match} is {value:g}, but {metric} must be {low:g} to {high:g}"
            )

    def _check_value(self, value: Any, metric: str, what: str) -> None:
        if not (value is None or (isinstance(value, float | int) and math.isfinite(value))):
            self._damaged(f"{what} must be a number, not {shorten(value)}")
        if metric and metric not in self._ranges:
            self._damaged(f"{what} is for `{shorten(metric)}`, which is not a metric of this task")

    def scores_of(self, number: int) -> dict[Seat, dict[str, float | None]]:
        return self.scores_of_matches([number])[number]

    def scores_of_matches(
        self, numbers: Sequence[int]
    ) -> dict[int, dict[Seat, dict[str, float | None]]]:
        table: dict[int, dict[Seat, dict[str, float | None]]] = {number: {} for number in numbers}
        for number, key, metric, value in self._rows(
            f"SELECT s.match, s.seat, s.metric, s.value FROM {self.dialect.chosen} CROSS JOIN "
            f"scores s WHERE s.match = chosen.value AND {self.dialect.not_indexed}s.judge = '' "
            "ORDER BY s.match, s.seat, s.metric",
            orjson.dumps(list(numbers)).decode(),
        ):
            what = f"a score of match {number}"
            self._check_value(value, metric, what)
            table[number].setdefault(self._seat(key, what), {})[metric] = value
        return table

    def _scores_from(
        self, number: int, rows: Iterable[Sequence[Any]]
    ) -> dict[Seat, dict[str, float | None]]:
        found: dict[Seat, dict[str, float | None]] = {}
        what = f"a score of match {number}"
        for key, metric, value in rows:
            self._check_value(value, metric, what)
            found.setdefault(self._seat(key, what), {})[metric] = value
        return found

    def ended_matches(self) -> Iterator[int]:
        rows = self._rows(f"SELECT number FROM matches WHERE {ENDED_MATCHES} ORDER BY number")
        return (number for (number,) in rows)

    def scores_by_match(self, first: int = SMALLEST, last: int = LARGEST) -> dict[int, Marks]:
        ended = self._rows(
            f"SELECT number FROM matches WHERE number BETWEEN ? AND ? AND {ENDED_MATCHES} "
            "ORDER BY number",
            first,
            last,
        )
        table: dict[int, dict[Seat, dict[str, float | None]]] = {number: {} for (number,) in ended}
        # out-of-range scores are left to the audit
        for score in self._scores(between=(first, last)):
            table[score.match].setdefault(score.seat, {})[score.metric] = score.value
        return dict(table)

    def blocks(self) -> Iterator[BlockScores]:
        # in the order of their first match; a fixed plan can spread a block over the whole run
        open_blocks: set[str] = set()
        sums: dict[str, dict[ScoreCell, ScoreSum]] = {}
        for match in self.matches():
            sums.setdefault(match.block, {})
            if not match.has_ended:
                open_blocks.add(match.block)
        for score in self.scores():
            if score.unscored or score.block in open_blocks:
                continue
            cells, cell = sums[score.block], ScoreCell(score.seat.role, score.alias, score.metric)
            n, total, missing = cells.get(cell, ScoreSum(0, 0.0, 0))
            cells[cell] = (
                ScoreSum(n, total, missing + 1)
                if score.value is None
                else ScoreSum(n + 1, total + score.value, missing)
            )
        for block, cells in sums.items():
            if block not in open_blocks:
                yield BlockScores(block, cells)

    def orphan_scores(self) -> list[int]:
        rows = self._rows(
            "SELECT DISTINCT match FROM scores WHERE match NOT IN (SELECT number FROM matches) "
            "ORDER BY match"
        )
        return [match for (match,) in rows]

    def notes(self, kind: str | None = None) -> Iterator[NoteRow]:
        where = "" if kind is None else "WHERE kind = ? "
        return self._notes(f"{where}ORDER BY match, number", *(() if kind is None else (kind,)))

    def notes_of(self, number: int) -> list[NoteRow]:
        return list(self._notes("WHERE match = ? ORDER BY number", number))

    def _notes(self, which: str, *values: Any) -> Iterator[NoteRow]:
        for row in self._rows(f"SELECT match, round, kind, facts FROM notes {which}", *values):
            yield self._note_from(row)

    def _note_from(self, row: Sequence[Any]) -> NoteRow:
        match, round, kind, facts = row
        types = tuple(map(type, row))
        if types not in self._note_types:
            self._check(row, NOTE, f"a note of match {match}")
            self._note_types.add(types)
        found = self._json(facts, Any, f"a note of match {match}")
        if type(found) is not dict:
            self._damaged(find_misfit(found, dict[str, Any], f"a note of match {match}"))
        return NoteRow(match, round, kind, found)

    def violations(self, number: int | None = None) -> Iterator[ViolationRow]:
        rows = self._rows(
            "SELECT v.match, m.seats, v.round, v.seat, v.attempt, v.kind, v.detail, v.outcome "
            "FROM violations v JOIN matches m ON v.match = m.number "
            + ("" if number is None else "WHERE v.match = ? ")
            + "ORDER BY v.match, v.number",
            *(() if number is None else (number,)),
        )
        for row in rows:
            self._check(row, VIOLATION, "a violation")
            match, seats, round, key, *rest = row
            seat, alias = self._alias(seats, key, f"a violation in match {match}")
            yield ViolationRow(match, alias, round, seat, *rest)

    def calls(self, number: int) -> list[RecordedCall]:
        rows = self._rows(
            f"SELECT {FIELDS} FROM calls WHERE match = ? ORDER BY round, seat, attempt", number
        )
        return [self._call_from(number, row) for row in rows]

    def replies_in(self, roles: Collection[str]) -> Iterator[tuple[int, str, str, str]]:
        rows = self._rows(
            "SELECT match, seats, seat, content FROM calls c JOIN matches m ON c.match = m.number "
            f"WHERE {ENDED_MATCHES} ORDER BY match"
        )
        known: dict[tuple[str, str], tuple[str, str]] = {}
        for row in rows:
            match, seats, key, content = row
            if type(content) is not str or (seats, key) not in known:
                what = f"a call of match {match}"
                self._check(row, REPLY, what)
                seat, alias = self._alias(seats, key, what)
                known[seats, key] = seat.role, alias
            role, alias = known[seats, key]
            if role in roles:
                yield match, role, alias, content

    def calls_since(self, cursor: int) -> Iterator[tuple[int, int, RecordedCall]]:
        rows = self._rows(f"SELECT id, match, {FIELDS} FROM calls WHERE id > ? ORDER BY id", cursor)
        return ((id, match, self._call_from(match, row)) for id, match, *row in rows)

    def recent_calls(self, most: int) -> list[RecentCall]:
        rows = self._rows(
            "SELECT c.match, m.seats, c.seat, c.round, c.latency, c.at, m.ended FROM calls c "
            "JOIN matches m ON m.number = c.match WHERE c.copied IS NULL "
            "ORDER BY c.id DESC LIMIT ?",
            most,
        )
        found = []
        for row in rows:
            match, seats, key, round, latency, at, ended = row
            what = f"a call of match {match}"
            self._check(row, RECENT, what)
            seat, alias = self._alias(seats, key, what)
            found.append(RecentCall(match, seat, alias, round, latency, at, ended))
        return found

    def _call_from(self, match: int, row: Sequence[Any]) -> RecordedCall:
        what = f"a call of match {match}"
        self._check(row, CALL, what)
        self._seat(row[1], what)
        try:
            return call_from(row)
        except (ValueError, TypeError) as wrong:
            self._damaged(f"{what} cannot be read: {wrong}")

    def effects(self, number: int) -> dict[tuple[int, int], tuple[bytes, Any]]:
        rows = self._rows(
            "SELECT round, number, request_digest, result FROM effects WHERE match = ?", number
        )
        return self._effects_from(number, rows)

    def _effects_from(
        self, number: int, rows: Iterable[Sequence[Any]]
    ) -> dict[tuple[int, int], tuple[bytes, Any]]:
        found = {}
        for row in rows:
            self._check(row, EFFECT, f"an effect of match {number}")
            round, n, digest, result = row
            found[round, n] = digest, self._json(result, Any, f"an effect of match {number}")
        return found

    def messages(self, number: int) -> list[dict[str, Any]]:
        rows = self._rows(
            "SELECT first, messages FROM rounds WHERE match = ? ORDER BY first", number
        )
        return self._messages_from(number, self.match(number), self.calls(number), rows)

    def _messages_from(
        self,
        number: int,
        match: MatchRow | None,
        calls: Iterable[RecordedCall],
        rows: Iterable[Sequence[Any]],
    ) -> list[dict[str, Any]]:
        what = f"the messages of match {number}"
        seats = set() if match is None else {seat.key for seat in match.seats}
        words = {
            (call.round, call.seat.key, call.attempt): text_of(call.reply.content) for call in calls
        }
        found = []
        for first, text in rows:
            self._check((first,), (WHOLE,), what)
            messages = self._json(text, Any, what)
            if not isinstance(messages, list) or not all(is_message(m, seats) for m in messages):
                self._refuse_messages(messages, seats, what)
            for n, message in enumerate(messages, first):
                round, kind, sender, audience, content, attempt = message
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

    def _refuse_messages(self, messages: Any, seats: set[str], what: str) -> NoReturn:
        """Say what is wrong with the messages of a match."""
        if misfit := find_misfit(messages, list[list[Any]], what):
            self._damaged(misfit)
        wrong = (each for message in messages for each in [misfit_of(message, seats)] if each)
        self._damaged(f"{what}: {next(wrong, 'they cannot be read')}")

    def recorded_matches(self, after: int = 0, last: int | None = None) -> Iterator[RecordedMatch]:
        done = "state = 'done' AND number > ? AND number <= ?"
        span = after, LARGEST if last is None else last
        rounds = groupby(
            self._rows(
                "SELECT match, first, messages FROM rounds JOIN matches m ON m.number = match "
                f"WHERE {done} ORDER BY match, first",
                *span,
            ),
            itemgetter(0),
        )
        calls = self._rows(
            "SELECT match, c.round, seat, attempt, content, finish FROM calls c "
            f"JOIN matches m ON m.number = match WHERE {done} "
            "ORDER BY match, c.round, seat, attempt",
            *span,
        )
        replies = {number: list(rows) for number, rows in groupby(calls, itemgetter(0))}
        not_taken: dict[int, set[tuple[int, str, int]]] = {}
        for each in self.violations(last if last == after + 1 else None):
            if each.match > after and each.outcome in NOT_TAKEN:
                place = each.round, each.seat.key, each.attempt
                not_taken.setdefault(each.match, set()).add(place)
        for number, rows in rounds:
            what = f"the messages of match {number}"
            messages = [
                message
                for _, _, text in rows
                for message in self._json(text, list[list[Any]], what)
            ]
            if any(len(message) != 6 for message in messages):
                self._damaged(f"{what}: each message must have six fields")
            said = {}
            for row in replies.pop(number, ()):
                self._check(row, SAID, f"a call of match {number}")
                _, round, seat, attempt, text, finish = row
                said[round, seat, attempt] = RecordedReply(text, finish)
            yield RecordedMatch(number, messages, said, frozenset(not_taken.get(number, ())))

    def read_recalled(
        self, number: int | None = None, last: int | None = None
    ) -> Iterator[Recalled]:
        rows = self._rows(
            f"SELECT {RECALLED.row} FROM recalled "
            + ("" if number is None else "WHERE match BETWEEN ? AND ? ")
            + "ORDER BY match, seat",
            *(() if number is None else (number, number if last is None else last)),
        )
        for row in rows:
            what = f"the experiences shown in match {row[0]}"
            self._check(row, RECALLED.types(), what)
            match, seat, version, text = row
            facts = self._json(text, Any, what)
            if not are_recalled_facts(facts):
                misfit = find_misfit(facts, RecalledFacts, what)
                self._damaged(
                    misfit
                    or f"{what}: {shorten(facts)} is not a list of experiences (remembered "
                    "conversations)"
                )
            shown = tuple(ShownExperience(*each) for each in facts["shown"])
            yield Recalled(
                match, seat, version, shown, facts["k"], facts["dropped"], facts["shuffle"]
            )

    def people_verdicts(self, number: int | None = None) -> list[PeopleVerdict]:
        rows = self._rows(
            f"SELECT {PEOPLE_VERDICTS.row} FROM people_verdicts "
            + ("" if number is None else "WHERE match = ? ")
            + "ORDER BY match, seat",
            *(() if number is None else (number,)),
        )
        from parley.memory.feedback import PeopleVerdict  # late: few runs need it

        found = []
        for row in rows:
            what = f"what people said of match {row[0]}"
            self._check(row, PEOPLE_VERDICTS.types(), what)
            match, seat, *counts = row
            given = [count for count in counts if count is not None]
            if len(given) not in (0, 3) or any(count < 0 for count in given):
                self._damaged(f"{what}: expected counts of votes, found {shorten(counts)}")
            if given and not sum(given):
                self._damaged(f"{what}: there is a verdict without votes")
            found.append(PeopleVerdict(match, self._seat(seat, what), *counts))
        return found

    def read_transferred(self) -> list[Experience]:
        found = []
        for number, text in self._rows(
            "SELECT number, experience FROM transferred ORDER BY number"
        ):
            what = f"experience {number}"
            facts = self._json(text, TransferredFacts, what)
            turns = facts.pop("turns")
            if not turns or any(len(turn) != 3 for turn in turns):
                self._damaged(f"{what}: a turn must have a question, an answer and a hint")
            found.append(Experience(**facts, turns=tuple(Example(*turn) for turn in turns)))
        return found

    def reply_lengths(self) -> Iterator[tuple[int, Seat, int]]:
        # in the order of an index: to add up by seat, a database would sort all calls
        rows = self._rows(
            f"SELECT match, seat, {self.dialect.length('content')} FROM calls "
            "ORDER BY match, round, seat, attempt"
        )
        for match, calls in groupby(rows, itemgetter(0)):
            lengths: dict[Any, int] = {}
            for _, key, length in calls:
                lengths[key] = lengths.get(key, 0) + length
            for key, length in lengths.items():
                yield match, self._seat(key, f"a call of match {match}"), length

    def median_latencies(self) -> dict[tuple[str, str], MedianLatency]:
        rows = self._rows(
            "SELECT s.value, c.seat, c.latency FROM calls c JOIN matches m ON c.match = m.number "
            f"JOIN {self.dialect.seats} ON s.key = c.seat "
            "WHERE c.copied IS NULL AND c.latency IS NOT NULL"
        )
        found: dict[tuple[str, str], list[float]] = {}
        roles: dict[str, str] = {}
        for alias, key, seconds in rows:
            if key not in roles:
                roles[key] = self._seat(key, "the latency of a call").role
            found.setdefault((alias, roles[key]), []).append(seconds)
        return {
            (self._known_alias(alias), role): MedianLatency(median(waited), len(waited))
            for (alias, role), waited in found.items()
        }

    def called_matches(self) -> Counter[tuple[str, str]]:
        rows = self._rows(
            "SELECT c.match, s.value, c.seat FROM calls c JOIN matches m ON c.match = m.number "
            f"JOIN {self.dialect.seats} ON s.key = c.seat WHERE c.copied IS NULL "
            "GROUP BY 1, 2, 3 ORDER BY 1"
        )
        found: Counter[tuple[str, str]] = Counter()
        roles: dict[str, str] = {}
        for _, group in groupby(rows, key=itemgetter(0)):
            pairs = set()
            for _, alias, key in group:
                if key not in roles:
                    roles[key] = self._seat(key, "a call").role
                pairs.add((self._known_alias(alias), roles[key]))
            found.update(pairs)
        return found

    def device_times(self) -> list[DeviceTime]:
        setups = {
            number: setup_from(self._json(text, DeviceSetup, "the setup of a device"))
            for number, text in self._rows("SELECT number, setup FROM devices ORDER BY number")
        }
        if not setups:
            return []
        add_up = self.dialect.add_up
        rows = self._rows(
            "SELECT s.value, c.device, COUNT(*), COALESCE(SUM(c.device_seconds), 0), "
            f"{add_up('c.tokens_in')}, {add_up('c.tokens_out')} FROM calls c "
            f"JOIN matches m ON c.match = m.number JOIN {self.dialect.seats} ON s.key = c.seat "
            "WHERE c.copied IS NULL GROUP BY 1, 2 ORDER BY 1, 2"
        )
        found, untimed = list[DeviceTime](), Counter[str]()
        for row in rows:
            self._check(row, DEVICE_TIME, "the time of a device")
            alias, device, calls, seconds, into, out = row
            if device is None:
                untimed[alias] = calls
            elif device not in setups:
                self._damaged(f"device {device} has no setup")
            else:
                used = (setups[device], calls, seconds, into, out)
                found.append(DeviceTime(self._known_alias(alias), *used, untimed=0))
        return [each._replace(untimed=untimed[each.alias]) for each in found]

    def verdict_kinds(self) -> Counter[str]:
        rows = self._rows(
            "SELECT match, result FROM effects e JOIN matches m ON e.match = m.number "
            f"WHERE {ENDED_MATCHES}"
        )
        verdicts = (self._json(text, Any, f"an effect of match {match}") for match, text in rows)
        return Counter(
            str(each["guarantee"])
            for each in verdicts
            if isinstance(each, dict) and "guarantee" in each
        )

    def usage_by_model(self, price_steps: Sequence[int] = ()) -> list[UsageRow]:
        if price_steps:
            return [self._usage_from(row) for row in self._usage("", price_steps)]
        if self._usage_of_all is None:  # several parts ask for it, and it reads all calls
            self._usage_of_all = tuple(map(self._usage_from, self._usage("", ())))
        return list(self._usage_of_all)

    def usage_by_stage(self, price_steps: Sequence[int] = ()) -> list[StageUsage]:
        found = []
        for stage, arm, *row in self._usage("m.stage, m.arm, ", price_steps):
            self._check((stage, arm), (WHOLE, TEXT), "the usage of a stage")
            found.append(StageUsage(stage, arm, self._usage_from(row)))
        return found

    def usage_of_matches(
        self, numbers: Sequence[int], price_steps: Sequence[int] = ()
    ) -> dict[int, list[UsageRow]]:
        found: dict[int, list[UsageRow]] = {number: [] for number in numbers}
        chosen = orjson.dumps(list(numbers)).decode()
        for number, *row in self._usage("c.match, ", price_steps, chosen):
            found[number].append(self._usage_from(row))
        return found

    def _usage(self, by: str, price_steps: Sequence[int], chosen: str = "") -> Iterator[Any]:
        """Calls and tokens by these columns, alias, seat and model served. `chosen`: only calls of
        these matches, as JSON."""
        size = "".join(f", COALESCE(c.tokens_in, 0) > {step:d}" for step in price_steps)
        counts = ("in", "cached", "out", "reasoning", "written")
        keys = ", ".join(str(1 + at) for at in range(3 + by.count(",")))
        return self._rows(
            f"SELECT {by}s.value, c.seat, c.model_served, COUNT(*), "
            "COUNT(c.tokens_in + c.tokens_out), COUNT(COALESCE(c.tokens_in, c.tokens_out)), "
            f"MIN(c.tokens_in), "
            f"{', '.join(self.dialect.add_up(f'c.tokens_{count}') for count in counts)} "
            f"FROM {f'{self.dialect.chosen} CROSS JOIN ' if chosen else ''}calls c "
            f"JOIN matches m ON c.match = m.number JOIN {self.dialect.seats} ON s.key = c.seat "
            f"WHERE c.copied IS NULL {'AND c.match = chosen.value ' if chosen else ''}"
            f"GROUP BY {keys}{size} ORDER BY {keys} NULLS FIRST{size}",
            *filter(None, [chosen]),
        )

    def _usage_from(self, row: Sequence[Any]) -> UsageRow:
        self._check(row, USAGE, "the usage of a model")
        alias, key, *rest = row
        self._known_alias(alias)
        return UsageRow(alias, self._seat(key, "the usage of a model"), *rest)

    def _known_alias(self, alias: Any) -> str:
        if alias not in self.info.config.models:
            self._damaged(f"{shorten(alias)} is not a model of the run")
        return str(alias)

    def names_served(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for alias, model in self.models_served(copied=True):
            if model is not None:
                found.setdefault(alias, []).append(model)
        return found

    def models_served(self, copied: bool = False) -> list[tuple[str, str | None]]:
        found: set[tuple[str, str | None]] = {
            (row.alias, row.model_served) for row in self.usage_by_model()
        }
        if copied:
            for alias, model in self._rows(
                "SELECT DISTINCT s.value, c.model_served FROM calls c "
                "JOIN matches m ON c.match = m.number "
                f"JOIN {self.dialect.seats} ON s.key = c.seat WHERE c.copied IS NOT NULL"
            ):
                self._check((alias, model), (TEXT, TEXT_OR_NULL), "the name of a served model")
                found.add((self._known_alias(alias), model))
        return sorted(found, key=lambda each: (each[0], each[1] is not None, each[1] or ""))

    def unsupported_options(self) -> list[dict[str, Any]]:
        rows = self._rows(
            "SELECT s.value, c.left_out, COUNT(*) FROM calls c "
            "JOIN matches m ON c.match = m.number "
            f"JOIN {self.dialect.seats} ON s.key = c.seat WHERE c.left_out IS NOT NULL GROUP BY "
            "1, 2 ORDER BY 1, 2"
        )
        return [
            {"alias": alias, "options": str(options).split(","), "calls": calls}
            for alias, options, calls in rows
        ]

    def quotation_secret(self) -> str:
        (secret,) = self._row("SELECT quotation_secret FROM runs")
        if not isinstance(secret, str) or not SECRET.fullmatch(secret):
            self._damaged("the secret of its quotations must be 32 hexadecimal digits")
        return secret

    def prices(self) -> list[dict[str, Any]]:
        kept = self._row("SELECT prices FROM runs")[0] or "[]"
        found: list[dict[str, Any]] = self._json(kept, list[PriceFacts], "prices")
        for price in found:
            if wrong := find_misfit(
                [price.get("alias"), price.get("model_served") or ""],
                list[str],
                "the model of a price",
            ):
                self._damaged(wrong)
            self._check_price(price, "a price")
        return found

    def _check_price(self, price: Mapping[str, Any], what: str) -> None:
        rates = price["rates"]
        if not rates or any(len(rate) not in (4, 5) or None in rate[:4] for rate in rates):
            self._damaged(
                f"{what} is {shorten(rates)}: each rate must have a size and three or four prices"
            )

    def count_replies(self) -> int:
        return int(self._row("SELECT COUNT(*) FROM calls WHERE copied IS NULL")[0])

    def spent_at_most(self) -> tuple[int, float | None]:
        kept = self._json(self._counts()[0] or "{}", dict[str, float | None], "spent")
        return max(self.count_replies(), int(kept.get("calls") or 0)), kept.get("usd")

    def unanswered(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = self._json(
            self._counts()[1] or "{}", dict[str, dict[str, int]], "unanswered"
        )
        return found

    def endpoint_health(self) -> dict[str, EndpointRecord]:
        facts = self._json(self._counts()[2] or "{}", dict[str, dict[str, int]], "health")
        return {
            alias: EndpointRecord(each.get("refused", 0), each.get("waiting", 0))
            for alias, each in facts.items()
        }

    def batches(self) -> list[Batch]:
        from parley.store.batch_records import Batch  # late: few runs have batches

        rows = list(self._rows(f"SELECT {BATCHES.row} FROM batches ORDER BY number"))
        for row in rows:
            self._check(row, BATCHES.types(), "a batch")
        return [Batch(*row) for row in rows]

    def open_batches(self) -> list[OpenBatch]:
        from parley.store.batch_records import OpenBatch, StoredRequest

        found: dict[int, list[StoredRequest]] = {}
        for row in self._rows(OPEN_REQUESTS):
            self._check(row, BATCH_REQUESTS.types(), "a request of a batch")
            batch, number, match, round, seat, attempt, body, usd = row
            place = CallPlace(match, round, seat, attempt)
            found.setdefault(batch, []).append(StoredRequest(number, place, body, usd))
        return [
            OpenBatch(batch, found[batch.number])
            for batch in self.batches()
            if batch.number in found
        ]

    def batches_at_providers(self) -> list[OpenBatch]:
        if self.info.state == "done" or not self.batches():
            return []
        return [each for each in self.open_batches() if each.batch.state != "new"]

    def history(self) -> list[HistoryEntry]:
        found = []
        for row in self._rows(f"SELECT {HISTORY.row} FROM history ORDER BY number"):
            self._check(row, HISTORY.types(), "the history of the run")
            number, at, kind, facts, digest = row
            if kind not in get_args(HistoryKind):
                self._damaged(f"the history of the run has an entry of the unknown kind {kind!r}")
            decoded = self._json(facts, ENTRY_FACTS[kind], f"entry {number} of the history")
            found.append(HistoryEntry(number, at, kind, decoded, digest))
        return found

    def part_results(self) -> list[StoredPart]:
        rows = self._rows(f"SELECT {PART_RESULTS.row} FROM part_results ORDER BY name")
        found = []
        for row in rows:
            self._check(row, PART_RESULTS.types(), "the result of a part")
            found.append(StoredPart(*row))
        return found


def are_recalled_facts(facts: Any) -> bool:
    """Whether a row has all fields of `RecalledFacts`. A run may have very many rows, so this is
    fast."""
    if not isinstance(facts, dict):
        return False
    shown = facts.get("shown")
    return (
        isinstance(shown, list)
        and type(facts.get("k")) is type(facts.get("dropped")) is int
        and isinstance(facts.get("shuffle"), str)
        and all(
            isinstance(each, list)
            and len(each) == 3
            and type(each[0]) is int
            and type(each[1]) is str
            and type(each[2]) in (int, float)
            for each in shown
        )
    )


def is_message(message: Any, seats: set[str]) -> bool:
    """Whether a recorded message is valid. A run may have very many, so this is fast."""
    if type(message) is not list or len(message) != 6:
        return False
    round, kind, sender, audience, content, attempt = message
    return (
        type(round) is type(attempt) is int
        and type(kind) is str
        and (kind != "reply" if sender is None else type(sender) is str and sender in seats)
        and type(audience) is list
        and all(type(key) is str and key in seats for key in audience)
        and (kind == "reply" or type(content) is str)
    )


def misfit_of(message: list[Any], seats: set[str]) -> str:
    """What is wrong with a recorded message; empty if it is valid."""
    if len(message) != 6:
        return f"{shorten(message)} is not a message"
    round, kind, sender, audience, content, attempt = message
    shape = {"round": round, "kind": kind, "sender": sender or "", "audience": audience}
    shape["attempt"] = attempt
    kinds = {"round": int, "kind": str, "audience": list[str], "attempt": int, "sender": str}
    for name, value in shape.items():
        if wrong := find_misfit(value, kinds[name], name):
            return wrong
    strangers = {*audience, *([sender] if sender is not None else [])} - seats
    if strangers or (kind == "reply" and sender is None):
        return (
            f"{shorten(sender if sender not in seats else min(strangers))} has no seat in the match"
        )
    if kind != "reply" and not isinstance(content, str):
        return f"the content must be a string, not {shorten(content)}"
    return ""

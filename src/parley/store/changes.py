"""Finds where the record of a run does not match its digests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from parley.errors import StoreError
from parley.store.dialect import AT_ONCE, LARGEST, SMALLEST
from parley.store.digests import (
    CHAINS,
    RECORD,
    ChainEnds,
    RunConnection,
    digest_match,
    digest_origin,
    digest_plan,
    with_digests,
)
from parley.store.history import find_history_faults
from parley.store.tables import MATCHES
from parley.store.types import ENDED, DigestFault
from parley.tables import plural

PAGE = (
    f"SELECT {MATCHES.row}, state, reason, rounds, digest FROM matches WHERE number >= ? "
    "ORDER BY number LIMIT ?"
)
PLANNED = len(MATCHES.written)  # columns of a match as it was planned
TABLES = (
    "calls",
    "effects",
    "rounds",
    "scores",
    "violations",
    "notes",
    "recalled",
    "people_verdicts",
)


def find_changes(
    connection: RunConnection,
    same_sums: str,
    report: Callable[[int], None] = lambda checked: None,
) -> Iterator[DigestFault]:
    """Where the stored digests do not match the record. `same_sums`: a query that finds the matches
    in a range of numbers whose sums for lists are right. `report` is called now and then with the
    number of matches checked."""
    yield from find_history_faults(connection)
    for table in TABLES:
        strangers = connection.execute(
            f"SELECT DISTINCT match FROM {table} WHERE match NOT IN (SELECT number FROM matches)"
        )
        for (number,) in strangers:
            yield DigestFault(
                number, f"the record contains {table} of this match, but not the match itself"
            )
    yield from find_changed_matches(connection, same_sums, report)


def refuse_changed(connection: RunConnection, place: str, same_sums: str, remedy: str) -> None:
    """Refuse to continue a run whose record was changed: it would get a new digest when it stops,
    and some changes would never be detected."""
    faults = list(find_changes(connection, same_sums))
    refuse_faults(faults, place, "the run cannot continue", f"{remedy}, or start a new run")


def refuse_faults(faults: Sequence[DigestFault], place: str, outcome: str, remedy: str) -> None:
    """Raise an error if there is a fault."""
    if not faults:
        return
    first = faults[0]
    where = "" if first.match is None else f"match {first.match}: "
    more = f" ({plural(len(faults) - 1, 'more difference')})" if len(faults) > 1 else ""
    raise StoreError(
        f"{place} was changed after it was recorded, so {outcome}: {where}"
        f"{first.detail}{more}. `parley audit` shows all differences; {remedy}"
    )


def find_changed_matches(
    connection: RunConnection, same_sums: str, report: Callable[[int], None]
) -> Iterator[DigestFault]:
    """What was changed in single matches. Records are read in pages."""
    origin = connection.execute("SELECT origin FROM runs").fetchone()[0]
    origin = digest_origin(connection) if origin is None else origin
    first, checked = SMALLEST, 0
    while page := connection.execute(PAGE, (first, AT_ONCE)).fetchall():
        span = page[0][0], page[-1][0]
        record: dict[str, dict[int, list[Sequence[Any]]]] = {}
        for table, query in RECORD.items():
            rows = connection.execute(query, span)
            record[table] = {number: list(found) for number, found in groupby(rows, itemgetter(0))}
        right = {number for (number,) in connection.execute(same_sums, span)}
        for match in page:
            number = match[0]
            own = {table: rows_of.get(number, []) for table, rows_of in record.items()}
            for detail in find_changes_in(match, own, number in right, origin):
                yield DigestFault(number, detail)
        checked += len(page)
        report(checked)
        if span[1] == LARGEST:
            return
        first = span[1] + 1


def find_changes_in(
    match: Sequence[Any],
    record: Mapping[str, Sequence[Sequence[Any]]],
    has_right_sums: bool,
    origin: str,
) -> Iterator[str]:
    """What was changed in one match: its row as `PAGE` gives it, and its rows by table."""
    state, reason, rounds, digest = match[PLANNED:]
    first, ends = digest_plan(match[:PLANNED], origin), []
    for table in CHAINS:
        kept = record[table]
        found = with_digests((row[:-1] for row in kept), first)
        if changed := [row for row, now in zip(kept, found, strict=True) if tuple(row) != now]:
            place = place_of(table, changed[0])
            yield (
                f"the {table} of this match have changed since they were recorded, from {place} on"
            )
        ends.append(found[-1][-1] if found else first)
    if state not in ENDED:
        if digest is not None:
            yield "this match has not ended, but has the digest of a finished match"
        return
    if not has_right_sums:
        yield "the totals stored for lists of matches differ from the record of this match"
    rows = (record[table] for table in ("scores", "violations", "notes"))
    if digest != digest_match(match[0], (state, reason, rounds), ChainEnds(*ends), *rows):
        yield (
            "its record (seats, calls, messages, lookups, scores, violations, notes or outcome) "
            "was changed after it was played"
        )


def place_of(table: str, row: Sequence[Any]) -> str:
    """The place of a row in its match, for a message."""
    if table == "calls":
        return f"round {row[1]}, {row[2]}, attempt {row[3] + 1}"
    return f"round {row[1]}" if table == "effects" else f"message {row[1] + 1}"

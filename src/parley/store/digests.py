"""Digests over the whole record of a run, so that an audit detects later changes.

The first digest covers who is who: the id of the run, when it was created, its identity, and all of
its configuration that cannot change. All chains of the run begin with it.

Calls, effects and rounds of a match each form a chain: a row's digest covers the row and the digest
before it. The first link covers the match as it was planned, with its seats. A match that has ended
has a digest over the ends of its three chains, its state, scores, violations and notes.

What happens to the run as a whole is a chain, too (`history.py`). When the run stops, it is sealed:
the last digest of this chain covers its configuration, prices, spending and end, every match in
plan order, the experiences that seats were shown, and the votes of people that the run used.
Results of analyses are left out: they can be recomputed. So are the facts that only serve while a
run is played: its owner, and how endpoints answer.

A row is digested by SHA-256 as canonical JSON, with the digest before it in front, floats as
Python writes them, and bytes in hexadecimal, or by their own SHA-256 if they are long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import orjson

from parley.errors import StoreError
from parley.store.config import split_config
from parley.store.dialect import ENDED_MATCHES
from parley.store.rows import encode_json
from parley.store.tables import (
    CALLS,
    DEVICES,
    EFFECTS,
    ITEMS,
    MATCHES,
    NOTES,
    PEOPLE_VERDICTS,
    PLAIN,
    RECALLED,
    ROUNDS,
    SCORES,
    SUMS,
    TRANSFERRED,
    VIOLATIONS,
    TableSpec,
    list_names,
)

LONG = 64  # bytes
EXACT = 2.0**53  # integral floats below this are written as integers
CHAINS = ("calls", "effects", "rounds")
# what is on record of the matches numbered from one number to another, by table
RECORD = {
    "calls": f"SELECT {CALLS.row} FROM calls WHERE match BETWEEN ? AND ? ORDER BY match, id",
    "effects": (
        f"SELECT {EFFECTS.row} FROM effects WHERE match BETWEEN ? AND ? "
        "ORDER BY match, round, number"
    ),
    "rounds": f"SELECT {ROUNDS.row} FROM rounds WHERE match BETWEEN ? AND ? ORDER BY match, first",
    "scores": (
        "SELECT match, seat, metric, value FROM scores WHERE match BETWEEN ? AND ? "
        "AND judge = '' ORDER BY match, seat, metric"
    ),
    "violations": (
        f"SELECT {VIOLATIONS.row} FROM violations WHERE match BETWEEN ? AND ? "
        "ORDER BY match, number"
    ),
    "notes": f"SELECT {NOTES.row} FROM notes WHERE match BETWEEN ? AND ? ORDER BY match, number",
}
# the last digests of chains of matches that have not ended
LAST = {
    "calls": "ORDER BY t.match, t.id",
    "effects": "ORDER BY t.match, t.round, t.number",
    "rounds": "ORDER BY t.match, t.first",
}
NOT_ENDED = f"NOT m.{ENDED_MATCHES}"  # of a match `m`
SEALED = list_names([column for column in MATCHES.columns if column.name not in SUMS])
SEALED_MATCHES = f"SELECT {SEALED} FROM matches ORDER BY number"
# what a run begins with
BEGUN = (
    f"SELECT {ITEMS.row} FROM items ORDER BY number, id",
    f"SELECT {SCORES.row} FROM scores WHERE judge != '' ORDER BY match, seat, metric, judge",
    f"SELECT {TRANSFERRED.row} FROM transferred ORDER BY number",
)
# what its seal has besides its matches
SEALED_ROWS = (
    f"SELECT {RECALLED.row} FROM recalled ORDER BY match, seat",
    f"SELECT {PEOPLE_VERDICTS.row} FROM people_verdicts ORDER BY match, seat",
    f"SELECT {DEVICES.row} FROM devices ORDER BY number",
)
# only the part of the configuration that cannot change is digested
BEGINNING = "SELECT id, created, identity, quotation_secret, config FROM runs"
END = "SELECT origin, config, planned, state, status, reason, prices, spent, unanswered FROM runs"


def find_special(table: TableSpec) -> tuple[int, ...]:
    """Which columns of a row have values that a digest does not take as they are."""
    return tuple(at for at, each in enumerate(table.written) if each.kind not in PLAIN)


CALL_SPECIAL, ROUND_SPECIAL = find_special(CALLS), find_special(ROUNDS)


class RunConnection(Protocol):
    """Queries on the tables of one run. Values are marked by `?`."""

    def execute(self, query: str, values: Sequence[Any] = ..., /) -> Any:
        """Run a query; the result has `fetchone` and `fetchall`, and its rows can be iterated."""


class ChainEnds(NamedTuple):
    """The last digests of a match's three chains; empty if nothing is on record."""

    calls: str = ""
    effects: str = ""
    rounds: str = ""


def digest_row(row: Sequence[Any], before: str = "", special: Sequence[int] | None = None) -> str:
    """The digest of a row and, in a chain, of the digest before it. `special`: the columns that
    may have values other than text, integers or NULL; None: all columns."""
    plain = [before, *row]
    for column in range(len(row)) if special is None else special:
        value = row[column]
        if value is not None:
            plain[column + 1] = to_json_value(value)
    try:
        return sha256(orjson.dumps(plain)).hexdigest()
    except TypeError as wrong:
        raise StoreError(f"only plain data can be recorded: {wrong}") from None


def to_json_value(value: Any) -> Any:
    """A value of a row in the form that is digested, which is the same before and after a store has
    written it."""
    if isinstance(value, float):
        if value != value:
            return None  # as stores write it
        return int(value) if value.is_integer() and abs(value) < EXACT else [repr(value)]
    if isinstance(value, bytes):
        return [value.hex() if len(value) <= LONG else sha256(value).hexdigest()]
    return int(value) if isinstance(value, bool) else value


def digest_match(
    number: int,
    end: tuple[str, str | None, int | None],
    chains: ChainEnds,
    scores: Iterable[Sequence[Any]],
    violations: Iterable[Sequence[Any]],
    notes: Iterable[Sequence[Any]],
) -> str:
    """The digest of a match that has ended: state, reason and rounds; chains; rows as stored."""
    scored = [(*row[:3], to_json_value(row[3])) for row in sorted(scores, key=itemgetter(1, 2))]
    row = (number, *end, *chains, scored, list(violations), list(notes))
    return digest_row(row, special=())


def digest_origin(connection: RunConnection) -> str:
    """The digest that all chains of a run begin with: who is who, and what is measured."""
    *facts, config = connection.execute(BEGINNING).fetchone()
    return digest_row((*facts, encode_json(split_config(config).fixed)))


def digest_plan(planned: Sequence[Any], origin: str) -> str:
    """The first link of the chains of a match, from its row as it was planned."""
    return digest_row(planned, origin, special=())


def digest_contents(connection: RunConnection) -> str:
    """The digest of what a run begins with besides: its items, copied scores and experiences."""
    digest = ""
    for at, query in enumerate(BEGUN):
        if at:
            digest = digest_row((), digest)  # separates the tables
        for row in connection.execute(query):
            digest = digest_row(row, digest)
    return digest


def digest_run(connection: RunConnection) -> str:
    """The digest of the record of a run in its current state, from the stored digests of its
    matches. The history of the run is a chain of its own."""
    ends = open_chain_ends(connection, NOT_ENDED)
    digest = digest_row(connection.execute(END).fetchone())
    for row in connection.execute(SEALED_MATCHES):
        digest = digest_row((*row, *ends.get(row[0], ChainEnds())), digest)
    for query in SEALED_ROWS:
        digest = digest_row((), digest)  # separates the tables
        for row in connection.execute(query):
            digest = digest_row(row, digest)
    return digest


def open_chain_ends(
    connection: RunConnection, chosen: str, values: Sequence[Any] = ()
) -> dict[int, ChainEnds]:
    """The last digests of the chains of some matches; `chosen` is a condition on their rows `m`."""
    found: dict[int, ChainEnds] = {}
    for table, order in LAST.items():
        for match, digest in connection.execute(
            f"SELECT t.match, t.digest FROM matches m JOIN {table} t ON t.match = m.number "
            f"WHERE {chosen} {order}",
            values,
        ):
            found[match] = found.get(match, ChainEnds())._replace(**{table: digest})
    return found


def with_digests(rows: Iterable[Sequence[Any]], first: str) -> list[tuple[Any, ...]]:
    """The rows of a chain, each with its digest as the last column. `first`: what the chain begins
    with."""
    digest, found = first, []
    for row in rows:
        digest = digest_row(row, digest)
        found.append((*row, digest))
    return found

"""The tables of a run's file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

from parley.errors import StoreError
from parley.store.dialect import LARGEST_SUM, ORDER_KEYS
from parley.store.tables import RUN_TABLES, TableSpec

SQLITE_VERSION = sqlite3.sqlite_version  # of the library
APPLICATION = 0x50524C59  # "PRLY" in the file's header
VERSION = 1  # of the tables


def sum_as_sql(column: str) -> str:
    """The sum of a column as SQL that cannot overflow; NULL if all values are NULL."""
    return f"CASE WHEN COUNT({column}) THEN CAST(TOTAL({column}) AS INTEGER) END"


# What the record of a match `m` adds up to, for lists of matches: columns of `matches` that are
# written when a match ends.
DERIVED = {
    # violations: attempts at one reply that went wrong in the same way count once
    "violations": (
        "(SELECT COUNT(DISTINCT json_array(v.round, v.seat, v.kind, CASE WHEN v.outcome IN "
        "('ruled', 'masked') THEN v.number END)) FROM violations v WHERE v.match = m.number)"
    ),
    # the largest difference of two judges on one seat; NULL if no seat has two votes
    "apart": (
        "(SELECT MAX(highest - lowest) FROM (SELECT MAX(score) AS highest, MIN(score) AS lowest "
        "FROM (SELECT n.number AS number, seat.key AS seat, CASE seat.type WHEN 'object' "
        "THEN json_extract(seat.value, '$.score') ELSE seat.atom END AS score FROM notes n, "
        "json_each(n.facts, '$.votes') AS judge, json_each(judge.value) AS seat "
        "WHERE n.match = m.number AND n.kind = 'votes' "
        "AND judge.type = 'object') WHERE typeof(score) IN ('integer', 'real') "
        "GROUP BY number, seat HAVING COUNT(*) > 1))"
    ),
    # input and output tokens of all calls; NULL if no call was counted
    "tokens": (
        "(SELECT CASE WHEN COUNT(COALESCE(c.tokens_in, c.tokens_out)) THEN "
        f"MIN(CAST(TOTAL(c.tokens_in) + TOTAL(c.tokens_out) AS INTEGER), {LARGEST_SUM}) END "
        "FROM calls c WHERE c.match = m.number AND c.copied IS NULL)"
    ),
}
SAME_SUMS = "SELECT number FROM matches m WHERE number BETWEEN ? AND ? AND " + " AND ".join(
    f"{name} IS {sql}" for name, sql in DERIVED.items()
)


def create_table(table: TableSpec) -> str:
    """The statements that create a table."""
    rows = [f"{each.name} {each.kind.sqlite}{each.rules}" for each in table.columns]
    if table.numbered:
        rows.insert(0, "id INTEGER PRIMARY KEY")
    key = ", ".join(table.key)
    if not table.numbered and not table.long:
        rows.append(f"PRIMARY KEY ({key})")
    rows += [f"UNIQUE ({', '.join(columns)})" for columns in table.unique]
    is_ordered = len(table.key) > 1 and not table.long
    created = f"CREATE TABLE {table.name} ({', '.join(rows)}){' WITHOUT ROWID' * is_ordered}"
    if not table.long:
        return created
    return f"{created};\nCREATE UNIQUE INDEX {table.name}_once ON {table.name} ({key})"


# The text of indexes and views is part of a file: a reader refuses those that differ.
TABLES = (
    ";\n".join(map(create_table, RUN_TABLES.values()))
    + f""";
    CREATE INDEX matches_listed ON matches (
        state, item, violations, apart, tokens, began, ended, seats);
    CREATE INDEX matches_by_seconds ON matches ({ORDER_KEYS["seconds"]});
    CREATE INDEX matches_by_tokens ON matches ({ORDER_KEYS["tokens"]});
    CREATE INDEX scores_listed ON scores (metric, value, match, seat) WHERE judge = '';
    CREATE VIEW messages AS
        SELECT rounds.match AS match, first + m.key AS number,
               json_extract(m.value, '$[0]') AS round, json_extract(m.value, '$[1]') AS kind,
               json_extract(m.value, '$[2]') AS sender, json_extract(m.value, '$[3]') AS audience,
               json_extract(m.value, '$[4]') AS content, json_extract(m.value, '$[5]') AS attempt
        FROM rounds, json_each(rounds.messages) AS m;
    CREATE VIEW usage AS
        SELECT seats.value AS alias, calls.seat AS seat, COUNT(*) AS calls,
               {sum_as_sql("tokens_in")} AS tokens_in,
               {sum_as_sql("tokens_cached")} AS tokens_cached,
               {sum_as_sql("tokens_out")} AS tokens_out,
               {sum_as_sql("tokens_reasoning")} AS tokens_reasoning
        FROM calls JOIN matches ON calls.match = matches.number
        JOIN json_each(matches.seats) AS seats ON seats.key = calls.seat
        WHERE calls.copied IS NULL GROUP BY seats.value, calls.seat;
    PRAGMA user_version = {VERSION};
    PRAGMA application_id = {APPLICATION};
"""
)


def refuse_unreadable(connection: sqlite3.Connection, path: str) -> None:
    """Refuse files that are not runs, or that have tables of another version."""
    try:
        (application,), (version,) = (
            connection.execute("PRAGMA application_id").fetchone(),
            connection.execute("PRAGMA user_version").fetchone(),
        )
    except sqlite3.DatabaseError as wrong:
        raise StoreError(
            f"{path} cannot be read as a run ({wrong}): give a file that `parley run` wrote, or "
            "copy it again if it is damaged"
        ) from None
    if application != APPLICATION:
        raise StoreError(f"{path} is not a Parley run: give a file that `parley run` wrote")
    if version < VERSION:
        raise StoreError(
            f"{path} is not a run that this Parley can read: its schema version is {version}, not "
            f"{VERSION}; give a file that `parley run` wrote"
        )
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer version of Parley (schema version {version}; this "
            f"Parley reads version {VERSION}): update Parley"
        )


def create_run_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty file, in one transaction."""
    connection.executescript(f"BEGIN IMMEDIATE; {TABLES} COMMIT;")


@cache
def own_objects(tables: str) -> dict[tuple[str, str], str]:
    """The indexes and views that Parley creates with these tables."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(tables)
        return objects_in(connection)


def objects_in(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Everything in a file besides plain tables, by kind and name."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL "
        "AND (type != 'table' OR sql LIKE 'CREATE VIRTUAL%')"
    )
    return {(kind, name): sql for kind, name, sql in rows}


def find_stranger(connection: sqlite3.Connection, tables: str = TABLES) -> str:
    """An index, trigger, view or virtual table that Parley did not create, through which a query
    could return other rows than were recorded; empty if there is none. `tables`: how Parley
    creates the file."""
    for (kind, name), sql in objects_in(connection).items():
        if own_objects(tables).get((kind, name)) != sql:
            return f"{kind} {name!r}"
    return ""

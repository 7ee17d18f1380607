"""The tables of a run's file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

from parley.errors import StoreError
from parley.store.sql.dialect import LARGEST_SUM, ORDER_KEYS

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
TABLES = f"""
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, created REAL NOT NULL, config TEXT NOT NULL, identity TEXT NOT NULL,
        quotation_secret TEXT NOT NULL, -- the marks of quotations come from it; never shown
        state TEXT NOT NULL, status TEXT, reason TEXT,
        planned INTEGER NOT NULL DEFAULT 0,
        -- the process that plays the run, and its heartbeats. A process on another machine that
        -- wants to take over watches whether their number changes: clocks need not be compared
        owner TEXT, token TEXT, heartbeat REAL, heartbeats INTEGER NOT NULL DEFAULT 0,
        -- upper bounds of the calls sent and their cost, also of calls whose replies are not on
        -- record
        spent TEXT,
        prices TEXT, -- by served model
        -- requests that broke off after they were sent, by alias and role: they may have been
        -- billed although no reply is on record
        unanswered TEXT,
        health TEXT, -- how endpoints answer, by alias, for pages that follow the run
        origin TEXT, digest TEXT); -- digests of the beginning and of the end
    -- what happened to the run as a whole: a chain of digests that begins with `origin`
    CREATE TABLE history (
        number INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL,
        digest TEXT NOT NULL);
    CREATE TABLE items (id TEXT PRIMARY KEY, number INTEGER NOT NULL, data TEXT NOT NULL);
    CREATE TABLE matches (
        number INTEGER PRIMARY KEY, block TEXT NOT NULL, item TEXT, repeat INTEGER NOT NULL,
        seed INTEGER NOT NULL, seats TEXT NOT NULL,
        unscored TEXT, -- seats that only complete a match; their scores do not count
        stage INTEGER NOT NULL, arm TEXT NOT NULL, -- the stage and the arm of the plan `evolve`
        state TEXT NOT NULL DEFAULT 'planned', reason TEXT, rounds INTEGER, began REAL, ended REAL,
        violations INTEGER, apart REAL, tokens INTEGER, -- sums for lists, written at the end
        digest TEXT);
    CREATE INDEX matches_listed ON matches (
        state, item, violations, apart, tokens, began, ended, seats);
    CREATE INDEX matches_by_seconds ON matches ({ORDER_KEYS["seconds"]});
    CREATE INDEX matches_by_tokens ON matches ({ORDER_KEYS["tokens"]});
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY, match INTEGER NOT NULL, round INTEGER NOT NULL, seat TEXT NOT NULL,
        attempt INTEGER NOT NULL, view_digest BLOB NOT NULL, content TEXT NOT NULL, parts TEXT,
        reasoning TEXT, finish TEXT NOT NULL,
        model_served TEXT, response_id TEXT, request_id TEXT, system_fingerprint TEXT,
        tokens_in INTEGER, tokens_cached INTEGER, tokens_out INTEGER, tokens_reasoning INTEGER,
        tokens_written INTEGER, latency REAL, provider_state TEXT, sent TEXT,
        left_out TEXT, -- options that the endpoint did not support
        masked TEXT, -- names that other seats do not read: [[start, end, family, roles], …]
        at REAL NOT NULL,
        copied INTEGER, -- 1: copied from another run, so no model was called for it here
        device INTEGER, device_seconds REAL, -- of a model that Parley itself runs on this machine
        digest TEXT NOT NULL);
    CREATE UNIQUE INDEX calls_once ON calls (match, round, seat, attempt);
    CREATE TABLE devices (number INTEGER PRIMARY KEY, setup TEXT NOT NULL);
    CREATE TABLE effects (
        match INTEGER NOT NULL, round INTEGER NOT NULL, number INTEGER NOT NULL,
        request_digest BLOB NOT NULL, result TEXT NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (match, round, number)) WITHOUT ROWID;
    CREATE TABLE rounds (
        match INTEGER NOT NULL, first INTEGER NOT NULL, messages TEXT NOT NULL,
        digest TEXT NOT NULL);
    CREATE UNIQUE INDEX rounds_once ON rounds (match, first);
    CREATE VIEW messages AS
        SELECT rounds.match AS match, first + m.key AS number,
               json_extract(m.value, '$[0]') AS round, json_extract(m.value, '$[1]') AS kind,
               json_extract(m.value, '$[2]') AS sender, json_extract(m.value, '$[3]') AS audience,
               json_extract(m.value, '$[4]') AS content, json_extract(m.value, '$[5]') AS attempt
        FROM rounds, json_each(rounds.messages) AS m;
    CREATE TABLE scores (
        match INTEGER NOT NULL, seat TEXT NOT NULL, metric TEXT NOT NULL,
        judge TEXT NOT NULL DEFAULT '', value REAL,
        PRIMARY KEY (match, seat, metric, judge)) WITHOUT ROWID;
    CREATE INDEX scores_listed ON scores (metric, value, match, seat) WHERE judge = '';
    CREATE TABLE violations (
        match INTEGER NOT NULL, number INTEGER NOT NULL, round INTEGER NOT NULL, seat TEXT NOT NULL,
        attempt INTEGER NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL, outcome TEXT NOT NULL,
        PRIMARY KEY (match, number)) WITHOUT ROWID;
    CREATE TABLE notes (
        match INTEGER NOT NULL, number INTEGER NOT NULL, round INTEGER NOT NULL,
        facts TEXT NOT NULL, kind TEXT, -- NULL: free facts
        PRIMARY KEY (match, number)) WITHOUT ROWID;
    -- results of analyses: derived data, which may be replaced
    CREATE TABLE part_results (
        name TEXT PRIMARY KEY, version TEXT NOT NULL, schema TEXT NOT NULL, data TEXT NOT NULL,
        figures TEXT NOT NULL);
    CREATE TABLE recalled ( -- the experiences that a seat was shown
        match INTEGER NOT NULL, seat TEXT NOT NULL, version TEXT NOT NULL, shown TEXT NOT NULL,
        PRIMARY KEY (match, seat)) WITHOUT ROWID;
    -- the experiences from another run that models started with
    CREATE TABLE transferred (number INTEGER PRIMARY KEY, experience TEXT NOT NULL);
    -- Matches that people were asked about between two stages, and how many votes each answer got
    -- when the next stage began. NULL: the votes have not been used yet.
    CREATE TABLE people_verdicts (
        match INTEGER NOT NULL, seat TEXT NOT NULL, yes INTEGER, no INTEGER, unsure INTEGER,
        PRIMARY KEY (match, seat)) WITHOUT ROWID;
    -- Requests that were sent together to the batch interface of a provider. A request whose reply
    -- is not in `calls` is still open, unless it failed.
    CREATE TABLE batches (
        number INTEGER PRIMARY KEY, uid TEXT NOT NULL, alias TEXT NOT NULL, state TEXT NOT NULL,
        provider_id TEXT, requests INTEGER NOT NULL, began REAL NOT NULL, ended REAL);
    CREATE TABLE batch_requests (
        batch INTEGER NOT NULL, number INTEGER NOT NULL, match INTEGER NOT NULL,
        round INTEGER NOT NULL, seat TEXT NOT NULL, attempt INTEGER NOT NULL, body BLOB NOT NULL,
        usd REAL NOT NULL, failed INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (batch, number)) WITHOUT ROWID;
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

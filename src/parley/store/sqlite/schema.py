"""The tables of a run's file, and the migrations of older files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache

from parley.errors import StoreError
from parley.store.sql.dialect import LARGEST_SUM, ORDER_KEYS

SQLITE_VERSION = sqlite3.sqlite_version  # of the library
APPLICATION = 0x50524C59  # "PRLY" in the file's header


def sum_as_sql(column: str) -> str:
    """The sum of a column as SQL that cannot overflow; NULL if all values are NULL."""
    return f"CASE WHEN COUNT({column}) THEN CAST(TOTAL({column}) AS INTEGER) END"


# What the record of a match `m` adds up to, for lists of matches: columns of `matches` that are
# written when a match ends. A reader of an older file computes them.
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
        "WHERE n.match = m.number AND COALESCE(n.kind, 'votes') = 'votes' "
        "AND judge.type = 'object') WHERE typeof(score) IN ('integer', 'real') "
        "GROUP BY number, seat HAVING COUNT(*) > 1))"
    ),
    # input and output tokens of all calls; NULL if no call was counted
    "tokens": (
        "(SELECT CASE WHEN COUNT(COALESCE(c.tokens_in, c.tokens_out)) THEN "
        f"MIN(CAST(TOTAL(c.tokens_in) + TOTAL(c.tokens_out) AS INTEGER), {LARGEST_SUM}) END "
        "FROM calls c WHERE c.match = m.number AND c.pinned IS NULL)"
    ),
}
SAME_SUMS = "SELECT number FROM matches m WHERE number BETWEEN ? AND ? AND " + " AND ".join(
    f"{name} IS {sql}" for name, sql in DERIVED.items()
)
MIGRATIONS = [
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, created REAL NOT NULL, config TEXT NOT NULL, identity TEXT NOT NULL,
        state TEXT NOT NULL, stop_status TEXT, stop_reason TEXT, planned INTEGER NOT NULL DEFAULT 0,
        owner TEXT, token TEXT, beat REAL);
    CREATE TABLE items (id TEXT PRIMARY KEY, number INTEGER NOT NULL, data TEXT NOT NULL);
    CREATE TABLE matches (
        number INTEGER PRIMARY KEY, block TEXT NOT NULL, item TEXT, repeat INTEGER NOT NULL, seed INTEGER NOT NULL,
        seats TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'planned', reason TEXT, rounds INTEGER,
        began REAL, ended REAL);
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY, match INTEGER NOT NULL, round INTEGER NOT NULL, seat TEXT NOT NULL,
        attempt INTEGER NOT NULL, saw BLOB NOT NULL, content TEXT NOT NULL, parts TEXT, reasoning TEXT, finish TEXT NOT NULL,
        model TEXT, tokens_in INTEGER, tokens_cached INTEGER, tokens_out INTEGER, tokens_reasoning INTEGER,
        latency REAL, carry TEXT, sent TEXT, at REAL NOT NULL);
    CREATE UNIQUE INDEX calls_once ON calls (match, round, seat, attempt);
    CREATE TABLE effects (
        match INTEGER NOT NULL, round INTEGER NOT NULL, number INTEGER NOT NULL, saw BLOB NOT NULL, result TEXT NOT NULL,
        PRIMARY KEY (match, round, number)) WITHOUT ROWID;
    CREATE TABLE rounds (
        match INTEGER NOT NULL, first INTEGER NOT NULL, messages TEXT NOT NULL);
    CREATE UNIQUE INDEX rounds_once ON rounds (match, first);
    CREATE VIEW messages AS
        SELECT rounds.match AS match, first + m.key AS number, json_extract(m.value, '$[0]') AS round,
               json_extract(m.value, '$[1]') AS kind, json_extract(m.value, '$[2]') AS sender,
               json_extract(m.value, '$[3]') AS audience, json_extract(m.value, '$[4]') AS content,
               json_extract(m.value, '$[5]') AS attempt
        FROM rounds, json_each(rounds.messages) AS m;
    CREATE TABLE scores (
        match INTEGER NOT NULL, seat TEXT NOT NULL, metric TEXT NOT NULL, judge TEXT NOT NULL DEFAULT '', value REAL,
        PRIMARY KEY (match, seat, metric, judge)) WITHOUT ROWID;
    CREATE TABLE violations (
        match INTEGER NOT NULL, number INTEGER NOT NULL, round INTEGER NOT NULL, seat TEXT NOT NULL, attempt INTEGER NOT NULL,
        kind TEXT NOT NULL, detail TEXT NOT NULL, outcome TEXT NOT NULL,
        PRIMARY KEY (match, number)) WITHOUT ROWID;
    CREATE TABLE notes (
        match INTEGER NOT NULL, number INTEGER NOT NULL, round INTEGER NOT NULL, facts TEXT NOT NULL,
        PRIMARY KEY (match, number)) WITHOUT ROWID;
    CREATE VIEW usage AS
        SELECT seats.value AS alias, calls.seat AS seat, COUNT(*) AS calls,
               SUM(tokens_in) AS tokens_in, SUM(tokens_cached) AS tokens_cached,
               SUM(tokens_out) AS tokens_out, SUM(tokens_reasoning) AS tokens_reasoning
        FROM calls JOIN matches ON calls.match = matches.number
        JOIN json_each(matches.seats) AS seats ON seats.key = calls.seat
        GROUP BY seats.value, calls.seat;
    """,  # noqa: E501
    # Seats that only complete a match; their scores do not count (races).
    "ALTER TABLE matches ADD COLUMN idle TEXT;",
    # Upper bounds of the calls sent and their cost, including calls whose replies are not on
    # record.
    "ALTER TABLE runs ADD COLUMN spent TEXT;",
    # Tokens written to a cache: some endpoints count and charge them separately.
    "ALTER TABLE calls ADD COLUMN tokens_written INTEGER;",
    # The prices of the run, by served model name.
    "ALTER TABLE runs ADD COLUMN prices TEXT;",
    # Options that an endpoint did not support.
    "ALTER TABLE calls ADD COLUMN left_out TEXT;",
    # Sum absurdly large counts, which endpoints have reported, without an overflow.
    f"""
    DROP VIEW usage;
    CREATE VIEW usage AS
        SELECT seats.value AS alias, calls.seat AS seat, COUNT(*) AS calls,
               {sum_as_sql("tokens_in")} AS tokens_in, {sum_as_sql("tokens_cached")} AS tokens_cached,
               {sum_as_sql("tokens_out")} AS tokens_out, {sum_as_sql("tokens_reasoning")} AS tokens_reasoning
        FROM calls JOIN matches ON calls.match = matches.number
        JOIN json_each(matches.seats) AS seats ON seats.key = calls.seat
        GROUP BY seats.value, calls.seat;
    """,  # noqa: E501
    # Requests that broke off after they were sent, by alias and role: they may have been billed
    # although no reply is on record.
    "ALTER TABLE runs ADD COLUMN lost TEXT;",
    # Replies copied from another run whose matches are rejudged: no model was called for them here.
    f"""
    ALTER TABLE calls ADD COLUMN pinned INTEGER;
    DROP VIEW usage;
    CREATE VIEW usage AS
        SELECT seats.value AS alias, calls.seat AS seat, COUNT(*) AS calls,
               {sum_as_sql("tokens_in")} AS tokens_in, {sum_as_sql("tokens_cached")} AS tokens_cached,
               {sum_as_sql("tokens_out")} AS tokens_out, {sum_as_sql("tokens_reasoning")} AS tokens_reasoning
        FROM calls JOIN matches ON calls.match = matches.number
        JOIN json_each(matches.seats) AS seats ON seats.key = calls.seat
        WHERE calls.pinned IS NULL GROUP BY seats.value, calls.seat;
    """,  # noqa: E501
    # The type of a note; NULL: free facts, or a note of an older Parley. Stored results of
    # analyses: derived data, which may be replaced.
    """
    ALTER TABLE notes ADD COLUMN kind TEXT;
    CREATE TABLE part_results (
        name TEXT PRIMARY KEY, version TEXT NOT NULL, schema TEXT NOT NULL, data TEXT NOT NULL,
        figures TEXT NOT NULL);
    """,
    # Digests: each row of a chain, each match that has ended, the beginning and the end of the run.
    # NULL: the run began without digests.
    """
    ALTER TABLE calls ADD COLUMN digest TEXT;
    ALTER TABLE effects ADD COLUMN digest TEXT;
    ALTER TABLE rounds ADD COLUMN digest TEXT;
    ALTER TABLE matches ADD COLUMN digest TEXT;
    ALTER TABLE runs ADD COLUMN origin TEXT;
    ALTER TABLE runs ADD COLUMN digest TEXT;
    """,
    # Heartbeats of the process that plays the run. A process on another machine that wants to take
    # over watches whether this number changes, so that clocks need not be compared.
    "ALTER TABLE runs ADD COLUMN beats INTEGER NOT NULL DEFAULT 0;",
    # The plan `evolve`: the round and the arm of a match, the experiences that its seats were
    # shown, and experiences of another run.
    """
    ALTER TABLE matches ADD COLUMN stage INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE matches ADD COLUMN arm TEXT NOT NULL DEFAULT '';
    CREATE TABLE recalled (
        match INTEGER NOT NULL, seat TEXT NOT NULL, version TEXT NOT NULL, shown TEXT NOT NULL,
        PRIMARY KEY (match, seat)) WITHOUT ROWID;
    CREATE TABLE brought (number INTEGER PRIMARY KEY, experience TEXT NOT NULL);
    """,
    # Matches that people were asked about between two rounds, and how many votes each answer got
    # when the next round began. NULL: the votes have not been used yet.
    """
    CREATE TABLE people_verdicts (
        match INTEGER NOT NULL, seat TEXT NOT NULL, yes INTEGER, no INTEGER, unsure INTEGER,
        PRIMARY KEY (match, seat)) WITHOUT ROWID;
    """,
    # Lists of matches: what a record adds up to, and an index for filters and one for scores.
    f"""
    ALTER TABLE matches ADD COLUMN violations INTEGER;
    ALTER TABLE matches ADD COLUMN apart REAL;
    ALTER TABLE matches ADD COLUMN tokens INTEGER;
    UPDATE matches AS m SET {", ".join(f"{name} = {sql}" for name, sql in DERIVED.items())}
        WHERE state IN ('done', 'aborted');
    CREATE INDEX matches_listed ON matches (
        state, item, violations, apart, tokens, began, ended, seats);
    CREATE INDEX scores_listed ON scores (metric, value, match, seat) WHERE judge = '';
    """,
    # How the endpoints of the run answer, by alias, for pages that follow it.
    "ALTER TABLE runs ADD COLUMN health TEXT;",
    # Lists of matches in these orders; matches without a value come first.
    f"""
    CREATE INDEX matches_by_seconds ON matches ({ORDER_KEYS["seconds"]});
    CREATE INDEX matches_by_tokens ON matches ({ORDER_KEYS["tokens"]});
    """,
    # Models that Parley itself runs on this machine: how each is run, and the seconds that the
    # device worked on a reply. NULL: the model is not run here, or the time was not measured.
    """
    CREATE TABLE devices (number INTEGER PRIMARY KEY, setup TEXT NOT NULL);
    ALTER TABLE calls ADD COLUMN device INTEGER;
    ALTER TABLE calls ADD COLUMN device_seconds REAL;
    """,
    # Waves: requests that were sent together to the batch interface of a provider. A request whose
    # reply is not in `calls` is still open, unless it failed.
    """
    CREATE TABLE waves (
        number INTEGER PRIMARY KEY, uid TEXT NOT NULL, alias TEXT NOT NULL, state TEXT NOT NULL,
        batch TEXT, requests INTEGER NOT NULL, began REAL NOT NULL, ended REAL);
    CREATE TABLE wave_requests (
        wave INTEGER NOT NULL, number INTEGER NOT NULL, match INTEGER NOT NULL,
        round INTEGER NOT NULL, seat TEXT NOT NULL, attempt INTEGER NOT NULL, body BLOB NOT NULL,
        usd REAL NOT NULL, failed INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (wave, number)) WITHOUT ROWID;
    """,
]
VERSION = len(MIGRATIONS)
LISTED = 1 + next(step for step, sql in enumerate(MIGRATIONS) if "matches_listed" in sql)
ORDERED = 1 + next(step for step, sql in enumerate(MIGRATIONS) if "matches_by_tokens" in sql)
HEALTH = 1 + next(step for step, sql in enumerate(MIGRATIONS) if "COLUMN health" in sql)
DEVICES = 1 + next(step for step, sql in enumerate(MIGRATIONS) if "TABLE devices" in sql)
WAVES = 1 + next(step for step, sql in enumerate(MIGRATIONS) if "TABLE waves" in sql)


def needs_copy(version: int) -> bool:
    """Whether an older file must be migrated to be read. The indexes for lists of matches can be
    missing: lists are slower without them. So can the health of endpoints, the time of devices, and
    waves."""
    optional = (LISTED, ORDERED, HEALTH, DEVICES, WAVES)
    return any(step + 1 not in optional for step in range(version, VERSION))


def version_of(connection: sqlite3.Connection, path: str) -> int:
    """The schema version of a file; refuses files that are not runs or are newer than this
    program."""
    try:
        (application,), (version,) = (
            connection.execute("PRAGMA application_id").fetchone(),
            connection.execute("PRAGMA user_version").fetchone(),
        )
    except sqlite3.DatabaseError as wrong:
        raise StoreError(f"{path} cannot be read as a run: {wrong}") from None
    if application != APPLICATION:
        raise StoreError(f"{path} is not a Parley run: give a file that `parley run` wrote")
    if version < 0:
        raise StoreError(f"{path} cannot be read as a run: its schema version is {version}")
    if version > VERSION:
        raise StoreError(
            f"{path} was written by a newer version of Parley (schema version {version}; this "
            f"Parley supports versions up to {VERSION}): update Parley"
        )
    return int(version)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Migrate the tables to the newest version, in one transaction."""
    if version < VERSION:
        steps = " ".join(MIGRATIONS[version:VERSION])
        mark = f"PRAGMA user_version = {VERSION}; PRAGMA application_id = {APPLICATION};"
        connection.executescript(f"BEGIN IMMEDIATE; {steps} {mark} COMMIT;")


def copy_migrated(connection: sqlite3.Connection, version: int) -> sqlite3.Connection:
    """A migrated copy of an older file in memory; the file itself is not changed."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(copy)
    connection.close()
    migrate(copy, version)
    return copy


def same_sums_of(connection: sqlite3.Connection) -> str:
    """The query that finds the matches in a range of numbers whose sums for lists are right; empty
    for an older file, which has no such columns."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(matches)")}
    return SAME_SUMS if columns >= DERIVED.keys() else ""


@cache
def own_objects() -> dict[tuple[str, str], str]:
    """The indexes and views of a run's file, as Parley creates them."""
    with closing(sqlite3.connect(":memory:")) as connection:
        migrate(connection, 0)
        return objects_in(connection)


def objects_in(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Everything in a file besides plain tables, by kind and name."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL "
        "AND (type != 'table' OR sql LIKE 'CREATE VIRTUAL%')"
    )
    return {(kind, name): sql for kind, name, sql in rows}


def find_stranger(connection: sqlite3.Connection) -> str:
    """An index, trigger, view or virtual table that Parley did not create, through which a query
    could return other rows than were recorded; empty if there is none."""
    for (kind, name), sql in objects_in(connection).items():
        if own_objects().get((kind, name)) != sql:
            return f"{kind} {name!r}"
    return ""

"""The tables of a PostgreSQL store; one process creates them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parley.errors import StoreError
from parley.store.dialect import LARGEST, LARGEST_SUM, ORDER_KEYS, Dialect
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import SCHEMA, unreadable_explained, unwritable_explained
from parley.store.tables import RUN_TABLES, RUNS, VOTE_TABLES, TableSpec

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

LOCK = 0x50524C59  # the first key of Parley's advisory locks
VERSION = 1  # of the tables


def cap_sum(total: str, most: int = LARGEST) -> str:
    """A sum as SQL that fits into an integer."""
    return f"LEAST({total}, {most})::bigint"


DIALECT = Dialect(
    seats=(
        'LATERAL (SELECT key, value COLLATE "C" AS value FROM json_each_text(m.seats::json)) AS s'
    ),
    chosen="(SELECT value::int AS value FROM json_array_elements_text(?::json)) AS chosen",
    number_list="COALESCE(json_agg(number)::text, '[]')",
    add_up=lambda column: f"CASE WHEN COUNT({column}) > 0 THEN {cap_sum(f'SUM({column})')} END",
    contains=lambda text, part: f"strpos({text}, {part}) > 0",
    length=lambda column: f"LENGTH(REPLACE({column}, chr(1), ''))",  # escapes have two characters
    use_index=lambda name: "",
    not_indexed="",
)
TOKENS = "COALESCE(SUM(c.tokens_in), 0) + COALESCE(SUM(c.tokens_out), 0)"
# As in SQLite: what the record of a match `m` adds up to, for lists of matches.
VOTES = "n.facts::json -> 'votes'"
DERIVED = {
    "violations": (
        "(SELECT COUNT(DISTINCT (v.round, v.seat, v.kind, CASE WHEN v.outcome IN "
        "('ruled', 'masked') THEN v.number END)) FROM violations v "
        "WHERE v.run = m.run AND v.match = m.number)"
    ),
    "apart": (
        "(SELECT MAX(highest - lowest) FROM (SELECT MAX(score) AS highest, MIN(score) AS lowest "
        "FROM (SELECT number, seat, CASE json_typeof(score) WHEN 'number' "
        "THEN score::text::double precision WHEN 'boolean' THEN score::text::boolean::int END "
        "AS score FROM (SELECT n.number AS number, seat.key AS seat, CASE json_typeof(seat.value) "
        "WHEN 'object' THEN seat.value -> 'score' ELSE seat.value END AS score FROM notes n, "
        f"LATERAL (SELECT value FROM json_each(CASE json_typeof({VOTES}) WHEN 'object' "
        f"THEN {VOTES} ELSE '{{}}' END) UNION ALL SELECT value FROM json_array_elements("
        f"CASE json_typeof({VOTES}) WHEN 'array' THEN {VOTES} ELSE '[]' END)) AS judge, "
        "LATERAL json_each(CASE json_typeof(judge.value) WHEN 'object' THEN judge.value "
        "ELSE '{}' END) AS seat "
        "WHERE n.run = m.run AND n.match = m.number AND n.kind = 'votes') "
        "AS given) AS known WHERE score IS NOT NULL GROUP BY number, seat HAVING COUNT(*) > 1) "
        "AS seats)"
    ),
    "tokens": (
        "(SELECT CASE WHEN COUNT(COALESCE(c.tokens_in, c.tokens_out)) > 0 THEN "
        f"{cap_sum(TOKENS, LARGEST_SUM)} END "
        "FROM calls c WHERE c.run = m.run AND c.match = m.number AND c.copied IS NULL)"
    ),
}
OPEN_MATCHES = "state IN ('planned', 'stopped', 'running')"
SAME_SUMS = "SELECT number FROM matches m WHERE number BETWEEN ? AND ? AND " + " AND ".join(
    f"{name} IS NOT DISTINCT FROM {sql}" for name, sql in DERIVED.items()
)
# Columns that only a database has. In `runs`, `shared` is the version of Parley whose workers play
# the run, NULL if one process plays it alone, and `ending` is how the run ends, once that is
# decided.
FURTHER = {
    "runs": (
        "changes bigint NOT NULL DEFAULT 0",
        "changed double precision NOT NULL",
        "escapes boolean NOT NULL DEFAULT false",
        "shared TEXT",
        "ending TEXT",
        "planner int",
        "plan_line TEXT",
        "UNIQUE (id)",
    ),
    "matches": ("worker int", "returns int NOT NULL DEFAULT 0", "returned_by int"),
}
NUMBERED = "GENERATED ALWAYS AS IDENTITY"


def create_table(table: TableSpec) -> str:
    """The statement that creates a table."""
    rows = [f"{each.name} {each.kind.postgres}{each.rules}" for each in table.columns]
    if table.numbered:
        rows.insert(0, f"id bigint {NUMBERED}")
    key = table.key
    if table.name in RUN_TABLES:
        rows.insert(0, f"run int {NUMBERED if table is RUNS else ''}")
        key = ("run",) if table is RUNS else ("run", *key)
    rows += FURTHER.get(table.name, ())
    rows += [f"UNIQUE ({', '.join(columns)})" for columns in table.unique]
    return f"CREATE TABLE {table.name} ({', '.join(rows)}, PRIMARY KEY ({', '.join(key)}));"


# TEXT stands for text that is sorted by code points, as Python and SQLite do. The planner gets no
# statistics on `run`, so that it expects each run to have its share of the rows. With statistics it
# would expect no rows of a run that began after them, and compare each of them with all others.
TABLES = (
    "".join(map(create_table, (*RUN_TABLES.values(), *VOTE_TABLES)))
    + f"""
    CREATE INDEX matches_listed ON matches (run, state, number);
    CREATE INDEX matches_by_seconds ON matches (run, ({ORDER_KEYS["seconds"]}), number);
    CREATE INDEX matches_by_tokens ON matches (run, ({ORDER_KEYS["tokens"]}), number);
    CREATE INDEX matches_open ON matches (run, number) WHERE {OPEN_MATCHES};
    CREATE INDEX calls_in_order ON calls (run, id);
    CREATE INDEX scores_listed ON scores (run, metric, value, match, seat) WHERE judge = '';
    CREATE UNIQUE INDEX studies_once ON studies (md5(runs));
    CREATE UNIQUE INDEX votes_once ON votes (study, pair, annotator) WHERE replaced IS NULL;
    CREATE UNIQUE INDEX verdict_votes_once ON verdict_votes (run, match, seat, folded)
        WHERE replaced IS NULL;
    CREATE TABLE workers (
        worker int {NUMBERED} PRIMARY KEY, run int NOT NULL,
        host TEXT NOT NULL, pid int NOT NULL, version TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'alive', until timestamptz NOT NULL,
        commits bigint NOT NULL DEFAULT 0,
        playing int NOT NULL DEFAULT 0, calls bigint NOT NULL DEFAULT 0,
        ended bigint NOT NULL DEFAULT 0, spent TEXT, unanswered TEXT, health TEXT);
    CREATE INDEX workers_of_run ON workers (run, worker);
    CREATE TABLE grants (
        run int, worker int, what TEXT, amount double precision NOT NULL,
        spent double precision NOT NULL, wanted double precision NOT NULL DEFAULT 0,
        PRIMARY KEY (run, worker, what));
    CREATE TABLE rates (run int, what TEXT, at timestamptz NOT NULL, PRIMARY KEY (run, what));
    """
    + "".join(
        f"ALTER TABLE {name} ALTER COLUMN run SET STATISTICS 0;"
        for name, table in RUN_TABLES.items()
        if table is not RUNS
    )
)


def has_store_tables(connection: Connection, address: StoreAddress) -> bool:
    """Whether the database has the tables of Parley. Refuses tables that are not Parley's, have
    another version, or cannot be read."""
    with unreadable_explained(address, address.public):
        has_mark, others = one_row(
            connection,
            "SELECT to_regclass('parley.schema_version') IS NOT NULL, "
            "(SELECT COUNT(*) FROM pg_class WHERE relnamespace = to_regnamespace('parley'))",
        )
    if not has_mark:
        if others:
            raise StoreError(
                f"{address.public} has a schema `{SCHEMA}` that Parley did not create: use another "
                "database"
            )
        return False
    with unreadable_explained(address, address.public):
        (version,) = one_row(connection, "SELECT version FROM parley.schema_version")
    if version < VERSION:
        raise StoreError(
            f"{address.public} is not a store that this Parley can read: its schema version is "
            f"{version}, not {VERSION}; use another database"
        )
    if version > VERSION:
        raise StoreError(
            f"{address.public} was written by a newer version of Parley (schema version {version}; "
            f"this Parley reads version {VERSION}): update Parley"
        )
    return True


def one_row(connection: Connection, query: str) -> tuple[Any, ...]:
    """The only row that a query gives."""
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row


def has_schema(connection: Connection) -> bool:
    (is_there,) = one_row(connection, "SELECT to_regnamespace('parley') IS NOT NULL")
    return bool(is_there)


def rights_to_create(has_schema: bool) -> str:
    """How a user gets the rights to create the tables."""
    if has_schema:
        return f"ask an administrator to make this user the owner of the schema `{SCHEMA}`"
    return "ask an administrator to grant this user CREATE on the database"


def create_store_tables(connection: Connection, address: StoreAddress) -> None:
    """Create the tables if there are none. Several processes may do this at once: one of them
    creates the tables, the others wait for it."""
    if has_store_tables(connection, address):
        return
    rights = rights_to_create(has_schema(connection))
    with unwritable_explained(address, rights), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCK,))
        if has_store_tables(connection, address):
            return
        if not has_schema(connection):
            connection.execute("CREATE SCHEMA parley")
        connection.execute(TABLES.replace("TEXT", 'text COLLATE "C"').encode())
        connection.execute("CREATE TABLE schema_version (version int NOT NULL)")
        connection.execute("INSERT INTO schema_version VALUES (%s)", (VERSION,))

"""The tables of a PostgreSQL store; one process creates them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parley.errors import StoreError
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import SCHEMA, unreadable_explained, unwritable_explained
from parley.store.sql.dialect import LARGEST, LARGEST_SUM, ORDER_KEYS, Dialect

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
# TEXT stands for text that is sorted by code points, as Python and SQLite do. The planner gets no
# statistics on `run`, so that it expects each run to have its share of the rows. With statistics it
# would expect no rows of a run that began after them, and compare each of them with all others.
#
# In `runs`, `shared` is the version of Parley whose workers play the run, NULL if one process plays
# it alone, and `ending` is how the run ends, once that is decided.
TABLES = f"""
    CREATE TABLE runs (
        run int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        created double precision NOT NULL, config TEXT NOT NULL, identity TEXT NOT NULL,
        quotation_secret TEXT NOT NULL,
        state TEXT NOT NULL, status TEXT, reason TEXT, planned int NOT NULL DEFAULT 0,
        owner TEXT, token TEXT, heartbeat double precision, heartbeats bigint NOT NULL DEFAULT 0,
        spent TEXT, prices TEXT, unanswered TEXT, health TEXT, origin TEXT, digest TEXT,
        changes bigint NOT NULL DEFAULT 0, changed double precision NOT NULL,
        escapes boolean NOT NULL DEFAULT false,
        shared TEXT, ending TEXT, planner int, plan_line TEXT);
    CREATE TABLE history (
        run int, number int, at double precision NOT NULL, kind TEXT NOT NULL, facts TEXT NOT NULL,
        digest TEXT NOT NULL, PRIMARY KEY (run, number));
    CREATE TABLE items (
        run int, id TEXT NOT NULL, number int, data TEXT NOT NULL, PRIMARY KEY (run, number));
    CREATE TABLE matches (
        run int, number int, block TEXT NOT NULL, item TEXT, repeat int NOT NULL,
        seed bigint NOT NULL, seats TEXT NOT NULL, unscored TEXT, stage int NOT NULL,
        arm TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'planned', reason TEXT, rounds int,
        began double precision, ended double precision,
        violations int, apart double precision, tokens bigint, digest TEXT,
        worker int, returns int NOT NULL DEFAULT 0, returned_by int,
        PRIMARY KEY (run, number));
    CREATE INDEX matches_listed ON matches (run, state, number);
    CREATE INDEX matches_by_seconds ON matches (run, ({ORDER_KEYS["seconds"]}), number);
    CREATE INDEX matches_by_tokens ON matches (run, ({ORDER_KEYS["tokens"]}), number);
    CREATE INDEX matches_open ON matches (run, number) WHERE {OPEN_MATCHES};
    CREATE TABLE calls (
        run int, id bigint GENERATED ALWAYS AS IDENTITY, match int, round int, seat TEXT,
        attempt int, view_digest bytea NOT NULL, content TEXT NOT NULL, parts TEXT, reasoning TEXT,
        finish TEXT NOT NULL, model_served TEXT, response_id TEXT, request_id TEXT,
        system_fingerprint TEXT, tokens_in bigint, tokens_cached bigint, tokens_out bigint,
        tokens_reasoning bigint, tokens_written bigint,
        latency double precision, provider_state TEXT, sent TEXT, left_out TEXT, masked TEXT,
        at double precision NOT NULL, copied int, device int, device_seconds double precision,
        digest TEXT NOT NULL,
        PRIMARY KEY (run, match, round, seat, attempt));
    CREATE INDEX calls_in_order ON calls (run, id);
    CREATE TABLE devices (run int, number int, setup TEXT NOT NULL, PRIMARY KEY (run, number));
    CREATE TABLE effects (
        run int, match int, round int, number int, request_digest bytea NOT NULL,
        result TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (run, match, round, number));
    CREATE TABLE rounds (
        run int, match int, first int, messages bytea NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (run, match, first));
    CREATE TABLE scores (
        run int, match int, seat TEXT, metric TEXT, judge TEXT DEFAULT '', value double precision,
        PRIMARY KEY (run, match, seat, metric, judge));
    CREATE INDEX scores_listed ON scores (run, metric, value, match, seat) WHERE judge = '';
    CREATE TABLE violations (
        run int, match int, number int, round int NOT NULL, seat TEXT NOT NULL,
        attempt int NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL, outcome TEXT NOT NULL,
        PRIMARY KEY (run, match, number));
    CREATE TABLE notes (
        run int, match int, number int, round int NOT NULL, facts TEXT NOT NULL, kind TEXT,
        PRIMARY KEY (run, match, number));
    CREATE TABLE part_results (
        run int, name TEXT, version TEXT NOT NULL, schema TEXT NOT NULL, data TEXT NOT NULL,
        figures TEXT NOT NULL, PRIMARY KEY (run, name));
    CREATE TABLE recalled (
        run int, match int, seat TEXT, version TEXT NOT NULL, shown TEXT NOT NULL,
        PRIMARY KEY (run, match, seat));
    CREATE TABLE transferred (
        run int, number int, experience TEXT NOT NULL, PRIMARY KEY (run, number));
    CREATE TABLE people_verdicts (
        run int, match int, seat TEXT, yes int, no int, unsure int,
        PRIMARY KEY (run, match, seat));
    CREATE TABLE batches (
        run int, number int, uid TEXT NOT NULL, alias TEXT NOT NULL, state TEXT NOT NULL,
        provider_id TEXT, requests int NOT NULL, began double precision NOT NULL,
        ended double precision, PRIMARY KEY (run, number));
    CREATE TABLE batch_requests (
        run int, batch int, number int, match int NOT NULL, round int NOT NULL,
        seat TEXT NOT NULL, attempt int NOT NULL, body bytea NOT NULL,
        usd double precision NOT NULL, failed int NOT NULL DEFAULT 0,
        PRIMARY KEY (run, batch, number));
    CREATE TABLE studies (
        id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, runs TEXT NOT NULL, seed bigint NOT NULL,
        ties int NOT NULL, created double precision NOT NULL);
    CREATE UNIQUE INDEX studies_once ON studies (md5(runs));
    CREATE TABLE pairs (
        study int, number int, dataset TEXT NOT NULL, item TEXT NOT NULL,
        a_run TEXT NOT NULL, a_match int NOT NULL, a_model TEXT NOT NULL,
        a_score double precision NOT NULL, b_run TEXT NOT NULL, b_match int NOT NULL,
        b_model TEXT NOT NULL, b_score double precision NOT NULL, PRIMARY KEY (study, number));
    CREATE TABLE annotators (
        id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, study int NOT NULL, name TEXT NOT NULL,
        folded TEXT NOT NULL, token bytea UNIQUE, created double precision NOT NULL,
        UNIQUE (study, folded));
    CREATE TABLE votes (
        id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, study int NOT NULL, pair int NOT NULL,
        annotator int NOT NULL, choice TEXT NOT NULL, at double precision NOT NULL,
        replaced double precision);
    CREATE UNIQUE INDEX votes_once ON votes (study, pair, annotator) WHERE replaced IS NULL;
    CREATE TABLE held (
        study int, pair int, annotator int, until double precision NOT NULL,
        PRIMARY KEY (study, pair, annotator));
    CREATE TABLE skipped (
        study int, pair int, annotator int, PRIMARY KEY (study, pair, annotator));
    CREATE TABLE ended_invitations (
        digest bytea PRIMARY KEY, annotator int NOT NULL, at double precision NOT NULL);
    CREATE TABLE verdict_votes (
        id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run TEXT NOT NULL, match int NOT NULL,
        seat TEXT NOT NULL, annotator TEXT NOT NULL, folded TEXT NOT NULL, choice TEXT NOT NULL,
        at double precision NOT NULL, replaced double precision);
    CREATE UNIQUE INDEX verdict_votes_once ON verdict_votes (run, match, seat, folded)
        WHERE replaced IS NULL;
    CREATE TABLE verdict_invitations (
        digest bytea PRIMARY KEY, run TEXT NOT NULL, annotator TEXT NOT NULL,
        folded TEXT NOT NULL, ended double precision);
    CREATE TABLE workers (
        worker int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run int NOT NULL,
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
    """ + "".join(
    f"ALTER TABLE {table} ALTER COLUMN run SET STATISTICS 0;"
    for table in (
        "items",
        "matches",
        "calls",
        "effects",
        "rounds",
        "scores",
        "violations",
        "notes",
        "recalled",
        "people_verdicts",
        "batch_requests",
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

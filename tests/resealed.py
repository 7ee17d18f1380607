"""A run's file whose digests are all computed anew, as somebody would who changed it and hides
that."""

import json

from parley.store.changes import PLANNED
from parley.store.config import split_config
from parley.store.digests import (
    CHAINS,
    RECORD,
    ChainEnds,
    digest_contents,
    digest_match,
    digest_origin,
    digest_plan,
    digest_row,
    digest_run,
    with_digests,
)
from parley.store.history import COUNT_ENDED, ENTRIES
from parley.store.sqlite.schema import DERIVED
from parley.store.tables import MATCHES

KEYS = {
    "calls": "match = ? AND round = ? AND seat = ? AND attempt = ?",
    "effects": "match = ? AND round = ? AND number = ?",
    "rounds": "match = ? AND first = ?",
}


def reseal(connection):
    """Write the digests and totals that the file would have if it had always been as it is."""
    sums = ", ".join(f"{name} = {sql}" for name, sql in DERIVED.items())
    connection.execute(f"UPDATE matches AS m SET {sums} WHERE state IN ('done', 'aborted')")
    origin = digest_origin(connection)
    connection.execute("UPDATE runs SET origin = ?", (origin,))
    connection.execute("UPDATE runs SET planned = (SELECT COUNT(*) FROM matches)")
    planned = f"SELECT {MATCHES.row}, state, reason, rounds FROM matches"
    for row in connection.execute(planned).fetchall():
        number, end, first = row[0], row[PLANNED:], digest_plan(row[:PLANNED], origin)
        ends = []
        for table in CHAINS:
            kept = connection.execute(RECORD[table], (number, number)).fetchall()
            rows = with_digests((each[:-1] for each in kept), first)
            for each in rows:
                key = each[: KEYS[table].count("?")]
                connection.execute(
                    f"UPDATE {table} SET digest = ? WHERE {KEYS[table]}", (each[-1], *key)
                )
            ends.append(rows[-1][-1] if rows else first)
        kept = (
            connection.execute(RECORD[table], (number, number))
            for table in ("scores", "violations", "notes")
        )
        if end[0] in ("done", "aborted"):
            digest = digest_match(number, end, ChainEnds(*ends), *kept)
            connection.execute("UPDATE matches SET digest = ? WHERE number = ?", (digest, number))
    reseal_history(connection, origin)


def reseal_history(connection, origin):
    """Write the history that the run would have."""
    config, prices, *end = connection.execute(
        "SELECT config, prices, state, status, reason FROM runs"
    ).fetchone()
    (ended,) = connection.execute(COUNT_ENDED).fetchone()
    facts = {
        "began": {
            "settings": split_config(config).settings,
            "contents": digest_contents(connection),
        },
        "settings": {"settings": split_config(config).settings},
        "sealed": {**dict(zip(("state", "status", "reason"), end, strict=True)), "matches": ended},
    }
    facts["sealed"]["record"] = digest_run(connection)
    rows = connection.execute(ENTRIES).fetchall()
    if prices is not None and not any(kind == "prices" for _, _, kind, *_ in rows):
        rows.insert(-1, (rows[-1][0], rows[-1][1], "prices", "", ""))
    if prices is not None:
        facts["prices"] = {"prices": json.loads(prices)}
    connection.execute("DELETE FROM history")
    digest = origin
    for number, (_, at, kind, text, _) in enumerate(rows, 1):
        row = number, at, kind, json.dumps(facts[kind]) if kind in facts else text
        digest = digest_row(row, digest)
        connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (*row, digest))
    if rows[-1][2] == "sealed":
        connection.execute("UPDATE runs SET digest = ?", (digest,))

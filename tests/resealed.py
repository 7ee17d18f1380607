"""A run's file whose digests are all computed anew, as somebody would who changed it and hides
that."""

from parley.store.sql.digests import (
    CHAINS,
    NOTES,
    SCORES,
    VIOLATIONS,
    ChainEnds,
    digest_match,
    digest_origin,
    digest_run,
    with_digests,
)
from parley.store.sqlite.schema import DERIVED

KEYS = {
    "calls": "match = ? AND round = ? AND seat = ? AND attempt = ?",
    "effects": "match = ? AND round = ? AND number = ?",
    "rounds": "match = ? AND first = ?",
}


def reseal(connection):
    """Write the digests and totals that the file would have if it had always been as it is."""
    sums = ", ".join(f"{name} = {sql}" for name, sql in DERIVED.items())
    connection.execute(f"UPDATE matches AS m SET {sums} WHERE state IN ('done', 'aborted')")
    matches = connection.execute("SELECT number, state, reason, rounds FROM matches").fetchall()
    for number, *end in matches:
        ends = []
        for table, query in CHAINS.items():
            rows = with_digests(
                row[:-1] for row in connection.execute(query, (number, number)).fetchall()
            )
            for row in rows:
                key = row[: KEYS[table].count("?")]
                connection.execute(
                    f"UPDATE {table} SET digest = ? WHERE {KEYS[table]}", (row[-1], *key)
                )
            ends.append(rows[-1][-1] if rows else "")
        kept = (
            connection.execute(query, (number, number)) for query in (SCORES, VIOLATIONS, NOTES)
        )
        if end[0] in ("done", "aborted"):
            digest = digest_match(number, tuple(end), ChainEnds(*ends), *kept)
            connection.execute("UPDATE matches SET digest = ? WHERE number = ?", (digest, number))
    connection.execute("UPDATE runs SET origin = ?", (digest_origin(connection),))
    connection.execute("UPDATE runs SET digest = ?", (digest_run(connection),))

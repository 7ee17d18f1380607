"""The votes of people in a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from psycopg.pq import TransactionStatus

from parley.errors import UsageError
from parley.store.pair_votes import VoteStore
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import (
    REMEDY,
    connect,
    unreadable_explained,
    unwritable_explained,
    with_marks,
)
from parley.store.postgres.database_tables import LOCK, create_store_tables, has_store_tables
from parley.store.verdict_votes import VerdictVoteStore
from parley.store.vote_tables import VoteTables

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

VOTING = 1  # the second key of the lock of all votes
HAS_VOTES = (
    "SELECT EXISTS (SELECT 1 FROM studies) OR EXISTS (SELECT 1 FROM verdict_votes) "
    "OR EXISTS (SELECT 1 FROM verdict_invitations)"
)


class VoteStatements:
    """Runs the statements of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Any:
        return self._connection.execute(with_marks(query).encode(), values)


class VotesDatabase(VoteTables):
    """The votes in a database; with `read_only` no vote is changed and no table created."""

    remedy = REMEDY

    def __init__(self, address: StoreAddress, read_only: bool = False) -> None:
        self.location, self._address = address.public, address
        self._connection = connect(address)
        try:
            if read_only:
                # a database without tables has no votes, and reading it must not create them
                has_tables = has_store_tables(self._connection, address)
                if not has_tables or not self._rows(HAS_VOTES)[0][0]:
                    raise UsageError(
                        "there are no votes yet: run `parley annotate draw RUN…` first "
                        f"({address.public} has no votes)"
                    )
                self._connection.execute("SET default_transaction_read_only = on")
            else:
                create_store_tables(self._connection, address)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[VoteStatements]:
        statements = VoteStatements(self._connection)
        if self._connection.info.transaction_status != TransactionStatus.IDLE:
            yield statements  # part of one that has begun
            return
        with unwritable_explained(self._address), self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK, -VOTING))
            yield statements

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with unreadable_explained(self._address, self.location):
            return self._connection.execute(with_marks(query).encode(), values).fetchall()


class PostgresVotes(VoteStore, VotesDatabase):
    """The votes on pairs in a database."""


class PostgresVerdictVotes(VerdictVoteStore, VotesDatabase):
    """The votes on single conversations in a database."""

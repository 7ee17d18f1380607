"""The rights of a database user on the tables of Parley, for `parley doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parley.errors import StoreError
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import RIGHTS_ON_TABLES, TABLES
from parley.store.postgres.database_tables import has_schema, one_row, rights_to_create

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

MAY = "SELECT bool_and(has_table_privilege('parley.' || name, %s)) FROM unnest(%s::text[]) AS name"
MAY_CREATE_SCHEMA = "SELECT has_database_privilege(current_database(), 'CREATE')"
MAY_CREATE_TABLES = "SELECT has_schema_privilege('parley', 'CREATE')"
WRITING = ("INSERT", "UPDATE", "DELETE")


def describe_rights(connection: Connection, address: StoreAddress, has_tables: bool) -> str:
    """Whether this user can read and write runs, and what to do if not; `StoreError` if the user
    can do neither."""
    if not has_tables:
        is_there = has_schema(connection)
        (may_create,) = one_row(connection, MAY_CREATE_TABLES if is_there else MAY_CREATE_SCHEMA)
        if may_create:
            return "ready (no tables yet: the first run creates them)"
        return (
            "cannot be written: there are no tables yet, and this user has no right to create "
            f"them: {rights_to_create(is_there)}"
        )
    if not has_right(connection, "SELECT"):
        raise StoreError(
            f"{address.public} cannot be read: this user has no SELECT on some tables: "
            f"{RIGHTS_ON_TABLES}"
        )
    missing = [right for right in WRITING if not has_right(connection, right)]
    if missing:
        return (
            f"ready to read, not to write: this user has no {', '.join(missing)} on some tables: "
            f"{RIGHTS_ON_TABLES}"
        )
    return "ready"


def has_right(connection: Connection, right: str) -> bool:
    """Whether this user has a right on all tables of runs."""
    (has_it,) = connection.execute(MAY, (right, list(TABLES))).fetchone() or (False,)
    return bool(has_it)

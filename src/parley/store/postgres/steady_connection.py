"""A connection that is opened again after it broke: a worker waits for a database that is away."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from psycopg.errors import Error, LockNotAvailable, OperationalError

from parley.errors import StoreAway, StoreError
from parley.store.postgres.addresses import StoreAddress
from parley.store.postgres.connections import connect, first_line

if TYPE_CHECKING:
    from parley.store.postgres.connections import Connection

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts
# The server ends a transaction of a process that hangs, before its lease lapses: it would hold up
# all other workers.
LONGEST_IDLE = "idle_in_transaction_session_timeout = '10s'"
# A question that has to wait for a lock lets the others pass, above all the sign of life.
LONGEST_WAIT = "lock_timeout = '1s'"


class Outage:
    """Waits for a database that is away, a little longer after each attempt."""

    def __init__(
        self, address: StoreAddress, notify: Callable[[str], None], closing: threading.Event
    ) -> None:
        self._address, self._notify, self._closing = address, notify, closing
        self._pause, self._is_known = FIRST_PAUSE, False

    def wait(self, wrong: Exception) -> None:
        """Wait until the next attempt. After the second failed attempt, the user reads why."""
        if not self._is_known and self._pause > FIRST_PAUSE:
            self._is_known = True
            why = self._address.hide_secrets(first_line(wrong))
            self._notify(f"the database does not answer, waiting for it: {why}")
        if self._closing.wait(self._pause):
            raise StoreError("stopped while the database was away") from None
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def end(self) -> None:
        if self._is_known:
            self._notify("the database is back")


class SteadyConnection:
    """One connection for one thread. After an error of the connection or of the server, such as a
    restart or a full disk, the work is done again."""

    def __init__(
        self,
        address: StoreAddress,
        prepare: Callable[[Connection], None],
        notify: Callable[[str], None],
    ) -> None:
        """`prepare` is called with each new connection, `notify` with what the user should know.
        The first connection is made at once: its errors are raised."""
        self._address, self._prepare, self._notify = address, prepare, notify
        self._closing = threading.Event()
        self._connection: Connection | None = None
        self.connected = 0.0  # when the connection was made, by the monotonic clock
        self.was_lost = False  # whether it was made again
        self._connect()

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do some work on the connection, again and again until it succeeds. The work must bear
        that: an attempt whose answer was lost may have succeeded."""
        outage = Outage(self._address, self._notify, self._closing)
        while True:
            try:
                found = work(self._connection or self._connect())
            except LockNotAvailable:
                raise  # the connection is fine
            except (Error, StoreError) as wrong:
                if not self._may_succeed_later(wrong):
                    raise
                self._drop()
                self.was_lost = True
                outage.wait(wrong)
            else:
                outage.end()
                return found

    def _may_succeed_later(self, wrong: Exception) -> bool:
        if self._connection is None:  # it could not be made
            return isinstance(wrong, Error | StoreAway)
        return is_temporary(self._connection, wrong)

    def _connect(self) -> Connection:
        connection = connect(self._address)
        try:
            connection.execute(f"SET {LONGEST_IDLE}")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self.connected = connection, time.monotonic()
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def give_up(self) -> None:
        """Stop waiting for the database. For any thread."""
        self._closing.set()

    def close(self) -> None:
        self.give_up()
        self._drop()


def is_temporary(connection: Connection, wrong: Exception) -> bool:
    """Whether the same work may succeed later."""
    return isinstance(wrong, OperationalError) or connection.closed


class ControlLine:
    """A steady connection in a thread of its own, for short questions."""

    def __init__(
        self,
        address: StoreAddress,
        prepare: Callable[[Connection], None],
        notify: Callable[[str], None],
    ) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="control")
        self._steady = self._executor.submit(SteadyConnection, address, prepare, notify).result()

    @property
    def connected(self) -> float:
        """When the connection was made, by the monotonic clock."""
        return self._steady.connected

    @property
    def was_lost(self) -> bool:
        """Whether the connection was made again."""
        return self._steady.was_lost

    async def use(self, work: Callable[[Connection], T], /) -> T:
        while True:
            with suppress(LockNotAvailable):  # then after those that wait already
                return await asyncio.wrap_future(self._executor.submit(self._steady.run, work))

    def use_now(self, work: Callable[[Connection], T]) -> T:
        """The same, but block this thread until it is done."""
        while True:
            with suppress(LockNotAvailable):
                return self._executor.submit(self._steady.run, work).result()

    def give_up(self) -> None:
        """Stop waiting for a database that is away."""
        self._steady.give_up()

    def close(self) -> None:
        self._steady.give_up()
        self._executor.submit(self._steady.close)
        self._executor.shutdown()

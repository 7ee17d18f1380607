"""What follows a match while it is played."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parley.match.record import RecordedCall
from parley.rules.pool import Pool

if TYPE_CHECKING:
    from parley.match.match import Outcome


class MatchObserver:
    """Follows one match. Override what you need; nothing here may raise an exception."""

    __slots__ = ()

    def begin(self) -> None:
        """The match begins, or goes on where its record ends."""

    def reply(self, call: RecordedCall) -> None:
        """A reply is on record, now or from before. The script has not seen it yet."""

    def end(self, pool: Pool, outcome: Outcome | None) -> None:
        """The match has ended, without an outcome if something interrupted it. `pool` has
        everything that its seats were shown and said."""

"""The votes of people on whether a conversation is a success, in the file of votes."""

from __future__ import annotations

import time

from parley.memory.feedback import VERDICT_CHOICES, VerdictChoice
from parley.rules.pool import Seat
from parley.store import VerdictVotes
from parley.store.sqlite.votes_file import VotesFile

TYPES = (int, str, str, str, str, float)


class SqliteVerdictVotes(VotesFile):
    """The votes on single conversations in a file of votes."""

    def votes(self, run: str) -> VerdictVotes:
        if not self._has_table():
            return {}
        found: VerdictVotes = {}
        names: dict[str, str] = {}
        for row in self._rows(
            "SELECT match, seat, annotator, folded, choice, at FROM verdict_votes WHERE run = ? "
            "AND replaced IS NULL ORDER BY id",
            run,
        ):
            match, key, name, folded, choice, _ = row
            if not all(map(isinstance, row, TYPES)) or choice not in VERDICT_CHOICES:
                self._damaged(
                    f"the vote {choice!r:.40} on {key!r:.40} of match {match!r:.40} of "
                    f"{run} is not valid"
                )
            try:
                seat = Seat.of(key)
            except ValueError:
                self._damaged(
                    f"there is a vote on {key!r:.40} of match {match}, but that is not a seat"
                )
            found.setdefault((match, seat), {})[names.setdefault(folded, name)] = choice
        return found

    def record(
        self, run: str, match: int, seat: Seat, annotator: str, choice: VerdictChoice
    ) -> None:
        now, place = time.time(), (run, match, seat.key, annotator.casefold())
        with self.transaction() as to:
            to.execute(
                "UPDATE verdict_votes SET replaced = ? WHERE run = ? AND match = ? AND seat = ? "
                "AND folded = ? AND replaced IS NULL",
                (now, *place),
            )
            to.execute(
                "INSERT INTO verdict_votes (run, match, seat, folded, annotator, choice, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*place, annotator, choice, now),
            )

    def _has_table(self) -> bool:
        """Whether the file has the table; one of an older Parley that is only read has not."""
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE name = 'verdict_votes'"))

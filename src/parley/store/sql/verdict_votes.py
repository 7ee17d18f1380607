"""The votes of people on whether a conversation is a success."""

from __future__ import annotations

import hmac
import time

from parley.memory.feedback import VERDICT_CHOICES, VerdictChoice
from parley.rules.pool import Seat
from parley.store import VerdictInvitation, VerdictVotes
from parley.store.sql.vote_tables import VoteTables

TYPES = (int, str, str, str, str, float)


class VerdictVoteTables(VoteTables):
    """The votes on single conversations in a store of votes."""

    def votes(self, run: str) -> VerdictVotes:
        if not self._has_table("verdict_votes"):
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
                    f"the vote {choice!r:.40} on {key!r:.40} in match {match!r:.40} of run "
                    f"{run} is not valid"
                )
            try:
                seat = Seat.of(key)
            except ValueError:
                self._damaged(
                    f"there is a vote on {key!r:.40} in match {match}, but this match has no "
                    "such seat"
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

    def votes_of(self, run: str, annotator: str) -> dict[tuple[int, Seat], VerdictChoice]:
        rows = self._rows(
            "SELECT match, seat, choice FROM verdict_votes WHERE run = ? AND folded = ? "
            "AND replaced IS NULL ORDER BY id",
            run,
            annotator.casefold(),
        )
        return {(match, Seat.of(key)): choice for match, key, choice in rows}

    def invite(self, run: str, annotator: str, digest: bytes) -> None:
        with self.transaction() as to:
            self.end_invitation(run, annotator)
            to.execute(
                "INSERT INTO verdict_invitations VALUES (?, ?, ?, ?, NULL)",
                (digest, run, annotator, annotator.casefold()),
            )

    def end_invitation(self, run: str, annotator: str) -> bool:
        with self.transaction() as to:
            ended = to.execute(
                "UPDATE verdict_invitations SET ended = ? WHERE run = ? AND folded = ? "
                "AND ended IS NULL",
                (time.time(), run, annotator.casefold()),
            )
        return bool(ended.rowcount > 0)

    def find_invitation(self, digest: bytes) -> VerdictInvitation | None:
        if not self._has_table("verdict_invitations"):
            return None
        found = None
        # All are compared: the time reveals nothing.
        for each, run, annotator, ended in self._rows(
            "SELECT digest, run, annotator, ended FROM verdict_invitations"
        ):
            if hmac.compare_digest(bytes(each), digest):
                found = VerdictInvitation(run, annotator, ended is not None)
        return found

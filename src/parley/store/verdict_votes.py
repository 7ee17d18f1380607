"""The votes of people on whether a conversation is a success."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from parley.errors import StoreError
from parley.memory.feedback import VERDICT_CHOICES, VerdictChoice
from parley.rules.pool import Seat
from parley.store.digests import RunConnection
from parley.store.types import VerdictInvitation, VerdictVotes
from parley.store.vote_tables import VoteTables

TYPES = (int, str, str, str, str, float)
# the vote of a person on a seat
STANDING = "WHERE run = ? AND match = ? AND seat = ? AND folded = ? AND replaced IS NULL"


class VoteRow(NamedTuple):
    """A vote as it moves to another store."""

    match: int
    seat: str
    annotator: str
    folded: str
    choice: str
    at: float
    replaced: float | None


VOTE_ROWS = (
    "SELECT match, seat, annotator, folded, choice, at, replaced FROM verdict_votes WHERE run = ? "
    "ORDER BY id"
)


class VerdictVoteStore(VoteTables):
    """The votes of people on whether conversations are successes. Many people vote at the same
    time, and no vote is ever deleted. Use it as a context manager."""

    def votes(self, run: str) -> VerdictVotes:
        """The votes on a run that stand, by match and seat, each by the name of the person. Names
        that differ only in case are one person."""
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

    def vote_rows(self, run: str) -> list[VoteRow]:
        """All votes on a run, also those that were replaced, in the order in which they were
        recorded."""
        return read_vote_rows(self._rows(VOTE_ROWS, run), self.location)

    def add_rows(self, run: str, rows: Sequence[VoteRow]) -> None:
        """Add votes from another store."""
        with self.transaction() as to:
            add_vote_rows(to, run, rows)

    def record(
        self, run: str, match: int, seat: Seat, annotator: str, choice: VerdictChoice
    ) -> None:
        """Record a vote. An earlier vote of this person on this seat stays on record as
        replaced."""
        now, place = time.time(), (run, match, seat.key, annotator.casefold())
        with self.transaction() as to:
            to.execute(f"UPDATE verdict_votes SET replaced = ? {STANDING}", (now, *place))
            to.execute(
                "INSERT INTO verdict_votes (run, match, seat, folded, annotator, choice, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*place, annotator, choice, now),
            )

    def votes_of(self, run: str, annotator: str) -> dict[tuple[int, Seat], VerdictChoice]:
        """The current votes of one person by match and seat, the latest vote last."""
        rows = self._rows(
            "SELECT match, seat, choice FROM verdict_votes WHERE run = ? AND folded = ? "
            "AND replaced IS NULL ORDER BY id",
            run,
            annotator.casefold(),
        )
        return {(match, Seat.of(key)): choice for match, key, choice in rows}

    def invite(self, run: str, annotator: str, digest: bytes) -> None:
        """Store the digest of a person's secret for a run, and end an earlier one."""
        with self.transaction() as to:
            self.end_invitation(run, annotator)
            to.execute(
                "INSERT INTO verdict_invitations VALUES (?, ?, ?, ?, NULL)",
                (digest, run, annotator, annotator.casefold()),
            )

    def end_invitation(self, run: str, annotator: str) -> bool:
        """End the secret of a person for a run. False if there was none."""
        with self.transaction() as to:
            ended = to.execute(
                "UPDATE verdict_invitations SET ended = ? WHERE run = ? AND folded = ? "
                "AND ended IS NULL",
                (time.time(), run, annotator.casefold()),
            )
        return bool(ended.rowcount > 0)

    def find_invitation(self, digest: bytes) -> VerdictInvitation | None:
        """The invitation with this digest of a secret, also if it has ended. The time that this
        takes does not depend on the digest."""
        found = None
        # All are compared: the time reveals nothing.
        for each, run, annotator, ended in self._rows(
            "SELECT digest, run, annotator, ended FROM verdict_invitations"
        ):
            if hmac.compare_digest(bytes(each), digest):
                found = VerdictInvitation(run, annotator, ended is not None)
        return found


def read_vote_rows(rows: Iterable[Sequence[Any]], place: object) -> list[VoteRow]:
    """Votes from rows, checked; `place`: where they are from."""
    found = [VoteRow(*row) for row in rows]
    for vote in found:
        if (
            not all(map(isinstance, vote, (*TYPES, float | None)))
            or vote.choice not in VERDICT_CHOICES
        ):
            raise StoreError(
                f"{place} is damaged: the vote {vote.choice!r:.40} on {vote.seat!r:.40} in match "
                f"{vote.match!r:.40} is not valid"
            )
    return found


def add_vote_rows(to: RunConnection, run: str, rows: Sequence[VoteRow]) -> None:
    """Add votes to those on a run. Votes that are known are not added again; of two votes of a
    person on a seat, the later one stands."""
    known = {vote[:6] for vote in to.execute(VOTE_ROWS, (run,)).fetchall()}
    for vote in rows:
        if vote[:6] in known:
            continue
        replaced, place = vote.replaced, (run, vote.match, vote.seat, vote.folded)
        standing = to.execute(f"SELECT at FROM verdict_votes {STANDING}", place).fetchone()
        if replaced is None and standing is not None:
            if standing[0] > vote.at:
                (replaced,) = standing
            else:
                to.execute(f"UPDATE verdict_votes SET replaced = ? {STANDING}", (vote.at, *place))
        to.execute(
            "INSERT INTO verdict_votes (run, match, seat, annotator, folded, choice, at, replaced) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (run, *vote[:6], replaced),
        )

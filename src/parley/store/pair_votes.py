"""The votes of people on pairs of conversations."""

from __future__ import annotations

import hmac
import time
from collections.abc import Sequence
from typing import Any

import orjson

from parley.statistics.preferences import (
    CHOICES,
    ConversationPair,
    ConversationSide,
    Preference,
)
from parley.store.rows import encode_json
from parley.store.types import Annotator, Invitation, Study
from parley.store.vote_tables import VoteTables

PAIR_TYPES = (int, str, str, *((str, int, str, int | float) * 2))
PAIR = "number, dataset, item, a_run, a_match, a_model, a_score, b_run, b_match, b_model, b_score"


class VoteStore(VoteTables):
    """The votes of people on pairs of conversations. Many people vote at the same time, and no
    vote is ever deleted. Use it as a context manager."""

    def _study(self, id: Any, runs: Any, seed: Any, ties: Any) -> Study:
        try:
            names = orjson.loads(runs)
        except (ValueError, TypeError):
            names = None
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            self._damaged(f"the list of runs of study {id} cannot be read")
        if not isinstance(seed, int):
            self._damaged(f"the random seed of study {id} must be a whole number, not {seed!r:.40}")
        return Study(id, tuple(names), seed, bool(ties))

    def find_study(self, runs: Sequence[str]) -> Study | None:
        """The study of a set of runs, if there is one."""
        rows = self._rows(
            "SELECT id, runs, seed, ties FROM studies WHERE runs = ?", encode_json(sorted(runs))
        )
        return self._study(*rows[0]) if rows else None

    def studies(self) -> list[Study]:
        """All studies, the oldest first."""
        rows = self._rows("SELECT id, runs, seed, ties FROM studies ORDER BY id")
        return [self._study(*row) for row in rows]

    def create_study(self, runs: Sequence[str], seed: int, ties: bool) -> Study:
        """Create the study of a set of runs; an existing study is not changed."""
        with self.transaction() as to:
            to.execute(
                "INSERT INTO studies (runs, seed, ties, created) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (encode_json(sorted(runs)), seed, int(ties), time.time()),
            )
        found = self.find_study(runs)
        assert found is not None
        return found

    def reset_study(self, study: Study, seed: int, ties: bool) -> Study | None:
        """Remove all pairs of a study and change its settings. None, and no change, if somebody
        has voted on a pair or was shown one."""
        with self.transaction() as to:
            for table in ("votes", "held", "skipped"):
                if to.execute(f"SELECT 1 FROM {table} WHERE study = ?", (study.id,)).fetchone():
                    return None
            to.execute("DELETE FROM pairs WHERE study = ?", (study.id,))
            to.execute(
                "UPDATE studies SET seed = ?, ties = ? WHERE id = ?", (seed, int(ties), study.id)
            )
        return study._replace(seed=seed, ties=ties)

    def add_pairs(self, study: Study, pairs: Sequence[ConversationPair], after: int) -> None:
        """Add pairs that were sampled when the study had `after` of them. If somebody else
        has added pairs meanwhile, those stay and these are dropped."""
        rows = [
            (study.id, after + n, pair.dataset, pair.item, *pair.a, *pair.b)
            for n, pair in enumerate(pairs, 1)
        ]
        with self.transaction() as to:
            if (
                to.execute("SELECT COUNT(*) FROM pairs WHERE study = ?", (study.id,)).fetchone()[0]
                == after
            ):
                for row in rows:
                    to.execute(
                        f"INSERT INTO pairs (study, {PAIR}) VALUES ({', '.join('?' * 12)})", row
                    )

    def pairs(self, study: Study) -> dict[int, ConversationPair]:
        """All pairs of a study by their numbers."""
        rows = self._rows(f"SELECT {PAIR} FROM pairs WHERE study = ? ORDER BY number", study.id)
        for row in rows:
            if not all(map(isinstance, row, PAIR_TYPES)):
                self._damaged(f"pair {row[0]!r:.40} of study {study.id} cannot be read")
        return {
            number: ConversationPair(
                dataset, item, ConversationSide(*sides[:4]), ConversationSide(*sides[4:])
            )
            for number, dataset, item, *sides in rows
        }

    def add_annotator(self, study: Study, name: str) -> Annotator:
        """A person by name, added if new. Names that differ only in case are one person."""
        with self.transaction() as to:
            to.execute(
                "INSERT INTO annotators (study, name, folded, created) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (study.id, name, name.casefold(), time.time()),
            )
        rows = self._rows(
            "SELECT id, study, name FROM annotators WHERE study = ? AND folded = ?",
            study.id,
            name.casefold(),
        )
        return Annotator(*rows[0])

    def annotators(self, study: Study) -> list[Annotator]:
        """Everybody who was invited or has voted."""
        rows = self._rows(
            "SELECT id, study, name FROM annotators WHERE study = ? ORDER BY id", study.id
        )
        for id, _, name in rows:
            if not isinstance(name, str):
                self._damaged(f"annotator {id} has no name")
        known = {id for id, *_ in rows}
        voting = self._rows("SELECT DISTINCT annotator FROM votes WHERE study = ?", study.id)
        if strangers := [id for (id,) in voting if id not in known]:
            self._damaged(
                f"it has votes by annotator {strangers[0]!r:.40}, who is missing from its list "
                "of annotators"
            )
        return [Annotator(*row) for row in rows]

    def set_token(self, who: Annotator, digest: bytes) -> None:
        """Store the digest of a person's secret, and end an earlier one."""
        with self.transaction() as to:
            self.end_token(who)
            to.execute("UPDATE annotators SET token = ? WHERE id = ?", (digest, who.id))

    def end_token(self, who: Annotator) -> bool:
        """End the secret of a person. The digest is kept as ended. False if there was none."""
        with self.transaction() as to:
            to.execute(
                "INSERT INTO ended_invitations SELECT token, id, ? FROM annotators "
                "WHERE id = ? AND token IS NOT NULL",
                (time.time(), who.id),
            )
            ended = to.execute(
                "UPDATE annotators SET token = NULL WHERE id = ? AND token IS NOT NULL", (who.id,)
            )
        return bool(ended.rowcount > 0)

    def find_token(self, digest: bytes) -> Invitation | None:
        """The invitation with this digest of a secret, also if it has ended. The time that this
        takes does not depend on the digest."""
        known = self._rows("SELECT token, id, 0 FROM annotators WHERE token IS NOT NULL")
        known += self._rows("SELECT digest, annotator, 1 FROM ended_invitations")
        # All are compared, and as much is read for a guess: the time reveals nothing.
        found, ended = 0, False
        for each, annotator, over in known:
            if hmac.compare_digest(bytes(each), digest):
                found, ended = annotator, bool(over)
        rows = self._rows(
            "SELECT s.id, s.runs, s.seed, s.ties, a.id, a.study, a.name FROM annotators a "
            "JOIN studies s ON a.study = s.id WHERE a.id = ?",
            found,
        )
        for id, runs, seed, ties, *person in rows:
            return Invitation(self._study(id, runs, seed, ties), Annotator(*person), ended)
        return None

    def votes(self, study: Study) -> dict[int, dict[int, Preference]]:
        """All pairs by number, each with its current votes by annotator id, in the order of first
        votes."""
        found: dict[int, dict[int, Preference]] = {
            pair: {}
            for (pair,) in self._rows(
                "SELECT number FROM pairs WHERE study = ? ORDER BY number", study.id
            )
        }
        for pair, annotator, choice in self._rows(
            "SELECT pair, annotator, choice FROM votes WHERE study = ? ORDER BY id", study.id
        ):
            if pair not in found or choice not in CHOICES:
                self._damaged(
                    f"study {study.id} has an invalid vote {choice!r:.40} on pair {pair!r:.40}"
                )
            found[pair][annotator] = choice  # a later vote replaces the earlier one
        return found

    def record_vote(self, study: Study, number: int, who: Annotator, choice: Preference) -> None:
        """Record a vote. An earlier vote of this person on this pair stays on record as
        replaced."""
        now, place = time.time(), (study.id, number, who.id)
        with self.transaction() as to:
            to.execute(
                "UPDATE votes SET replaced = ? WHERE study = ? AND pair = ? AND annotator = ? "
                "AND replaced IS NULL",
                (now, *place),
            )
            to.execute(
                "INSERT INTO votes (study, pair, annotator, choice, at) VALUES (?, ?, ?, ?, ?)",
                (*place, choice, now),
            )

    def votes_of(self, study: Study, who: Annotator) -> dict[int, Preference]:
        """The current votes of one person by pair, the latest vote last."""
        rows = self._rows(
            "SELECT pair, choice FROM votes WHERE study = ? AND annotator = ? "
            "AND replaced IS NULL ORDER BY id",
            study.id,
            who.id,
        )
        return dict(rows)

    def skip_pair(self, study: Study, who: Annotator, number: int) -> None:
        """Put a pair off for a person, and release it."""
        with self.transaction() as to:
            to.execute(
                "INSERT INTO skipped VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (study.id, number, who.id),
            )
            self.release_pair(study, who, number)

    def skipped_pairs(self, study: Study, who: Annotator) -> set[int]:
        """The pairs that a person has put off."""
        rows = self._rows(
            "SELECT pair FROM skipped WHERE study = ? AND annotator = ?", study.id, who.id
        )
        return {pair for (pair,) in rows}

    def forget_skipped(self, study: Study, who: Annotator) -> None:
        """Offer the pairs again that a person has put off."""
        with self.transaction() as to:
            to.execute("DELETE FROM skipped WHERE study = ? AND annotator = ?", (study.id, who.id))

    def count_replaced(self, study: Study) -> dict[int, int]:
        """How many votes each person has changed, by the annotator's id."""
        rows = self._rows(
            "SELECT annotator, COUNT(*) FROM votes WHERE study = ? AND replaced IS NOT NULL "
            "GROUP BY annotator",
            study.id,
        )
        return dict(rows)

    def held_pairs(self, study: Study) -> dict[int, set[int]]:
        """The pairs that people are looking at now, each with their ids."""
        held: dict[int, set[int]] = {}
        for pair, annotator in self._rows(
            "SELECT pair, annotator FROM held WHERE study = ? AND until >= ?",
            study.id,
            time.time(),
        ):
            held.setdefault(pair, set()).add(annotator)
        return held

    def hold_pair(self, study: Study, who: Annotator, number: int, seconds: float) -> None:
        """Reserve a pair for a person for a while, replacing the one that they held."""
        now = time.time()
        with self.transaction() as to:
            to.execute("DELETE FROM held WHERE until < ?", (now,))
            self.release_pair(study, who)
            to.execute(
                "INSERT INTO held VALUES (?, ?, ?, ?)", (study.id, number, who.id, now + seconds)
            )

    def release_pair(self, study: Study, who: Annotator, number: int | None = None) -> None:
        """Release the pair that a person holds, or only if it is this one."""
        with self.transaction() as to:
            to.execute(
                "DELETE FROM held WHERE study = ? AND annotator = ? AND pair = COALESCE(?, pair)",
                (study.id, who.id, number),
            )

"""Votes on pairs of conversations: who votes on which pair next, and which votes count: two on
every pair, and a third by another person if they differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import cast

from parley.annotation.ballots import (
    VoteChoice,
    VoteOutcome,
    Voter,
    compare_votes,
    hash_token,
    make_token,
    normalise_name,
    parse_number,
)
from parley.annotation.sheets import Sheet, make_sheet
from parley.errors import UsageError, unknown_name
from parley.statistics.preferences import CHOICES, Preference, votes_needed
from parley.store.pair_votes import VoteStore
from parley.store.types import Annotator, Invitation, RunRef, Study
from parley.tables import plural

HOLD_SECONDS = 1800.0  # how long a pair is reserved for the person who looks at it

BUTTONS = (
    VoteChoice("A", "A", "A is better"),
    VoteChoice("B", "B", "B is better"),
    VoteChoice("tie", "t (tie)", "Equal"),
)


class PairVoter(Voter[int]):
    """A person who votes on the pairs of a study."""

    noun, can_skip = "pair", True
    late = "other people completed this pair in the meantime"
    afterwards = "You can close this page."

    def __init__(
        self, votes: VoteStore, study: Study, who: Annotator, find: Callable[[str], RunRef]
    ) -> None:
        self.votes, self.study, self.who = votes, study, who
        self._find = find  # a run of the study by its id
        self.choices = [each for each in BUTTONS if study.ties or each.value != "tie"]

    def invite(self) -> tuple[str, bool]:
        with self.votes.transaction():
            replaces = self.votes.end_token(self.who)
            return invite_annotator(self.votes, self.study, self.who.name), replaces

    def own_votes(self) -> Mapping[int, str]:
        return self.votes.votes_of(self.study, self.who)

    def remaining(self) -> Collection[int]:
        return list_open_pairs(self.votes, self.study, self.who)

    def offer(self, skipped: Collection[int] = ()) -> int | None:
        return offer_pair(self.votes, self.study, self.who, skipped)

    def read(self, place: int) -> Sheet:
        pair = self.votes.pairs(self.study)[place]
        refs = {side.run: self._find(side.run) for side in (pair.a, pair.b)}
        return make_sheet(place, pair, refs)

    def vote(self, place: int, choice: str, change: bool = False) -> VoteOutcome:
        return cast_vote(self.votes, self.study, place, self.who, cast(Preference, choice), change)

    def find_own(self, number: int) -> Sequence[int]:
        if number not in self.own_votes():
            raise UsageError(
                f"{self.who.name} has not voted on pair {number}, so there is no vote to change"
            )
        return [number]

    def parse_place(self, text: str) -> int | None:
        number = parse_number(text)
        return number if number in self.votes.pairs(self.study) else None

    def write_place(self, place: int) -> str:
        return str(place)

    def describe(self, place: int) -> str:
        return f"pair {place}"

    def describe_progress(self) -> str:
        return f"at most {plural(len(self.remaining()), 'pair')} left"

    def skip(self, place: int) -> None:
        self.votes.skip_pair(self.study, self.who, place)

    def skipped(self) -> Collection[int]:
        return self.votes.skipped_pairs(self.study, self.who)

    def forget_skipped(self) -> None:
        self.votes.forget_skipped(self.study, self.who)

    def leave(self) -> None:
        self.votes.release_pair(self.study, self.who)


def register_annotator(votes: VoteStore, study: Study, name: str) -> Annotator:
    """A person by name, added if new."""
    return votes.add_annotator(study, normalise_name(name))


def invite_annotator(votes: VoteStore, study: Study, name: str) -> str:
    """A new secret for a person. It is returned once; the store keeps only its digest, and an
    earlier secret of this person is no longer valid."""
    token = make_token()
    votes.set_token(register_annotator(votes, study, name), hash_token(token))
    return token


def end_invitation(votes: VoteStore, study: Study, name: str) -> None:
    """End the invitation of a person. Their votes stay."""
    wanted = normalise_name(name)
    known = {person.name: person for person in votes.annotators(study)}
    who = next((each for each in known if each.casefold() == wanted.casefold()), None)
    if who is None:
        raise unknown_name("annotator", wanted, known)
    if not votes.end_token(known[who]):
        raise UsageError(f"{who} has no invitation to end: it has ended, or there was none")


def find_invitation(votes: VoteStore, token: str) -> Invitation | None:
    """The invitation with this secret, also if it has ended; None if nobody has it."""
    return votes.find_token(hash_token(token))


def offer_pair(
    votes: VoteStore, study: Study, who: Annotator, skipped: Collection[int] = ()
) -> int | None:
    """The number of the pair that a person should look at next, reserved for a while; None if there
    is none left."""
    with votes.transaction():
        found = choose_pair(votes.votes(study), votes.held_pairs(study), who.id, skipped)
        if found is None:
            votes.release_pair(study, who)
        else:
            votes.hold_pair(study, who, found, HOLD_SECONDS)
    return found


def choose_pair(
    votes: Mapping[int, Mapping[int, Preference]],
    held: Mapping[int, Collection[int]],
    me: int,
    skipped: Collection[int] = (),
) -> int | None:
    """The pair to show to a person: no pair that they have voted on, and none that others will
    complete. Pairs that already have votes come first.

    `votes` has all pairs, each with the votes by annotator; `held` has the annotators who are
    looking at a pair now.
    """
    free = [
        (me not in held.get(pair, ()), -len(given), pair)
        for pair, given in votes.items()
        if pair not in skipped and me not in given
        if votes_needed(list(given.values())) > len({*held.get(pair, ())} - {me, *given})
    ]
    return min(free)[-1] if free else None


def cast_vote(
    votes: VoteStore,
    study: Study,
    number: int,
    who: Annotator,
    choice: Preference,
    change: bool = False,
) -> VoteOutcome:
    """Record a vote. The same vote again changes nothing. A different one is refused, unless
    `change` asks for it; then both stay on record, and the newer counts."""
    if choice not in CHOICES or (choice == "tie" and not study.ties):
        raise UsageError(
            f"a vote must be {'A, B or tie' if study.ties else 'A or B'}, not {choice!r}"
        )
    with votes.transaction():
        known = votes.votes(study)
        if number not in known:
            raise UsageError(f"there is no pair {number}: choose a number from 1 to {len(known)}")
        before = known[number].get(who.id)
        outcome = compare_votes(who.name, before, choice, change, f"pair {number}", number)
        if outcome == "same":
            return outcome
        votes.release_pair(study, who, number)
        if before is None and not votes_needed(list(known[number].values())):
            return "not needed"
        votes.record_vote(study, number, who, choice)
    return outcome


def list_open_pairs(votes: VoteStore, study: Study, who: Annotator) -> set[int]:
    """The pairs that need a vote that this person may give."""
    return {
        number
        for number, by in votes.votes(study).items()
        if votes_needed(list(by.values())) > 0 and who.id not in by
    }

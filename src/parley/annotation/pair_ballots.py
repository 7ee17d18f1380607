"""Votes on pairs of conversations: who votes on which pair next, and which votes count: two on
every pair, and a third by another person if they differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from parley.annotation.ballots import VoteOutcome, hash_token, make_token, normalise_name
from parley.errors import UsageError, unknown_name
from parley.statistics.preferences import CHOICES, Preference, votes_needed
from parley.store import Annotator, Invitation, Study, VoteStore

HOLD_SECONDS = 1800.0  # how long a pair is reserved for the person who looks at it


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
        if before == choice:
            return "same"
        if before is not None and not change:
            raise UsageError(
                f"{who.name} has already voted {before} on pair {number}: use --change {number} to "
                f"replace this vote"
            )
        if before is None and change:
            raise UsageError(
                f"{who.name} has not voted on pair {number}, so there is no vote to change"
            )
        votes.release_pair(study, who, number)
        if before is None and not votes_needed(list(known[number].values())):
            return "not needed"
        votes.record_vote(study, number, who, choice)
    return "recorded" if before is None else "changed"


def count_open_pairs(votes: VoteStore, study: Study, who: Annotator) -> int:
    """How many pairs need a vote that this person may give."""
    return len(list_open_pairs(votes, study, who))


def list_open_pairs(votes: VoteStore, study: Study, who: Annotator) -> set[int]:
    """The pairs that need a vote that this person may give."""
    return {
        number
        for number, by in votes.votes(study).items()
        if votes_needed(list(by.values())) > 0 and who.id not in by
    }

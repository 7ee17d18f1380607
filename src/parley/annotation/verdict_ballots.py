"""People say whether a conversation is a success: what they see, which one comes next, which votes
count. Runs that evolve with `feedback=people` wait for these votes between two stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from parley.annotation.ballots import VoteOutcome, hash_token, make_token, normalise_name
from parley.annotation.sheets import make_annotator_mask
from parley.errors import StoreError, UsageError
from parley.memory.feedback import VERDICT_CHOICES, PeopleVerdict, VerdictChoice
from parley.memory.interactions import collect_interactions
from parley.rules.pool import Example, Seat
from parley.runs.people_votes import count_verdict
from parley.store import RunReader, VerdictInvitation, VerdictVotes, VerdictVoteStore

Place = tuple[int, Seat]  # a match, and a seat of it
CRITERION = (
    "The participant succeeded if its final answer is what the task asked for. Solve the task "
    "yourself as far as you can. Ignore how confident or polite it sounds."
)


@dataclass(frozen=True)
class JudgedConversation:
    """What a person sees of one seat's conversation: no names, no scores, no right answer."""

    match: int
    seat: Seat
    opening: str  # what the seat was told before the first question
    turns: tuple[Example, ...]


def asks_people(reader: RunReader) -> bool:
    """Whether people decide what the models of a run remember."""
    evolve, rejudged = reader.info.config.evolve, reader.info.config.rejudged
    if evolve is None or rejudged is not None:
        return False
    return any(arm.asks_people for arm in evolve.arms.values())


def list_open_places(reader: RunReader) -> list[Place]:
    """The conversations that a run waits for, or may be voted on again, until it goes on."""
    return [(each.match, each.seat) for each in reader.people_verdicts() if each.is_open]


def read_conversation(reader: RunReader, place: Place) -> JudgedConversation:
    """One seat's conversation as people judge it: as it would be shown as an experience, with what
    the seat says of itself masked."""
    number, seat = place
    match = reader.match(number)
    recorded = next(reader.recorded_matches(number - 1, number), None)
    found = None if recorded is None else collect_interactions(recorded).get(seat.key)
    if match is None or found is None:
        raise StoreError(
            f"{reader.info.ref.location} asks for votes on {seat} in match {number}, but this "
            "match has no such conversation: the file is damaged"
        )
    mask = make_annotator_mask(reader.calls(number))
    turns = tuple(turn._replace(answer=mask.hide(turn.answer)) for turn in found.turns)
    return JudgedConversation(number, seat, found.opening, turns)


def choose_place(
    places: Sequence[Place], votes: VerdictVotes, name: str, skipped: Collection[Place] = ()
) -> Place | None:
    """The conversation that somebody should look at next: none on which they have voted, and those
    without any vote first. Everybody has an order of their own, so that people who vote at the same
    time seldom meet. None if nothing is left for them."""

    def rank(place: Place) -> tuple[bool, bytes]:
        words = f"{name.casefold()}|{place[0]}|{place[1].key}"
        return bool(votes.get(place)), blake2b(words.encode(), digest_size=8).digest()

    free = [each for each in places if each not in skipped and not has_voted(votes, each, name)]
    return min(free, key=rank, default=None)


def has_voted(votes: VerdictVotes, place: Place, name: str) -> bool:
    """Whether somebody has voted on a conversation."""
    return any(each.casefold() == name.casefold() for each in votes.get(place, {}))


def cast_verdict(
    votes: VerdictVoteStore,
    reader: RunReader,
    place: Place,
    name: str,
    choice: VerdictChoice,
    change: bool = False,
) -> VoteOutcome:
    """Record a vote. The same vote again changes nothing. A different one is refused, unless
    `change` asks for it; then both stay on record, and the newer counts. A vote on a conversation
    that a later stage has used is refused."""
    if choice not in VERDICT_CHOICES:
        raise UsageError(
            f"a vote must be {', '.join(VERDICT_CHOICES[:-1])} or unsure, not {choice!r}"
        )
    who, (match, seat) = normalise_name(name), place
    check_is_open(reader.people_verdicts(match), place, reader.info.id)
    with votes.transaction():
        by = votes.votes(reader.info.id).get(place, {})
        before = next(
            (said for each, said in by.items() if each.casefold() == who.casefold()), None
        )
        if before == choice:
            return "same"
        if before is not None and not change:
            raise UsageError(
                f"{who} has already voted {before} on match {match}, {seat}: use --change "
                f"{match} to replace this vote"
            )
        if before is None and change:
            raise UsageError(
                f"{who} has not voted on match {match}, {seat}, so there is no vote to change"
            )
        votes.record(reader.info.id, match, seat, who, choice)
    return "recorded" if before is None else "changed"


def invite_to_verdicts(votes: VerdictVoteStore, run: str, name: str) -> str:
    """A new secret for a person who votes on the conversations of a run. It is returned once, and
    ends an earlier one of this person."""
    token = make_token()
    votes.invite(run, normalise_name(name), hash_token(token))
    return token


def end_verdict_invitation(votes: VerdictVoteStore, run: str, name: str) -> None:
    """End the invitation of a person to a run. Their votes stay."""
    who = normalise_name(name)
    if not votes.end_invitation(run, who):
        raise UsageError(f"{who} has no invitation to end: it has ended, or there was none")


def find_verdict_invitation(votes: VerdictVoteStore, token: str) -> VerdictInvitation | None:
    """The invitation with this secret, also if it has ended; None if nobody has it."""
    return votes.find_invitation(hash_token(token))


def check_is_open(asked: Sequence[PeopleVerdict], place: Place, run: str) -> None:
    """Refuse a vote on a conversation that nobody asks about, or that has been used."""
    match, seat = place
    found = next((each for each in asked if each.seat == seat), None)
    if found is None:
        raise UsageError(
            f"{run} does not ask for votes on match {match}, {seat}: `parley annotate {run}` "
            "shows the conversations that need votes"
        )
    if not found.is_open:
        raise UsageError(
            f"the votes on match {match}, {seat} cannot change any more, because a later stage "
            f"of {run} has already used them"
        )


def summarise_verdicts(reader: RunReader, votes: VerdictVotes) -> dict[str, Any]:
    """How the votes on a run stand, as data (schema parley.verdicts/1). Votes that a stage has used
    are counted as the run recorded them."""
    stages = {match.number: match.stage for match in reader.matches()}
    by_stage: dict[int, list[PeopleVerdict]] = {}
    waiting, several, unanimous = 0, 0, 0
    for asked in reader.people_verdicts():
        place = asked.match, asked.seat
        given = votes.get(place, {})
        said = count_verdict(*place, given) if asked.is_open and given else asked
        by_stage.setdefault(stages.get(asked.match, 0), []).append(said)
        waiting += said.is_open
        several += len(given) > 1
        unanimous += len(given) > 1 and len(set(given.values())) == 1
    people = Counter(name for by in votes.values() for name in by)
    return {
        "schema": "parley.verdicts/1",
        "run": reader.info.id,
        "missing": waiting,
        "stages": [
            {"stage": stage, **count_outcomes(said)} for stage, said in sorted(by_stage.items())
        ],
        "annotators": [{"name": name, "votes": count} for name, count in sorted(people.items())],
        "several_votes": several,
        "unanimous": unanimous,
    }


def count_outcomes(verdicts: Sequence[PeopleVerdict]) -> Mapping[str, int]:
    """How many conversations of a stage are successes, failures and undecided, and how many lack a
    vote."""
    given = [each for each in verdicts if not each.is_open]
    return {
        "asked": len(verdicts),
        "success": sum(each.success is True for each in given),
        "failure": sum(each.success is False for each in given),
        "undecided": sum(each.success is None for each in given),
        "missing": len(verdicts) - len(given),
    }

"""People say whether a conversation is a success: what they see, which one comes next, which votes
count. Runs that evolve with `feedback=people` wait for these votes between two stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

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
from parley.annotation.sheets import JudgedConversation, make_annotator_mask
from parley.errors import StoreError, UsageError
from parley.memory.feedback import VERDICT_CHOICES, PeopleVerdict, VerdictChoice
from parley.memory.interactions import collect_interactions
from parley.rules.pool import Seat
from parley.runs.people_votes import count_verdict
from parley.store.reader import RunReader
from parley.store.types import RunRef, VerdictInvitation, VerdictVotes
from parley.store.verdict_votes import VerdictVoteStore
from parley.tables import plural

Place = tuple[int, Seat]  # a match, and a seat of it
BUTTONS = (
    VoteChoice("yes", "y (yes)", "Yes"),
    VoteChoice("no", "n (no)", "No"),
    VoteChoice("unsure", "u (cannot tell)", "Cannot tell"),
)


class VerdictVoter(Voter[Place]):
    """A person who votes on the conversations of a run that waits for this. The run may go on at
    any time, so do not keep it open while somebody reads."""

    noun, can_skip = "conversation", False
    late = "the run has gone on in the meantime"
    afterwards = "When the next stage has been played, the same link shows the next ones."
    choices = BUTTONS

    def __init__(self, votes: VerdictVoteStore, reader: RunReader, name: str) -> None:
        self.votes, self.reader, self.name = votes, reader, normalise_name(name)
        self.run = reader.info.id

    def invite(self) -> tuple[str, bool]:
        if self.reader.info.state == "done":
            raise UsageError(
                f"{self.run} is done and needs no votes on single conversations: to let people "
                "compare conversations, draw pairs with `parley annotate draw RUN…` first"
            )
        with self.votes.transaction():
            replaces = self.votes.end_invitation(self.run, self.name)
            return invite_to_verdicts(self.votes, self.run, self.name), replaces

    def own_votes(self) -> Mapping[Place, str]:
        open_places = list_open_places(self.reader)
        given = self.votes.votes_of(self.run, self.name)
        return {place: choice for place, choice in given.items() if place in open_places}

    def remaining(self) -> Collection[Place]:
        own = self.own_votes()
        return [place for place in list_open_places(self.reader) if place not in own]

    def offer(self, skipped: Collection[Place] = ()) -> Place | None:
        places = list_open_places(self.reader)
        return choose_place(places, self.votes.votes(self.run), self.name, skipped)

    def read(self, place: Place) -> JudgedConversation:
        return read_conversation(self.reader, place)

    def vote(self, place: Place, choice: str, change: bool = False) -> VoteOutcome:
        if place not in list_open_places(self.reader):
            return "not needed"
        return cast_verdict(
            self.votes, self.reader, place, self.name, cast(VerdictChoice, choice), change
        )

    def find_own(self, number: int) -> Sequence[Place]:
        given = self.votes.votes_of(self.run, self.name)
        own = [place for place in given if place[0] == number]
        if not own:
            raise UsageError(
                f"{self.name} has not voted on match {number}, so there is no vote to change"
            )
        for place in own:
            check_is_open(self.reader.people.verdicts(number), place, self.run)
        return own

    def parse_place(self, text: str) -> Place | None:
        number, _, key = text.partition(".")
        asked = self.reader.people.verdicts(match) if (match := parse_number(number)) else []
        places = {each.seat.key: (each.match, each.seat) for each in asked}
        return places.get(key)

    def write_place(self, place: Place) -> str:
        return f"{place[0]}.{place[1].key}"

    def describe(self, place: Place) -> str:
        return f"match {place[0]}, {place[1]}"

    def describe_progress(self) -> str:
        missing = self._count_missing()
        return f"{plural(missing, 'vote')} missing" if missing else "every match has a vote"

    def find_resumable(self) -> RunRef | None:
        complete = list_open_places(self.reader) and not self._count_missing()
        return self.reader.info.ref if complete else None

    def _count_missing(self) -> int:
        given = self.votes.votes(self.run)
        return sum(not given.get(place) for place in list_open_places(self.reader))


def asks_people(reader: RunReader) -> bool:
    """Whether people decide what the models of a run remember."""
    evolve, rejudged = reader.info.config.evolve, reader.info.config.rejudged
    if evolve is None or rejudged is not None:
        return False
    return any(arm.asks_people for arm in evolve.arms.values())


def list_open_places(reader: RunReader) -> list[Place]:
    """The conversations that a run waits for, or may be voted on again, until it goes on."""
    return [(each.match, each.seat) for each in reader.people.verdicts() if each.is_open]


def read_conversation(reader: RunReader, place: Place) -> JudgedConversation:
    """One seat's conversation as people judge it: as it would be shown as an experience, with what
    the seat says of itself masked."""
    number, seat = place
    match = reader.matches.find(number)
    recorded = next(reader.messages.recorded_matches(number - 1, number), None)
    found = None if recorded is None else collect_interactions(recorded).get(seat.key)
    if match is None or found is None:
        raise StoreError(
            f"{reader.info.ref.location} asks for votes on {seat} in match {number}, but this "
            "match has no such conversation: the file is damaged"
        )
    mask = make_annotator_mask(reader.calls.of(number))
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
    check_is_open(reader.people.verdicts(match), place, reader.info.id)
    with votes.transaction():
        by = votes.votes(reader.info.id).get(place, {})
        before = next(
            (said for each, said in by.items() if each.casefold() == who.casefold()), None
        )
        outcome = compare_votes(who, before, choice, change, f"match {match}, {seat}", match)
        if outcome != "same":
            votes.record(reader.info.id, match, seat, who, choice)
    return outcome


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
            f"{run} does not ask for votes on match {match}, {seat}: "
            f"`parley annotate results {run}` shows the conversations that need votes"
        )
    if not found.is_open:
        raise UsageError(
            f"the votes on match {match}, {seat} cannot change any more, because a later stage "
            f"of {run} has already used them"
        )


def summarise_verdicts(reader: RunReader, votes: VerdictVotes) -> dict[str, Any]:
    """How the votes on a run stand, as data (schema parley.verdicts/1). Votes that a stage has used
    are counted as the run recorded them."""
    stages = {match.number: match.stage for match in reader.matches.read()}
    by_stage: dict[int, list[PeopleVerdict]] = {}
    waiting, several, unanimous = 0, 0, 0
    for asked in reader.people.verdicts():
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

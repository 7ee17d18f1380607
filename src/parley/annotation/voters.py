"""Which kind of ballots the people of a run have, and who stands behind a personal link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from parley.annotation.ballots import Voter
from parley.annotation.pair_ballots import (
    PairVoter,
    end_invitation,
    find_invitation,
    register_annotator,
)
from parley.annotation.study import find_study
from parley.annotation.verdict_ballots import (
    VerdictVoter,
    asks_people,
    end_verdict_invitation,
    find_verdict_invitation,
)
from parley.errors import StoreError, UsageError
from parley.store import Store, open_store, open_verdict_votes, open_votes, read_run
from parley.store.reader import RunReader
from parley.store.types import Invitation, RunInfo, RunRef, VerdictInvitation

OpenVoter = Callable[[], AbstractContextManager[Voter[Any]]]


@dataclass(frozen=True)
class PairVoting:
    """People compare pairs of conversations of these runs."""

    refs: Sequence[RunRef]

    @contextmanager
    def open_voter(self, name: str) -> Iterator[Voter[Any]]:
        """The ballots of a person."""
        store = open_store(self.refs[0].store)
        with open_votes(self.refs) as votes:
            study = find_study(votes, self.refs)
            who = register_annotator(votes, study, name)
            yield PairVoter(votes, study, who, partial(find_voted_run, store))

    def end_link(self, name: str) -> None:
        """End the personal link of a person. The votes stay."""
        with open_votes(self.refs) as votes:
            end_invitation(votes, find_study(votes, self.refs), name)


@dataclass(frozen=True)
class VerdictVoting:
    """People vote on single conversations of this run."""

    ref: RunRef

    @contextmanager
    def open_voter(self, name: str) -> Iterator[Voter[Any]]:
        """The ballots of a person."""
        with read_run(self.ref) as reader, open_verdict_votes(self.ref) as votes:
            yield VerdictVoter(votes, reader, name)

    def end_link(self, name: str) -> None:
        """End the personal link of a person. The votes stay."""
        with read_run(self.ref) as reader, open_verdict_votes(self.ref) as votes:
            end_verdict_invitation(votes, reader.info.id, name)


def find_voting(refs: Sequence[RunRef]) -> PairVoting | VerdictVoting:
    """How people vote on these runs: on single conversations of a run that waits for this, and of
    one that is done and has no pairs; else on pairs, which must have been drawn."""
    if len(refs) == 1:
        with read_run(refs[0]) as reader:
            if asks_people(reader) and (reader.info.state != "done" or not has_pairs(reader)):
                return VerdictVoting(refs[0])
    with open_votes(refs, read_only=True) as votes:  # makes no file of votes
        find_study(votes, refs)
    return PairVoting(refs)


def has_pairs(reader: RunReader) -> bool:
    """Whether pairs of this run alone have been drawn."""
    try:
        with open_votes([reader.info.ref], read_only=True) as votes:
            return votes.find_study([reader.info.id]) is not None
    except UsageError:  # there is no file of votes
        return False


def find_invited(store: Store, token: str) -> Invitation | VerdictInvitation | None:
    """The invitation with this secret, of either kind. The time that this takes does not depend on
    the secret."""
    with store.open_votes(read_only=True) as pairs:
        compares = find_invitation(pairs, token)
    with store.open_verdict_votes(read_only=True) as verdicts:
        judges = find_verdict_invitation(verdicts, token)
    return compares or judges


@contextmanager
def open_invited(store: Store, invited: Invitation | VerdictInvitation) -> Iterator[Voter[Any]]:
    """The ballots of a person with a personal link."""
    if isinstance(invited, Invitation):
        with store.open_votes() as votes:
            yield PairVoter(votes, invited.study, invited.who, partial(find_voted_run, store))
    else:
        ref = find_voted_run(store, invited.run)
        with store.read(ref) as reader, store.open_verdict_votes(ref) as verdicts:
            yield VerdictVoter(verdicts, reader, invited.annotator)


def find_voted_run(store: Store, id: str) -> RunRef:
    """The run with this id, also if its file has another name."""
    found = store.find_exact(id)
    if found is not None:
        return found
    renamed = (run.ref for run in store.runs() if isinstance(run, RunInfo) and run.id == id)
    if (ref := next(renamed, None)) is None:
        raise StoreError(f"the run {id} is missing, but people vote on its conversations")
    return ref

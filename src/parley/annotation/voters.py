"""Which kind of ballots the people of a run have, and who stands behind a personal link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from parley.store import (
    Invitation,
    RunInfo,
    RunRef,
    Store,
    VerdictInvitation,
    open_store,
    open_verdict_votes,
    open_votes,
    read_run,
)

OpenVoter = Callable[[], AbstractContextManager[Voter[Any]]]


def takes_verdicts(refs: Sequence[RunRef]) -> bool:
    """Whether people vote on single conversations: of a run that waits for this, and of one that is
    done and has no pairs to compare."""
    if len(refs) != 1:
        return False
    with read_run(refs[0]) as reader:
        if not asks_people(reader):
            return False
        if reader.info.state != "done":
            return True
        try:
            with open_votes(refs, read_only=True) as votes:
                return votes.find_study([reader.info.id]) is None
        except UsageError:  # there is no file of votes
            return True


def find_voter(refs: Sequence[RunRef], name: str) -> OpenVoter:
    """How to open the ballots of a person on these runs, for a moment. Pairs must have been
    drawn."""
    if takes_verdicts(refs):
        return partial(open_verdict_voter, refs[0], name)
    check_pairs(refs)
    return partial(open_pair_voter, refs, name)


def check_pairs(refs: Sequence[RunRef]) -> None:
    """Refuse runs of which no pairs have been drawn, without making a file of votes."""
    with open_votes(refs, read_only=True) as votes:
        find_study(votes, refs)


@contextmanager
def open_pair_voter(refs: Sequence[RunRef], name: str) -> Iterator[Voter[Any]]:
    """The ballots of a person on pairs of these runs."""
    store = open_store(refs[0].store)
    with open_votes(refs) as votes:
        study = find_study(votes, refs)
        who = register_annotator(votes, study, name)
        yield PairVoter(votes, study, who, partial(find_voted_run, store))


@contextmanager
def open_verdict_voter(ref: RunRef, name: str) -> Iterator[Voter[Any]]:
    """The ballots of a person on single conversations of a run."""
    with read_run(ref) as reader, open_verdict_votes(ref) as votes:
        yield VerdictVoter(votes, reader, name)


def end_link(refs: Sequence[RunRef], name: str) -> None:
    """End the personal link of somebody who was invited to vote on these runs. The votes stay."""
    if takes_verdicts(refs):
        with read_run(refs[0]) as reader, open_verdict_votes(refs[0]) as verdicts:
            end_verdict_invitation(verdicts, reader.info.id, name)
    else:
        check_pairs(refs)
        with open_votes(refs) as pairs:
            end_invitation(pairs, find_study(pairs, refs), name)


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

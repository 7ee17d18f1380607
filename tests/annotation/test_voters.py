"""Both kinds of ballots, in both kinds of stores: who has which, links, votes, and what is left."""

import pytest

import parley
from parley import UsageError
from parley.annotation.study import prepare_study
from parley.annotation.voters import find_invited, find_voting, open_invited
from parley.store import open_store, open_votes
from tests.runs.test_recall import evolve

BOTS = {
    name: {"model": "bot/student", "knowledge": share} for name, share in (("a", 0.9), ("b", 0.1))
}


def make_pairs(place):
    """A run with pairs to compare."""
    ref = parley.run("qa", models=BOTS, items=6, shots=0, seed=1, store=place).ref
    with pytest.raises(UsageError, match="parley annotate draw"):
        find_voting([ref])
    with open_votes([ref]) as votes:
        prepare_study(votes, [ref], 2, 1, True)
    return ref


def make_waiting(place):
    """A run that waits for votes on two conversations."""
    settings = {"stages": 1, "probe": False, "feedback": "people"}
    return evolve(place, ["bot/random"], count=2, evolve=settings).ref


KINDS = {
    "pairs": (make_pairs, ["A", "B", "tie"]),
    "verdicts": (make_waiting, ["yes", "no", "unsure"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_with_a_link_votes_until_nothing_is_left(place, kind):
    make, choices = KINDS[kind]
    ref = make(place)
    store, voting = open_store(place), find_voting([ref])
    with voting.open_voter("Ann") as voter:
        token, replaces = voter.invite()
    assert not replaces
    assert find_invited(store, "guessed") is None
    invited = find_invited(store, token)
    assert not invited.ended
    with open_invited(store, invited) as voter:
        assert [each.value for each in voter.choices] == choices
        first = voter.offer()
        assert voter.parse_place(voter.write_place(first)) == first
        assert voter.parse_place("0") is voter.parse_place("9.x") is voter.parse_place("") is None
        assert voter.vote(first, choices[0]) == "recorded"
        assert voter.vote(first, choices[0]) == "same"
        with pytest.raises(UsageError, match="already voted"):
            voter.vote(first, choices[1])
        assert voter.vote(first, choices[1], change=True) == "changed"
    with voting.open_voter("Ann") as voter:  # the same person, at the terminal
        assert voter.own_votes() == {first: choices[1]}
        second = voter.offer()
        assert [*voter.remaining()] == [second]
        assert voter.offer({second}) is None
        assert voter.read(second).question.endswith("?")
        voter.vote(second, choices[2])
        assert (voter.offer(), len(voter.remaining())) == (None, 0)
        assert (voter.find_resumable() is None) == (kind == "pairs")
        again, replaces = voter.invite()
    assert replaces
    assert find_invited(store, token).ended
    voting.end_link("ANN")
    assert find_invited(store, again).ended
    with pytest.raises(UsageError, match="no invitation to end"):
        voting.end_link("ann")


def test_a_run_that_is_done_has_pairs_if_they_were_drawn(tmp_path):
    ref = make_waiting(tmp_path)
    with find_voting([ref]).open_voter("Ann") as voter:
        while (found := voter.offer()) is not None:
            voter.vote(found, "yes")
        assert voter.find_resumable() == ref
    assert parley.resume(ref.location).state == "done"
    with find_voting([ref]).open_voter("Ann") as voter:
        assert voter.noun == "conversation"
        assert (voter.offer(), voter.own_votes()) == (None, {})
        with pytest.raises(UsageError, match="parley annotate draw"):
            voter.invite()
    with open_votes([ref]) as votes:
        votes.create_study([ref.id], 0, False)
    with find_voting([ref]).open_voter("Ann") as voter:
        assert voter.noun == "pair"

"""People's preferences on pairs: two votes each, and a third vote if they differ; kappa,
agreement with the scores, win rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from parley.statistics.agreement import (
    BlockEstimate,
    cohen_kappa,
    estimate_over_blocks,
    group_by_block,
)

Preference = Literal["A", "B", "tie"]
CHOICES: tuple[Preference, ...] = ("A", "tie", "B")
VOTERS = 2  # on every pair; one more where they differ


class ConversationSide(NamedTuple):
    """One conversation of a pair: its record, its model and its score."""

    run: str
    match: int
    model: str
    score: float


class ConversationPair(NamedTuple):
    """Two conversations on one question, on the sides on which people see them."""

    dataset: str
    item: str
    a: ConversationSide
    b: ConversationSide

    @property
    def models(self) -> tuple[str, str]:
        return self.a.model, self.b.model


class Ballot(NamedTuple):
    """A pair that people compare: its question, its models, and the votes in the order in which
    they were given."""

    dataset: str
    question: str
    models: tuple[str, str]  # of sides A and B
    better: Preference  # the side with the higher score
    votes: Mapping[str, Preference]  # by annotator


def votes_needed(votes: Sequence[Preference]) -> int:
    """The number of votes that a pair still needs: two, and one more if they differ."""
    return (
        VOTERS - len(votes)
        if len(votes) < VOTERS
        else int(len(votes) == VOTERS and len(set(votes)) > 1)
    )


def majority_choice(votes: Sequence[Preference], single: bool = False) -> Preference | None:
    """The majority vote; None while votes are missing, or if all three votes differ. `single`
    means that only one person has voted at all, and each vote counts as it is."""
    if votes_needed(votes) and not (single and len(votes) == 1):
        return None
    choice, count = Counter(votes).most_common(1)[0]
    return choice if 2 * count > len(votes) else None


def first_votes(ballot: Ballot) -> dict[str, Preference]:
    """The first two votes, ordered by the annotators' names, so that two people who vote on all
    pairs are two raters."""
    return {name: ballot.votes[name] for name in sorted(list(ballot.votes)[:VOTERS])}


def first_votes_differ(ballot: Ballot) -> bool:
    """Whether the first two votes differ."""
    return len(set(first_votes(ballot).values())) > 1


def kappa_of_first_votes(ballots: Sequence[Ballot]) -> BlockEstimate:
    """Cohen's kappa of the first two votes on each pair, by the chosen side, with an interval
    over questions."""
    rows = [list(first_votes(ballot).values()) for ballot in ballots]
    first, second = (
        [row[at] if len(row) == VOTERS else None for row in rows] for at in range(VOTERS)
    )
    return cohen_kappa(first, second, CHOICES, "none", question_names(ballots))


def kappa_between(ballots: Sequence[Ballot], one: str, other: str) -> BlockEstimate:
    """Cohen's kappa of two people on the pairs where they cast the first two votes. Third votes
    are left out, because a third person sees only pairs on which others disagree."""
    both = [ballot for ballot in ballots if {one, other} == {*first_votes(ballot)}]
    first, second = ([ballot.votes[name] for ballot in both] for name in (one, other))
    return cohen_kappa(first, second, CHOICES, "none", question_names(both))


def agreement_with_scores(ballots: Sequence[Ballot], single: bool = False) -> BlockEstimate:
    """The share of settled pairs in which most people prefer the side with the higher score; a
    tie is not a preference."""
    decided = [majority_choice(list(ballot.votes.values()), single) for ballot in ballots]
    return share_over_questions(
        [
            None if said is None else float(said == each.better)
            for said, each in zip(decided, ballots, strict=True)
        ],
        ballots,
    )


def win_rate(ballots: Sequence[Ballot], model: str, single: bool = False) -> BlockEstimate:
    """The share of a model's settled pairs in which most people prefer it; a tie counts as half
    a win."""
    own = [ballot for ballot in ballots if model in ballot.models]
    return share_over_questions([win_value(ballot, model, single) for ballot in own], own)


def win_value(ballot: Ballot, model: str, single: bool = False) -> float | None:
    """The result of a pair for a model; None until the pair is settled."""
    said = majority_choice(list(ballot.votes.values()), single)
    if said is None or said == "tie":
        return None if said is None else 0.5
    return float(ballot.models["AB".index(said)] == model)


def share_over_questions(
    values: Sequence[float | None], ballots: Sequence[Ballot]
) -> BlockEstimate:
    """The mean of the known values, with an interval over questions."""
    return estimate_over_blocks(
        group_by_block(values, question_names(ballots)),
        mean_of_known,
        list(values).count(None),
        (0.0, 1.0),
    )


def mean_of_known(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def question_names(ballots: Sequence[Ballot]) -> list[str]:
    """The question of each pair; ids are unique only within a dataset."""
    return [f"{ballot.dataset}\n{ballot.question}" for ballot in ballots]

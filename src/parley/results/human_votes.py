"""What people said about the conversations of runs: who they preferred, and whether they agree with
the scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parley.errors import UsageError
from parley.statistics.agreement import BlockEstimate
from parley.statistics.preferences import (
    Ballot,
    ConversationPair,
    Preference,
    agreement_with_scores,
    win_rate,
)
from parley.store import open_votes
from parley.store.pair_votes import VoteStore
from parley.store.types import RunRef, Study
from parley.tables import Table, format_interval, format_number, plural


@dataclass(frozen=True)
class HumanVotes:
    """The votes on a set of runs, counted."""

    agreement: BlockEstimate  # the share of pairs in which people prefer the higher score
    win_rates: Mapping[str, BlockEstimate]  # by model
    votes: int
    annotators: int

    @property
    def is_single(self) -> bool:
        """Whether one person gave all votes, so that each of them decides its pair."""
        return self.annotators == 1

    @property
    def data(self) -> dict[str, Any]:
        """The counts as plain data, for JSON."""
        return {
            "votes": self.votes,
            "annotators": self.annotators,
            "agreement": estimate_as_json(self.agreement),
            "models": [
                {"model": name, **estimate_as_json(found)} for name, found in self.win_rates.items()
            ],
        }

    def describe(self) -> str:
        """How many voted, and how often they agree with the scores."""
        said = f"{plural(self.annotators, 'person', 'people')} gave {plural(self.votes, 'vote')}"
        found = self.agreement
        if found.value is None:
            return f"{said}, but no pair is settled yet."
        low, high, _ = found.interval
        known = "" if low is None else f" (95% interval {write_share_range(low, high)})"
        alone = " How far people agree with each other is unknown." if self.is_single else ""
        return (
            f"{said}. People preferred the higher score in {write_share(found.value)}{known} of "
            f"{plural(found.n, 'settled pair')}.{alone}"
        )

    def table(self) -> Table:
        """Models by how often people preferred them."""
        rows = [
            [name, *human_cells(found), str(found.blocks), str(found.dropped)]
            for name, found in sorted(
                self.win_rates.items(), key=lambda each: (-(each[1].value or 0.0), each[0])
            )
        ]
        header = ["model", "Human", "95% interval", "pairs", "questions", "not settled"]
        return Table(header, rows, note=HUMAN_NOTE)


HUMAN_NOTE = "Human: share of settled pairs in which people preferred this model, in percent"


def human_cells(found: BlockEstimate | None) -> list[str]:
    """A win rate in percent, its interval, and the number of settled pairs."""
    if found is None:
        return ["–", "–", "0"]
    low, high, _ = found.interval
    first, last = (None if end is None else 100 * end for end in (low, high))
    share = None if found.value is None else 100 * found.value
    return [format_number(share, 1), format_interval(first, last, 1), str(found.n)]


def write_share(share: float) -> str:
    return f"{100 * share:.1f}%"


def write_share_range(low: float | None, high: float | None) -> str:
    return f"{write_share(low or 0.0)} to {write_share(high or 0.0)}"


def read_human_votes(refs: Mapping[str, RunRef], joint: bool = False) -> HumanVotes | None:
    """The votes on these runs, by their ids; None if nobody has voted. Votes on pairs of which one
    side is from another run are left out. `joint`: only pairs that were drawn from several runs."""
    ballots: list[Ballot] = []
    by_store: dict[str, list[RunRef]] = {}
    for ref in refs.values():
        by_store.setdefault(ref.store, []).append(ref)
    for own in by_store.values():
        try:
            opened = open_votes(own, read_only=True)
        except UsageError:  # there is no file of votes
            continue
        with opened as votes:
            for study in votes.studies():
                if set(study.runs) <= set(refs) and (len(study.runs) > 1 or not joint):
                    ballots += collect_ballots(votes, study)
    ballots = [each for ballot in ballots if (each := without_runs(ballot, refs)) is not None]
    people = {name.casefold() for each in ballots for name in each.votes}
    if not people:
        return None
    single = len(people) == 1
    models = sorted({name for each in ballots for name in each.models})
    return HumanVotes(
        agreement_with_scores(ballots, single),
        {name: win_rate(ballots, name, single) for name in models},
        sum(len(each.votes) for each in ballots),
        len(people),
    )


def collect_ballots(votes: VoteStore, study: Study) -> list[Ballot]:
    """The pairs of a study with their votes."""
    given = votes_by_name(votes, study)
    return [make_ballot(pair, given[number]) for number, pair in votes.pairs(study).items()]


def without_runs(ballot: Ballot, refs: Mapping[str, RunRef]) -> Ballot | None:
    """A ballot in which a model has its alias only, as in a table of several runs; None if both
    sides are then the same."""
    a, b = (
        alias if mark and run in refs else name
        for name in ballot.models
        for alias, mark, run in [name.rpartition("@")]
    )
    return None if a == b else ballot._replace(models=(a, b))


def votes_by_name(votes: VoteStore, study: Study) -> dict[int, dict[str, Preference]]:
    """All pairs by number, each with the votes that stand, by the names of the people, in the order
    of their first votes."""
    known = votes.votes(study)
    # Read after the votes: people are registered before their first vote.
    names = {person.id: person.name for person in votes.annotators(study)}
    return {pair: {names[id]: choice for id, choice in by.items()} for pair, by in known.items()}


def make_ballot(pair: ConversationPair, votes: Mapping[str, Preference]) -> Ballot:
    """A pair with its votes, as the statistics need it."""
    better: Preference = "A" if pair.a.score > pair.b.score else "B"
    return Ballot(pair.dataset, pair.item, pair.models, better, votes)


def estimate_as_json(found: BlockEstimate) -> dict[str, Any]:
    """An estimate as data, with None for unknown values."""
    low, high, kind = found.interval
    return {
        "value": found.value, "low": low, "high": high, "interval": kind,
        "pairs": found.n, "questions": found.blocks, "missing": found.dropped,
    }  # fmt: skip

"""Interviews that people compare: the pairs of a set of runs, what an annotator is shown of one,
and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from parley.annotation.pair_sampling import candidates, drawn, interviews
from parley.errors import StoreError, UsageError
from parley.match.record import RecordedCall
from parley.rules.items import Question
from parley.rules.pool import text_of
from parley.statistics import preferences as people
from parley.statistics.agreement import Estimate
from parley.statistics.preferences import Ballot, Pair, Side, majority_choice, votes_needed
from parley.store import RunReader, RunRef, read_run
from parley.store.sqlite.votes import FILE, Study, Votes

USUAL = 100  # pairs, where nobody says how many
CRITERIA = {
    "factual accuracy": "are the candidate's statements true?",
    "logical structure": "does one thing follow from another?",
    "conciseness": "is it free of what is not needed?",
    "coherence": "does it fit together, from reply to reply?",
}


@dataclass(frozen=True)
class Exchange:
    """A question of the interviewer and the candidate's reply; `cut` if a limit of length has ended
    it."""

    asked: str
    said: str
    cut: bool


@dataclass(frozen=True)
class Sheet:
    """What an annotator sees of a pair: the question, its right answer and two interviews. It has
    no names and no scores."""

    number: int
    question: str
    choices: str
    right: str
    a: tuple[Exchange, ...]
    b: tuple[Exchange, ...]


@contextmanager
def readers(refs: Sequence[RunRef]) -> Iterator[list[RunReader]]:
    """The runs, each once, in an order that does not depend on how they were named."""
    with ExitStack() as stack:
        found = {
            reader.info.id: reader
            for reader in [stack.enter_context(read_run(ref)) for ref in refs]
        }
        yield [found[id] for id in sorted(found)]


def file_of(refs: Sequence[RunRef]) -> Path:
    """Where the votes on these runs are kept: beside them."""
    folders = sorted({Path(ref.location).absolute().parent for ref in refs})
    if len(folders) > 1:
        raise UsageError(
            f"runs that are compared lie in one folder, where their votes are kept; these lie in "
            f"{len(folders)}: copy them"
        )
    return folders[0] / FILE


def study_of(votes: Votes, refs: Sequence[RunRef]) -> Study:
    """The study of these runs, which must have begun."""
    with readers(refs) as runs:
        found = votes.study([run.info.id for run in runs])
    if found is None:
        raise UsageError(
            "no pairs have been drawn from these runs: `parley annotate RUN…` draws them"
        )
    return found


def prepared(
    votes: Votes, refs: Sequence[RunRef], pairs: int | None, seed: int | None, ties: bool | None
) -> Study:
    """The study of these runs, with as many pairs as are wanted, or as there are; drawn when it is
    asked for first."""
    with readers(refs) as runs:
        ids = [run.info.id for run in runs]
        study = votes.study(ids)
        if study is not None:
            refuse_otherwise(study, seed, ties)
        known = [] if study is None else list(votes.pairs(study).values())
        if pairs is not None and pairs < len(known):
            raise UsageError(
                f"{len(known)} pairs have been drawn, and stay: --pairs can only be more"
            )
        if known and pairs in (None, len(known)):
            assert study is not None
            return study
        possible = candidates(interviews(runs))
        if not possible:
            raise UsageError(
                "no two models have finished interviews on the same question with different scores"
            )
        study = study or votes.begin(ids, seed or 0, bool(ties))
        votes.add(
            study, drawn(possible, (pairs or USUAL) - len(known), study.seed, known), len(known)
        )
        return study


def refuse_otherwise(study: Study, seed: int | None, ties: bool | None) -> None:
    """What a study began with stays: votes under different rules do not go together."""
    if seed is not None and seed != study.seed:
        raise UsageError(
            f"the pairs of these runs were drawn with the seed {study.seed}, not {seed}"
        )
    if ties and not study.ties:
        raise UsageError(
            "the pairs of these runs were drawn without ties, "
            "and votes have been asked for without them"
        )


def sheet(number: int, pair: Pair, refs: Mapping[str, RunRef]) -> Sheet:
    """What an annotator is to see of a pair; `refs` has each run by its id."""
    sides = []
    for side in (pair.a, pair.b):
        with read_run(refs[side.run]) as reader:
            items = {item["id"]: item for item in reader.items()}
            match = reader.match(side.match)
            if pair.item not in items or match is None:
                raise StoreError(
                    f"{reader.info.ref.location} does not hold the interviews that were drawn "
                    "from it"
                )
            # Who judges again may stop earlier: people see what was judged.
            sides.append(
                exchanges(
                    [call for call in reader.calls(side.match) if call.round <= (match.rounds or 0)]
                )
            )
    question = Question(**{**items[pair.item], "choices": tuple(items[pair.item]["choices"])})
    right = f"{question.answer}. {question.right}" if question.choices else question.answer
    return Sheet(number, question.question, question.lettered, right, *sides)


def exchanges(calls: Sequence[RecordedCall]) -> tuple[Exchange, ...]:
    """An interview as it went: the first answer, then question and reply; of several attempts the
    last one counts."""
    last = {
        (call.round, call.seat.role): call.reply
        for call in calls
        if call.seat.role in ("candidate", "interactor")
    }
    found, asked = [], ""
    for (_, role), reply in sorted(last.items(), key=lambda each: each[0]):
        if role == "interactor":
            asked = text_of(reply.content)
        else:
            found.append(Exchange(asked, text_of(reply.content).strip(), reply.finish == "length"))
    return tuple(found)


def results(votes: Votes, study: Study) -> dict[str, Any]:
    """All that people's votes say, as data."""
    pairs, given = votes.pairs(study), votes.votes(study)
    ballots = [ballot(pair, given[number]) for number, pair in pairs.items()]
    choices = [list(each.votes.values()) for each in ballots]
    datasets = sorted({each.dataset for each in ballots})
    groups = [(None, ballots)] + [
        (name, [each for each in ballots if each.dataset == name]) for name in datasets
    ]
    names = [person.name for person in votes.annotators(study)]
    changed = votes.replaced(study)
    said = [majority_choice(each) for each in choices]
    return {
        "schema": "parley.annotation/1",
        "runs": list(study.runs),
        "seed": study.seed,
        "ties": study.ties,
        "pairs": {
            "drawn": len(ballots),
            "settled": sum(each is not None for each in said),
            "undecided": sum(
                each is None and not votes_needed(votes)
                for each, votes in zip(said, choices, strict=True)
            ),
            "open": sum(votes_needed(each) > 0 for each in choices),
        },
        "votes": {
            "given": sum(map(len, choices)),
            "wanted": sum(map(votes_needed, choices)),
            "changed": sum(changed.values()),
            **{
                f"for_{side.lower()}": sum(each.count(side) for each in choices)
                for side in people.CHOICES
            },
        },
        "conflicts": conflicts(ballots),
        "annotators": [
            {
                "name": name,
                "votes": sum(name in each.votes for each in ballots),
                "changed": changed.get(name, 0),
            }
            for name in names
        ],
        "kappa": [
            {"dataset": name, **estimated(people.kappa_of_first_votes(group))}
            for name, group in groups
        ],
        "between": [
            {"first": one, "second": other, **estimated(found)}
            for one, other in combinations(sorted(names), 2)
            if (found := people.kappa_between(ballots, one, other)).n
        ],
        "agreement": [
            {"dataset": name, **estimated(people.agreement_with_scores(group))}
            for name, group in groups
        ],
        "models": [
            {"model": name, **estimated(people.win_rate(ballots, name))}
            for name in sorted({name for each in ballots for name in each.models})
        ],
    }


def ballot(pair: Pair, votes: Mapping[str, people.Choice]) -> Ballot:
    """A pair with its votes, as the figures need it."""
    return Ballot(pair.dataset, pair.item, pair.models, better(pair.a, pair.b), votes)


def better(a: Side, b: Side) -> people.Choice:
    return "A" if a.score > b.score else "B"


def conflicts(ballots: Sequence[Ballot]) -> dict[str, int]:
    """On how many pairs the first two differ, and what became of that."""
    found = [
        each
        for each in ballots
        if len(each.votes) >= people.VOTERS and people.first_votes_differ(each)
    ]
    said = [(majority_choice(list(each.votes.values())), each) for each in found]
    return {
        "found": len(found),
        "for_the_order": sum(choice == each.better for choice, each in said),
        "against_it": sum(
            choice is not None and choice not in ("tie", each.better) for choice, each in said
        ),
        "tie": sum(choice == "tie" for choice, _ in said),
        "undecided": sum(
            choice is None and not votes_needed(list(each.votes.values())) for choice, each in said
        ),
        "open": sum(votes_needed(list(each.votes.values())) > 0 for _, each in said),
    }


def estimated(found: Estimate) -> dict[str, Any]:
    """A figure as data: what is unknown is None."""
    low, high, kind = found.interval
    return {
        "value": found.value, "low": low, "high": high, "interval": kind,
        "pairs": found.n, "questions": found.blocks, "missing": found.dropped,
    }  # fmt: skip

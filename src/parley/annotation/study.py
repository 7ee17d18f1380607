"""A study: the pairs of conversations that people compare, and the results of their votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import combinations
from typing import Any

from parley.annotation.pair_sampling import collect_conversations, list_pairs, sample_pairs
from parley.annotation.sheets import format_of_runs
from parley.errors import UsageError
from parley.results.human_votes import collect_ballots, estimate_as_json
from parley.statistics import preferences
from parley.statistics.preferences import (
    Ballot,
    majority_choice,
    votes_needed,
)
from parley.store import read_run
from parley.store.pair_votes import VoteStore
from parley.store.reader import RunReader
from parley.store.types import RunRef, Study

DEFAULT_PAIRS = 100


@contextmanager
def open_runs(refs: Sequence[RunRef]) -> Iterator[list[RunReader]]:
    """The runs, each once, in an order that does not depend on how they were named."""
    with ExitStack() as stack:
        found = {
            reader.info.id: reader
            for reader in [stack.enter_context(read_run(ref)) for ref in refs]
        }
        yield [found[id] for id in sorted(found)]


def find_study(votes: VoteStore, refs: Sequence[RunRef]) -> Study:
    """The study of these runs, which must have begun."""
    with open_runs(refs) as runs:
        found = votes.find_study([run.info.id for run in runs])
    if found is None:
        raise UsageError(
            "no pairs have been drawn from these runs yet: run `parley annotate draw RUN…` first"
        )
    return found


def prepare_study(
    votes: VoteStore,
    refs: Sequence[RunRef],
    pairs: int | None,
    seed: int | None,
    ties: bool | None,
) -> Study:
    """The study of these runs, with the requested number of pairs, or as many as there are. Pairs
    that were sampled before stay; until somebody has seen one, fewer pairs or another random seed
    sample all pairs again."""
    with open_runs(refs) as runs:
        ids = [run.info.id for run in runs]
        study = votes.find_study(ids)
        known = [] if study is None else list(votes.pairs(study).values())
        if study is not None and (fault := find_conflict(study, len(known), pairs, seed, ties)):
            fresh = votes.reset_study(
                study, study.seed if seed is None else seed, bool(ties) or study.ties
            )
            if fresh is None:
                raise UsageError(fault)
            study, pairs, known = fresh, pairs or len(known), []
        if known and pairs in (None, len(known)):
            assert study is not None
            return study
        sheet = format_of_runs(runs)
        possible = list_pairs(collect_conversations(runs, sheet.metric, sheet.role))
        if not possible:
            raise UsageError(
                "there are no pairs to draw: a pair needs finished conversations of two models "
                "on the same item, with different scores"
            )
        study = study or votes.create_study(ids, seed or 0, bool(ties))
        wanted = (pairs or DEFAULT_PAIRS) - len(known)
        votes.add_pairs(study, sample_pairs(possible, wanted, study.seed, known), len(known))
        return study


def find_conflict(
    study: Study, drawn: int, pairs: int | None, seed: int | None, ties: bool | None
) -> str:
    """What is wrong with settings that differ from those of the study; empty if nothing. Votes
    under different rules cannot be combined."""
    if seed is not None and seed != study.seed:
        return (
            f"the pairs of these runs were drawn with random seed {study.seed}, which cannot "
            f"change to {seed} after somebody has seen a pair: remove --seed"
        )
    if ties and not study.ties:
        return (
            "the pairs of these runs were drawn without ties, which cannot change after somebody "
            "has seen a pair: remove --ties"
        )
    if pairs is not None and pairs < drawn:
        return (
            f"--pairs must be at least {drawn}, the number of pairs drawn so far, not {pairs}: "
            "somebody has seen a pair already"
        )
    return ""


def summarise_votes(votes: VoteStore, study: Study) -> dict[str, Any]:
    """The results of the votes, as data (schema parley.annotation/1)."""
    ballots = collect_ballots(votes, study)
    choices = [list(each.votes.values()) for each in ballots]
    datasets = sorted({each.dataset for each in ballots})
    groups = [(None, ballots)] + [
        (name, [each for each in ballots if each.dataset == name]) for name in datasets
    ]
    annotators, replaced = votes.annotators(study), votes.count_replaced(study)
    names = [person.name for person in annotators]
    said = [majority_choice(each) for each in choices]
    # the votes of one person are a result as well, but without any measure of agreement
    single = len({name for each in ballots for name in each.votes}) == 1
    return {
        "schema": "parley.annotation/1",
        "runs": list(study.runs),
        "seed": study.seed,
        "ties": study.ties,
        "single_annotator": single,
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
            "changed": sum(replaced.values()),
            **{
                f"for_{side.lower()}": sum(each.count(side) for each in choices)
                for side in preferences.CHOICES
            },
        },
        "conflicts": count_conflicts(ballots),
        "annotators": [
            {
                "name": person.name,
                "votes": sum(person.name in each.votes for each in ballots),
                "changed": replaced.get(person.id, 0),
            }
            for person in annotators
        ],
        "kappa": [
            {"dataset": name, **estimate_as_json(preferences.kappa_of_first_votes(group))}
            for name, group in groups
        ],
        "between": [
            {"first": one, "second": other, **estimate_as_json(found)}
            for one, other in combinations(sorted(names), 2)
            if (found := preferences.kappa_between(ballots, one, other)).n
        ],
        "agreement": [
            {"dataset": name, **estimate_as_json(preferences.agreement_with_scores(group, single))}
            for name, group in groups
        ],
        "models": [
            {"model": name, **estimate_as_json(preferences.win_rate(ballots, name, single))}
            for name in sorted({name for each in ballots for name in each.models})
        ],
    }


def count_conflicts(ballots: Sequence[Ballot]) -> dict[str, int]:
    """The number of pairs on which the first two votes differ, and how these were settled."""
    found = [
        each
        for each in ballots
        if len(each.votes) >= preferences.VOTERS and preferences.first_votes_differ(each)
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

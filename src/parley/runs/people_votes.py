"""Between two stages of a run whose feedback people give: which matches lack a vote, and what the
votes say once they are all there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from parley.config.prepare import Prepared
from parley.memory.feedback import PeopleVerdict, VerdictChoice
from parley.plans import MatchSpec
from parley.plans.evolve import EvolvePlan
from parley.plans.evolve_settings import PROBE
from parley.rules.pool import Seat
from parley.runs.experience_builder import ExperienceBuilder
from parley.store.types import VerdictVotes
from parley.tables import plural

SHOWN = 10  # numbers of matches that a message lists


def arms_that_ask(prepared: Prepared, matches: Sequence[MatchSpec]) -> set[str]:
    """The arms of a stage in which people decide what is remembered."""
    assert prepared.config.evolve is not None
    arms = prepared.config.evolve.arms
    names = {spec.arm.removesuffix(PROBE) for spec in matches} - {""}
    return {name for name in names if arms[name].asks_people}


def count_verdict(match: int, seat: Seat, votes: Mapping[str, VerdictChoice]) -> PeopleVerdict:
    """What people said of one seat."""
    counts = Counter(votes.values())
    return PeopleVerdict(match, seat, counts["yes"], counts["no"], counts["unsure"])


def describe_missing_votes(
    places: Sequence[tuple[int, Seat]], votes: VerdictVotes, stage: int
) -> str:
    """Say how many matches of a stage lack a vote, and which; empty if all have one."""
    lacking = [place for place in places if not votes.get(place)]
    if not lacking:
        return ""
    matches, of = ({match for match, _ in each} for each in (lacking, places))
    numbers = ", ".join(map(str, sorted(matches)[:SHOWN]))
    more = f" and {len(matches) - SHOWN:,} more" if len(matches) > SHOWN else ""
    which = f": {numbers}{more}" if len(matches) < len(of) else ""
    seats = "" if len(places) == len(of) else f", {plural(len(lacking), 'vote')} in all"
    return (
        f"{len(matches):,} of {plural(len(of), 'match', 'matches')} of {name_stage(stage)} "
        f"{'lacks' if len(matches) == 1 else 'lack'} a vote{seats}{which}"
    )


def count_wanted_votes(prepared: Prepared) -> dict[int, int]:
    """How many votes people will be asked for by stage, if every match is played to its end. One
    vote on each seat is enough."""
    evolve, plan = prepared.config.evolve, prepared.plan
    if evolve is None or not isinstance(plan, EvolvePlan):
        return {}
    if not any(arm.asks_people for arm in evolve.arms.values()):
        return {}
    builder, found = ExperienceBuilder(prepared, evolve.arms), Counter[int]()
    for stage, matches in pairwise(plan.stages):
        arms = arms_that_ask(prepared, matches)
        for spec in stage:
            for seat in spec.seats:
                found[spec.stage] += any(
                    builder.is_judged_by_people(spec, seat, arm) for arm in arms
                )
    return {stage: count for stage, count in found.items() if count}


def describe_wanted_votes(votes: Mapping[int, int]) -> str:
    """Say how many votes a run needs, and when."""
    shown = [f"{count:,} after {name_stage(stage)}" for stage, count in list(votes.items())[:SHOWN]]
    more = ["…"] * (len(votes) > SHOWN)
    return (
        "this run stops and waits for people's votes, up to "
        f"{plural(sum(votes.values()), 'vote')} in all: {', '.join([*shown, *more])}"
    )


def name_stage(stage: int) -> str:
    """A stage as users know it."""
    return "the standard stage" if stage == 0 else f"stage {stage}"

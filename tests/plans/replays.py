"""Asks a plan for its matches."""

from parley.plans import Done, EndedMatches, PlanCursor


def replay_plan(plan, scores):
    """All matches that a plan asks for, given the scores so far, and how it ends, if it does."""
    specs, cursor = {}, PlanCursor(plan, EndedMatches(scores))
    while (matches := cursor.next_matches()) is not None:
        if isinstance(matches, Done):
            return specs, matches
        specs |= {spec.number: spec for spec in matches}
    return specs, None


def first_matches(plan):
    """The matches that a plan asks for before it knows any score."""
    return list(next(plan.matches(EndedMatches({}))))

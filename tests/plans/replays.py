"""Asks a plan for its matches."""

from parley.plans import Done, PlanCursor, ScoreTable


def replay_plan(plan, scores):
    """All matches that a plan asks for, given the scores so far, and how it ends, if it does."""
    specs, cursor = {}, PlanCursor(plan, ScoreTable(scores))
    while (batch := cursor.next_batch()) is not None:
        if isinstance(batch, Done):
            return specs, batch
        specs |= {spec.number: spec for spec in batch}
    return specs, None


def first_batch(plan):
    """The matches that a plan asks for before it knows any score."""
    return list(next(plan.batches(ScoreTable({}))))

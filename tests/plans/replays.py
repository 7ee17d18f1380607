"""Asks a plan for its matches."""

from parley.plans import Done, ScoreTable


def replay_plan(plan, scores):
    """All matches that a plan asks for, given the scores so far, and how it ends, if it does."""
    specs = {}
    for batch in plan.batches(ScoreTable(scores)):
        if isinstance(batch, Done):
            return specs, batch
        specs |= {spec.number: spec for spec in batch}
        if not specs.keys() <= scores.keys():
            return specs, None
    raise AssertionError("a plan ends with Done")


def first_batch(plan):
    """The matches that a plan asks for before it knows any score."""
    return list(next(plan.batches(ScoreTable({}))))
